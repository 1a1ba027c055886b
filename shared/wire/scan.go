package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"gateway/shared/fault"
)

// MaxDepth is how deep the arrays and objects of a body may nest, counting the
// body itself.
const MaxDepth = 64

// problem is the reason why bytes are not JSON. The scanning functions return it with the
// offset, so that a message is only built if there is a problem.
type problem uint8

const (
	fine problem = iota
	cutShort
	unexpected
	badControl
	badEscape
	badNumber
	badLiteral
	tooDeep
	trailing
	notObject
)

var problemText = [...]string{
	cutShort:   "it ends too early",
	unexpected: "unexpected character",
	badControl: "control character inside a string",
	badEscape:  "invalid escape inside a string",
	badNumber:  "invalid number",
	badLiteral: "only true, false and null may be written without quotes",
	tooDeep:    "arrays and objects may nest at most 64 deep",
	trailing:   "there is text after the end of the object",
	notObject:  "an object is expected",
}

// fault returns p at offset as a 400 on field (may be empty).
func (p problem) fault(offset int, field string) *fault.Fault {
	return fault.Invalid(field, "The body is not a valid JSON object: %s at byte %d", problemText[p], offset)
}

// skipSpace is the index of the first byte at or after i that is not JSON
// white space; len(b) if there is none.
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString skips a string with its opening quote just before i. It returns the index
// after the closing quote, or the offset of the problem.
func skipString(b []byte, i int) (int, problem) {
	for {
		i = skipPlain(b, i)
		if i >= len(b) {
			return len(b), cutShort
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, fine
		case c == '\\':
			n := escapeLength(b, i)
			if n == 0 {
				return i, badEscape
			}
			i += n
		case c < 0x20:
			return i, badControl
		default: // only in the last bytes, which are read one by one
			i++
		}
	}
}

// leastText is the least number of bytes for which skipText is worth a call. It never reads
// fewer.
const leastText = 64

// skipPlain is an index at or after i; up to it, b has text that may be in a string, with
// or without escapes. If fewer than a word of b's bytes are left, the index may be any of
// them; otherwise stringStops marks the byte there.
func skipPlain(b []byte, i int) int {
	// Keys and short texts end within the first words.
	for range 2 {
		if i+8 > len(b) {
			return i
		}
		if m := stringStops(load(b, i)); m != 0 {
			return i + firstByte(m)
		}
		i += 8
	}
	if hasSkipText && len(b)-i >= leastText {
		if i += skipText(b[i:]); len(b)-i >= leastText {
			return i
		}
	}
	for len(b)-i >= 16 {
		two := (*[16]byte)(b[i:])
		m := stringStops(binary.LittleEndian.Uint64(two[:8]))
		n := stringStops(binary.LittleEndian.Uint64(two[8:]))
		if m|n == 0 {
			i += 16
			continue
		}
		if m != 0 {
			return i + firstByte(m)
		}
		return i + 8 + firstByte(n)
	}
	for i+8 <= len(b) {
		if m := stringStops(load(b, i)); m != 0 {
			return i + firstByte(m)
		}
		i += 8
	}
	return i
}

// escapeLength returns the length of the escape with its backslash at i; 0 if it is
// invalid.
func escapeLength(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	if shortEscape[b[i+1]] != 0 {
		return 2
	}
	if b[i+1] == 'u' && i+6 <= len(b) && hexValue[b[i+2]]|hexValue[b[i+3]]|hexValue[b[i+4]]|hexValue[b[i+5]] <= 0x0f {
		return 6
	}
	return 0
}

// shortEscape marks bytes that form an escape of two bytes with a backslash before them.
var shortEscape = [256]byte{'n': 1, '"': 1, '\\': 1, '/': 1, 't': 1, 'r': 1, 'b': 1, 'f': 1}

// skipNumber reads a number that starts at i with a digit or a minus.
func skipNumber(b []byte, i int) (int, problem) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if n := skipDigits(b, i); n > i {
		i = n
	} else {
		return i, badNumber
	}
	if i < len(b) && b[i] == '.' {
		n := skipDigits(b, i+1)
		if n == i+1 {
			return n, badNumber
		}
		i = n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := skipDigits(b, i)
		if n == i {
			return n, badNumber
		}
		i = n
	}
	return i, fine
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// skipScalar reads the string, number or literal at i.
func skipScalar(b []byte, i int) (int, problem) {
	c := b[i]
	switch {
	case c == '"':
		return skipString(b, i+1)
	case c == '-' || c-'0' <= 9:
		return skipNumber(b, i)
	}
	word := ""
	switch c {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		if c-'A' < 26 || c-'a' < 26 {
			return i, badLiteral
		}
		return i, unexpected
	}
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, badLiteral
	}
	return i + len(word), fine
}

// skipValue skips the value at i, which must be inside of b and not white space. room is
// the remaining nesting depth.
func skipValue(b []byte, i, room int) (int, problem) {
	end, _, why := skipCounting(b, i, room)
	return end, why
}

// skipCounting is skipValue. It also returns how many arrays the value contains, counting
// itself.
func skipCounting(b []byte, i, room int) (end, arrays int, why problem) {
	if c := b[i]; c != '{' && c != '[' {
		end, why = skipScalar(b, i)
		return end, 0, why
	}
	return skipContainer(b, i, room)
}

// skipContainer reads the array or object at i without recursion: for each open level,
// one bit of objects reports whether it is an object.
func skipContainer(b []byte, i, room int) (end, arrays int, why problem) {
	var objects uint64
	depth := 0
open: // at the bracket of an array or object
	if depth >= room || depth == MaxDepth {
		return i, arrays, tooDeep
	}
	depth++
	objects <<= 1
	if b[i] == '{' {
		objects |= 1
		if i = skipSpace(b, i+1); i >= len(b) {
			return len(b), arrays, cutShort
		}
		if b[i] == '}' {
			goto closed
		}
		goto key
	}
	arrays++
	if i = skipSpace(b, i+1); i >= len(b) {
		return len(b), arrays, cutShort
	}
	if b[i] == ']' {
		goto closed
	}
	goto value
key: // at the quote of a key
	if b[i] != '"' {
		return i, arrays, unexpected
	}
	if i, why = skipString(b, i+1); why != fine {
		return i, arrays, why
	}
	if i >= len(b) || b[i] != ':' {
		if i = skipSpace(b, i); i >= len(b) {
			return len(b), arrays, cutShort
		}
		if b[i] != ':' {
			return i, arrays, unexpected
		}
	}
	if i = skipSpace(b, i+1); i >= len(b) {
		return len(b), arrays, cutShort
	}
value: // at the first byte of a value
	if b[i] == '{' || b[i] == '[' {
		goto open
	}
	if b[i] == '"' {
		i, why = skipString(b, i+1)
	} else {
		i, why = skipScalar(b, i)
	}
	if why != fine {
		return i, arrays, why
	}
after: // after a value inside of an array or object
	if i = skipSpace(b, i); i >= len(b) {
		return len(b), arrays, cutShort
	}
	switch {
	case b[i] == ',':
		if i = skipSpace(b, i+1); i >= len(b) {
			return len(b), arrays, cutShort
		}
		if objects&1 == 1 {
			goto key
		}
		goto value
	case b[i] == '}' && objects&1 == 1, b[i] == ']' && objects&1 == 0:
		goto closed
	}
	return i, arrays, unexpected
closed: // at the closing bracket
	i++
	objects >>= 1
	if depth--; depth == 0 {
		return i, arrays, fine
	}
	goto after
}

// UnescapedLen returns the length in bytes of the unescaped content of a JSON string.
// escaped excludes the quotes; it may be truncated.
func UnescapedLen(escaped []byte) (n int) {
	for {
		i := bytes.IndexByte(escaped, '\\')
		switch {
		case i < 0 || i+1 == len(escaped):
			return n + len(escaped)
		case escaped[i+1] == 'u' && i+6 <= len(escaped):
			r, rest := unicodeEscape(escaped[i+2:])
			n, escaped = n+i+max(utf8.RuneLen(r), 1), rest
		default:
			n, escaped = n+i+1, escaped[i+2:]
		}
	}
}

// TextLen returns how many bytes the text of the JSON string has that b begins with, spaces
// aside; 0 if b begins with anything else. The string may be cut off.
func TextLen(b []byte) int {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '"' {
		return 0
	}
	end, problem := skipString(b, i+1)
	if problem == fine {
		end--
	}
	return UnescapedLen(b[i+1 : end])
}
