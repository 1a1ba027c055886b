package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"gateway/shared/fault"
)

// CheckUTF8 rejects bytes that are not UTF-8: JSON has no other encoding, and decoders
// would replace them by U+FFFD. The fault names the path of the first such byte. For text
// that is mostly ASCII it costs a small part of a walk.
func CheckUTF8(body []byte) error {
	if validUTF8(body) {
		return nil
	}
	at := 0
	for at < len(body) {
		r, n := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fault.Invalid(PathAt(body, at), "The body is not valid UTF-8 at byte %d", at)
}

// asciiBlock is how many bytes are checked at once. textPiece is how many are then read
// character by character before blocks are tried again.
const (
	asciiBlock = 64
	textPiece  = 512
)

// validUTF8 is utf8.Valid, for long text.
func validUTF8(b []byte) bool {
	for {
		b = b[skipASCII(b):]
		if len(b) <= textPiece {
			return utf8.Valid(b)
		}
		end := textPiece
		for end > textPiece-utf8.UTFMax && !utf8.RuneStart(b[end]) {
			end--
		}
		if !utf8.Valid(b[:end]) {
			return false
		}
		b = b[end:]
	}
}

// skipASCII returns the length of the ASCII prefix of b, in full blocks.
func skipASCII(b []byte) int {
	const high = 0x8080808080808080
	i := 0
	for ; len(b)-i >= asciiBlock; i += asciiBlock {
		p := (*[asciiBlock]byte)(b[i:])
		first := binary.LittleEndian.Uint64(p[0:8]) | binary.LittleEndian.Uint64(p[8:16]) |
			binary.LittleEndian.Uint64(p[16:24]) | binary.LittleEndian.Uint64(p[24:32])
		second := binary.LittleEndian.Uint64(p[32:40]) | binary.LittleEndian.Uint64(p[40:48]) |
			binary.LittleEndian.Uint64(p[48:56]) | binary.LittleEndian.Uint64(p[56:64])
		if (first|second)&high != 0 {
			break
		}
	}
	return i
}
