package blob

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrTooLarge is returned by Get for an object above its bound.
var ErrTooLarge = errors.New("blob: object larger than allowed")

// ErrRange is returned by Open for an offset after the object's last byte. The second
// result of Open is the size of the object.
var ErrRange = errors.New("blob: range outside the object")

// MaxKey is the longest key, in bytes (S3's own), and MaxSegment the longest
// part of it between slashes (a file name's).
const (
	MaxKey     = 1024
	MaxSegment = 255
)

// CheckKey rejects keys that the two implementations would not treat alike: absolute
// ones, empty segments, segments that begin with a dot (so also . and ..), backslashes,
// control characters, and anything that is not UTF-8. Every method of a Bucket that takes
// a key checks it. The gateway makes the keys, so a bad one is an error of the program,
// not of a caller.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("blob: empty key")
	case len(key) > MaxKey:
		return fmt.Errorf("blob: key of %d bytes, at most %d are allowed", len(key), MaxKey)
	case !utf8.ValidString(key):
		return errors.New("blob: key is not UTF-8")
	}
	for i := 0; i < len(key); i++ {
		if c := key[i]; c < 0x20 || c == 0x7f || c == '\\' {
			return fmt.Errorf("blob: key %q has a control character or backslash", key)
		}
	}
	for rest, more := key, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch {
		case segment == "":
			return fmt.Errorf("blob: key %q has an empty segment", key)
		case segment[0] == '.':
			return fmt.Errorf("blob: key %q has a segment that begins with a dot", key)
		case len(segment) > MaxSegment:
			return fmt.Errorf("blob: key %q has a segment above %d bytes", key, MaxSegment)
		}
	}
	return nil
}
