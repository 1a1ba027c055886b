package form

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"

	"gateway/shared/fault"
)

// FieldsFirst is the part of a form after its first file, which is not buffered. It ends with an
// error before the value of a field, so that the receiver gets only the fields that precede the
// file. It implements io.ReadCloser.
type FieldsFirst struct {
	src       io.ReadCloser
	delimiter []byte // what precedes a part, without its line break
	held      []byte // the last bytes read, which may contain the start of a delimiter or a header
	closed    bool   // the closing delimiter was read
	fault     atomic.Pointer[fault.Fault]
}

// FieldsFirst returns src without fields. The form must not be complete, and src must be the
// rest after its head.
func (f *Form) FieldsFirst(src io.ReadCloser) *FieldsFirst {
	r := &FieldsFirst{src: src, delimiter: []byte("--" + f.boundary)}
	r.held = bytes.Clone(f.head[f.rest-2:]) // the line break before an empty file is that of its header
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
	text := append(r.held, p...)
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
				r.refuse(name)
				return
			}
			text = head[end+2:]
			continue
		case crlf && end < 0 && len(head) <= maxPartHead && !ended && plainLines(bytes.TrimSuffix(head, []byte("\r"))) == nil:
			text = text[i-2:] // the rest of the header follows
		default:
			r.refuse("")
			return
		}
		break
	}
	r.held = append(r.held[:0], text...)
	if r.closed {
		r.held = r.held[:0]
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

func (r *FieldsFirst) refuse(name string) {
	r.fault.Store(fault.Newf(fault.BodyTooLarge, "body", "has a field %q after its first file, and is longer than %d bytes, so that it cannot be checked; put all fields before the files", fault.Clip(name, 100), MaxReplay))
}
