package routes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/shared/chat"
)

func declared() []Route {
	return []Route{
		{Method: http.MethodPost, Path: "/embeddings", Name: "embed", Meter: func([]byte) (m chat.Meter) { return m }},
		{Method: http.MethodGet, Path: "/files/{id}", Name: "file"},
		{Method: http.MethodGet, Path: "/files/{id}/content", Name: "content"},
		{Method: http.MethodGet, Path: "/agent/{slug}/{path+}", Name: "below"},
		{Method: http.MethodPost, Path: "/dry-run", Name: "dry", Handler: &DryRun{Routes: []Route{{Method: http.MethodPost, Path: "/embeddings", Name: "rehearsed"}}}},
		{Methods: []string{http.MethodPost, http.MethodGet}, Path: AnyPath, Name: "any"},
	}
}

func TestFindsTheRouteOfAPath(t *testing.T) {
	t.Parallel()
	table := NewTable(declared())
	for _, c := range []struct{ method, path, name, id string }{
		{"POST", "/v1/embeddings", "embed", ""},
		{"GET", "/v1/files/a%2Fb", "file", "a%2Fb"},
		{"GET", "/v1/files/x/content", "content", "x"},
		{"GET", "/v1/agent/a/b", "below", ""},
		{"GET", "/v1/agent/a/b/c:d//e%2F", "below", ""},
		{"GET", "/v1/agent/a/", "below", ""},
		{"GET", "/v1/agent/a", "", ""},
		{"GET", "/v1/agent//b", "", ""},
		{"GET", "/v1/files/", "any", ""},
		{"GET", "/v1/files//content", "any", ""},
		{"GET", "/v1/embeddings", "any", ""},
		{"POST", "/v1/anything/else", "any", ""},
		{"PATCH", "/v1/anything", "", ""},
		{"POST", "/v2/embeddings", "", ""},
		{"POST", "/v1", "", ""},
		{"POST", "/v1embeddings", "", ""},
	} {
		rt, id := table.Match(c.method, c.path)
		name := ""
		if rt != nil {
			name = rt.Name
		}
		if name != c.name || id != c.id || table.Find(c.method, c.path) != rt {
			t.Errorf("%s %s: %q with %q", c.method, c.path, name, id)
		}
	}
	if !table.Owns("/v1/files/x") || table.Owns("/v1/anything") || table.Owns("/files/x") {
		t.Error("the paths of routes are not known")
	}
}

func TestPathsThatOthersShadow(t *testing.T) {
	t.Parallel()
	table := NewTable(declared())
	beyond, dry := table.Find("POST", "/v1/x"), table.Find("POST", "/v1/dry-run")
	for path, like := range map[string]string{
		"/embeddings": "embed", "/v1/embeddings": "embed", "/v9/embeddings": "embed", "/v10/embeddings": "", "/vx/embeddings": "", "/v1beta/embeddings": "",
		"/openai/v1/embeddings": "embed", "/v1/openai/embeddings": "embed", "/v1beta/openai/embeddings": "embed", "/openai/embeddings": "", "/other/v1/embeddings": "", "/files/x": "", "/": "", "": "",
	} {
		got := ""
		if rt := beyond.Counterpart(path); rt != nil {
			got = rt.Name
		}
		if got != like {
			t.Errorf("%s: %q", path, got)
		}
	}
	if dry.Counterpart("/embeddings") != nil {
		t.Error("a route of its own passes nothing through")
	}
	if rt, _ := dry.Handler.(*DryRun).Find("POST", "/embeddings"); rt == nil || rt.Name != "rehearsed" {
		t.Error("a dry run does not find its route")
	}
	if rt, _ := dry.Handler.(*DryRun).Find("POST", "/files"); rt != nil {
		t.Error("a dry run finds another route")
	}
}

func TestTwoRoutesForAPathAreAMistake(t *testing.T) {
	t.Parallel()
	twice := []Route{{Method: "GET", Path: "/files/{id}"}, {Method: "GET", Path: "/files/{id}"}}
	for name, list := range map[string][]Route{"twice": twice, "no scope": {{Method: "GET", Path: "/x", Endpoint: "x"}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			NewTable(list)
		}()
	}
}

func TestRefusesPathsOfTheAdministration(t *testing.T) {
	t.Parallel()
	table := NewTable([]Route{{Method: "POST", Path: "/configs"}})
	for path, status := range map[string]int{"/v1/configs": 405, "/v1/workspaces": 404, "/v1/unknown": 404, "/else": 404} {
		w := httptest.NewRecorder()
		table.Refuse(w, httptest.NewRequest("DELETE", path, nil))
		if w.Code != status || (status == 405) != (w.Header().Get("Allow") == "POST") {
			t.Errorf("%s: %d, allow %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
}

// TestTablesShareNoRoutes requires that a second table over the same routes changes nothing of
// the first, so that tables can be made at the same time.
func TestTablesShareNoRoutes(t *testing.T) {
	t.Parallel()
	routes := append(declared(), Route{Method: http.MethodGet, Path: "/socket", Handler: &Dialogue{Path: "/embeddings"}})
	for i := range routes {
		if routes[i].Path == AnyPath {
			routes[i].Native = []Route{{Method: http.MethodPost, Path: "/v1beta/models/{model+}:generateContent"}}
		}
	}
	first, second := NewTable(routes), NewTable(routes)
	for _, table := range []*Table{first, second} {
		if n := table.any.native; len(n) != 1 || n[0].route.passed != table.any || table.any.shadowed != table {
			t.Errorf("%d native routes, linked to %p; want one, linked to %p", len(n), n[0].route.passed, table.any)
		}
		if got := handlerOf[*Dialogue](table.exact["/socket"][0]).ResponsesRoute(); got != table.exact["/embeddings"][0] {
			t.Errorf("messages are posted to %p; want %p", got, table.exact["/embeddings"][0])
		}
	}
	if a, b := handlerOf[*DryRun](first.exact["/dry-run"][0]), handlerOf[*DryRun](second.exact["/dry-run"][0]); a.table == b.table {
		t.Error("two tables share the routes of a dry run")
	}
	for i := range routes {
		if rt := &routes[i]; rt.native != nil || rt.shadowed != nil || len(rt.Native) > 0 && rt.Native[0].passed != nil {
			t.Errorf("%s was changed", rt.Path)
		}
	}
}
