package wire

import "unicode/utf8"

const (
	// MaxMetadataHeader is how many bytes of metadata JSON are read.
	MaxMetadataHeader = 16 << 10
	// MaxMetadataValue is how many characters a metadata value may have;
	// longer values are cut.
	MaxMetadataValue = 128
)

// ParseMetadata parses a metadata header, a JSON object. Strings are truncated to
// MaxMetadataValue characters, numbers and booleans become text, and null, arrays and
// objects are omitted. If the header is not a JSON object or is longer than
// MaxMetadataHeader, ok is false and the map is nil: the header then counts as empty. The
// caller has checked that it is UTF-8.
func ParseMetadata(header string) (metadata map[string]string, ok bool) {
	if len(header) > MaxMetadataHeader {
		return nil, false
	}
	d := NewDecoder([]byte(header))
	if d.Kind() != KindObject {
		return nil, false
	}
	metadata = map[string]string{}
	for key := range d.Object {
		if !utf8.Valid(key) {
			continue
		}
		name := string(key)
		switch d.Kind() {
		case KindString:
			metadata[name] = cutMetadata(d.Str())
		case KindNumber, KindBool:
			metadata[name] = cutMetadata(string(d.Raw()))
		}
	}
	if d.End() != nil {
		return nil, false
	}
	return metadata, true
}

// cutMetadata truncates s to MaxMetadataValue characters.
func cutMetadata(s string) string {
	if len(s) <= MaxMetadataValue {
		return s
	}
	n := 0
	for i := range s {
		if n == MaxMetadataValue {
			return s[:i]
		}
		n++
	}
	return s
}
