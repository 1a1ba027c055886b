package relay

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Bounds of multipart bodies, in bytes unless they say otherwise.
const (
	maxReplay     = 8 << 20  // a form of at most this is held in memory and can be sent again
	maxFormHead   = 1 << 20  // the fields before the first file of a longer one
	maxPartHead   = 16 << 10 // the header of one part
	maxFormParts  = 256      // parts that are looked at
	maxFormTail   = 1 << 10  // the end, in which the closing boundary must stand
	maxBoundary   = 70       // characters, as RFC 2046 allows
	headReadBytes = 32 << 10
)

// form is what is known of a multipart body: all of it when it is held in
// memory, else its beginning up to the first file. Offsets are into head.
type form struct {
	boundary string
	head     []byte // all of the body when whole
	whole    bool
	fields   []formField
	files    []string // names of the parts that are files
}

// formField is one field and where its value stands.
type formField struct {
	name  string
	value []byte
	span  [2]int
}

// get gives the value of the first field with a name.
func (f *form) get(name string) (string, bool) {
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

// text is how many bytes of text the fields hold.
func (f *form) text() (n int64) {
	for i := range f.fields {
		n += int64(len(f.fields[i].value))
	}
	return n
}

// hasFile tells whether a file stands under the name, or under name[].
func (f *form) hasFile(name string) bool {
	for _, n := range f.files {
		if n == name || n == name+"[]" {
			return true
		}
	}
	return false
}

// boundaryOf reads the boundary of a multipart/form-data content type.
func boundaryOf(contentType string) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route takes multipart/form-data")
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
		return "", fault.Newf(fault.InvalidContentType, "content-type", "Invalid content type passed: a boundary has at most %d letters, digits and marks", maxBoundary)
	}
	return b, nil
}

var errMoreForm = errors.New("relay: the form goes on")

// parse reads the parts that stand in head. When the body is not whole it stops
// at the first file; errMoreForm says that head ends before one.
func (f *form) parse() error {
	f.fields, f.files = f.fields[:0], f.files[:0]
	open := []byte("--" + f.boundary)
	next := append([]byte("\r\n"), open...)
	at := 0
	if bytes.HasPrefix(f.head, []byte("\r\n")) {
		at = 2 // an empty preamble
	}
	if !bytes.HasPrefix(f.head[at:], open) {
		if !f.whole && len(f.head) < at+len(open) {
			return errMoreForm
		}
		return fault.Invalid("body", "must begin with the boundary that content-type names")
	}
	at += len(open)
	for range maxFormParts {
		rest := f.head[at:]
		if bytes.HasPrefix(rest, []byte("--")) {
			return nil // the closing boundary
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
				return fault.Invalid("body", "has a part whose header is longer than %d bytes", maxPartHead)
			}
			return f.cut()
		}
		if err := plainLines(f.head[at : at+end]); err != nil {
			return err
		}
		name, file, err := partName(f.head[at : at+end])
		if err != nil {
			return err
		}
		at += end + 4
		if file {
			f.files = append(f.files, name)
			if !f.whole {
				return nil
			}
		}
		// A value may be empty: then its boundary's CRLF is the header's own.
		length := bytes.Index(f.head[at-2:], next)
		if length < 0 {
			return f.cut()
		}
		length -= 2
		if !file {
			if err := f.addField(name, at, max(length, 0)); err != nil {
				return err
			}
		}
		at += length + len(next)
	}
	return fault.Invalid("body", "has more than %d parts", maxFormParts)
}

// cut says that head ends too early.
func (f *form) cut() error {
	if f.whole {
		return fault.Invalid("body", "ended before its closing boundary")
	}
	return errMoreForm
}

func (f *form) addField(name string, at, length int) error {
	value := f.head[at : at+length]
	if !utf8.Valid(value) {
		return fault.Invalid(name, "%s must be text in UTF-8", name)
	}
	if _, twice := f.get(name); twice && !strings.HasSuffix(name, "[]") {
		return fault.Invalid(name, "%s stands twice in the form", name)
	}
	f.fields = append(f.fields, formField{name, value, [2]int{at, at + length}})
	return nil
}

// plainLines refuses the header of a part whose lines end otherwise than in CRLF,
// or go on in the next one: a provider may read another header, and another
// value, from it.
func plainLines(head []byte) error {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\n") || len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return fault.Invalid("body", "has a part whose header has a line that does not end in CRLF, or goes on in the next one")
		}
	}
	return nil
}

// partName reads the header of a part.
func partName(head []byte) (name string, file bool, err error) {
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

// readForm takes a multipart body: whole into memory when it is small, else its
// fields up to the first file, the rest left in the request.
func (c *call) readForm() error {
	boundary, err := boundaryOf(one(c.req.Header, "Content-Type"))
	if err != nil {
		return err
	}
	limit, length := c.bodyLimit(), c.req.ContentLength
	if length > limit {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	}
	f := &form{boundary: boundary}
	most := int64(maxReplay) + 1
	if length > maxReplay {
		most = maxFormHead
	}
	if err := c.readFormHead(f, most); err != nil {
		return err
	}
	c.form = f
	if f.whole {
		c.in = f.head
		c.rec.RequestBytes = int64(len(c.in))
	} else {
		c.inBuf = nil // the transport may read its bytes after the request is over
	}
	if !c.rt.NoOutput {
		c.outBound, c.outAssumed = defaultReserveOutput, true
	}
	return c.takeForm()
}

// readFormHead reads until the body ends or, where it is longer than what is
// held, until its first file begins.
func (c *call) readFormHead(f *form, most int64) error {
	room := most // of a body that does not say its length
	if length := c.req.ContentLength; length >= 0 {
		room = min(length, most)
	}
	c.inBuf = newBufferFor(int(min(room+headReadBytes, keepBuffer)))
	b := c.inBuf
	for {
		if int64(len(b.b)) >= most {
			f.head = b.b
			err := f.parse()
			if errors.Is(err, errMoreForm) {
				return fault.Newf(fault.BodyTooLarge, "body", "has more than %d bytes of fields before its first file", most)
			}
			return err
		}
		if cap(b.b)-len(b.b) < headReadBytes { // grown once, not by doubling: these are large
			c.inBuf = &buffer{append(make([]byte, 0, room+2*headReadBytes), b.b...)}
			b.free()
			b = c.inBuf
		}
		n, err := c.req.Body.Read(b.b[len(b.b) : len(b.b)+headReadBytes])
		b.b = b.b[:len(b.b)+n]
		f.head = b.b
		if err == io.EOF {
			f.whole = true
			return f.parse()
		}
		if err != nil {
			return unreadable(err)
		}
		if most == maxFormHead && n > 0 { // the body does not fit: its first file is enough
			if err := f.parse(); !errors.Is(err, errMoreForm) {
				return err
			}
		}
	}
}

// takeForm takes over from the fields what routing and accounting need, and
// checks their bounds.
func (c *call) takeForm() error {
	if v, ok := c.form.get("stream"); ok {
		if v != "true" && v != "false" {
			return fault.Invalid("stream", `stream must be "true" or "false"`)
		}
		c.stream, c.rec.Stream = v == "true", v == "true"
	}
	if c.rt.CheckForm != nil {
		if err := c.rt.CheckForm(Form{c.form}); err != nil {
			return err
		}
	}
	if c.rt.Demand != nil {
		c.wanted = c.rt.Demand(c.text, max(c.req.ContentLength, int64(len(c.form.head))))
	}
	if c.rt.NoModel {
		return nil
	}
	name, ok := c.form.get("model")
	if !ok {
		if c.rt.DefaultModel != "" {
			name = c.rt.DefaultModel
		} else if c.form.whole {
			return fault.Invalid("model", "model is required")
		}
		c.model, c.rec.RequestModel = name, name
		c.unread = !c.form.whole && name == ""
		return nil
	}
	if name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return c.splitModel(name, true)
}
