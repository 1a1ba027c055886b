package relay

import (
	"bytes"
	"io"
	"sync/atomic"

	"gateway/shared/fault"
)

// set gives the body, or its head, with another value of one field; a field
// that is not there is put first.
func (f *form) set(dst []byte, name, value string) []byte {
	for i := range f.fields {
		if s := f.fields[i].span; f.fields[i].name == name {
			dst = append(dst, f.head[:s[0]]...)
			dst = append(dst, value...)
			if !bytes.HasPrefix(f.head[s[1]:], []byte("\r\n")) {
				dst = append(dst, "\r\n"...) // there was no value: its boundary began in the header's end
			}
			return append(dst, f.head[s[1]:]...)
		}
	}
	dst = append(append(append(dst, "--"...), f.boundary...), "\r\nContent-Disposition: form-data; name=\""...)
	dst = append(append(append(dst, name...), "\"\r\n\r\n"...), value...)
	return append(append(dst, "\r\n"...), bytes.TrimPrefix(f.head, []byte("\r\n"))...)
}

// Form is what a route's check may look at: the fields that were read.
type Form struct{ f *form }

// Get gives the value of a field.
func (f Form) Get(name string) (string, bool) { return f.f.get(name) }

// Whole tells whether all parts were seen. If not, a field that is missing may
// still come behind the first file.
func (f Form) Whole() bool { return f.f.whole }

// HasFile tells whether a file stands under a name, or under name[].
func (f Form) HasFile(name string) bool { return f.f.hasFile(name) }

// formBody is the form for the target, when it is held whole: nil otherwise.
func (c *call) formBody() []byte {
	if !c.form.whole {
		return nil
	}
	if c.to.upstream == "" || c.formModelIs(c.to.upstream) {
		return c.in
	}
	c.sendBuf.b = c.form.set(c.sendBuf.b[:0], "model", c.to.upstream)
	return c.sendBuf.b
}

func (c *call) formModelIs(model string) bool {
	sent, ok := c.form.get("model")
	return ok && sent == model
}

// formStream is the body of a long form: its head with the model that was
// decided on, then the client's own bytes. length is -1 when it is not known.
func (c *call) formStream() (body io.ReadCloser, length int64) {
	head := c.form.head
	// A model that was not seen stands behind the file, or nowhere.
	if _, seen := c.form.get("model"); seen && c.to.upstream != "" && !c.formModelIs(c.to.upstream) {
		head = c.form.set(nil, "model", c.to.upstream)
	}
	length = c.req.ContentLength
	rest := int64(-1)
	if length >= 0 {
		rest = length - int64(len(c.form.head))
		length = rest + int64(len(head))
	}
	limit := c.bodyLimit() - int64(len(c.form.head))
	c.upload = &upload{head: head, src: c.req.Body, left: rest, room: limit, limit: c.bodyLimit(), closing: []byte("--" + c.form.boundary + "--")}
	c.upload.remember(c.form.head)
	return c.upload, length
}

// upload is the body of a request that is streamed through. It does not give
// the last bytes of a body that is cut short, so that a provider never takes it
// for whole.
type upload struct {
	head    []byte
	src     io.ReadCloser
	left    int64 // bytes of src still to come; -1: not known
	room    int64 // bytes that may still come
	limit   int64
	closing []byte
	tail    []byte
	fault   atomic.Pointer[fault.Fault] // what is wrong with the client's body
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if len(u.head) > 0 {
		n := copy(p, u.head)
		u.head = u.head[n:]
		return n, nil
	}
	switch {
	case u.fault.Load() != nil:
		return 0, u.fault.Load()
	case u.left == 0:
		return 0, io.EOF
	case u.left > 0 && int64(len(p)) > u.left:
		p = p[:u.left]
	}
	n, err := u.src.Read(p)
	u.remember(p[:n])
	u.room -= int64(n)
	if u.left > 0 {
		u.left -= int64(n)
	}
	var f *fault.Fault
	switch {
	case u.room < 0:
		f = fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", u.limit)
	case err != nil && err != io.EOF:
		f = unreadable(err)
	case err == io.EOF && u.left > 0:
		f = unreadable(io.ErrUnexpectedEOF)
	case (err == io.EOF || u.left == 0) && !bytes.Contains(u.tail, u.closing):
		f = fault.Invalid("body", "ended before its closing boundary")
	}
	if f != nil {
		u.fault.Store(f)
		return 0, f
	}
	return n, err
}

func (u *upload) remember(p []byte) {
	if len(p) >= maxFormTail {
		u.tail = append(u.tail[:0], p[len(p)-maxFormTail:]...)
		return
	}
	if over := len(u.tail) + len(p) - maxFormTail; over > 0 {
		u.tail = append(u.tail[:0], u.tail[over:]...)
	}
	u.tail = append(u.tail, p...)
}

// Close implements io.Closer. The server closes the client's body.
func (u *upload) Close() error { return nil }
