package content

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gateway/shared/wire"
)

// maxIdentifier is the length limit of an identifier or an enumerated value, in bytes.
const maxIdentifier = 256

// isIdentifier reports whether a value can be an identifier: short and without white space.
func isIdentifier(s []byte) bool { return len(s) <= maxIdentifier && isOpaque(s) }

// IsIdentifier reports whether all values can be identifiers, which are exempt in fields of
// identifiers and enumerated values.
func IsIdentifier(values ...string) bool {
	for _, v := range values {
		if !isIdentifier([]byte(v)) {
			return false
		}
	}
	return true
}

// isName reports whether a value can be the name of a tool or a participant. The model reads
// it, so an address or a number is judged.
func isName(s []byte) bool {
	for i, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(s) <= maxIdentifier
}

// maxFieldName is the length limit of a name that no format knows, in bytes.
const maxFieldName = 64

// isFieldName reports whether a name that no format knows can be that of a field: words, a path or
// a number. Other names are text.
func isFieldName(s []byte) bool {
	digits := 0
	for i, c := range s {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && c != '.' && c != ':' && c != '/' && (i > 0 || c != '$' && c != '@'):
			return false
		}
	}
	first := len(s) > 0 && '0' <= s[0] && s[0] <= '9'
	return len(s) <= maxFieldName && (!first || digits == len(s)) // a number with separators may be personal data
}

// isOpaque reports whether a value has only printable ASCII characters and no white space.
func isOpaque(s []byte) bool {
	for _, c := range s {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isAddress reports whether a value looks like a URL.
func isAddress(s []byte) bool {
	scheme, rest, ok := bytes.Cut(s, []byte{':'})
	if !ok || len(rest) == 0 || len(scheme) == 0 || len(scheme) > 32 || !isOpaque(s) {
		return len(s) == 0
	}
	for _, c := range scheme {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// isHex reports whether a value has only hexadecimal digits, as digests have.
func isHex(s []byte) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// isBase64 reports whether a value has only characters of base64 and white space.
func isBase64(s []byte) bool {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '-', c == '_', c == '=', c == '\n', c == '\r', c == ' ', c == '\t':
		default:
			return false
		}
	}
	return true
}

// isLenientBase64 reports whether a value is long and has hardly any characters outside of
// base64, which lenient decoders skip.
func isLenientBase64(s []byte) bool {
	return len(s) >= shortBinary && isOpaque(s) && (len(s)-len(alphabet(s)))*10 <= len(s)
}

// decodedText decodes base64 that contains text. ok is false for anything else, such as an
// image. A few control characters are allowed, since the author can add them.
func decodedText(s []byte) (text []byte, ok bool) {
	plain := alphabet(s)
	const head = 64 // identifies most binary formats at little cost
	if len(plain) > head {
		if begin, err := base64.RawStdEncoding.DecodeString(string(plain[:head])); err != nil || isBinary(begin) {
			return nil, false
		}
	}
	text = make([]byte, base64.RawStdEncoding.DecodedLen(len(plain)))
	n, err := base64.RawStdEncoding.Decode(text, plain)
	text = text[:n]
	return text, err == nil && n > 0 && isPlain(text)
}

// isPlain reports whether bytes are text in UTF-8, with few control characters.
func isPlain(b []byte) bool { return utf8.Valid(b) && controls(b)*10 <= len(b) }

// decoded decodes base64 that is declared as text, as lenient readers do: it skips other
// characters, and reads invalid UTF-8 as UTF-16 or replaces it.
func decoded(s []byte) []byte {
	if text, ok := decodedText(s); ok {
		return text
	}
	plain := alphabet(s)
	if len(plain)%4 == 1 {
		plain = plain[:len(plain)-1]
	}
	text := make([]byte, base64.RawStdEncoding.DecodedLen(len(plain)))
	n, _ := base64.RawStdEncoding.Decode(text, plain)
	text = text[:n]
	if n >= 2 && (text[0] == 0xff && text[1] == 0xfe || text[0] == 0xfe && text[1] == 0xff) {
		return decodeUTF16(text)
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// decodeUTF16 decodes text in UTF-16 that begins with a byte order mark.
func decodeUTF16(b []byte) []byte {
	units, big := make([]uint16, 0, len(b)/2), b[0] == 0xfe
	for i := 2; i+1 < len(b); i += 2 {
		lo, hi := b[i], b[i+1]
		if big {
			lo, hi = hi, lo
		}
		units = append(units, uint16(hi)<<8|uint16(lo))
	}
	return []byte(string(utf16.Decode(units)))
}

// alphabet returns the characters of base64 in s, in the standard alphabet.
func alphabet(s []byte) []byte {
	plain := make([]byte, 0, len(s))
	for _, c := range s {
		switch {
		case c == '-':
			plain = append(plain, '+')
		case c == '_':
			plain = append(plain, '/')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/':
			plain = append(plain, c)
		}
	}
	return plain
}

// isBinary reports whether the beginning of a value is not UTF-8. Its end may cut a character.
func isBinary(s []byte) bool {
	for len(s) > utf8.UTFMax-1 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			return true
		}
		s = s[n:]
	}
	return false
}

// isTextual reports whether a media type is that of a text.
func isTextual(kind string) bool {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	kind = strings.TrimSpace(kind)
	family, of, _ := strings.Cut(kind, "/")
	if family == "text" {
		return true
	}
	for _, end := range [...]string{"json", "xml", "yaml", "javascript", "csv", "markdown", "ndjson", "jsonl"} {
		if strings.HasSuffix(of, end) {
			return true
		}
	}
	return false
}

// hasControls reports whether s has control characters that do not occur in text.
func hasControls(s []byte) bool { return controls(s) > 0 }

// controls counts the control characters that do not occur in text.
func controls(s []byte) (n int) {
	for _, c := range s {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
			n++
		}
	}
	return n
}

// isDataURL reports whether a value is a data URL, in base64 or not.
func isDataURL(s []byte) bool { return len(s) >= 5 && bytes.EqualFold(s[:5], []byte("data:")) }

// dataURL splits a data URL with base64 after its comma.
func dataURL(s []byte) (head, data []byte, ok bool) {
	head, data, ok = bytes.Cut(s, []byte{','})
	return head, data, ok && len(head) >= 5 && bytes.EqualFold(head[:5], []byte("data:")) && bytes.HasSuffix(bytes.ToLower(head), []byte(";base64"))
}

// readable returns JSON with unnecessary escapes in its strings resolved, so that an escaped
// letter hides no word. Anything but JSON is returned unchanged.
func readable(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 || !isJSON(raw) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			out = append(out, raw[i])
			i++
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		out = wire.AppendJSONString(out, string(wire.AppendUnquoted(nil, raw[i:end+1])))
		i = end + 1
	}
	return string(out)
}

// isJSON reports whether raw is one JSON value.
func isJSON(raw []byte) bool {
	d := wire.NewDecoder(raw)
	return d.Skip() && d.End() == nil
}
