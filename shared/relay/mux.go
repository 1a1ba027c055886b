package relay

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/reserved"
)

// AnyPath is the path of the route that takes what no other route takes.
const AnyPath = "/*"

// BasePath is what every route stands below.
const BasePath = "/v1"

// Mux finds the route of a request by one look at the path, or, for paths with
// variables, by a look at those that are as long. Paths are matched escaped, as
// they came.
type Mux struct {
	relay    *Relay
	exact    map[string][]*Route // by path below BasePath
	variable map[int][]pattern   // by the number of segments
	any      *Route
}

// pattern is the path of a route with variables: {name} is any one segment that
// is not empty.
type pattern struct {
	segments []string
	routes   []*Route
}

// NewMux serves routes with r. Two routes with the same method and path are a
// mistake of the program.
func NewMux(r *Relay, routes []Route) *Mux {
	m := &Mux{relay: r, exact: make(map[string][]*Route), variable: make(map[int][]pattern)}
	for i := range routes {
		rt := &routes[i]
		if rt.DryRun != nil {
			rt.rehearsed = NewMux(r, rt.DryRun)
		}
		if rt.Scope == "" && rt.Endpoint != "" {
			panic("relay: the route " + rt.Path + " has no scope")
		}
		if rt.Path == AnyPath {
			m.any, rt.shadowed = rt, m
			continue
		}
		for _, other := range m.exact[rt.Path] {
			if other.Method == rt.Method {
				panic("relay: two routes for " + rt.Method + " " + rt.Path)
			}
		}
		m.exact[rt.Path] = append(m.exact[rt.Path], rt)
	}
	for path, routes := range m.exact {
		if strings.Contains(path, "{") {
			delete(m.exact, path)
			segments := strings.Split(path[1:], "/")
			m.variable[len(segments)] = append(m.variable[len(segments)], pattern{segments, routes})
		}
	}
	return m
}

// take gives the value of the pattern's variable; ok is false when the path is
// another.
func (p *pattern) take(below string) (id string, ok bool) {
	rest := below[1:]
	for i, want := range p.segments {
		segment, after, more := strings.Cut(rest, "/")
		if more != (i < len(p.segments)-1) {
			return "", false
		}
		switch {
		case want[0] != '{':
			if segment != want {
				return "", false
			}
		case segment == "":
			return "", false
		default:
			id = segment
		}
		rest = after
	}
	return id, true
}

// at gives the routes of a path below BasePath and the value of its variable.
func (m *Mux) at(below string) (routes []*Route, id string) {
	if routes = m.exact[below]; routes != nil || len(m.variable) == 0 {
		return routes, ""
	}
	for _, p := range m.variable[strings.Count(below, "/")] {
		if id, ok := p.take(below); ok {
			return p.routes, id
		}
	}
	return nil, ""
}

// Find gives the route of a method and an escaped path; nil when there is none.
func (m *Mux) Find(method, path string) *Route {
	rt, _ := m.find(method, path)
	return rt
}

// find also gives the value of the path's variable, escaped.
func (m *Mux) find(method, path string) (rt *Route, id string) {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return nil, ""
	}
	routes, id := m.at(below)
	for _, rt := range routes {
		if rt.Method == method {
			return rt, id
		}
	}
	if m.any != nil && slices.Contains(m.any.Methods, method) && !reserved.Takes(below) {
		return m.any, ""
	}
	return nil, ""
}

// Owns tells whether an escaped path is that of a route, with any method.
func (m *Mux) Owns(path string) bool {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return false
	}
	routes, _ := m.at(below)
	return routes != nil
}

// ServeHTTP answers a request.
func (m *Mux) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rt, id := m.find(req.Method, req.URL.EscapedPath())
	if rt == nil {
		m.refuse(w, req)
		return
	}
	m.relay.serve(w, req, rt, id)
}

// NotFound answers for a path that no route takes.
func NotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.New(fault.RouteNotFound, "", "").Status())
	_, _ = w.Write([]byte(`{"message":"Not Found","ok":false}`))
}
