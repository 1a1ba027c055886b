package reference

import (
	"bytes"
	"strings"
	"sync"
)

// maxKey is the longest key that a body is searched for, in bytes as it is written.
const maxKey = 64

// heads are the keys of the table that a body with a provider's object has, by search
// string.
var heads = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{"source": true}
	for key := range fields {
		parent, _, _ := strings.Cut(key, ".")
		out[parent] = true
	}
	return out
})

// lengths are the lengths of heads as bits, by their first byte.
var lengths = sync.OnceValue(func() *[256]uint64 {
	var out [256]uint64
	for key := range heads() {
		out[key[0]] |= 1 << len(key)
	}
	return &out
})

func isHead(key []byte, lengths *[256]uint64) bool {
	if len(key) == 0 {
		return false
	}
	if lengths[key[0]]&(1<<len(key)) != 0 && heads()[string(key)] {
		return true
	}
	switch key[len(key)-1] {
	case 'i', 'l', 's': // of addressSuffixes
		return hasSuffix(string(key), addressSuffixes)
	}
	return false
}

// MayNameObjects reports whether Find may return a reference to an object. It does not
// parse the body: it looks at what precedes each colon.
func MayNameObjects(body []byte) bool {
	lengths := lengths()
	var room [maxKey]byte
	for rest := body; ; {
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			return false
		}
		end := i
		for end > 0 && isSpace(rest[end-1]) {
			end--
		}
		if end > 1 && rest[end-1] == '"' {
			key := rest[max(0, end-1-maxKey) : end-1]
			if at := bytes.LastIndexByte(key, '"'); at >= 0 {
				if key = key[at+1:]; bytes.IndexByte(key, '\\') >= 0 && !endsText(key) || isHead(appendCanonical(room[:0], key), lengths) {
					return true
				}
			} else if bytes.IndexByte(key, '\\') >= 0 && !endsText(key) {
				return true // a key that is written with escapes may be longer
			}
		}
		rest = rest[i+1:]
	}
}

// endsText reports whether the quote after the bytes is escaped, so that they are no key.
func endsText(key []byte) bool { return len(key) > 0 && key[len(key)-1] == '\\' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func appendCanonical(dst, key []byte) []byte {
	for _, c := range key {
		switch {
		case c == '_':
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c+'a'-'A')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
