package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

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

// methods returns the methods that a node serves, sorted.
func (n *node) methods() []string {
	out := make([]string, 0, len(n.routes))
	for m := range n.routes {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}
