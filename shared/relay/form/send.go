package form

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
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
		head: head, src: src, left: rest, remaining: limit - int64(len(f.head)), limit: limit,
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
	remaining  int64 // bytes that may still arrive
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
	u.remaining -= int64(n)
	if u.left > 0 {
		u.left -= int64(n)
	}
	var f *fault.Fault
	switch {
	case u.remaining < 0:
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

// FieldsFirst is the part of a form after its first file, which is not buffered. It ends with an
// error before the value of a field, so that the receiver gets only the fields that precede the
// file. It implements io.ReadCloser.
type FieldsFirst struct {
	src       io.ReadCloser
	delimiter []byte // what precedes a part, without its line break
	tail      []byte // the last bytes read, which may contain the start of a delimiter or a header
	closed    bool   // the closing delimiter was read
	fault     atomic.Pointer[fault.Fault]
}

// FieldsFirst returns src without fields. The form must not be complete, and src must be the
// rest after its head.
func (f *Form) FieldsFirst(src io.ReadCloser) *FieldsFirst {
	held := bytes.Clone(f.head[f.rest-2:]) // the line break before an empty file is that of its header
	r := &FieldsFirst{src: src, delimiter: []byte("--" + f.boundary), tail: held}
	r.scan(nil, false)
	return r
}

// Read implements io.Reader.
func (r *FieldsFirst) Read(p []byte) (int, error) {
	if f := r.fault.Load(); f != nil {
		return 0, f
	}
	n, err := r.src.Read(p)
	r.scan(p[:n], err == io.EOF)
	if f := r.fault.Load(); f != nil {
		return 0, f
	}
	return n, err
}

// Close implements io.Closer.
func (r *FieldsFirst) Close() error { return r.src.Close() }

// Fault returns the fault of the form; nil if there is none.
func (r *FieldsFirst) Fault() *fault.Fault { return r.fault.Load() }

// scan reads the headers of the parts that start in the retained bytes and p; ended: src has
// ended.
func (r *FieldsFirst) scan(p []byte, ended bool) {
	text := append(r.tail, p...)
	for !r.closed {
		i := bytes.Index(text, r.delimiter)
		if i < 0 {
			text = text[max(0, len(text)-len(r.delimiter)-2):]
			break
		}
		if i == 0 || text[i-1] != '\n' && text[i-1] != '\r' { // not at the beginning of a line
			text = text[i+1:]
			continue
		}
		crlf := i > 1 && text[i-2] == '\r' && text[i-1] == '\n'
		head := text[i+len(r.delimiter):]
		switch end := bytes.Index(head, []byte("\r\n\r\n")); {
		case crlf && bytes.HasPrefix(head, []byte("--")):
			r.closed = true
		case crlf && end >= 0 && end <= maxPartHead:
			name, file := fileIn(head[:end])
			if !file || strings.EqualFold(name, "model") { // some parsers read a file as a field
				r.reject(name)
				return
			}
			text = head[end+2:]
			continue
		case crlf && end < 0 && len(head) <= maxPartHead && !ended && plainLines(bytes.TrimSuffix(head, []byte("\r"))) == nil:
			text = text[i-2:] // the rest of the header follows
		default:
			r.reject("")
			return
		}
		break
	}
	r.tail = append(r.tail[:0], text...)
	if r.closed {
		r.tail = r.tail[:0]
	}
}

// fileIn reads what follows a delimiter: the end of its line, and the header of a part.
func fileIn(head []byte) (name string, file bool) {
	padding, lines, ok := bytes.Cut(head, []byte("\r\n"))
	if !ok || len(bytes.TrimLeft(padding, " \t")) > 0 || plainLines(lines) != nil {
		return "", false
	}
	name, file, err := PartName(lines)
	return name, file && err == nil
}

func (r *FieldsFirst) reject(name string) {
	r.fault.Store(fault.Newf(fault.BodyTooLarge, "body", "has a field %q after its first file, and is longer than %d bytes, so that it cannot be checked; put all fields before the files", fault.Clip(name, 100), MaxReplay))
}

// FormFile is the only file of a form that is read as a stream. Read returns the file's bytes.
type FormFile struct {
	Name   string // of the file; "" when it has none
	parts  *multipart.Reader
	part   *multipart.Part
	fields map[string]string
	broken func(error) error
}

// OpenFormFile reads the fields before the file. broken translates a read error.
func OpenFormFile(src io.Reader, boundary string, broken func(error) error) (*FormFile, error) {
	f := &FormFile{parts: multipart.NewReader(src, boundary), fields: make(map[string]string), broken: broken}
	var err error
	if f.part, err = f.next(); err != nil {
		return nil, err
	}
	if f.part == nil {
		return nil, fault.Invalid("file", "file is required: the file to upload")
	}
	f.Name = f.part.FileName()
	return f, nil
}

// Rest reads the form after the file and returns all fields.
func (f *FormFile) Rest() (map[string]string, error) {
	more, err := f.next()
	if err == nil && more != nil {
		err = fault.Invalid("file", "file must be the only file of the form")
	}
	return f.fields, err
}

// Read implements io.Reader.
func (f *FormFile) Read(b []byte) (int, error) {
	n, err := f.part.Read(b)
	if err != nil && err != io.EOF {
		err = f.broken(err)
	}
	return n, err
}

// next reads fields until a file starts; nil at the end of the form.
func (f *FormFile) next() (*multipart.Part, error) {
	for range MaxParts {
		part, err := f.parts.NextRawPart()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, f.broken(err)
		}
		if _, file, err := PartName([]byte("Content-Disposition: " + part.Header.Get("Content-Disposition"))); err == nil && file {
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, MaxHead+1))
		if err != nil {
			return nil, f.broken(err)
		}
		if len(text) > MaxHead {
			return nil, fault.Newf(fault.BodyTooLarge, part.FormName(), "must have at most %d bytes", MaxHead)
		}
		if _, twice := f.fields[part.FormName()]; twice && !strings.HasSuffix(part.FormName(), "[]") {
			return nil, fault.Invalid(part.FormName(), "%s occurs twice in the form", part.FormName())
		}
		f.fields[part.FormName()] = string(text)
	}
	return nil, fault.Invalid("body", "has more than %d parts", MaxParts)
}
