package record

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Names of the gateway's headers that contain secrets or results; package admission has the
// others.
const (
	HeaderConfig            = "X-Gateway-Config"
	HeaderTraceID           = "X-Gateway-Trace-Id"
	HeaderProvider          = "X-Gateway-Provider"
	HeaderCustomHost        = "X-Gateway-Custom-Host"
	HeaderRetryCount        = "X-Gateway-Retry-Attempt-Count"
	HeaderCacheStatus       = "X-Gateway-Cache-Status"
	HeaderOptionIndex       = "X-Gateway-Last-Used-Option-Index"
	HeaderProviderRequestID = "X-Gateway-Provider-Request-Id"
)

// Hides reports whether the value of a header must not be logged, because it may be a credential
// or because the caller named it as sensitive.
func Hides(name string, sensitive []string) bool {
	switch name {
	case "Authorization", "X-Gateway-Api-Key", "X-Api-Key", "Api-Key", "Cookie", "Set-Cookie",
		"Proxy-Authorization", "X-Goog-Api-Key", "X-Amz-Security-Token", HeaderConfig:
		return true
	case HeaderTraceID, HeaderProvider, HeaderRetryCount, HeaderCacheStatus, HeaderOptionIndex, HeaderProviderRequestID:
		return slices.Contains(sensitive, name) // on most requests; none of them is secret
	}
	return secretHeader(name) || slices.Contains(sensitive, name)
}

// secretWords end a part of the name of a header that holds a credential.
var secretWords = [...]string{"auth", "authorization", "cookie", "credential", "credentials", "jwt", "key", "passphrase", "password", "secret", "signature", "token"}

// namesSecret reports whether a header that is no header of the gateway holds a credential by
// its name. Callers forward headers with any name to their providers.
func namesSecret(name string) bool {
	switch name {
	case "Idempotency-Key", "Sec-Websocket-Key", "Surrogate-Key":
		return false
	}
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '-' || c == '_' }) {
		for _, w := range secretWords {
			if begin := len(part) - len(w); begin >= 0 && strings.EqualFold(part[begin:], w) {
				return true
			}
		}
	}
	return false
}

// AppendHeaders writes headers as a JSON object in the order of their names;
// credentials, and what the caller named as sensitive, are masked.
func AppendHeaders(dst []byte, h http.Header, sensitive []string) []byte {
	var room [32]headerLine // most requests have fewer headers; more are sorted in the heap
	lines := room[:0]
	for name, values := range h {
		lines = append(lines, headerLine{name, values[0]})
	}
	slices.SortFunc(lines, func(a, b headerLine) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i := range lines {
		name, value := lines[i].name, lines[i].value
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendJSONString(dst, name)
		dst = append(dst, ':')
		withPassword := name == HeaderCustomHost && strings.Contains(value, "@")
		if withPassword || Hides(name, sensitive) {
			dst = append(dst, `"*****"`...)
			continue
		}
		dst = wire.AppendJSONString(dst, value)
	}
	return append(dst, '}')
}

// headerLine is a header with its first value.
type headerLine struct{ name, value string }

// secretHeader reports by its name whether a header holds a secret.
func secretHeader(name string) bool {
	if !strings.HasPrefix(name, "X-Gateway-") {
		return namesSecret(name)
	}
	for _, part := range []string{"Secret", "Token", "Private-Key", "Password", "Passphrase", "Account-Json"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
