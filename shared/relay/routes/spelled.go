package routes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/wire/azure"
)

// Some clients add the version to each path, others expect it in the base URL. So with one base
// URL it occurs twice, with the other not at all; both select the same route. Only these paths
// are corrected: routes of the table, paths of native clients, of Azure's clients and, at the
// root, further paths of Google's and Cohere's clients. In pass-through every byte of a path
// counts.

// Spelled returns a request with the canonical path of its route below BasePath; it is the
// request itself if it has that path, or if no route matches.
func (t *Table) Spelled(req *http.Request) *http.Request {
	path := req.URL.EscapedPath()
	below, ok := strings.CutPrefix(path, BasePath)
	atRoot := !ok || !strings.HasPrefix(below, "/")
	if atRoot {
		below = path
		if own, ok := strings.CutPrefix(path, azure.Base+BasePath+"/"); ok { // the Azure form
			return respelled(req, "/"+own, req.URL.RawQuery)
		}
	}
	if google, ok := googleModel(req.Method, below); ok && t.any != nil {
		return respelled(req, google, req.URL.RawQuery)
	}
	if one, ok := googleListed(req, below); ok && t.means(req.Method, one) {
		return respelled(req, one, req.URL.RawQuery)
	}
	if op, deployment, ok := azure.Below(below, req.URL.RawQuery); ok && t.means(req.Method, op) {
		return respelled(req, op, azure.Query(req.URL.RawQuery, deployment))
	}
	if !atRoot {
		if below, ok = strings.CutPrefix(below, BasePath); !ok {
			return req
		}
	}
	if len(below) < 2 || below[0] != '/' || !(t.means(req.Method, below) || atRoot && t.passesAtRoot(req.Method, below)) {
		return req
	}
	return respelled(req, below, req.URL.RawQuery)
}

// rooted are the prefixes of paths that are passed through at the root: versions of Google's
// APIs, with which no route of the table begins, paths of Cohere's clients besides chat, and
// models of Bedrock's runtime (invoke, invoke-with-response-stream).
var rooted = []string{"/v1beta/", "/v1alpha/", "/v1beta1/", "/upload/v1beta/", "/upload/v1alpha/", "/v2/embed", "/v2/rerank", "/v2/embed-jobs", "/v2/datasets", "/model/"}

func (t *Table) passesAtRoot(method, path string) bool {
	return t.any != nil && slices.Contains(t.any.Methods, method) && slices.ContainsFunc(rooted, func(begins string) bool {
		return strings.HasPrefix(path, begins) && (begins[len(begins)-1] == '/' || len(path) == len(begins) || path[len(begins)] == '/')
	})
}

// respelled returns a request with another path below BasePath and another query.
func respelled(req *http.Request, below, query string) *http.Request {
	plain, err := url.PathUnescape(below)
	if err != nil {
		return req
	}
	other, u := *req, *req.URL
	u.Path, u.RawPath, u.RawQuery = BasePath+plain, "", query
	if plain != below {
		u.RawPath = BasePath + below
	}
	other.URL = &u
	if req.RequestURI != "" {
		other.RequestURI = BasePath + below
		if _, _, has := strings.Cut(req.RequestURI, "?"); query != "" || has && req.URL.RawQuery == "" {
			other.RequestURI += "?" + query
		}
	}
	return &other
}

// means reports whether a path below BasePath is that of a route with the method.
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
