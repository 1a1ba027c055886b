package response

import "io"

// EndLines reads a text so that its last line is ended.
func EndLines(src io.Reader) io.Reader { return &lines{src: src} }

type lines struct {
	src  io.Reader
	last byte
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.src.Read(p)
	if n > 0 {
		l.last = p[n-1]
	}
	if err == io.EOF && n < len(p) && l.last != 0 && l.last != '\n' {
		p[n], l.last = '\n', '\n'
		n++
	}
	return n, err
}
