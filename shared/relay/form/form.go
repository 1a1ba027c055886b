// Package form reads multipart/form-data bodies as far as they are held in memory,
// sets one field of them, and streams the rest through without ever giving the
// last bytes of a body that is cut short. What the fields mean is others' to say.
package form

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Limits of multipart bodies, in bytes unless stated otherwise.
const (
	MaxReplay     = 8 << 20  // a form up to this size is buffered and can be sent again
	MaxHead       = 1 << 20  // the fields before the first file of a longer one
	maxPartHead   = 16 << 10 // the header of one part
	MaxParts      = 256      // parts that are read
	maxFormTail   = 1 << 10  // the end, which must contain the closing boundary
	maxBoundary   = 70       // characters, as RFC 2046 allows
	headReadBytes = 32 << 10
)

// Form is a parsed multipart body: all of it if it is buffered, else its beginning up to the
// first file. Offsets are into head.
type Form struct {
	boundary string
	head     []byte // all of the body if complete
	whole    bool
	fields   []field
	files    []Attachment
	rest     int // start of the first file's content, in an incomplete form

	// Nameless reports that the URL names the model and no field does.
	Nameless bool
}

// Attachment is a part of a form that is a file.
type Attachment struct {
	Name string // of the field
	Type string // Content-Type of the part; empty if it has none
	Body []byte // nil if the form is incomplete
}

// field is one field and the position of its value.
type field struct {
	name  string
	value []byte
	span  [2]int
}

// Get returns the value of the first field with a name.
func (f *Form) Get(name string) (string, bool) {
	if f == nil {
		return "", false
	}
	for i := range f.fields {
		if f.fields[i].name == name {
			return string(f.fields[i].value), true
		}
	}
	return "", false
}

// Fields returns the fields that were read, in their order.
func (f *Form) Fields() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for i := range f.fields {
			if !yield(f.fields[i].name, string(f.fields[i].value)) {
				return
			}
		}
	}
}

// Attachments returns the files that were read. They are in the memory of the form.
func (f *Form) Attachments() []Attachment { return f.files }

// Text returns the bytes of text in the fields.
func (f *Form) Text() (n int64) {
	for i := range f.fields {
		n += int64(len(f.fields[i].value))
	}
	return n
}

// HasFile reports whether there is a file under the name, or under name[].
func (f *Form) HasFile(name string) bool {
	for i := range f.files {
		if n := f.files[i].Name; n == name || n == name+"[]" {
			return true
		}
	}
	return false
}

// BoundaryOf reads the boundary of a multipart/form-data content type.
func BoundaryOf(contentType string) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route accepts multipart/form-data")
	}
	b := params["boundary"]
	if b == "" {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: multipart/form-data needs its boundary")
	}
	ok := len(b) <= maxBoundary && b[len(b)-1] != ' '
	for i := range len(b) {
		c := b[i]
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("'()+_,-./:=? ", c) >= 0)
	}
	if !ok {
		return "", fault.Newf(fault.InvalidContentType, "content-type", "Invalid content type passed: a boundary has at most %d letters, digits and punctuation characters", maxBoundary)
	}
	return b, nil
}

var errMore = errors.New("form: incomplete head")

// parse reads the parts in head. If the body is incomplete it stops at the first file; errMore
// reports that head ends before one.
func (f *Form) parse() error {
	f.fields, f.files = f.fields[:0], f.files[:0]
	open := []byte("--" + f.boundary)
	next := append([]byte("\r\n"), open...)
	at := 0
	if bytes.HasPrefix(f.head, []byte("\r\n")) {
		at = 2 // an empty preamble
	}
	if !bytes.HasPrefix(f.head[at:], open) {
		if !f.whole && len(f.head) < at+len(open) {
			return errMore
		}
		return fault.Invalid("body", "must begin with the boundary that content-type names")
	}
	at += len(open)
	for range MaxParts {
		rest := f.head[at:]
		if bytes.HasPrefix(rest, []byte("--")) { // the closing boundary
			if f.whole && lenientDelimiters(f.head, open) {
				return fault.Invalid("body", "has a boundary line inside of a part that does not begin with CRLF")
			}
			return nil
		}
		rest = bytes.TrimLeft(rest, " \t") // padding of the boundary line
		if len(rest) < 2 {
			return f.cut()
		}
		if !bytes.HasPrefix(rest, []byte("\r\n")) {
			return fault.Invalid("body", "has a boundary line that does not end in CRLF")
		}
		at = len(f.head) - len(rest) + 2
		end := bytes.Index(f.head[at:], []byte("\r\n\r\n"))
		if end < 0 || end > maxPartHead {
			if len(f.head)-at > maxPartHead {
				return fault.Invalid("body", "has a part with a header longer than %d bytes", maxPartHead)
			}
			return f.cut()
		}
		if err := plainLines(f.head[at : at+end]); err != nil {
			return err
		}
		name, file, err := PartName(f.head[at : at+end])
		if err != nil {
			return err
		}
		kind := partType(f.head[at : at+end])
		at += end + 4
		if file && !f.whole {
			f.files, f.rest = append(f.files, Attachment{Name: name, Type: kind}), at
			return nil
		}
		// A value may be empty: then its boundary's CRLF is the header's own.
		length := bytes.Index(f.head[at-2:], next)
		if length < 0 {
			return f.cut()
		}
		length -= 2
		if file {
			f.files = append(f.files, Attachment{name, kind, f.head[at : at+max(length, 0)]})
		} else if err := f.addField(name, at, max(length, 0)); err != nil {
			return err
		}
		at += length + len(next)
	}
	return fault.Invalid("body", "has more than %d parts", MaxParts)
}

// lenientDelimiters reports whether a delimiter follows a line break other than CRLF. Some
// receivers accept it as the end of a part, and would read fields that are not seen here.
func lenientDelimiters(body, delimiter []byte) bool {
	after := func(line string) int { return bytes.Count(body, append([]byte(line), delimiter...)) }
	return after("\n") != after("\r\n") || after("\r") > 0
}

// cut returns the error for a head that ends too early.
func (f *Form) cut() error {
	if f.whole {
		return fault.Invalid("body", "ended before its closing boundary")
	}
	return errMore
}

func (f *Form) addField(name string, at, length int) error {
	value := f.head[at : at+length]
	if !utf8.Valid(value) {
		return fault.Invalid(name, "%s must be text in UTF-8", name)
	}
	if _, twice := f.Get(name); twice && !strings.HasSuffix(name, "[]") {
		return fault.Invalid(name, "%s occurs twice in the form", name)
	}
	f.fields = append(f.fields, field{name, value, [2]int{at, at + length}})
	return nil
}

// plainLines rejects a part header with lines that do not end in CRLF, or that are folded: a
// provider may parse another header, and another value, from it.
func plainLines(head []byte) error {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\n") || len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return fault.Invalid("body", "has a part header with a line that does not end in CRLF, or that is folded")
		}
	}
	return nil
}

// PartName reads the header of a part: its name, and whether it is a file.
func PartName(head []byte) (name string, file bool, err error) {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !strings.EqualFold(string(bytes.TrimSpace(key)), "content-disposition") {
			continue
		}
		kind, params, perr := mime.ParseMediaType(string(bytes.TrimSpace(value)))
		if perr != nil || kind != "form-data" || params["name"] == "" || !utf8.ValidString(params["name"]) {
			break
		}
		_, file = params["filename"]
		return params["name"], file, nil
	}
	return "", false, fault.Invalid("body", "has a part without a Content-Disposition of form-data with a name")
}

// partType returns the Content-Type of a part; empty if it has none.
func partType(head []byte) string {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if key, value, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(bytes.TrimSpace(key)), "content-type") {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Errors of reading, which the caller translates.
type (
	// TooLong: the body has more than this many bytes of fields before its first file.
	TooLong int64
	// ReadError: the client's body could not be read.
	ReadError struct{ Err error }
)

func (e TooLong) Error() string {
	return "form: more than " + strconv.FormatInt(int64(e), 10) + " bytes before the first file"
}

func (e ReadError) Error() string { return "form: " + e.Err.Error() }

func (e ReadError) Unwrap() error { return e.Err }

// most returns how much of a body is buffered, given its length, -1 if unknown.
func most(length int64) int64 {
	if length > MaxReplay {
		return MaxHead
	}
	return MaxReplay + 1
}

// FormMemory returns the best buffer size for Read, given the length of a body.
func FormMemory(length int64) int64 { return room(length) + headReadBytes }

func room(length int64) int64 {
	if length >= 0 {
		return min(length, most(length))
	}
	return most(length)
}

// ReadForm reads a body of a given length, -1 if unknown, until it ends or, if it exceeds the buffer
// limit, until its first file starts. It uses buf as long as that is large enough.
func ReadForm(src io.Reader, boundary string, length int64, buf []byte) (*Form, error) {
	f := &Form{boundary: boundary, head: buf[:0]}
	most := most(length)
	for {
		if int64(len(f.head)) >= most {
			err := f.parse()
			if errors.Is(err, errMore) {
				return nil, TooLong(most)
			}
			return f, err
		}
		if cap(f.head)-len(f.head) < headReadBytes { // grown once, not by doubling: these are large
			f.head = append(make([]byte, 0, room(length)+2*headReadBytes), f.head...)
		}
		n, err := src.Read(f.head[len(f.head) : len(f.head)+headReadBytes])
		f.head = f.head[:len(f.head)+n]
		if err == io.EOF {
			f.whole = true
			return f, f.parse()
		}
		if err != nil {
			return nil, ReadError{err}
		}
		if most == MaxHead && n > 0 { // the body does not fit: its first file is enough
			if err := f.parse(); !errors.Is(err, errMore) {
				return f, err
			}
		}
	}
}

// Complete reports whether all parts were read. If not, a missing field may still follow the first
// file.
func (f *Form) Complete() bool { return f.whole }

// Head returns the bytes read: all of the body if it is complete.
func (f *Form) Head() []byte { return f.head }

// Boundary returns the boundary between the parts, without its hyphens.
func (f *Form) Boundary() string { return f.boundary }
