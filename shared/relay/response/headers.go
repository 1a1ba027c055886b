package response

import (
	"net/http"
	"strings"

	"gateway/shared/relay/admission"
)

// limitPrefix is what a provider's rate limits are passed on under.
const limitPrefix = "X-Gateway-Provider-"

// PassHeaders passes on what the provider calls the request, and its rate limits under a
// prefix.
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

// PassRetry passes on what the provider says about trying again, in its own spelling.
func PassRetry(h, told http.Header) {
	for _, name := range [...]string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := told[name]; len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
}
