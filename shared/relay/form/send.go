package form

import (
	"bytes"
	"io"
	"sync/atomic"

	"gateway/shared/fault"
)

// Set returns the body, or its head, with another value of one field; a missing field is added
// first.
func (f *Form) Set(dst []byte, name, value string) []byte {
	for i := range f.fields {
		if s := f.fields[i].span; f.fields[i].name == name {
			dst = append(dst, f.head[:s[0]]...)
			dst = append(dst, value...)
			if !bytes.HasPrefix(f.head[s[1]:], []byte("\r\n")) {
				dst = append(dst, "\r\n"...) // the value was empty: its boundary started at the header's end
			}
			return append(dst, f.head[s[1]:]...)
		}
	}
	dst = append(append(append(dst, "--"...), f.boundary...), "\r\nContent-Disposition: form-data; name=\""...)
	dst = append(append(append(dst, name...), "\"\r\n\r\n"...), value...)
	return append(append(dst, "\r\n"...), bytes.TrimPrefix(f.head, []byte("\r\n"))...)
}

// Is reports whether the form has the field with this value.
func (f *Form) Is(name, value string) bool {
	sent, ok := f.Get(name)
	return ok && sent == value
}

// Stream returns the body of an incomplete form: its beginning with another model, unless that
// is "" or follows the first file, then the rest of src. contentLength is that of the client's
// body, -1 if unknown; length is that of the result. limit applies to the client's body;
// unreadable translates its read errors.
func (f *Form) Stream(src io.ReadCloser, model string, contentLength, limit int64, unreadable func(error) *fault.Fault) (u *Upload, length int64) {
	head := f.head
	if _, seen := f.Get("model"); (seen || f.Nameless) && model != "" && !f.Is("model", model) {
		head = f.Set(nil, "model", model)
	}
	rest := int64(-1)
	if length = contentLength; length >= 0 {
		rest = length - int64(len(f.head))
		length = rest + int64(len(head))
	}
	u = &Upload{
		head: head, src: src, left: rest, room: limit - int64(len(f.head)), limit: limit,
		closing: []byte("--" + f.boundary + "--"), unreadable: unreadable,
	}
	u.remember(f.head)
	return u, length
}

// Upload is the body of a streamed request. It withholds the last bytes of a truncated body, so
// that a provider never accepts it as complete.
type Upload struct {
	head       []byte
	src        io.ReadCloser
	left       int64 // bytes of src not yet read; -1: unknown
	room       int64 // bytes that may still arrive
	limit      int64
	closing    []byte
	unreadable func(error) *fault.Fault
	tail       []byte
	fault      atomic.Pointer[fault.Fault] // fault of the client's body
}

// Read implements io.Reader.
func (u *Upload) Read(p []byte) (int, error) {
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
		f = u.unreadable(err)
	case err == io.EOF && u.left > 0:
		f = u.unreadable(io.ErrUnexpectedEOF)
	case (err == io.EOF || u.left == 0) && !bytes.Contains(u.tail, u.closing):
		f = fault.Invalid("body", "ended before its closing boundary")
	}
	if f != nil {
		u.fault.Store(f)
		return 0, f
	}
	return n, err
}

func (u *Upload) remember(p []byte) {
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
func (u *Upload) Close() error { return nil }

// Fault returns the fault of the client's body; nil if there is none.
func (u *Upload) Fault() *fault.Fault { return u.fault.Load() }
