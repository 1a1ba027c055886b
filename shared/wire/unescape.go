package wire

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendUnquoted appends the text of raw, a checked JSON string with its quotes, to dst. A
// lone surrogate and bytes that are not UTF-8 become U+FFFD. An absent field (nil) has no
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

// Traceparent is the W3C trace context header.
type Traceparent struct {
	TraceID  string // 32 lower-case hexadecimal digits
	ParentID string // 16 lower-case hexadecimal digits
	Flags    byte
}

// ParseTraceparent reads a traceparent header of version 00, and of later versions the same
// fields. false: the header must be ignored.
func ParseTraceparent(header string) (Traceparent, bool) {
	const length = 55 // 00-<32>-<16>-<2>
	s := strings.TrimSpace(header)
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Traceparent{}, false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags) || version == "ff" {
		return Traceparent{}, false
	}
	if len(s) > length && (version == "00" || s[length] != '-') {
		return Traceparent{}, false
	}
	if strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return Traceparent{}, false
	}
	return Traceparent{trace, parent, hexValue[flags[0]]<<4 | hexValue[flags[1]]}, true
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if hexValue[s[i]] > 0x0f || s[i] >= 'A' && s[i] <= 'F' {
			return false
		}
	}
	return true
}

// Bounds of a baggage header; the rest is omitted.
const (
	maxBaggageBytes = 8192
	maxBaggagePairs = 64
)

// ParseBaggage reads the pairs of a W3C baggage header into metadata: names as they are,
// values percent-decoded and cut to MaxMetadataValue characters. Properties after ';' and
// malformed fields are omitted. If two fields have the same name, the last one wins.
// nil when there is no pair.
func ParseBaggage(header string) map[string]string {
	if len(header) > maxBaggageBytes {
		header = header[:maxBaggageBytes]
		header = header[:max(strings.LastIndexByte(header, ','), 0)]
	}
	var pairs map[string]string
	for member := range strings.SplitSeq(header, ",") {
		member, _, _ = strings.Cut(member, ";")
		name, value, ok := strings.Cut(member, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"") {
			continue
		}
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !utf8.ValidString(text) || !utf8.ValidString(name) {
			continue
		}
		if len(pairs) == maxBaggagePairs {
			break
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[name] = cutMetadata(text)
	}
	return pairs
}
