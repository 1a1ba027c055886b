package wire

import (
	"bytes"
	"unicode/utf8"
)

// RepairTruncated closes a truncated JSON object or list so that it can be read: a string
// value keeps its received part; a name, number or word that might continue is omitted.
// It returns a complete value without what follows it. open are the names of the
// unfinished fields, outermost first, nil for a complete value. repaired is nil if body
// does not begin with an object or a list. The tokens are not validated: repaired may be
// invalid JSON.
func RepairTruncated(body []byte) (repaired []byte, open []string) {
	type level struct {
		closer byte
		name   []byte // of the field that holds the next value
	}
	var stack []level
	start := skip(body, 0)
	if start == len(body) || body[start] != '{' && body[start] != '[' {
		return nil, nil
	}
	safe := start // everything before it is complete
	name := false // the next string names a field
	end := []byte(nil)
scan:
	for i := start; i < len(body); i++ {
		switch b := body[i]; b {
		case ' ', '\t', '\r', '\n':
		case '{':
			stack, safe, name = append(stack, level{closer: '}'}), i+1, true
		case '[':
			stack, safe, name = append(stack, level{closer: ']'}), i+1, false
		case '}', ']':
			if b != stack[len(stack)-1].closer {
				break scan
			}
			stack, safe, name = stack[:len(stack)-1], i+1, false
			if len(stack) == 0 {
				return body[start : i+1], nil
			}
			stack[len(stack)-1].name = nil
		case ',':
			name = stack[len(stack)-1].closer == '}'
		case ':':
			name = false
		case '"':
			to, whole := stringEnd(body, i+1)
			switch {
			case whole && name:
				stack[len(stack)-1].name = body[i+1 : to]
			case whole:
				safe, stack[len(stack)-1].name = to+1, nil
			case !name:
				safe, end = to, []byte{'"'}
			}
			if !whole {
				break scan
			}
			i = to
		default:
			to := i
			for to < len(body) && isWord(body[to]) {
				to++
			}
			if to == i || to == len(body) {
				break scan
			}
			safe, i, stack[len(stack)-1].name = to, to-1, nil
		}
	}
	repaired = append(bytes.Clone(body[start:safe]), end...)
	for i := len(stack) - 1; i >= 0; i-- {
		repaired = append(repaired, stack[i].closer)
	}
	open = make([]string, 0, len(stack))
	for _, l := range stack {
		if len(l.name) > 0 {
			open = append(open, string(l.name))
		}
	}
	return repaired, open
}

func skip(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// isWord reports whether a byte can be part of a number or of true, false and null.
func isWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b == '-' || b == '+' || b == '.' || b == 'E'
}

// stringEnd finds the quote that ends the string with content from i. If there is none,
// to is the end of the last complete character.
func stringEnd(b []byte, i int) (to int, whole bool) {
	from, pair := i, -1 // pair: beginning of a character with a missing second half
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			return i, true
		case c < 0x20:
			return orAt(pair, i), false
		case c == '\\':
			n := 2
			if i+1 < len(b) && b[i+1] == 'u' {
				n = 6
			}
			if i+n > len(b) {
				return orAt(pair, i), false
			}
			if half := n == 6 && (b[i+2] == 'd' || b[i+2] == 'D') && b[i+3] >= '8'; half && pair < 0 {
				pair = i
			} else {
				pair = -1
			}
			i += n
		default:
			pair = -1
			i++
		}
	}
	if pair >= 0 {
		return pair, false
	}
	for back := 1; back <= utf8.UTFMax && i-back >= from; back++ {
		if utf8.RuneStart(b[i-back]) {
			if !utf8.FullRune(b[i-back : i]) {
				return i - back, false
			}
			break
		}
	}
	return i, false
}

func orAt(pair, i int) int {
	if pair >= 0 {
		return pair
	}
	return i
}
