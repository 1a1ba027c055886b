// Package cors lets web pages call MCP servers, the OAuth endpoints for them, and the data plane. It checks the
// origin and sets the CORS headers. Credentials mode is not allowed: pages send a key or a
// token.
package cors

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
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

// EnvData is the environment variable with the origins of web pages that may call the data
// plane, separated by commas.
const EnvData = "GATEWAY_ALLOWED_ORIGINS"

// dataMethods are the methods that pages may use.
const dataMethods = "GET, POST, PUT, PATCH, DELETE"

// DataPlane are the origins of web pages that may call the data plane. There are none by
// default, and no origin is allowed implicitly, not even the gateway's own.
type DataPlane []string

// DataPlaneFromEnvironment reads EnvData.
func DataPlaneFromEnvironment() (DataPlane, error) {
	return parse(EnvData, os.Getenv(EnvData))
}

// ParseDataPlane parses the value of EnvData.
func ParseDataPlane(list string) (DataPlane, error) { return parse(EnvData, list) }

// Handler answers preflight requests of allowed origins, which have no key, and allows pages
// to read h's responses. All other requests go to h, and so do those for MCP servers, which
// Pages decides about.
func (d DataPlane) Handler(h http.Handler) http.Handler {
	if len(d) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header["Origin"]
		if len(origin) != 1 || !slices.Contains(d, origin[0]) || applies(r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
		head := w.Header()
		head.Add("Vary", "Origin")
		head.Set("Access-Control-Allow-Origin", origin[0])
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			head.Set("Access-Control-Expose-Headers", "*") // cookies are not allowed, so that it means all
			h.ServeHTTP(w, r)
			return
		}
		preflight(head, r, dataMethods)
		w.WriteHeader(http.StatusNoContent)
	})
}

// preflight sets the headers of the response to a preflight request.
func preflight(head http.Header, r *http.Request, methods string) {
	head.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	head.Set("Access-Control-Allow-Methods", methods)
	if names := r.Header.Get("Access-Control-Request-Headers"); validHeaderNames(names) {
		head.Set("Access-Control-Allow-Headers", names)
	}
	head.Set("Access-Control-Max-Age", maxAge)
}

// Env is the environment variable with the allowed origins besides the gateway's own, separated
// by commas.
const Env = "MCP_ALLOWED_ORIGINS"

// maxOrigins is the number of origins in Env.
const maxOrigins = 100

// Pages are the allowed origins.
type Pages struct {
	Origins []string // in addition to the gateway's own
	// Public is the gateway's public address. If empty, the address of the request is used.
	Public string
}

// Parse parses a list such as https://app.example.com,http://localhost:6274.
func Parse(list string) (out []string, err error) { return parse(Env, list) }

// parse parses the value of an environment variable.
func parse(name, list string) (out []string, err error) {
	for o := range strings.SplitSeq(list, ",") {
		if o = strings.TrimSpace(o); o == "" {
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+strings.ToLower(u.Host) != o {
			return nil, fmt.Errorf("%s: %q must be an origin as browsers send it: https:// or http://, a host in small letters and perhaps a port, without a path", name, o)
		}
		out = append(out, o)
	}
	if len(out) > maxOrigins {
		return nil, fmt.Errorf("%s: has %d origins; at most %d are allowed", name, len(out), maxOrigins)
	}
	return out, nil
}

// EnvBase is the environment variable with the public address of MCP servers, if it differs
// from the gateway's.
const EnvBase = "MCP_GATEWAY_BASE_URL"

// EnvPublic is the environment variable with the gateway's public address.
const EnvPublic = "GATEWAY_PUBLIC_URL"

// Public returns the configured public address, or "" if the address of the request is used.
// public is the operator's setting.
func Public(public string) string {
	return strings.TrimRight(cmp.Or(os.Getenv(EnvBase), public), "/")
}

// FromEnvironment reads Env. public is the result of Public.
func FromEnvironment(public string) (Pages, error) {
	origins, err := Parse(os.Getenv(Env))
	return Pages{Origins: origins, Public: public}, err
}

// Allows reports whether a page may call, by its Origin. Requests without an Origin are not
// from a page.
func (p Pages) Allows(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(p.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if loopback(u.Hostname()) && loopback(hostname(r.Host)) {
		return true
	}
	return u.Host == r.Host && !p.rebound(r)
}

// rebound reports whether a foreign host name resolves to this machine (DNS rebinding): the
// page of such a name has the same origin for the browser.
func (p Pages) rebound(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() || r.TLS != nil {
		return false
	}
	public, err := url.Parse(p.Public)
	return err != nil || public.Host != r.Host
}

func hostname(host string) string {
	u, err := url.Parse("//" + host)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func loopback(name string) bool {
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}
