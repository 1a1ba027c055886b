package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"gateway/shared/fault"
)

// CheckStrict checks a body that people write and the gateway stores: one JSON
// value (not only an object), UTF-8 throughout, at most maxDepth levels (never
// above MaxDepth) and no key twice in one object at any level. The error is a
// *fault.Fault (400) that names the path.
func CheckStrict(body []byte, maxDepth int) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}
	if skipSpace(body, 0) == len(body) {
		return fault.Invalid("", "The body is empty; JSON is expected")
	}
	d := NewDecoder(body)
	checkKeys(d, min(maxDepth, MaxDepth), 0)
	return d.End()
}

// checkKeys reads the next value of d, which is inside of depth levels.
func checkKeys(d *Decoder, maxDepth, depth int) {
	kind := d.Kind()
	if kind != KindObject && kind != KindArray {
		d.Skip()
		return
	}
	if depth >= maxDepth {
		d.Fail("is nested too deeply: arrays and objects may nest at most %d deep", maxDepth)
		return
	}
	if kind == KindArray {
		for range d.Array {
			checkKeys(d, maxDepth, depth+1)
		}
		return
	}
	var seen keys
	for key := range d.Object {
		if seen.twice(key) {
			d.Fail("occurs twice in the same object, again at byte %d", d.Offset())
		}
		checkKeys(d, maxDepth, depth+1)
	}
}

// keys are the keys of an object so far. A few are compared one by one, without an
// allocation: a key is a part of the body, or was made because of its escapes.
type keys struct {
	few  [12][]byte
	n    int
	many map[string]struct{} // used when there are more
}

// twice reports whether a key has come before, and remembers it.
func (k *keys) twice(key []byte) bool {
	if k.many == nil {
		for _, other := range k.few[:k.n] {
			if bytes.Equal(other, key) {
				return true
			}
		}
		if k.n < len(k.few) {
			k.few[k.n] = key
			k.n++
			return false
		}
		k.many = make(map[string]struct{}, 4*len(k.few))
		for _, other := range k.few {
			k.many[string(other)] = struct{}{}
		}
	}
	if _, twice := k.many[string(key)]; twice {
		return true
	}
	k.many[string(key)] = struct{}{}
	return false
}

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
