// Package field has the grammar of HTTP/1.1 heads that the gateway's own client and
// server read and write: lines, names, values, lists and lengths (RFC 9110, RFC 9112). It
// is strict: its users reject what it does not accept, or leave it to net/http.
package field

import (
	"net/http"
	"strings"
)

// CutLine returns the first line without its end, and what follows it. A line ends with
// LF or CRLF.
func CutLine(s string) (line, rest string) {
	n := strings.IndexByte(s, '\n')
	if n < 0 {
		return s, ""
	}
	line, rest = s[:n], s[n+1:]
	if n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// Length reads a Content-Length: 1 to 18 digits and nothing else.
func Length(v string) (int64, bool) {
	if v == "" || len(v) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(v) {
		if v[i]-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(v[i]-'0')
	}
	return n, true
}

// Lists reports whether a comma list has a word, in any case.
func Lists(list, word string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(Trim(part), word) {
			return true
		}
	}
	return false
}

// Trim removes the spaces and tabs around a value.
func Trim(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for n := len(s); n > 0 && (s[n-1] == ' ' || s[n-1] == '\t'); n-- {
		s = s[:n-1]
	}
	return s
}

// Value reports whether a value has no control characters but tabs. It checks eight bytes
// at once: a subtraction sets the top bit of a byte that is too small.
func Value(v string) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for len(v) >= 8 {
		w := uint64(v[0]) | uint64(v[1])<<8 | uint64(v[2])<<16 | uint64(v[3])<<24 | uint64(v[4])<<32 | uint64(v[5])<<40 | uint64(v[6])<<48 | uint64(v[7])<<56
		del := w ^ 0x7f*ones
		if ((w-' '*ones)&^w|(del-ones)&^del)&tops != 0 {
			break // it may be a tab
		}
		v = v[8:]
	}
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// tokenChars are the characters of names and methods (RFC 9110, 5.6.2).
var tokenChars = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// Token reports whether s may be a name or a method.
func Token(s string) bool {
	for i := range len(s) {
		if !tokenChars[s[i]] {
			return false
		}
	}
	return s != ""
}

// Name returns a field's name as http.Header writes it; false when it is not a token. The
// result may alias s.
func Name(s string) (string, bool) {
	upper, canonical := true, true
	for i := range len(s) {
		c := s[i]
		if !tokenChars[c] {
			return "", false
		}
		if upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			canonical = false
		}
		upper = c == '-'
	}
	if canonical {
		return s, s != ""
	}
	if name, ok := commonNames[s]; ok {
		return name, true
	}
	return http.CanonicalHeaderKey(s), true
}

// commonNames are fields that clients and hosts write in another case: in lower case, or as
// in their own documentation.
var commonNames = func() map[string]string {
	names := make(map[string]string)
	for _, n := range []string{
		"Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive", "Date", "Server", "Vary", "Via",
		"Cache-Control", "X-Request-Id", "Request-Id", "Set-Cookie", "Strict-Transport-Security", "Alt-Svc", "Cf-Ray", "Cf-Cache-Status",
		"X-Content-Type-Options", "Access-Control-Expose-Headers", "Access-Control-Allow-Origin", "Retry-After",
		"Openai-Organization", "Openai-Processing-Ms", "Openai-Version", "Openai-Project", "X-Envoy-Upstream-Service-Time",
		"X-Ratelimit-Limit-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Remaining-Tokens",
		"X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens", "Anthropic-Organization-Id",
		"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset",
		"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset",
		"Host", "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Authorization", "Origin", "Referer", "Cookie", "Pragma",
		"Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Traceparent", "Tracestate", "X-Api-Key", "X-Forwarded-For", "X-Forwarded-Port",
		"X-Forwarded-Proto", "X-Amzn-Trace-Id", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Idempotency-Key",
		"X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-Os", "X-Stainless-Arch", "X-Stainless-Runtime",
		"X-Stainless-Runtime-Version", "X-Stainless-Retry-Count", "X-Stainless-Async", "X-Stainless-Timeout", "X-Stainless-Read-Timeout",
		"X-Stainless-Helper-Method",
		"X-Gateway-Api-Key", "X-Gateway-Provider", "X-Gateway-Virtual-Key", "X-Gateway-Config", "X-Gateway-Custom-Host", "X-Gateway-Metadata",
		"X-Gateway-Trace-Id", "X-Gateway-Span-Id", "X-Gateway-Parent-Span-Id", "X-Gateway-Span-Name", "X-Gateway-Debug",
		"X-Gateway-Request-Timeout", "X-Gateway-Forward-Headers", "X-Gateway-Sensitive-Headers", "X-Gateway-Cache-Namespace",
		"X-Gateway-Cache-Force-Refresh", "X-Gateway-Strict-Open-Ai-Compliance", "X-Gateway-Translation", "X-Gateway-Refusals",
	} {
		names[strings.ToLower(n)] = n
	}
	for _, n := range []string{
		"OpenAI-Organization", "OpenAI-Project", "OpenAI-Beta", "X-Stainless-OS", "X-Request-ID",
	} {
		names[n] = http.CanonicalHeaderKey(n)
	}
	return names
}()
