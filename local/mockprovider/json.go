package mockprovider

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
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

// get returns a member of an object; the zero value if there is none.
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
	p := parser{src: src}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	p.space()
	if p.at != len(src) {
		return value{}, p.fail("trailing data")
	}
	return v, nil
}

var literals = [...]member{
	{"true", value{kind: boolean, yes: true}}, {"false", value{kind: boolean}}, {"null", value{kind: null}},
}

type parser struct {
	src string
	at  int
}

func (p *parser) fail(what string) error { return &badJSON{at: p.at, what: what} }

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (value, error) {
	if p.at >= len(p.src) {
		return value{}, p.fail("unexpected end")
	}
	if depth > maxDepth {
		return value{}, p.fail("too deep")
	}
	switch c := p.src[p.at]; {
	case c == '"':
		s, err := p.str()
		return value{kind: text, s: s}, err
	case c == '{':
		return p.objectValue(depth)
	case c == '[':
		return p.arrayValue(depth)
	case c == '-' || c >= '0' && c <= '9':
		return p.numberValue()
	}
	for _, w := range literals {
		if strings.HasPrefix(p.src[p.at:], w.name) {
			p.at += len(w.name)
			return w.v, nil
		}
	}
	return value{}, p.fail("unexpected character")
}

func (p *parser) objectValue(depth int) (value, error) {
	start := p.at
	v := value{kind: object}
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == '}' {
		p.at++
		v.s = p.src[start:p.at]
		return v, nil
	}
	for {
		if p.at >= len(p.src) || p.src[p.at] != '"' {
			return v, p.fail("expected a key")
		}
		name, err := p.str()
		if err != nil {
			return v, err
		}
		if v.get(name).kind != absent {
			return v, &badJSON{duplicate: name, at: p.at}
		}
		p.space()
		if p.at >= len(p.src) || p.src[p.at] != ':' {
			return v, p.fail("expected a colon")
		}
		p.at++
		p.space()
		m, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.obj = append(v.obj, member{name, m})
		done, err := p.next('}')
		if err != nil {
			return v, err
		}
		if done {
			v.s = p.src[start:p.at]
			return v, nil
		}
	}
}

func (p *parser) arrayValue(depth int) (value, error) {
	start := p.at
	v := value{kind: array}
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == ']' {
		p.at++
		v.s = p.src[start:p.at]
		return v, nil
	}
	for {
		m, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.arr = append(v.arr, m)
		done, err := p.next(']')
		if err != nil {
			return v, err
		}
		if done {
			v.s = p.src[start:p.at]
			return v, nil
		}
	}
}

// next reads a comma, or the closing bracket.
func (p *parser) next(closing byte) (done bool, err error) {
	p.space()
	if p.at >= len(p.src) {
		return false, p.fail("unexpected end")
	}
	switch p.src[p.at] {
	case closing:
		p.at++
		return true, nil
	case ',':
		p.at++
		p.space()
		return false, nil
	}
	return false, p.fail("expected a comma")
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.src) && p.src[p.at] >= '0' && p.src[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

func (p *parser) numberValue() (value, error) {
	start := p.at
	if p.src[p.at] == '-' {
		p.at++
	}
	zero := p.at < len(p.src) && p.src[p.at] == '0'
	if zero {
		p.at++
	} else if !p.digits() {
		return value{}, p.fail("bad number")
	}
	if p.at < len(p.src) && p.src[p.at] == '.' {
		p.at++
		if !p.digits() {
			return value{}, p.fail("bad number")
		}
	}
	if p.at < len(p.src) && (p.src[p.at] == 'e' || p.src[p.at] == 'E') {
		p.at++
		if p.at < len(p.src) && (p.src[p.at] == '+' || p.src[p.at] == '-') {
			p.at++
		}
		if !p.digits() {
			return value{}, p.fail("bad number")
		}
	}
	return value{kind: number, s: p.src[start:p.at]}, nil
}

func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	for ; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; {
		case c == '"':
			s := p.src[start:p.at]
			p.at++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", p.fail("control character in a string")
		}
	}
	return "", p.fail("unexpected end of a string")
}

func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	b.WriteString(p.src[start:p.at])
	for p.at < len(p.src) {
		c := p.src[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		case c < 0x20:
			return "", p.fail("control character in a string")
		case c != '\\':
			run := p.at
			for p.at < len(p.src) && p.src[p.at] != '"' && p.src[p.at] != '\\' && p.src[p.at] >= 0x20 {
				p.at++
			}
			b.WriteString(p.src[run:p.at])
			continue
		}
		p.at++
		if p.at >= len(p.src) {
			break
		}
		if p.src[p.at] == 'u' {
			r, err := p.hex()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			continue
		}
		i := strings.IndexByte(`"\/bfnrt`, p.src[p.at])
		if i < 0 {
			return "", p.fail("bad escape")
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		p.at++
	}
	return "", p.fail("unexpected end of a string")
}

// hex reads uXXXX and, for a surrogate, its other half; half a pair is U+FFFD.
func (p *parser) hex() (rune, error) {
	one := func() (rune, error) {
		if p.at+5 > len(p.src) {
			return 0, p.fail("bad escape")
		}
		n, err := strconv.ParseUint(p.src[p.at+1:p.at+5], 16, 16)
		if err != nil {
			return 0, p.fail("bad escape")
		}
		p.at += 5
		return rune(n), nil
	}
	r, err := one()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(p.src[p.at:], `\u`) {
		back := p.at
		p.at++
		low, err := one()
		if err != nil {
			return 0, err
		}
		if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
			return whole, nil
		}
		p.at = back
	}
	return utf8.RuneError, nil
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
