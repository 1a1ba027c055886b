package mockprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	absent kind = iota
	null
	boolean
	number
	text
	array
	object
)

func (k kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// value is one JSON value. s holds a string's text, and the source of a number,
// an array or an object.
type value struct {
	kind kind
	yes  bool
	s    string
	arr  []value
	obj  []member
}

type member struct {
	name string
	v    value
}

// get returns a field of an object; the zero value if there is none.
func (v value) get(name string) value {
	for i := range v.obj {
		if v.obj[i].name == name {
			return v.obj[i].v
		}
	}
	return value{}
}

// given reports whether a value is present and not null.
func (v value) given() bool { return v.kind > null }

func (v value) float() float64 {
	f, _ := strconv.ParseFloat(v.s, 64)
	return f
}

func (v value) integer() (int64, bool) {
	if v.kind != number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.s, 10, 64)
	return n, err == nil
}

// badJSON says where a body is not JSON, or which key it has twice.
type badJSON struct {
	at        int
	what      string
	duplicate string
}

func (e *badJSON) Error() string {
	if e.duplicate != "" {
		return fmt.Sprintf("duplicate key %q", e.duplicate)
	}
	return fmt.Sprintf("%s at byte %d", e.what, e.at)
}

const maxDepth = 128

// parseJSON reads one JSON value with nothing after it. A key that occurs twice in an
// object is an error.
func parseJSON(src string) (value, error) {
	if !utf8.ValidString(src) {
		return value{}, &badJSON{what: "invalid UTF-8"}
	}
	if !json.Valid([]byte(src)) {
		bad := &badJSON{at: len(src), what: "not JSON"}
		var syntax *json.SyntaxError
		if err := json.Unmarshal([]byte(src), new(json.RawMessage)); errors.As(err, &syntax) {
			bad.at, bad.what = int(syntax.Offset), err.Error()
			if strings.Contains(bad.what, "after top-level value") {
				bad.what = "trailing data"
			}
		}
		return value{}, bad
	}
	p := parser{src: src}
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	return v, nil
}

// parser reads text that is known to be JSON.
type parser struct {
	src string
	at  int
}

// skip moves to the next byte that is neither white space nor a separator.
func (p *parser) skip() byte {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n,:", p.src[p.at]) >= 0 {
		p.at++
	}
	return p.src[p.at]
}

func (p *parser) value(depth int) (v value, err error) {
	if depth > maxDepth {
		return v, &badJSON{at: p.at, what: "too deep"}
	}
	c := p.skip()
	start := p.at
	switch c {
	case '"':
		return value{kind: text, s: p.str()}, nil
	case 't', 'n':
		p.at += 4
		return value{kind: map[byte]kind{'t': boolean, 'n': null}[c], yes: c == 't'}, nil
	case 'f':
		p.at += 5
		return value{kind: boolean}, nil
	case '{', '[':
		v.kind = map[byte]kind{'{': object, '[': array}[c]
		for p.at++; p.skip() != c+2; { // the closing bracket
			name := ""
			if c == '{' {
				if name = p.str(); v.get(name).kind != absent {
					return v, &badJSON{duplicate: name, at: p.at}
				}
			}
			m, err := p.value(depth + 1)
			if err != nil {
				return v, err
			}
			if c == '{' {
				v.obj = append(v.obj, member{name, m})
			} else {
				v.arr = append(v.arr, m)
			}
		}
		p.at++
		v.s = p.src[start:p.at]
		return v, nil
	}
	for p.at < len(p.src) && strings.IndexByte("+-.eE0123456789", p.src[p.at]) >= 0 {
		p.at++
	}
	return value{kind: number, s: p.src[start:p.at]}, nil
}

func (p *parser) str() string {
	start, escaped := p.at, false
	for p.at++; p.src[p.at] != '"'; p.at++ {
		if p.src[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++
	if !escaped {
		return p.src[start+1 : p.at-1]
	}
	var s string
	_ = json.Unmarshal([]byte(p.src[start:p.at]), &s) // it is valid; half a surrogate pair is U+FFFD
	return s
}

// appendString writes s as a JSON string.
func appendString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}
