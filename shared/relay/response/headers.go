package response

import (
	"net/http"
	"strings"

	"gateway/shared/relay/admission"
)

// limitPrefix is the prefix of a provider's forwarded rate limit headers.
const limitPrefix = "X-Gateway-Provider-"

// PassHeaders forwards the provider's request id, and its rate limits under a prefix.
func PassHeaders(h, from http.Header) {
	for name, values := range from {
		switch {
		case name == "X-Request-Id" || name == "Request-Id":
			h[admission.ProviderRequestID] = values
		case strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-"):
			h[limitPrefix+strings.TrimPrefix(name, "X-")] = values
		}
	}
}

// PassRetry forwards the provider's retry headers, unchanged.
func PassRetry(h, told http.Header) {
	for _, name := range [...]string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := told[name]; len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
}
