package admin

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A client that knows only the document manages resources by it. So the answer of a create
// links to the operations on what it made; a member that names another resource says of
// which collection; and members that are never read back, or never change, are marked.

// Extensions of the document.
const (
	refersTo  = "x-gateway-refers-to" // the collection that a value refers to
	immutable = "x-gateway-immutable" // an update may repeat the value, not change it
)

// use adds hints for clients to a field's schema.
func (f *Field) use(s Schema) {
	if f.Refers != "" {
		s[refersTo] = f.Refers
	}
	if f.Example != nil {
		s["example"] = f.Example
	}
	if f.unread {
		s["writeOnly"] = true
	}
	if f.Fixed {
		s[immutable] = true
	}
}

// actions on what a create made, by the methods of its path.
var actions = map[string]string{"get": "read", "put": "update", "delete": "delete"}

// link adds the OpenAPI links of a route that creates a resource: the operations on it, and the
// runtime expressions of their variables.
func (r *Route) link(paths map[string]map[string]any) {
	if r.Makes == "" {
		return
	}
	for n, path := range r.paths() {
		item := r.itemOf(n, path)
		operations, ok := paths[item]
		op, _ := paths[path][strings.ToLower(r.Method)].(map[string]any)
		if !ok || op == nil {
			continue
		}
		links := map[string]any{}
		for _, method := range slices.Sorted(maps.Keys(actions)) {
			if on, ok := operations[method].(map[string]any); ok {
				links[actions[method]] = map[string]any{"operationId": on["operationId"], "parameters": r.variablesOf(item)}
			}
		}
		answer, _ := op["responses"].(map[string]any)[strconv.Itoa(r.status())].(map[string]any)
		if answer != nil && len(links) > 0 {
			answer["links"] = links
		}
	}
}

// itemOf is the path of the item that the n-th path of the route makes.
func (r *Route) itemOf(n int, path string) string {
	rest, ok := strings.CutPrefix(r.Makes, r.Path)
	if n > 0 && ok {
		return path + rest
	}
	return r.Makes
}

// variablesOf are the runtime expressions of the variables of an item's path.
func (r *Route) variablesOf(item string) map[string]string {
	properties, at := r.answerSchema()["properties"], "$response.body#/"
	if p, ok := properties.(map[string]Schema); ok && p["data"] != nil && p["success"] != nil {
		properties, at = p["data"]["properties"], at+"data/"
	}
	answered, _ := properties.(map[string]Schema)
	out := map[string]string{}
	for _, seg := range strings.Split(item, "/") {
		name := strings.Trim(seg, "{}")
		if name == seg {
			continue
		}
		switch {
		case r.Named[name] != "":
			out[name] = r.Named[name]
		case strings.Contains(r.Path, seg):
			out[name] = "$request.path." + name
		case answered[name] != nil:
			out[name] = at + name
		default:
			out[name] = at + "id"
		}
	}
	for name, value := range r.Named {
		out[name] = value
	}
	if r.Where == InWorkspace || r.Where == InEither {
		out[workspaceID] = "$request.body#/" + workspaceID
	}
	return out
}
