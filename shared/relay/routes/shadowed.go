package routes

import (
	"net/http"
	"strings"
)

// Like is the gateway's own route for what a passed-through request posts: that of the same
// path without its version, such as /v1/responses. The answer is metered as it would be
// there. nil: there is none.
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

// belowVersion is a path without its version, and without the name of the maker below
// which hosts of several shapes serve those of OpenAI and Anthropic.
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
