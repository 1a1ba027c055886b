package mask

import (
	"io"
)

// Body is a body that is read with its secrets masked. Bytes that may begin a secret are
// held back until more has come.
type Body struct {
	io.ReadCloser
	secrets []string
	hold    int // bytes of the longest secret in its longest spelling
	buf     []byte
	ready   int // bytes of buf that can be given out
	err     error
}

// NewBody reads body without secrets.
func NewBody(body io.ReadCloser, secrets []string) *Body {
	s := &Body{ReadCloser: body, secrets: secrets}
	for _, v := range secrets {
		s.hold = max(s.hold, 8*len(v))
	}
	return s
}

// Read implements io.Reader.
func (s *Body) Read(p []byte) (int, error) {
	for s.ready == 0 && s.err == nil {
		at := len(s.buf)
		s.buf = append(s.buf, make([]byte, 4<<10)...)
		var n int
		n, s.err = s.ReadCloser.Read(s.buf[at:])
		s.buf = s.buf[:at+n]
		Bytes(s.buf, s.secrets)
		if s.ready = len(s.buf); s.err == nil {
			s.ready = max(0, len(s.buf)-s.hold)
		}
	}
	if s.ready == 0 {
		return 0, s.err
	}
	n := copy(p, s.buf[:s.ready])
	s.buf, s.ready = s.buf[n:], s.ready-n
	return n, nil
}
