package audit

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// parameter finds the parameters of URLs within a text.
var parameter = regexp.MustCompile(`([?&;#][^=&;#?/\s"]+=)([^&;#\s"]*)`)

// token finds long segments in the paths of URLs within a text.
var token = regexp.MustCompile(`/[A-Za-z0-9_-]{20,}`)

// maskURLs masks the credentials in the URLs of a text: parameters with names of secrets, and
// segments of the path that look random, as those of webhooks do.
func maskURLs(s string) string {
	s = parameter.ReplaceAllStringFunc(s, func(m string) string {
		name, value, _ := strings.Cut(m[1:], "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if value == "" || !secretName(name) && !strings.EqualFold(name, "sig") {
			return m
		}
		return m[:len(m)-len(value)] + Mask(value)
	})
	return token.ReplaceAllStringFunc(s, func(m string) string {
		if !random(m[1:]) {
			return m
		}
		return "/" + Mask(m[1:])
	})
}

// MaskPath masks the segments of a request's escaped path that look like credentials.
// Records of audit, usage and traces keep paths only in this form.
func MaskPath(escaped string) string {
	segments := strings.Split(escaped, "/")
	for i, s := range segments {
		if masked := maskSegment(s); masked != s {
			segments[i] = url.PathEscape(masked)
		}
	}
	return strings.Join(segments, "/")
}

// secretSegment finds what secretValue does, even directly after other letters.
var secretSegment = regexp.MustCompile(strings.ReplaceAll(secretValue.String(), `\b`, ``))

// leastCredential is the length of the shortest text that counts as a credential.
const leastCredential = 18

// maskSegment masks credentials in a segment of a path, escaped or not, or in an id. Slugs
// that begin like a key stay as they are.
func maskSegment(s string) string {
	if len(s) < leastCredential {
		return s
	}
	plain := s
	for range 4 { // it may be escaped more than once
		next, err := url.PathUnescape(plain)
		if err != nil || next == plain {
			break
		}
		plain = next
	}
	masked := secretSegment.ReplaceAllStringFunc(plain, func(m string) string {
		if !random(m) {
			return m
		}
		return Mask(m)
	})
	if masked == plain {
		return s
	}
	return masked
}

// random reports whether a text looks generated: it mixes upper case with lower case and
// digits, or has a long run of letters and digits among which are some of both.
func random(s string) bool {
	var upper, lower, digit bool
	run, mixed := 0, [2]bool{}
	for _, r := range s {
		upper, lower, digit = upper || unicode.IsUpper(r), lower || unicode.IsLower(r), digit || unicode.IsDigit(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			run, mixed = 0, [2]bool{}
			continue
		}
		run++
		mixed[0], mixed[1] = mixed[0] || unicode.IsLetter(r), mixed[1] || unicode.IsDigit(r)
		if run >= leastCredential && mixed[0] && mixed[1] && !hexadecimal(s) {
			return true
		}
	}
	return upper && lower && (digit || len(s) >= 40)
}

// hexadecimal reports whether a text may be the id or the digest of something.
func hexadecimal(s string) bool {
	return strings.Trim(s, "0123456789abcdef-") == ""
}
