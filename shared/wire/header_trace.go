package wire

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

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
// malformed members are omitted. If two members have the same name, the last one wins.
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
