package said

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"

	"gateway/shared/wire"
)

// maxIdentifier bounds an identifier or an enumerated value, in bytes.
const maxIdentifier = 256

// isIdentifier reports whether a value can be an identifier: short and without white space.
func isIdentifier(s []byte) bool { return len(s) <= maxIdentifier && isOpaque(s) }

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

// isBase64 reports whether a value has only characters of base64.
func isBase64(s []byte) bool {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '-', c == '_', c == '=', c == '\n', c == '\r':
		default:
			return false
		}
	}
	return true
}

// decodedText decodes base64 that contains UTF-8 text. ok is false for anything else, such
// as an image.
func decodedText(s []byte) (text []byte, ok bool) {
	plain := make([]byte, 0, len(s))
	for _, c := range s {
		switch c {
		case '\n', '\r', '=':
		case '-':
			plain = append(plain, '+')
		case '_':
			plain = append(plain, '/')
		default:
			plain = append(plain, c)
		}
	}
	const head = 64 // tells most binary formats at little cost
	if len(plain) > head {
		if begin, err := base64.RawStdEncoding.DecodeString(string(plain[:head])); err != nil || hasControls(begin) {
			return nil, false
		}
	}
	text = make([]byte, base64.RawStdEncoding.DecodedLen(len(plain)))
	n, err := base64.RawStdEncoding.Decode(text, plain)
	text = text[:n]
	return text, err == nil && n > 0 && !hasControls(text) && utf8.Valid(text)
}

// hasControls reports whether s has control characters that no text has.
func hasControls(s []byte) bool {
	for _, c := range s {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
			return true
		}
	}
	return false
}

// dataURL splits a data URL with base64 after its comma.
func dataURL(s []byte) (head, data []byte, ok bool) {
	head, data, ok = bytes.Cut(s, []byte{','})
	return head, data, ok && len(head) >= 5 && bytes.EqualFold(head[:5], []byte("data:")) && bytes.HasSuffix(bytes.ToLower(head), []byte(";base64"))
}

// readable is JSON with the escapes of its strings resolved where they need none, so that an
// escaped letter hides no word. What is no JSON stays as it is.
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
