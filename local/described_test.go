package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/seal"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage/segment"
)

// described is the document that gateways serve, with the routes of the
// administration; it is the same for all of them.
var described struct {
	once     sync.Once
	router   *admin.Handler
	document *admintest.Document
	err      error
}

// checkDescribed holds a response of the administration against the document, as
// every test of a family does.
func (r *running) checkDescribed(method, path string, got *reply) {
	r.t.Helper()
	described.once.Do(func() {
		// Nothing is asked of these families: their stores are empty.
		tables, err := sqlite.Open(filepath.Join(r.t.TempDir(), "tables.db"), sqlite.Options{})
		if described.err = err; err != nil {
			return
		}
		r.t.Cleanup(func() { tables.Close() })
		core := app.New(app.Backends{Store: tables, Embedded: true, Sealer: seal.New(nil, time.Now)}, app.Settings{})
		families := assembly.Administration(core, segment.New(tables, nil, segment.Options{}))
		if described.router, described.err = admin.NewHandler(admin.Deps{}, families...); described.err == nil {
			described.document, described.err = admintest.NewDocument(admin.OpenAPI("test", "1", families...))
		}
	})
	if described.err != nil {
		r.t.Fatal(described.err)
	}
	escaped, _, _ := strings.Cut(path, "?")
	if u, err := url.Parse(escaped); err != nil || u.Host != "" {
		return
	}
	pattern, ok := described.router.Pattern(method, "/v1"+escaped)
	if !ok || got.status == http.StatusRequestTimeout { // the host's, before any route
		return
	}
	if got.header.Get("Content-Encoding") != "" {
		return // packed: the same is read plain elsewhere
	}
	if wrong := described.document.Check(method, pattern, got.status, got.header.Get("Content-Type"), []byte(got.body)); wrong != "" {
		r.t.Errorf("%s %s answers otherwise than documented: %s\n%.1000s", method, path, wrong, got.body)
	}
}
