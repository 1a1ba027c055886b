// Package console serves the web console: static files that are a client of the public
// API. The files are built by scripts/console and committed.
package console

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"gateway/functions/console/headers"
	"gateway/shared/admin"
)

//go:embed dist
var dist embed.FS

// Path is where the console is served. Every page of the console is below it.
const Path = "/console/"

// assets is the folder of files that have a hash of their content in the name.
const assets = "assets/"

var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
}

// Handler serves the console below Path and passes all other requests to next.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, Path)
		switch {
		case r.URL.Path+"/" == Path:
			http.Redirect(w, r, Path, http.StatusPermanentRedirect)
		case ok:
			serve(w, r, name)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serve serves a file by its name below Path. A name that is not an asset is a page, and
// every page has the same file. On AWS, infra/edge.go and infra/edge/console.js decide the same.
func serve(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	headers.Set(h)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The console accepts only GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	file, media, caching := "index.html", "text/html; charset=utf-8", headers.CacheIndex
	if strings.HasPrefix(name, assets) {
		media = mediaTypes[path.Ext(name)]
		file, caching = name, headers.CacheAssets
	}
	content, err := fs.ReadFile(dist, "dist/"+file)
	if err != nil || media == "" {
		h.Set("Cache-Control", "no-store")
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", media)
	h.Set("Cache-Control", caching)
	h.Set("Vary", "Accept-Encoding")
	if packed, err := fs.ReadFile(dist, "dist/"+file+".gz"); err == nil && admin.AcceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		content = packed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
