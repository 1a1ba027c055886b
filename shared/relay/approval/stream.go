package approval

import (
	"bytes"
	"crypto/rand"
	"io"
)

// ConcealStream is Conceal for a streamed body, such as an upload. The random parts are
// overwritten and not removed, so that the length of the body does not change. Nothing else is
// changed: only the gateway creates ids of this form.
func ConcealStream(src io.ReadCloser) io.ReadCloser { return &concealing{src: src} }

type concealing struct {
	src  io.ReadCloser
	held []byte // read but not returned
	safe int    // bytes of held without an id
	err  error
}

// lengthOfID is the length of the start of an id, including its random part.
var lengthOfID = len(Prefix) + len(rand.Text()) + 1

// Read implements io.Reader.
func (c *concealing) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty read never ends the loop below
	}
	for c.safe == 0 && c.err == nil {
		var n int
		n, c.err = c.src.Read(p)
		from := max(0, len(c.held)-lengthOfID)
		c.held = append(c.held, p[:n]...)
		overwrite(c.held[from:])
		if c.safe = max(0, len(c.held)-lengthOfID+1); c.err != nil {
			c.safe = len(c.held)
		}
	}
	if c.safe == 0 {
		return 0, c.err
	}
	n := copy(p, c.held[:c.safe])
	c.held, c.safe = append(c.held[:0], c.held[n:]...), c.safe-n
	return n, nil
}

// Close implements io.Closer.
func (c *concealing) Close() error { return c.src.Close() }

// overwrite overwrites the random parts of the ids in a text.
func overwrite(text []byte) {
	for {
		at := bytes.Index(text, []byte(Prefix))
		if at < 0 || len(text)-at < lengthOfID {
			return
		}
		secret := text[at+len(Prefix) : at+lengthOfID-1]
		if text[at+lengthOfID-1] == '_' && !bytes.ContainsFunc(secret, notBase32) {
			for i := range secret {
				secret[i] = 'A'
			}
		}
		text = text[at+len(Prefix):]
	}
}
