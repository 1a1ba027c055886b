package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// AppendCanonical appends the canonical form of a JSON value, which is signed: RFC 8785.
// Numbers are written as ECMAScript writes them, so an integer beyond 2^53 loses digits.
// The text must have been checked to be JSON in which no field comes twice.
func AppendCanonical(dst []byte, raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return dst, err
	}
	return appendCanonical(dst, v)
}

func appendCanonical(dst []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendCanonicalString(dst, v), nil
	case json.Number:
		return appendCanonicalNumber(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, one := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendCanonical(dst, one); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		return appendCanonicalObject(dst, v)
	}
	return dst, fmt.Errorf("wire: %T is not JSON", v)
}

// appendCanonicalObject orders fields by the UTF-16 units of their names.
func appendCanonicalObject(dst []byte, members map[string]any) (_ []byte, err error) {
	type member struct {
		name  string
		units []uint16
	}
	order := make([]member, 0, len(members))
	for name := range members {
		order = append(order, member{name, utf16.Encode([]rune(name))})
	}
	slices.SortFunc(order, func(a, b member) int { return slices.Compare(a.units, b.units) })
	dst = append(dst, '{')
	for i, m := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendCanonicalString(dst, m.name), ':')
		if dst, err = appendCanonical(dst, members[m.name]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendCanonicalNumber(dst []byte, n json.Number) ([]byte, error) {
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return dst, fmt.Errorf("wire: %s is not a number of ECMAScript", n)
	}
	if f == 0 {
		return append(dst, '0'), nil // also for -0
	}
	text, err := json.Marshal(f) // as ECMAScript writes numbers
	return append(dst, text...), err
}

func appendCanonicalString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	short := map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case short[c] != 0:
			dst = append(dst, '\\', short[c])
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// member is one field of an object, or an element of an array with index n
// and no key.
type member struct {
	key, value Span
	n          int
}

// members walks the array or object that starts at i. It stops at the first
// byte that is not JSON.
func members(b []byte, i int) iter.Seq[member] {
	return func(yield func(member) bool) {
		object := b[i] == '{'
		at := skipSpace(b, i+1)
		for n := 0; at < len(b) && b[at] != '}' && b[at] != ']'; n++ {
			m := member{n: n}
			var why problem
			if object {
				if b[at] != '"' {
					return
				}
				m.key.Start = at
				if at, why = skipString(b, at+1); why != fine {
					return
				}
				m.key.End = at
				if at = skipSpace(b, at); at >= len(b) || b[at] != ':' {
					return
				}
				if at = skipSpace(b, at+1); at >= len(b) {
					return
				}
			}
			m.value.Start = at
			at, why = skipValue(b, at, MaxDepth)
			if m.value.End = at; why != fine {
				m.value.End = len(b) // even a broken value has a path
			}
			if !yield(m) || why != fine {
				return
			}
			if at = skipSpace(b, at); at < len(b) && b[at] == ',' {
				at = skipSpace(b, at+1)
			}
		}
	}
}

// PathAt returns the path of the innermost value that contains the byte at offset, such
// as messages[3].content[1].type; "" for the body itself. It reads the body again and is
// meant for the messages of faults. Long keys are cut.
func PathAt(body []byte, offset int) string {
	path := ""
	i := skipSpace(body, 0)
	for i < len(body) && (body[i] == '{' || body[i] == '[') {
		next := -1
		object := body[i] == '{'
		for m := range members(body, i) {
			if m.value.Start > offset {
				break
			}
			if offset >= m.value.End {
				continue
			}
			if object {
				path = joinPath(path, string(appendUnescaped(nil, body[m.key.Start+1:m.key.End-1])))
			} else {
				path += "[" + strconv.Itoa(m.n) + "]"
			}
			next = m.value.Start
			break
		}
		if next < 0 {
			break
		}
		i = next
	}
	return path
}

// joinPath adds a key to a path: a.b for a plain name, a["b c"] otherwise.
func joinPath(path, key string) string {
	if !plainKey(key) {
		return path + "[" + string(AppendJSONString(nil, clip(key))) + "]"
	}
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}

func plainKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
