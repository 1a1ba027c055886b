package batch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Limits of files of rows.
const (
	MaxRow      = 16 << 20 // bytes of one row
	MaxRows     = 50_000
	MaxCustomID = 512 // characters
)

// Endpoints are the paths that rows may call.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages"}

// KnownEndpoint reports whether rows may call a path.
func KnownEndpoint(path string) bool { return slices.Contains(Endpoints, path) }

// EndpointList is the list of allowed paths for a fault.
const EndpointList = "/v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses or /v1/messages"

var errLong = errors.New("managed: row too long")

// Lines reads the rows of a file: lines that are not empty, without their ends.
type Lines struct {
	src    *bufio.Reader
	Number int   // of the last line read, from 1
	Offset int64 // of the first byte after it
	long   []byte
	over   bool
}

// NewLines continues reading a file: after line number, at offset.
func NewLines(r io.Reader, number int, offset int64) *Lines {
	return &Lines{src: bufio.NewReaderSize(r, 64<<10), Number: number, Offset: offset}
}

// Next returns a row, which is valid until the next call; io.EOF at the end.
func (l *Lines) Next() ([]byte, error) {
	for !l.over {
		line, err := l.src.ReadSlice('\n')
		for l.long = l.long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = l.src.ReadSlice('\n') {
			if l.long = append(l.long, line...); len(l.long) > MaxRow {
				l.Number++
				return nil, errLong
			}
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		l.over = err == io.EOF
		if len(l.long) > 0 {
			l.long = append(l.long, line...)
			line = l.long
		}
		l.Offset += int64(len(line))
		if l.over && len(line) == 0 {
			break
		}
		if l.Number++; l.Number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > MaxRow {
			return nil, errLong
		} else if len(line) > 0 {
			return line, nil
		}
	}
	return nil, io.EOF
}

// Row is one request of a file. Its parts are valid as long as its line.
type Row struct {
	CustomID, URL string
	Body          []byte // a JSON object
}

var rowKeys = wire.NewKeySet("custom_id", "method", "url", "body")

// ParseRow reads a row. Faults name the field; the caller adds the line.
func ParseRow(line []byte) (Row, error) {
	var r Row
	var w wire.Walk
	if !utf8.Valid(line) {
		return r, fault.Invalid("file", "must be text in UTF-8")
	}
	if wire.KindOf(line) != wire.KindObject {
		return r, fault.Invalid("file", "must be a JSON object")
	}
	if err := rowKeys.Walk(line, &w); err != nil {
		return r, err
	}
	text := func(i int, name, what string) (string, error) {
		if !w.Spans[i].Present(line) {
			return "", fault.Invalid(name, "%s is required: %s", name, what)
		}
		return wire.ScanString(w.Spans[i].Of(line), name)
	}
	var err error
	if r.CustomID, err = text(0, "custom_id", "a string that is unique in the file"); err != nil {
		return r, err
	}
	if n := utf8.RuneCountInString(r.CustomID); n == 0 || n > MaxCustomID {
		return r, fault.Invalid("custom_id", "custom_id must have 1 to %d characters", MaxCustomID)
	}
	method, err := text(1, "method", "POST")
	if err != nil {
		return r, err
	}
	if method != "POST" {
		return r, fault.Invalid("method", "method must be POST")
	}
	if r.URL, err = text(2, "url", EndpointList); err != nil {
		return r, err
	}
	if !KnownEndpoint(r.URL) {
		return r, fault.Invalid("url", "url must be %s", EndpointList)
	}
	if !w.Spans[3].Present(line) || wire.KindOf(w.Spans[3].Of(line)) != wire.KindObject {
		return r, fault.Invalid("body", "body is required: a JSON object, the body of the request")
	}
	r.Body = w.Spans[3].Of(line)
	return r, nil
}

// Check validates the rows of a file in sequence.
type Check struct {
	seen map[[16]byte]struct{}
	n    int
}

// NewCheck returns a check of one file.
func NewCheck() *Check { return &Check{seen: make(map[[16]byte]struct{})} }

// Row checks one row against the earlier ones.
func (c *Check) Row(line []byte) (Row, error) {
	r, err := ParseRow(line)
	if err != nil {
		return r, err
	}
	sum := sha256.Sum256([]byte(r.CustomID))
	mark := [16]byte(sum[:16])
	if _, twice := c.seen[mark]; twice {
		return r, fault.Invalid("custom_id", "custom_id is already used in an earlier line; it must be unique in the file")
	}
	if c.n++; c.n > MaxRows {
		return r, fault.Invalid("file", "the file must have at most %d rows", MaxRows)
	}
	c.seen[mark] = struct{}{}
	return r, nil
}

// Rows returns the number of valid rows.
func (c *Check) Rows() int { return c.n }

// checked is a reader that validates the rows of a file.
type checked struct {
	src   io.Reader
	check *Check
	part  []byte // an incomplete row
	line  int
	err   error
}

// Checked returns a reader of src that validates its rows; an invalid row, or a file without
// any, is a fault that names the line and the field.
func Checked(src io.Reader) io.Reader { return &checked{src: src, check: NewCheck()} }

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.src.Read(p)
	rest := p[:n]
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if c.part = append(c.part, line...); len(c.part) > MaxRow {
			c.line++
			c.err = longRow(c.line)
			return 0, c.err
		}
		if !whole {
			break
		}
		if c.err = c.row(); c.err != nil {
			return 0, c.err
		}
		rest = after
	}
	if err == io.EOF {
		if c.err = c.row(); c.err == nil && c.check.n == 0 {
			c.err = fault.Invalid("file", "file must have at least one row: a line with a JSON object")
		}
		if c.err != nil {
			return 0, c.err
		}
	}
	return n, err
}

func (c *checked) row() error {
	c.line++
	line := c.part
	if c.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSpace(line)
	c.part = c.part[:0]
	if len(line) == 0 {
		return nil
	}
	if _, err := c.check.Row(line); err != nil {
		return atLine(c.line, err)
	}
	return nil
}

// atLine adds the line of the file to an error.
func atLine(n int, err error) error {
	f := fault.From(err)
	return fault.New(f.Code, "file", "line "+strconv.Itoa(n)+": "+problemText(f))
}

func longRow(n int) *fault.Fault {
	return fault.Newf(fault.BodyTooLarge, "file", "line %d: each row must have at most %d bytes", n, MaxRow)
}

// problemText adds the field if the message does not contain it.
func problemText(f *fault.Fault) string {
	if f.Field == "" || f.Field == "file" || bytes.Contains([]byte(f.Message), []byte(f.Field)) {
		return f.Message
	}
	return f.Field + " " + f.Message
}
