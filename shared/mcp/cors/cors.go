package cors

import (
	"net/http"
	"strings"
)

// Values of CORS headers.
const (
	methods = "GET, POST, DELETE"
	// exposed are the response headers that a page may read.
	exposed = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, X-Gateway-Trace-Id"
	// maxAge is the cache lifetime of a preflight response in seconds.
	maxAge = "600"
	// maxRequestHeaders is the size limit of a page's list of header names in bytes.
	maxRequestHeaders = 2 << 10
)

// Handler answers preflight requests of allowed origins for MCP servers and their sign-in, and
// allows pages to read h's responses. All other requests go to h.
func (p Pages) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, crosses := r.Header["Origin"]
		if !crosses || len(origin) != 1 || !applies(r.URL.Path) || !p.Allows(r) {
			h.ServeHTTP(w, r)
			return
		}
		head := w.Header()
		head.Add("Vary", "Origin")
		head.Set("Access-Control-Allow-Origin", origin[0])
		requested := r.Header.Get("Access-Control-Request-Method")
		if r.Method != http.MethodOptions || requested == "" {
			head.Set("Access-Control-Expose-Headers", exposed)
			h.ServeHTTP(w, r)
			return
		}
		preflight(head, r, methods)
		w.WriteHeader(http.StatusNoContent)
	})
}

// applies reports whether pages may call a path: MCP servers, their OAuth metadata and the
// OAuth endpoints that are not pages.

func applies(path string) bool {
	path = strings.TrimPrefix(path, "/v1")
	switch path {
	case "/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/introspect", "/oauth/device_authorization":
		return true
	}
	return strings.HasPrefix(path, "/mcp/") || strings.HasPrefix(path, "/.well-known/")
}

// validHeaderNames reports whether names is a list of header names that can be echoed.
func validHeaderNames(names string) bool {
	if names == "" || len(names) > maxRequestHeaders {
		return false
	}
	for _, b := range []byte(names) {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && !strings.ContainsRune("-_, ", rune(b)) {
			return false
		}
	}
	return true
}
