package routes

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// AnyPath is the path of the route that serves all paths without another route.
const AnyPath = "/*"

// BasePath is the prefix of every route.
const BasePath = "/v1"

// Table finds the route of a request by one lookup of the path, or, for paths with variables, by
// a search of those with the same length. Paths are matched escaped, as received.
type Table struct {
	exact    map[string][]*Route // by path below BasePath
	variable map[int][]pattern   // by the number of segments
	greedy   []pattern           // that end with a variable for the rest
	any      *Route
}

// pattern is the path of a route with variables: {name} is any one segment that is not empty,
// {name+} at the end the rest.
type pattern struct {
	segments []string
	routes   []*Route
}

// NewTable returns the table of routes. It panics on two routes with the same method and path.
func NewTable(routes []Route) *Table {
	t := &Table{exact: make(map[string][]*Route), variable: make(map[int][]pattern)}
	for i := range routes {
		rt := &routes[i]
		if h, ok := rt.Handler.(*DryRun); ok {
			h.table = NewTable(h.Of)
		}
		if rt.Scope == "" && rt.Endpoint != "" {
			panic("relay: the route " + rt.Path + " has no scope")
		}
		if rt.Path == AnyPath {
			t.any, rt.shadowed = rt, t
			rt.nameNative()
			continue
		}
		for _, other := range t.exact[rt.Path] {
			if other.Method == rt.Method {
				panic("relay: two routes for " + rt.Method + " " + rt.Path)
			}
		}
		t.exact[rt.Path] = append(t.exact[rt.Path], rt)
	}
	t.linkTurns()
	for path, routes := range t.exact {
		if strings.Contains(path, "{") {
			delete(t.exact, path)
			segments := strings.Split(path[1:], "/")
			if strings.HasSuffix(path, "+}") {
				t.greedy = append(t.greedy, pattern{segments, routes})
				continue
			}
			t.variable[len(segments)] = append(t.variable[len(segments)], pattern{segments, routes})
		}
	}
	return t
}

// linkTurns finds the routes that messages are posted to.
func (t *Table) linkTurns() {
	for _, routes := range t.exact {
		for _, rt := range routes {
			h, ok := rt.Handler.(*Dialogue)
			if !ok {
				continue
			}
			for _, other := range t.exact[h.Path] {
				if other.Method == http.MethodPost {
					h.route = other
				}
			}
			if h.route == nil {
				panic("relay: no route for the messages of " + rt.Path)
			}
		}
	}
}

// take returns the value of the pattern's variable; ok is false if the path does not match.
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

// at returns the routes of a path below BasePath and the value of its variable.
func (t *Table) at(below string) (routes []*Route, id string) {
	if routes = t.exact[below]; routes != nil || len(t.variable)+len(t.greedy) == 0 {
		return routes, ""
	}
	for _, p := range t.variable[strings.Count(below, "/")] {
		if id, ok := p.take(below); ok {
			return p.routes, id
		}
	}
	for _, p := range t.greedy {
		if p.begins(below) {
			return p.routes, ""
		}
	}
	return nil, ""
}

// begins reports whether a path starts with the pattern's segments except the last, which
// matches the rest.
func (p *pattern) begins(below string) bool {
	parts := strings.SplitN(below[1:], "/", len(p.segments))
	if len(parts) < len(p.segments) {
		return false
	}
	head := pattern{segments: p.segments[:len(p.segments)-1]}
	_, ok := head.take("/" + strings.Join(parts[:len(parts)-1], "/"))
	return ok
}

// Find returns the route of a method and an escaped path; nil if there is none.
func (t *Table) Find(method, path string) *Route {
	rt, _ := t.Match(method, path)
	return rt
}

// Match also returns the value of the path's variable, escaped.
func (t *Table) Match(method, path string) (rt *Route, id string) {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return nil, ""
	}
	routes, id := t.at(below)
	for _, rt := range routes {
		if rt.Method == method {
			return rt, id
		}
	}
	if t.any != nil && slices.Contains(t.any.Methods, method) && !Takes(below) {
		if own, model := t.any.nativeAt(method, below); own != nil {
			return own, model
		}
		return t.any, ""
	}
	return nil, ""
}

// Owns reports whether an escaped path is that of a route, with any method.
func (t *Table) Owns(path string) bool {
	below, ok := strings.CutPrefix(path, BasePath)
	if !ok || !strings.HasPrefix(below, "/") {
		return false
	}
	routes, _ := t.at(below)
	return routes != nil
}

// NotFound writes the response for a path without a route.
func NotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.New(fault.RouteNotFound, "", "").Status())
	_, _ = w.Write([]byte(`{"message":"Not Found","ok":false}`))
}
