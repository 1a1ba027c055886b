package routes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxUnescape limits how many times a path is unescaped: each proxy may do it once.
const maxUnescape = 3

// Reached returns the types of requests of the gateway's own routes that a passed-through
// request may reach at the provider, in any encoding of its path and below any base. It is empty
// for other routes, and for a path that none of them has.
func (rt *Route) Reached(method, escapedPath string) (endpoints []string) {
	if rt.shadowed == nil || method != http.MethodPost {
		return nil
	}
	segments := Segments(escapedPath)
	for i, s := range segments {
		if !strings.Contains(s, ":") { // a method of Google's, which is case-sensitive
			segments[i] = strings.ToLower(s)
		}
	}
	for i := range segments {
		below := "/" + strings.Join(segments[i:], "/")
		add := func(rt *Route) {
			if rt.Method == method && rt.Endpoint != "" && !slices.Contains(endpoints, rt.Endpoint) {
				endpoints = append(endpoints, rt.Endpoint)
			}
		}
		own, _ := rt.shadowed.at(below)
		for _, rt := range own {
			add(rt)
		}
		if native, _ := rt.nativeAt(method, below); native != nil {
			add(native)
		}
	}
	return endpoints
}

// Segments returns the segments of a path as the most lenient parser reads it: unescaped,
// without empty and dot segments and without the parameters that follow a semicolon.
func Segments(path string) (out []string) {
	for range maxUnescape {
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			break
		}
		path = plain
	}
	for _, s := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		s, _, _ = strings.Cut(s, ";")
		switch s = strings.TrimSpace(s); s {
		case "", ".":
		case "..":
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, s)
		}
	}
	return out
}
