package routes

import (
	"net/http"
	"strings"
)

// Like returns the gateway's own route for a passed-through POST: that of the same path without
// its version, such as /v1/responses. The response is metered as it would be there. It returns
// nil if there is none.
func (rt *Route) Like(path string) *Route {
	if rt.shadowed == nil {
		return nil
	}
	path = belowVersion(path)
	for _, rt := range rt.shadowed.exact[path] {
		if rt.Method == http.MethodPost && (rt.Client != nil || rt.Meter != nil || rt.Demand != nil) {
			return rt
		}
	}
	return nil
}

// belowVersion returns a path without its version, and without the vendor's name below which
// hosts with several dialects serve those of OpenAI and Anthropic.
func belowVersion(path string) string {
	first, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch second, below, more := strings.Cut(rest, "/"); {
	case ok && more && (first == "openai" || first == "anthropic") && isVersion(second),
		ok && more && second == "openai" && (isVersion(first) || first == "v1beta"):
		return "/" + below
	case ok && isVersion(first):
		return "/" + rest
	}
	return path
}

// isVersion knows v1, v2 and so on.
func isVersion(s string) bool {
	return len(s) == 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}
