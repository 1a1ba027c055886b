package relay

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// AnyPath is the path of the route that takes what no other route takes.
const AnyPath = "/*"

// BasePath is what every route stands below.
const BasePath = "/v1"

// Mux finds the route of a request by one look at the path.
type Mux struct {
	relay *Relay
	exact map[string][]*Route // by path below BasePath
	any   *Route
}

// NewMux serves routes with r. Two routes with the same method and path are a
// mistake of the program.
func NewMux(r *Relay, routes []Route) *Mux {
	m := &Mux{relay: r, exact: make(map[string][]*Route)}
	for i := range routes {
		rt := &routes[i]
		if rt.Scope == "" && rt.Endpoint != "" {
			panic("relay: the route " + rt.Path + " has no scope")
		}
		if rt.Path == AnyPath {
			m.any = rt
			continue
		}
		for _, other := range m.exact[rt.Path] {
			if other.Method == rt.Method {
				panic("relay: two routes for " + rt.Method + " " + rt.Path)
			}
		}
		m.exact[rt.Path] = append(m.exact[rt.Path], rt)
	}
	return m
}

// Find gives the route of a request; nil when there is none.
func (m *Mux) Find(method, path string) *Route {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return nil
	}
	for _, rt := range m.exact[below] {
		if rt.Method == method {
			return rt
		}
	}
	if m.any != nil && slices.Contains(m.any.Methods, method) {
		return m.any
	}
	return nil
}

// Owns tells whether a path is one of the exact routes', with any method.
func (m *Mux) Owns(path string) bool {
	below, ok := strings.CutPrefix(path, BasePath)
	return ok && m.exact[below] != nil
}

// ServeHTTP answers a request.
func (m *Mux) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rt := m.Find(req.Method, req.URL.Path)
	if rt == nil {
		NotFound(w)
		return
	}
	m.relay.Serve(w, req, rt)
}

// NotFound answers for a path that no route takes.
func NotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.New(fault.RouteNotFound, "", "").Status())
	_, _ = w.Write([]byte(`{"message":"Not Found","ok":false}`))
}
