package routes

import (
	"net/http"
	"net/url"
	"strings"
)

// Clients put the version in front of what they call, or count on the base URL to have
// it: with the one base URL it stands twice, with the other it is left out. Both mean
// the route that is named. Only routes of the table's own are found so, and the shapes
// of native clients: of pass-through every byte of a path counts.

// Spelled gives a request the path below BasePath that its route is known by; the
// request itself where it has that already, or where no route is meant.
func (t *Table) Spelled(req *http.Request) *http.Request {
	path := req.URL.EscapedPath()
	below, ok := strings.CutPrefix(path, BasePath)
	if ok = ok && strings.HasPrefix(below, "/"); !ok {
		below = path
	} else if below, ok = strings.CutPrefix(below, BasePath); !ok {
		return req
	}
	if len(below) < 2 || below[0] != '/' || !t.means(req.Method, below) {
		return req
	}
	plain, err := url.PathUnescape(below)
	if err != nil {
		return req
	}
	other, u := *req, *req.URL
	u.Path, u.RawPath = BasePath+plain, ""
	if plain != below {
		u.RawPath = BasePath + below
	}
	other.URL = &u
	if _, query, has := strings.Cut(req.RequestURI, "?"); has {
		other.RequestURI = BasePath + below + "?" + query
	} else if req.RequestURI != "" {
		other.RequestURI = BasePath + below
	}
	return &other
}

// means tells whether a path below BasePath is that of a route with the method.
func (t *Table) means(method, below string) bool {
	routes, _ := t.at(below)
	for _, rt := range routes {
		if rt.Method == method {
			return true
		}
	}
	if t.any == nil {
		return false
	}
	own, _ := t.any.nativeAt(method, below)
	return own != nil
}
