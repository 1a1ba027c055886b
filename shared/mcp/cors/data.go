package cors

import (
	"net/http"
	"os"
	"slices"
)

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
