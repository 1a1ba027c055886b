package admin

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// checkSurrogates rejects \u escapes of half a surrogate pair in a checked JSON text. They
// encode no character: some readers replace them and others reject the text, so that a stored
// value would differ from the one read. The fault names the path of the first one.
func checkSurrogates(body []byte) error {
	for at := 0; ; {
		next := bytes.IndexByte(body[at:], '\\')
		if next < 0 {
			return nil
		}
		at += next
		first, ok := escaped(body[at:])
		switch {
		case !ok:
			at += 2 // the escape of one character, perhaps of a backslash
		case !utf16.IsSurrogate(first):
			at += escapeSize
		default:
			second, _ := escaped(body[at+escapeSize:])
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return fault.Invalid(wire.PathAt(body, at), "%s is half of a surrogate pair and represents no character", body[at:at+escapeSize])
			}
			at += 2 * escapeSize
		}
	}
}

const escapeSize = len(`\u0000`)

// escaped reads a \u escape at the front of b.
func escaped(b []byte) (rune, bool) {
	if len(b) < escapeSize || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:escapeSize]), 16, 16)
	return rune(n), err == nil
}
