package routes

import (
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/hint"
)

// Mistaken returns the fault of a request that is not meant for a provider: its path is that of
// a route with another method, or a misspelled one. It returns nil for other paths, and for
// routes other than that of AnyPath.
func (rt *Route) Mistaken(method, path string) *fault.Fault {
	below, ok := strings.CutPrefix(path, BasePath)
	if rt.shadowed == nil || !ok || !strings.HasPrefix(below, "/") {
		return nil
	}
	if below == "/" {
		return fault.New(fault.RouteNotFound, "", "There is no such route; GET /v1/docs documents all")
	}
	if routes, _ := rt.shadowed.at(below); routes != nil {
		return fault.Newf(fault.MethodNotAllowed, "", "This route takes %s, not %s", strings.Join(methods(routes), ", "), method)
	}
	if meant := hint.PathMeant(below, rt.shadowed.known()); meant != "" {
		return fault.New(fault.RouteNotFound, "", "There is no such route"+meant+" A provider's path needs a workspace key, and x-gateway-config or x-gateway-provider")
	}
	return nil
}

// methods lists the methods of routes, sorted.
func methods(routes []*Route) []string {
	var out []string
	for _, rt := range routes {
		out = append(out, rt.Method)
	}
	slices.Sort(out)
	return out
}

// known lists the paths of the table, sorted, and the families of the administration.
func (t *Table) known() []string {
	out := slices.Collect(maps.Keys(t.exact))
	for _, patterns := range t.variable {
		for _, p := range patterns {
			out = append(out, "/"+strings.Join(p.segments, "/"))
		}
	}
	if t.any != nil { // paths beside these belong to providers as well
		for i := range t.any.Native {
			out = append(out, t.any.Native[i].Path)
		}
	}
	for _, row := range Reserved() {
		if first, _, _ := strings.Cut(row.Path[1:], "/"); !row.Passes && !slices.Contains(out, "/"+first) {
			out = append(out, "/"+first)
		}
	}
	slices.Sort(out)
	return out
}
