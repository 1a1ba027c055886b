package cors

import (
	"net/http"
	"strings"
)

// What browsers are told.
const (
	methods = "GET, POST, DELETE"
	// exposed are the headers of answers that a page may read.
	exposed = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, X-Gateway-Trace-Id"
	// remembered is for how many seconds a browser need not ask again.
	remembered = "600"
	// maxAsked is how many bytes of names of headers a page may ask for.
	maxAsked = 2 << 10
)

// Handler answers what browsers ask before they let a welcome page call below the
// addresses of MCP servers and of their sign-in, and lets the page read h's answers.
// Everything else is h's, and what a page that is not welcome asks.
func (p Pages) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, crosses := r.Header["Origin"]
		if !crosses || len(origin) != 1 || !called(r.URL.Path) || !p.Welcomes(r) {
			h.ServeHTTP(w, r)
			return
		}
		head := w.Header()
		head.Add("Vary", "Origin")
		head.Set("Access-Control-Allow-Origin", origin[0])
		asked := r.Header.Get("Access-Control-Request-Method")
		if r.Method != http.MethodOptions || asked == "" {
			head.Set("Access-Control-Expose-Headers", exposed)
			h.ServeHTTP(w, r)
			return
		}
		head.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		head.Set("Access-Control-Allow-Methods", methods)
		if names := r.Header.Get("Access-Control-Request-Headers"); allowed(names) {
			head.Set("Access-Control-Allow-Headers", names)
		}
		head.Set("Access-Control-Max-Age", remembered)
		w.WriteHeader(http.StatusNoContent)
	})
}

// called tells whether pages have reason to call a path: MCP servers, the documents

// about their sign-in, and what of it is no page itself.
func called(path string) bool {
	path = strings.TrimPrefix(path, "/v1")
	switch path {
	case "/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/introspect", "/oauth/device_authorization":
		return true
	}
	return strings.HasPrefix(path, "/mcp/") || strings.HasPrefix(path, "/.well-known/")
}

// allowed tells whether names are a list of names of headers that may be sent back.
func allowed(names string) bool {
	if names == "" || len(names) > maxAsked {
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
