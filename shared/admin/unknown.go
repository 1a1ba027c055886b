package admin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/hint"
)

// lenientHeader lets a request contain fields and query parameters that its route does not
// know. They are ignored. The setting api_settings.lenient of an organization does the same
// for all requests.
const lenientHeader = "X-Gateway-Lenient"

// organisationID may be sent to every route, as workspace_id may.
const organisationID = "organisation_id"

// foreign reports whether the protocol of the route is defined elsewhere, such as OAuth, SCIM
// and OTLP. Those protocols ignore what they do not know.
func (r *Route) foreign() bool {
	return r.Rejections != nil || r.Unparsed || slices.Contains(r.Consumes, formType)
}

// rejectUnknown adds the fields of the bodies and the query parameters that the route does
// not know to p, unless the request or the organization is lenient. Public routes may have
// any query: browsers and identity providers call them with parameters of their own.
func rejectUnknown(c *Call, bodies []map[string]json.RawMessage, p *problems) error {
	if c.Route.foreign() {
		return nil
	}
	var found problems
	for i, body := range bodies {
		below := ""
		if c.body.isList() {
			below = "[" + strconv.Itoa(i) + "]"
		}
		for _, name := range sortedKeys(body) {
			var text string
			_ = json.Unmarshal(body[name], &text) // other values repeat no path variable
			if !declares(c, name, text, c.Route.Body) && !echoes(c, name) {
				found.add(join(below, clip(name)), "%s", unknownName("field", name, sendable(c.Route)))
			}
		}
	}
	if !c.Route.Public {
		query, err := url.ParseQuery(c.Request.URL.RawQuery)
		if err != nil {
			return nil // checkQuery rejects it
		}
		for _, name := range sortedKeys(query) {
			if !declares(c, name, query.Get(name), c.Route.Query) && !repeats(c, name) {
				found.add(clip(name), "%s", unknownName("query parameter", name, append(fieldNames(c.Route.Query), workspaceID)))
			}
		}
	}
	if len(found.list) == 0 {
		return nil
	}
	lenient, err := c.lenient()
	if err == nil && !lenient {
		p.list = append(found.list, p.list...)
	}
	return err
}

// lenient reports whether unknown names are ignored.
func (c *Call) lenient() (bool, error) {
	if sent := c.Request.Header.Get(lenientHeader); sent != "" {
		lenient, err := strconv.ParseBool(sent)
		if err != nil {
			return false, fault.Invalid(strings.ToLower(lenientHeader), "must be true or false")
		}
		return lenient, nil
	}
	if c.handler.deps.Lenient == nil || c.Caller.Scope.Org == "" {
		return false, nil
	}
	return c.handler.deps.Lenient(c.Context, c.Caller.Scope.Org)
}

// declares reports whether a name belongs to the fields of the route, may be sent to every
// route, or repeats the value of a path variable, as generated clients do.
func declares(c *Call, name, value string, fields []Field) bool {
	if name == workspaceID || name == organisationID || slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
		return true
	}
	for _, v := range c.params {
		if v == value && value != "" {
			return true
		}
	}
	return false
}

// echoes reports whether a field of an update is one that a GET of the same path responds
// with, so that its response can be sent back.
func echoes(c *Call, name string) bool {
	if c.Route.Method != "PUT" && c.Route.Method != "PATCH" || c.reads == nil {
		return false
	}
	return hasProperty(c.reads.responseSchema(), name)
}

// repeats reports whether a query parameter of an update is one of the GET of the same path,
// so that clients may send the response of a read to its address.
func repeats(c *Call, name string) bool {
	return (c.Route.Method == "PUT" || c.Route.Method == "PATCH") && c.reads != nil && slices.ContainsFunc(c.reads.Query, func(f Field) bool { return f.Name == name })
}

// hasProperty reports whether objects of a schema may have the property.
func hasProperty(s Schema, name string) bool {
	switch properties := s["properties"].(type) {
	case map[string]Schema:
		if _, ok := properties[name]; ok {
			return true
		}
	case map[string]any:
		if _, ok := properties[name]; ok {
			return true
		}
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		parts, _ := s[word].([]any)
		for _, part := range parts {
			if of, ok := part.(Schema); ok && hasProperty(of, name) {
				return true
			}
		}
	}
	return false
}

// sendable lists the names of the fields that a body of the route can have.
func sendable(r *Route) []string {
	m := creating
	if r.BodyMode != CompleteBody {
		m = updating
	}
	var out []string
	for i := range r.Body {
		if m.wanted(&r.Body[i]) {
			out = append(out, r.Body[i].Name)
		}
	}
	return out
}

// unknownName is the message for a name that is not known: it suggests the nearest known
// one, or else lists them.
func unknownName(what, name string, known []string) string {
	text := "unknown " + what + " " + strconv.Quote(clip(name))
	if meant := hint.DidYouMean(name, known); meant != "" {
		return text + meant
	}
	if len(known) == 0 {
		return text
	}
	if more := len(known) - maxNamed; more > 0 {
		known = append(known[:maxNamed:maxNamed], "and "+strconv.Itoa(more)+" more")
	}
	return text + "; known are " + strings.Join(known, ", ")
}

// versions are the prefixes of the base URL; a path may begin with one of them.
var versions = []string{"/v1/", "/v2/"}

// router finds the route of a method and an escaped path. Segments are split
// before they are unescaped, so %2F is no separator; a static segment wins over
// a variable one; nothing is cleaned, and case counts.
type router struct{ root node }

type node struct {
	static   map[string]*node
	variable *node
	routes   map[string]*endpoint // by method
}

// endpoint is a route at one of its paths.
type endpoint struct {
	route *Route
	path  string
	names []string // of the variables, in order
}

func (r *router) add(route *Route) error {
	for _, path := range route.paths() {
		if !strings.HasPrefix(path, "/") || path == "/" {
			return fmt.Errorf("admin: path %q", path)
		}
		n := &r.root
		b := &endpoint{route: route, path: path}
		for _, seg := range strings.Split(path[1:], "/") {
			if name, ok := strings.CutPrefix(seg, "{"); ok {
				b.names = append(b.names, strings.TrimSuffix(name, "}"))
				if n.variable == nil {
					n.variable = &node{}
				}
				n = n.variable
				continue
			}
			if n.static == nil {
				n.static = make(map[string]*node)
			}
			if n.static[seg] == nil {
				n.static[seg] = &node{}
			}
			n = n.static[seg]
		}
		if n.routes == nil {
			n.routes = make(map[string]*endpoint)
		}
		if n.routes[route.Method] != nil {
			return fmt.Errorf("admin: %s %s is declared twice", route.Method, path)
		}
		n.routes[route.Method] = b
	}
	return nil
}

// withoutVersion returns a path below the base URL.
func withoutVersion(escapedPath string) string {
	for _, v := range versions {
		if rest, ok := strings.CutPrefix(escapedPath, v); ok {
			return "/" + rest
		}
	}
	return escapedPath
}

// match finds the node of a path that has routes, and the values of its
// variables, unescaped. A static segment that leads nowhere gives way to a
// variable one.
func (r *router) match(escapedPath string) (n *node, values []string) {
	escapedPath = withoutVersion(escapedPath)
	if !strings.HasPrefix(escapedPath, "/") {
		return nil, nil
	}
	return r.root.find(strings.Split(escapedPath[1:], "/"), nil)
}

// matchList is match for a path that ends with a slash: that of a list.
func (r *router) matchList(escapedPath string) (n *node, values []string) {
	list, slash := strings.CutSuffix(escapedPath, "/")
	if !slash {
		return nil, nil
	}
	n, values = r.match(list)
	if n == nil || n.routes["GET"] == nil || strings.HasSuffix(n.routes["GET"].path, "}") {
		return nil, nil
	}
	return n, values
}

func (n *node) find(segments, values []string) (*node, []string) {
	if len(segments) == 0 {
		if n.routes == nil {
			return nil, nil
		}
		return n, values
	}
	seg, err := url.PathUnescape(segments[0])
	if err != nil || seg == "" {
		return nil, nil
	}
	if next := n.static[seg]; next != nil {
		if found, vs := next.find(segments[1:], values); found != nil {
			return found, vs
		}
	}
	if n.variable != nil {
		return n.variable.find(segments[1:], append(values, seg))
	}
	return nil, nil
}

// methods lists what a node serves, sorted.
// below returns the path of a route with the method at most depth segments below the node: the
// nearest, variable segments first. It returns "" if there is none.
func (n *node) below(method string, depth int) string {
	if n.variable == nil || depth == 0 {
		return ""
	}
	if b := n.variable.routes[method]; b != nil {
		return b.path
	}
	return n.variable.below(method, depth-1)
}

func (n *node) methods() []string {
	out := make([]string, 0, len(n.routes))
	for m := range n.routes {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}
