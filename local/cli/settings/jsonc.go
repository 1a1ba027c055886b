package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxSize limits a settings file, in bytes.
const MaxSize = 4 << 20

// maxDepth limits how deep values may be nested.
const maxDepth = 100

// SetJSON sets the member at path of a JSON object, with the objects on the way to it. An empty
// source is an empty object. Comments and trailing commas are accepted.
func SetJSON(src []byte, v any, path ...string) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(src)) == 0 {
		src = []byte("{\n}\n")
	}
	return setJSON(src, 0, raw, path)
}

// DeleteJSON removes the member at path, if it is there.
func DeleteJSON(src []byte, path ...string) ([]byte, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		return src, nil
	}
	at := 0
	for {
		o, err := parseObject(src, at)
		if err != nil {
			return nil, err
		}
		i := o.index(path[0])
		if i < 0 {
			return src, nil
		}
		m := o.members[i]
		if len(path) > 1 {
			at, path = m.value, path[1:]
			if src[at] != '{' {
				return src, nil
			}
			continue
		}
		switch {
		case i+1 < len(o.members):
			return splice(src, m.start, o.members[i+1].start, nil), nil
		case i > 0:
			return splice(src, o.members[i-1].end, m.end, nil), nil
		}
		end := m.end
		if o.trailing >= 0 {
			end = o.trailing + 1
		}
		return splice(src, m.start, end, nil), nil
	}
}

// GetJSON returns the value of the member at path; nil if there is none.
func GetJSON(src []byte, path ...string) (json.RawMessage, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		return nil, nil
	}
	at := 0
	for {
		o, err := parseObject(src, at)
		if err != nil {
			return nil, err
		}
		i := o.index(path[0])
		if i < 0 {
			return nil, nil
		}
		m := o.members[i]
		if len(path) == 1 {
			return src[m.value:m.end], nil
		}
		at, path = m.value, path[1:]
		if src[at] != '{' {
			return nil, nil
		}
	}
}

func setJSON(src []byte, at int, raw json.RawMessage, path []string) ([]byte, error) {
	o, err := parseObject(src, at)
	if err != nil {
		return nil, err
	}
	if i := o.index(path[0]); i >= 0 {
		m := o.members[i]
		if len(path) > 1 {
			return setJSON(src, m.value, raw, path[1:])
		}
		return splice(src, m.value, m.end, indented(raw, lineIndent(src, m.start))), nil
	}
	for i := len(path) - 1; i > 0; i-- {
		name, _ := json.Marshal(path[i])
		raw = append(append(append([]byte{'{'}, name...), ':'), append(raw, '}')...)
	}
	outer := lineIndent(src, o.open)
	inner := outer + "  "
	if len(o.members) > 0 {
		if own := lineIndent(src, o.members[0].start); own > outer {
			inner = own
		}
	}
	name, _ := json.Marshal(path[0])
	text := "\n" + inner + string(name) + ": " + string(indented(raw, inner))
	rest := src[o.open+1:]
	switch {
	case len(o.members) > 0:
		text += ","
		if !startsLine(rest) {
			text += "\n" + inner
		}
	case !startsLine(rest):
		text += "\n" + outer
	}
	return splice(src, o.open+1, o.open+1, []byte(text)), nil
}

// startsLine reports whether only white space precedes the end of the line.
func startsLine(b []byte) bool {
	line, _, found := bytes.Cut(b, []byte("\n"))
	return found && len(bytes.TrimSpace(line)) == 0
}

func indented(raw json.RawMessage, indent string) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, indent, "  "); err != nil {
		return raw
	}
	return b.Bytes()
}

// lineIndent returns the white space at the beginning of the line of an offset.
func lineIndent(src []byte, at int) string {
	line := src[bytes.LastIndexByte(src[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func splice(src []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(src)+len(with))
	return append(append(append(out, src[:from]...), with...), src[to:]...)
}

// object is where the parts of an object are.
type object struct {
	open, close int // the braces
	trailing    int // the comma after the last member; -1: there is none
	members     []member
}

type member struct {
	name              string
	start, value, end int
}

func (o *object) index(name string) int {
	for i := range o.members {
		if o.members[i].name == name {
			return i
		}
	}
	return -1
}

// parseObject reads the object at an offset and checks all that is in it.
func parseObject(src []byte, at int) (*object, error) {
	if len(src) > MaxSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	s := scanner{src: src, i: at}
	if at == 0 {
		s.i = len(src) - len(bytes.TrimPrefix(src, []byte("\ufeff")))
	}
	o, err := s.object(0)
	if err == nil && at == 0 {
		if err = s.space(); err == nil && s.i < len(src) {
			err = errors.New("unexpected text after the object")
		}
	}
	if err != nil {
		line := bytes.Count(src[:min(s.i, len(src))], []byte("\n")) + 1
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return o, nil
}

type scanner struct {
	src []byte
	i   int
}

// peek returns the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.src) {
		return s.src[s.i]
	}
	return 0
}

// space skips white space and comments.
func (s *scanner) space() error {
	for {
		switch c := s.peek(); {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.i++
		case c == '/' && s.i+1 < len(s.src) && s.src[s.i+1] == '/':
			n := bytes.IndexByte(s.src[s.i:], '\n')
			if n < 0 {
				n = len(s.src) - s.i
			}
			s.i += n
		case c == '/' && s.i+1 < len(s.src) && s.src[s.i+1] == '*':
			n := bytes.Index(s.src[s.i+2:], []byte("*/"))
			if n < 0 {
				return errors.New("a comment is not closed")
			}
			s.i += n + 4
		default:
			return nil
		}
	}
}

func (s *scanner) object(depth int) (*object, error) {
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.peek() != '{' {
		return nil, errors.New("must be an object")
	}
	o := &object{open: s.i, trailing: -1}
	s.i++
	for {
		if err := s.space(); err != nil {
			return nil, err
		}
		if s.peek() == '}' {
			o.close = s.i
			s.i++
			return o, nil
		}
		if len(o.members) > 0 && o.trailing < 0 {
			return nil, errors.New("a comma is missing")
		}
		m := member{start: s.i}
		var err error
		if m.name, err = s.text(); err != nil {
			return nil, err
		}
		if o.index(m.name) >= 0 {
			return nil, fmt.Errorf("%.100q occurs twice", m.name)
		}
		if err := s.space(); err != nil {
			return nil, err
		}
		if s.peek() != ':' {
			return nil, errors.New("a colon is missing")
		}
		s.i++
		if err := s.space(); err != nil {
			return nil, err
		}
		m.value = s.i
		if err := s.value(depth + 1); err != nil {
			return nil, err
		}
		m.end = s.i
		o.members, o.trailing = append(o.members, m), -1
		if err := s.space(); err != nil {
			return nil, err
		}
		if s.peek() == ',' {
			o.trailing = s.i
			s.i++
		}
	}
}

func (s *scanner) text() (string, error) {
	from := s.i
	if s.peek() != '"' {
		return "", errors.New("a name in quotes is missing")
	}
	for s.i++; s.i < len(s.src); s.i++ {
		switch s.src[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			var out string
			if err := json.Unmarshal(s.src[from:s.i], &out); err != nil {
				return "", errors.New("a string is not valid")
			}
			return out, nil
		case '\n':
			return "", errors.New("a string is not closed")
		}
	}
	return "", errors.New("a string is not closed")
}

func (s *scanner) value(depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deep")
	}
	switch c := s.peek(); c {
	case '{':
		_, err := s.object(depth)
		return err
	case '"':
		_, err := s.text()
		return err
	case '[':
		return s.list(depth)
	}
	from := s.i
	for s.i < len(s.src) && bytes.IndexByte([]byte(" \t\r\n,]}/"), s.src[s.i]) < 0 {
		s.i++
	}
	word := string(s.src[from:s.i])
	if word == "" || !json.Valid([]byte(word)) || strings.ContainsAny(word, "\"[{") {
		return fmt.Errorf("%.100q is not a value", word)
	}
	return nil
}

func (s *scanner) list(depth int) error {
	s.i++
	comma := true
	for {
		if err := s.space(); err != nil {
			return err
		}
		switch {
		case s.peek() == ']':
			s.i++
			return nil
		case !comma:
			return errors.New("a comma is missing")
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if err := s.space(); err != nil {
			return err
		}
		if comma = s.peek() == ','; comma {
			s.i++
		}
	}
}
