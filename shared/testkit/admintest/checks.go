package admintest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/resource"
)

// CheckFamily runs what every family has to pass: its document and its router
// agree, and no route lets the wrong caller in.
func CheckFamily(t *testing.T, h *Installation) {
	t.Run("document matches router", func(t *testing.T) { documentMatchesRouter(t, h) })
	t.Run("wrong callers are refused", func(t *testing.T) { wrongCallersAreRejected(t, h) })
}

// operation is one method and path of a document.
type operation struct{ method, path string }

func documented(t *testing.T, families []admin.Family) map[operation]map[string]any {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]map[string]any
	}
	if err := json.Unmarshal(admin.OpenAPI("test", "1", families...), &doc); err != nil {
		t.Fatal(err)
	}
	out := map[operation]map[string]any{}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			out[operation{strings.ToUpper(method), path}] = op
		}
	}
	return out
}

// concrete puts an id into every variable of a path.
func concrete(path, id string) string {
	segs := strings.Split(path, "/")
	for i, s := range segs {
		if strings.HasPrefix(s, "{") {
			segs[i] = id
		}
	}
	return strings.Join(segs, "/")
}

// documentMatchesRouter proves that the router serves what the document says,
// each method of each path, and nothing that it does not say.
func documentMatchesRouter(t *testing.T, h *Installation) {
	t.Helper()
	doc := documented(t, h.Families)
	ids := map[string]operation{}
	for op, body := range doc {
		id, _ := body["operationId"].(string)
		if other, twice := ids[id]; twice || id == "" {
			t.Errorf("%v and %v have the operationId %q", op, other, id)
		}
		ids[id] = op
		// A public route may report that what its path names does not exist.
		got := h.Do(op.method, concrete(op.path, "x"), "", nil)
		if got.Status == http.StatusNotFound && strings.Contains(string(got.Body), "no such route") || got.Status == http.StatusMethodNotAllowed {
			t.Errorf("%s %s is documented and answers %d", op.method, op.path, got.Status)
		}
	}
	served := map[operation]bool{}
	for _, f := range h.Families {
		for _, r := range f.Routes {
			for _, p := range append([]string{r.Path}, r.Aliases...) {
				served[operation{r.Method, p}] = true
			}
		}
	}
	for op := range served {
		if doc[op] == nil {
			t.Errorf("%s %s is served and not documented", op.method, op.path)
		}
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
			want := doc[operation{m, op.path}] != nil
			if h.Handler.Matches(m, "/v1"+op.path) != want && !strings.Contains(op.path, "{") {
				t.Errorf("%s %s: served %v, documented %v", m, op.path, !want, want)
			}
		}
	}
	for op := range doc {
		if !served[op] {
			t.Errorf("%s %s is documented and no route", op.method, op.path)
		}
	}
}

// wrongCallersAreRejected calls every route that needs a credential without one, with an invalid
// one, with an expired one, without scopes, and for resources that belong to another tenant or
// do not exist.
func wrongCallersAreRejected(t *testing.T, h *Installation) {
	t.Helper()
	for _, f := range h.Families {
		for _, r := range f.Routes {
			if r.Public {
				continue
			}
			for _, path := range append([]string{r.Path}, r.Aliases...) {
				at := concrete(path, resource.NewID())
				var body any
				if r.Body != nil {
					body = "{}"
				}
				for _, key := range []string{"", UnknownKey, ExpiredKey} {
					if got := h.Do(r.Method, at, key, body); got.Status != http.StatusUnauthorized {
						t.Errorf("%s %s with key %q: %d %s", r.Method, path, key, got.Status, got.Body)
					}
				}
				if a, b := h.Do(r.Method, at, "", body), h.Do(r.Method, at, UnknownKey, body); a.Comparable() != b.Comparable() && r.Method == "GET" {
					t.Errorf("%s %s tells a missing from an unknown key", r.Method, path)
				}
				if slices.Contains(r.Scopes, admin.AnyScope) {
					continue
				}
				for _, key := range []string{NoScopesKey, NoScopesWs} {
					if got := h.Do(r.Method, at+"?workspace_id="+h.One, key, body); got.Status != http.StatusForbidden || got.Failure().Code != "AB03" {
						t.Errorf("%s %s without scopes (%s): %d %s", r.Method, path, key, got.Status, got.Body)
					}
				}
				checkOnlyItsScopes(t, h, &r, at, body)
				checkForeignWorkspace(t, h, &r, at, body)
			}
		}
	}
}

// checkOnlyItsScopes proves that a key with every other scope is rejected.
func checkOnlyItsScopes(t *testing.T, h *Installation, r *admin.Route, at string, body any) {
	t.Helper()
	c := h.Caller(AdminKey)
	c.Scopes = allBut(r.Scopes)
	h.SetCaller("key-all-but", c)
	if got := h.Do(r.Method, at+"?workspace_id="+h.One, "key-all-but", body); got.Status != http.StatusForbidden {
		t.Errorf("%s %s with every scope but %v: %d", r.Method, r.Path, r.Scopes, got.Status)
	}
}

type allBut []string

func (a allBut) Has(scope string) bool { return !slices.Contains(a, scope) }

// checkForeignWorkspace proves that a workspace of another organization and one
// that does not exist get the same rejection, and so does another workspace than
// the key's.
func checkForeignWorkspace(t *testing.T, h *Installation, r *admin.Route, at string, body any) {
	t.Helper()
	if r.Level != admin.InWorkspace && r.Level != admin.InEither {
		return
	}
	nowhere := h.Do(r.Method, at+"?workspace_id="+resource.NewID(), AdminKey, body)
	closed := func() bool { // the route does not open to this key in any workspace
		return nowhere.Status == http.StatusForbidden && h.Do(r.Method, at+"?workspace_id="+h.One, AdminKey, body).Status == http.StatusForbidden
	}
	if nowhere.Status != http.StatusNotFound && !closed() {
		t.Errorf("%s %s in a workspace that does not exist: %d %s", r.Method, r.Path, nowhere.Status, nowhere.Body)
	}
	for _, ws := range []string{h.Three, ThreeSlug} {
		if got := h.Do(r.Method, at+"?workspace_id="+ws, AdminKey, body); got.Comparable() != nowhere.Comparable() {
			t.Errorf("%s %s tells a foreign workspace from one that does not exist: %s", r.Method, r.Path, got.Body)
		}
	}
	denied := h.Do(r.Method, at+"?workspace_id="+resource.NewID(), WorkspaceA, body)
	if denied.Status != http.StatusForbidden {
		t.Errorf("%s %s with a workspace key in a workspace that does not exist: %d %s", r.Method, r.Path, denied.Status, denied.Body)
	}
	for _, ws := range []string{h.Two, TwoSlug} {
		if got := h.Do(r.Method, at+"?workspace_id="+ws, WorkspaceA, body); got.Comparable() != denied.Comparable() {
			t.Errorf("%s %s: a workspace key is not locked to its workspace: %d %s", r.Method, r.Path, got.Status, got.Body)
		}
	}
}

// ForeignIsMissing proves for an item of Org's first workspace that callers who
// may not reach it get the same bytes as for an id that does not exist.
func ForeignIsMissing(t *testing.T, h *Installation, method, collection, id string, body any) {
	t.Helper()
	for key, query := range map[string]string{
		WorkspaceB: "", OtherAdmin: "?workspace_id=" + h.Three, AdminKey: "?workspace_id=" + h.Two,
	} {
		foreign := h.Do(method, collection+"/"+id+query, key, body)
		missing := h.Do(method, collection+"/"+resource.NewID()+query, key, body)
		if foreign.Comparable() != missing.Comparable() || foreign.Status < 400 {
			t.Errorf("%s %s as %s:\nforeign %d %s\nmissing %d %s", method, collection, key, foreign.Status, foreign.Body, missing.Status, missing.Body)
		}
	}
}

// BadBodies are bodies that no route takes. valid is a body that the route would
// take; each is rejected with 400 or 413 in the error form, never with 500.
func BadBodies(t *testing.T, h *Installation, method, path, key, valid string) {
	t.Helper()
	deep := strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 80)
	with := func(member string) string { return strings.Replace(valid, "{", "{"+member+",", 1) }
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"empty":               {"", 400},
		"not JSON":            {"name=x", 400},
		"truncated":           {valid[:len(valid)-1], 400},
		"trailing":            {valid + "x", 400},
		"two values":          {valid + valid, 400},
		"array":               {"[]", 400},
		"string":              {`"x"`, 400},
		"null":                {"null", 400},
		"not UTF-8":           {with("\"x\":\"\xff\""), 400},
		"key not UTF-8":       {with("\"\xff\":1"), 400},
		"duplicate key":       {with(`"x":1,"x":2`), 400},
		"duplicate below":     {with(`"x":{"y":1,"y":2}`), 400},
		"escaped duplicate":   {with(`"x":1,"\u0078":2`), 400},
		"too deep":            {with(`"x":` + deep), 400},
		"too deep array":      {with(`"x":` + strings.Repeat("[", 5000)), 400},
		"NaN":                 {with(`"x":NaN`), 400},
		"control character":   {with("\"x\":\"a\nb\""), 400},
		"leading zero":        {with(`"x":01`), 400},
		"too large":           {with(`"x":"` + strings.Repeat("a", 1<<20) + `"`), 413},
		"workspace_id number": {with(`"workspace_id":1`), 400},
	} {
		got := h.Do(method, path, key, c.body)
		if name == "workspace_id number" && got.Status == 200 {
			continue // routes without workspaces ignore it
		}
		if got.Status != c.status {
			t.Errorf("%s: %d, want %d: %.200s", name, got.Status, c.status, got.Body)
			continue
		}
		got.Failure()
	}
}
