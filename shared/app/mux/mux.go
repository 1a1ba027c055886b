// Package mux serves the data plane and the administration at one address, for processes that
// serve both.
package mux

import (
	"net/http"
	"strings"

	"gateway/shared/mcp/cors"
	"gateway/shared/relay"
	"gateway/shared/relay/routes"
	"gateway/shared/wire/release"
)

// Administration is the administration's handler and what it answers for.
type Administration interface {
	http.Handler
	// Serves reports whether the administration has a route for the escaped path, with any
	// method.
	Serves(escapedPath string) bool
}

// Handler is the handler of the complete gateway.
type Handler struct {
	Data  *relay.Mux
	Admin Administration
	// Pages are the web pages that may call the data plane.
	Pages cors.DataPlane
}

// wellKnown is the prefix of addresses that clients build by inserting it before the path of
// the gateway's address (RFC 8414, RFC 9728). They are served below the base path.
const wellKnown = "/.well-known/"

func below(req *http.Request) *http.Request {
	own, u := *req, *req.URL
	u.Path = relay.BasePath + u.Path
	if u.RawPath != "" {
		u.RawPath = relay.BasePath + u.RawPath
	}
	own.URL = &u
	return &own
}

// reservedPath reports whether a path is the administration's although it has no such route.
func reservedPath(escapedPath string) bool {
	below, ok := strings.CutPrefix(escapedPath, relay.BasePath)
	return ok && strings.HasPrefix(below, "/") && routes.IsReserved(below)
}

// ServeHTTP switches on the path: first the data plane's own routes, then the
// administration's with any method, then pass-through for everything that is not reserved.
func (f *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := req.URL.Path
	if strings.HasPrefix(path, wellKnown) {
		req = below(req)
	}
	req = f.Data.Canonical(req)
	switch {
	case f.Data.Owns(req.URL.EscapedPath()):
	case path == "/healthz" || path == "/":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(release.Health))
		return
	case f.Admin != nil && (f.Admin.Serves(req.URL.EscapedPath()) || reservedPath(req.URL.EscapedPath())):
		f.Admin.ServeHTTP(w, req)
		return
	}
	f.Pages.Handler(f.Data).ServeHTTP(w, req)
}
