package reference

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// Mentions is what a body may name, by the names of its keys.
type Mentions uint8

const (
	Objects Mentions = 1 << iota // see Find
	Tools                        // see FindHosted
	Stored                       // see FindStored

	everything = Objects | Tools | Stored
)

// Mentioned returns what Find, FindHosted and FindStored may find in a JSON body. It does not parse
// the body: it looks at what precedes each colon.
func Mentioned(body []byte) Mentions { return mentioned(body, everything) }

// MayNameObjects reports whether Find may return a reference to an object.
func MayNameObjects(body []byte) bool { return mentioned(body, Objects)&Objects != 0 }

// maxKey is the longest key that a body is searched for, in bytes as it is written.
const maxKey = 64

// mentioned stops as soon as it has found what is wanted.
func mentioned(body []byte, wanted Mentions) (found Mentions) {
	lengths := lengths()
	var room [maxKey]byte
	for rest := body; found&wanted != wanted; {
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			break
		}
		end := i
		for end > 0 && isSpace(rest[end-1]) {
			end--
		}
		if end > 1 && rest[end-1] == '"' {
			key := rest[max(0, end-1-maxKey) : end-1]
			at := bytes.LastIndexByte(key, '"')
			key = key[at+1:]
			switch {
			case bytes.IndexByte(key, '\\') >= 0 && !endsText(key), at < 0 && bytes.IndexByte(key, '_') >= 0, !isASCII(key):
				return everything // escapes, many underscores, or letters with an ASCII letter as their lower case
			case at >= 0:
				found |= mentions(appendCanonical(room[:0], key), lengths)
			}
		}
		rest = rest[i+1:]
	}
	return found
}

// heads are the canonical keys of which a body has one if it names something, by search string.
var heads = sync.OnceValue(func() map[string]Mentions {
	out := map[string]Mentions{"source": Objects, "input": Stored, "items": Stored, "tools": Tools, "plugins": Tools}
	for _, key := range hostedFields {
		out[key] |= Tools
	}
	for key := range fields {
		parent, _, _ := strings.Cut(key, ".")
		out[parent] |= Objects
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

// mentions returns what a canonical key mentions.
func mentions(key []byte, lengths *[256]uint64) (found Mentions) {
	if len(key) == 0 {
		return 0
	}
	if lengths[key[0]]&(1<<len(key)) != 0 {
		found = heads()[string(key)]
	}
	switch key[len(key)-1] {
	case 'i', 'l', 's': // of addressSuffixes
		if hasSuffix(string(key), addressSuffixes) {
			found |= Objects
		}
	}
	return found
}

func isASCII(key []byte) bool {
	for _, c := range key {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
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
