package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Eight bytes are processed at once: lows and highs are the lowest and the highest bit of
// each byte of a word.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load reads eight bytes at i, which must leave eight bytes in b. The first
// byte is the lowest of the word, so the lowest set bit of a mask is the first
// hit.
func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// firstByte is the index of the first byte that mask (highest bits) marks.
func firstByte(mask uint64) int { return bits.TrailingZeros64(mask) >> 3 }

// stringStops marks the bytes of x at which a JSON string may not simply continue: a quote,
// a backslash or a control character. Only the first mark is exact, because a borrow may
// mark bytes above it. If its second bit is flipped, a quote comes directly after the
// control characters, so one comparison finds both.
func stringStops(x uint64) uint64 {
	return (((x ^ lows*0x02) - lows*0x21) | ((x ^ lows*'\\') - lows)) &^ x & highs
}

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a quoted JSON string. Bytes that are not UTF-8
// become U+FFFD, as every JSON parser would read them.
func AppendJSONString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, view(&s))
	return append(dst, '"')
}

// view returns the bytes of a string or slice without a copy. A slice header begins with
// the two words of a string header, so one reading fits both.
func view[S ~string | ~[]byte](s *S) []byte {
	str := *(*string)(unsafe.Pointer(s))
	return unsafe.Slice(unsafe.StringData(str), len(str))
}

// appendEscaped appends b as the inside of a JSON string. It copies runs of
// bytes that need no escape at once.
func appendEscaped(dst, b []byte) []byte {
	start, i := 0, 0
	for i < len(b) {
		if i+8 <= len(b) {
			x := load(b, i)
			m := stringStops(x) | x&highs
			if m == 0 {
				i += 8
				continue
			}
			i += firstByte(m)
		}
		c := b[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, b[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += n
		case c >= 0x20 && c != '"' && c != '\\':
			i++
		default:
			dst = append(dst, b[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
		}
	}
	return append(dst, b[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
