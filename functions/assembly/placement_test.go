package assembly_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest/drive"
)

// takesWorkspace reports whether the operation has the query parameter workspace_id.
func takesWorkspace(op *drive.Operation) bool {
	return slices.ContainsFunc(op.Query, func(p drive.Param) bool { return p.Name == "workspace_id" })
}

// unplaced returns a path without the parameter workspace_id.
func unplaced(path string) string {
	path, query, _ := strings.Cut(path, "?")
	q, _ := url.ParseQuery(query)
	if q.Del("workspace_id"); len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// TestIDsDetermineTheWorkspace calls every operation on a resource of a workspace with an
// organization key that names no workspace, by each name of the resource. Reads must return
// what they return with the workspace; changes must succeed. Each list of workspace
// resources must contain them without a workspace, too.
func TestIDsDetermineTheWorkspace(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	reads, lists, changes := 0, 0, 0
	ops := slices.Clone(e.doc.Operations)
	slices.SortStableFunc(ops, func(a, b *drive.Operation) int { return deletes(a) - deletes(b) })
	for _, op := range ops {
		if op.Public || op.Alias || op.Tag == "inference" || !takesWorkspace(op) || slices.Contains(unprepared, op.Method+" "+op.Path) {
			continue
		}
		if op.Method == "DELETE" {
			e.w.InvalidateIn(op.Path[:strings.LastIndex(op.Path, "/")]) // one that nothing uses
		}
		path, sent, err := once(e.w, op, drive.Workspace)
		if err != nil {
			t.Errorf("%s %s: %v", op.Method, op.Path, err)
			continue
		}
		switch {
		case op.Method == "GET":
			placed, free := e.send("GET", path, rootKey, nil), e.send("GET", unplaced(path), rootKey, nil)
			if placed.Code != 200 {
				continue
			}
			if free.Code != 200 {
				t.Errorf("GET %s without a workspace: %d %.300s", op.Path, free.Code, free.Body)
				continue
			}
			if len(drive.Variables(op.Path)) > 0 {
				if reads++; strings.HasSuffix(op.Path, "}") && placed.Body.String() != free.Body.String() {
					t.Errorf("GET %s without a workspace:\n%.400s\nwith one\n%.400s", op.Path, free.Body, placed.Body)
				}
				continue
			}
			lists++
			ids := entryIDs(free.Body.Bytes())
			for _, id := range entryIDs(placed.Body.Bytes()) {
				if !slices.Contains(ids, id) {
					t.Errorf("GET %s without a workspace lacks %s: %.400s", op.Path, id, free.Body)
				}
			}
		case len(drive.Variables(op.Path)) > 0 && !creates(e.doc, op) && !excepted[op.ID]:
			changes++
			delete(sent, "workspace_id")
			var body []byte
			if op.Body != nil {
				if body, err = json.Marshal(sent); err != nil {
					t.Fatal(err)
				}
			}
			got := e.send(op.Method, unplaced(path), rootKey, body)
			if got.Code == 400 && strings.Contains(got.Body.String(), `"field":"workspace_id"`) || got.Code == 403 || got.Code == 404 {
				t.Errorf("%s %s without a workspace: %d %.300s", op.Method, op.Path, got.Code, got.Body)
			}
			if op.Method == "DELETE" {
				e.w.InvalidateIn(op.Path[:strings.LastIndex(op.Path, "/")])
			}
		}
	}
	t.Logf("%d reads, %d lists, %d changes", reads, lists, changes)
	if reads < 40 || lists < 15 || changes < 40 {
		t.Errorf("only %d reads, %d lists and %d changes", reads, lists, changes)
	}
}

// excepted operations are rejected with a workspace, too.
var excepted = map[string]bool{"collectApiKey": true, "updateFeedback": true}

func deletes(op *drive.Operation) int {
	if op.Method == "DELETE" {
		return 1 - strings.Count(op.Path, "/")/100
	}
	return 0
}

func entryIDs(answer []byte) (out []string) {
	for _, e := range drive.Entries(answer) {
		if id, ok := e["id"].(string); ok {
			out = append(out, id)
		}
	}
	return out
}

// TestAmbiguousSlugNamesTheWorkspaces saves providers of one slug in two workspaces.
func TestAmbiguousSlugNamesTheWorkspaces(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	second := in.must("POST", "/workspaces", rootKey, `{"name":"Second"}`)["slug"].(string)
	id := ""
	for _, ws := range []string{"first-space", second} {
		in.must("POST", "/virtual-keys?workspace_id="+ws, rootKey, `{"name":"Same","slug":"same","provider":"openai","key":"k-secret-value"}`)
		id = in.must("GET", "/virtual-keys/same?workspace_id="+ws, rootKey, "")["id"].(string)
	}
	got := in.send("GET", "/virtual-keys/same", rootKey, nil)
	if got.Code != 400 || !strings.Contains(got.Body.String(), "first-space") || !strings.Contains(got.Body.String(), second) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := in.must("GET", "/virtual-keys/"+id, rootKey, "")["slug"]; got != "same" {
		t.Errorf("by id: %v", got)
	}
	if got := in.must("GET", "/virtual-keys", rootKey, "")["total"]; got != 2.0 {
		t.Errorf("the list of all workspaces has %v", got)
	}
}

// TestReferencesDetermineTheWorkspace creates with an organization key what refers to a
// resource of a workspace, and narrows a list by one.
func TestReferencesDetermineTheWorkspace(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	second := in.must("POST", "/workspaces", rootKey, `{"name":"Second"}`)["id"].(string)
	in.must("POST", "/virtual-keys?workspace_id="+second, rootKey, `{"name":"P","slug":"saved","provider":"openai","key":"k-secret-value"}`)
	folder := in.must("POST", "/collections?workspace_id="+second, rootKey, `{"name":"Folder"}`)["id"].(string)
	for path, body := range map[string]string{
		"/collections": `{"name":"Inner","parent_collection_id":"` + folder + `"}`,
		"/prompts":     `{"name":"P","collection_id":"` + folder + `","string":"Hi","parameters":{},"model":"gpt-4o","virtual_key":"saved"}`,
	} {
		id := in.must("POST", path, rootKey, body)["id"].(string)
		if got := in.must("GET", path+"/"+id, rootKey, "")["workspace_id"]; got != second {
			t.Errorf("POST %s created in %v, want %s", path, got, second)
		}
	}
	if got := in.must("GET", "/prompts?collection_id="+folder, rootKey, "")["total"]; got != 1.0 {
		t.Errorf("the collection lists %v prompts", got)
	}
	if got := in.send("POST", "/prompts", rootKey, []byte(`{"name":"P","collection_id":"none","string":"Hi","parameters":{},"model":"gpt-4o","virtual_key":"saved"}`)); got.Code != 400 || !strings.Contains(got.Body.String(), "collection_id: ") {
		t.Errorf("an unknown collection: %d %s", got.Code, got.Body)
	}
}

// creates reports whether the operation creates a resource.
func creates(doc *drive.Document, op *drive.Operation) bool {
	return slices.Contains(doc.Creates(), op)
}
