package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendUnquoted appends the text of raw, a checked JSON string with its quotes, to dst. A
// lone surrogate and bytes that are not UTF-8 become U+FFFD. An absent member (nil) has no
// text.
func AppendUnquoted(dst, raw []byte) []byte {
	if len(raw) < 2 {
		return dst
	}
	return appendUnescaped(dst, raw[1:len(raw)-1])
}

// appendUnescaped appends the text of in, the inside of a checked JSON string.
func appendUnescaped(dst, in []byte) []byte {
	for {
		slash := bytes.IndexByte(in, '\\')
		if slash < 0 {
			return appendValid(dst, in)
		}
		dst = appendValid(dst, in[:slash])
		in = in[slash+1:]
		switch c := in[0]; c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			var r rune
			r, in = unicodeEscape(in[1:])
			dst = utf8.AppendRune(dst, r)
			continue
		default: // quote, backslash, slash
			dst = append(dst, c)
		}
		in = in[1:]
	}
}

// unicodeEscape reads the four digits of a \u escape and, when they are the
// first half of a surrogate pair, the escape that holds the second half.
func unicodeEscape(in []byte) (rune, []byte) {
	r := hex4(in)
	in = in[4:]
	if !utf16.IsSurrogate(r) {
		return r, in
	}
	if len(in) >= 6 && in[0] == '\\' && in[1] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(in[2:])); pair != utf8.RuneError {
			return pair, in[6:]
		}
	}
	return utf8.RuneError, in
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r = r<<4 | rune(hexValue[c])
	}
	return r
}

// hexValue holds the value of each hexadecimal digit; 0xff: not a digit.
var hexValue = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range 10 {
		t['0'+i] = byte(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = byte(10+i), byte(10+i)
	}
	return t
}()

// appendValid appends b with U+FFFD for each byte that is not UTF-8.
func appendValid(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}
