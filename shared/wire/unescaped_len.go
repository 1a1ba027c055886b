package wire

import (
	"bytes"
	"unicode/utf8"
)

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
