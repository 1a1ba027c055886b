package assembly_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest/drive"
)

// stranger is a caller who must not learn whether a thing is there.
type stranger struct {
	name, key string
	workspace string        // that it names where a route takes one
	of        []drive.Place // the things that are out of its reach
}

const nobodysID = "0b5e0dc5-0000-4000-8000-00000000dead"

var looksLikeID = regexp.MustCompile(`^[0-9a-fA-F]{8}-`)

// forms are the ways to name a thing, each with a name of the same form that nothing
// has.
func forms(names []string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		switch {
		case looksLikeID.MatchString(n):
			out[n], out[strings.ToUpper(n)] = nobodysID, strings.ToUpper(nobodysID)
		case len(n) == 26 && n == strings.ToUpper(n):
			out[n] = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		default:
			out[n] = "no-such-thing"
		}
	}
	return out
}

// estate is an installation in which the first workspace of the first organization has
// things, with callers who are strangers to it.
type estate struct {
	*installation
	rows      *watched
	w         *drive.Resources // of the first organization's first workspace
	strangers []stranger
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	e := &estate{}
	e.installation = install(t, func(s store.Store) store.Store { e.rows = watch(s); return e.rows })
	e.w = drive.NewResources(e.doc, e.as(rootKey))
	e.w.In = e.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string)
	e.w.Adopt("/admin/workspaces", drive.Workspace, e.w.In, "first-space")
	users := 0
	e.w.New = func(collection string) string {
		users++
		switch collection {
		case "/admin/users":
			return e.user(rootKey, fmt.Sprintf("new-%d@example.com", users), "member", e.w.In, "member")
		case "/scim/workspaces":
			e.must("POST", collection, rootKey, fmt.Sprintf(`{"workspace_id":%q,"role":"member","scim_group_name":"group-%d"}`, e.w.In, users))
			return e.must("GET", collection, rootKey, "")["mappings"].([]any)[0].(map[string]any)["id"].(string)
		case "/feedback":
			return e.must("POST", collection, e.serviceKey(e.w.In), `{"trace_id":"a-trace","value":1}`)["feedback_ids"].([]any)[0].(string)
		case "/logs":
			return e.log(e.w.In)
		case "/notices/mails":
			return e.mail()
		}
		return ""
	}
	everything := func(root, workspace string) string {
		scopes, err := json.Marshal(identity.ScopesFor(identity.WorkspaceService))
		if err != nil {
			t.Fatal(err)
		}
		return e.must("POST", "/api-keys/workspace/service", root, fmt.Sprintf(`{"name":"all","workspace_id":%q,"scopes":%s}`, workspace, scopes))["key"].(string)
	}
	second := e.must("POST", "/workspaces", rootKey, `{"name":"Second"}`)["id"].(string)
	other := e.must("GET", "/workspaces/other-space", otherRoot, "")["id"].(string)
	both := []drive.Place{drive.Workspace, drive.Organisation}
	e.strangers = []stranger{
		{"another workspace", everything(rootKey, second), "", both[:1]},
		{"an admin in another workspace", rootKey, second, both[:1]},
		{"another organisation", otherRoot, other, both},
		{"another organization in no workspace", otherRoot, "", both},
		{"a workspace of another organisation", everything(otherRoot, other), "", both},
	}
	return e
}

// shared are routes for things that the organization and all of its workspaces share, so
// that an admin reaches them from each workspace, and routes for which no workspace is
// named.
func (e *estate) anywhere(op *drive.Operation, s *stranger) bool {
	if s.key != rootKey {
		return false
	}
	_, inBody := op.Body["properties"].(map[string]any)
	if inBody {
		_, inBody = op.Body["properties"].(map[string]any)["workspace_id"]
	}
	return !inBody && !slices.ContainsFunc(op.Query, func(p drive.Param) bool { return p.Name == "workspace_id" })
}

// ask calls as a stranger and returns the response without what differs between calls; the
// answer must be a rejection that changes nothing.
func (e *estate) refused(t *testing.T, s *stranger, method, path string, body []byte, name string) string {
	t.Helper()
	done := e.rows.changes()
	got := e.send(method, path, s.key, body)
	if got.Code < 400 || got.Code >= 500 {
		t.Errorf("%s %s as %s: %d %.300s", method, path, s.name, got.Code, got.Body)
	}
	if e.rows.changes() != done {
		t.Errorf("%s %s as %s changed something: %d %.300s", method, path, s.name, got.Code, got.Body)
	}
	text := strings.ReplaceAll(got.Body.String(), got.Header().Get("X-Gateway-Request-Id"), "*")
	return fmt.Sprint(got.Code, " ", strings.ReplaceAll(text, name, "*"))
}

// without is a path and its query, with another workspace in it.
func (s *stranger) path(path string) string {
	path, query, _ := strings.Cut(path, "?")
	q, _ := url.ParseQuery(query)
	if q.Del("workspace_id"); s.workspace != "" {
		q.Set("workspace_id", s.workspace)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// TestStrangersCannotDetectResources calls every route that names a thing, with every name
// of the thing, as callers who may not reach it. They must get the same bytes as for a name
// that nothing has, and nothing may change.
//
//lane:property
func TestStrangersCannotDetectResources(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	e.seeNothing(t)
	tried := 0
	for _, op := range e.doc.Operations {
		if op.Public || op.Tag == "inference" || len(drive.Variables(op.Path)) == 0 || slices.Contains(unprepared, op.Method+" "+op.Path) {
			continue
		}
		for _, place := range []drive.Place{drive.Workspace, drive.Organisation} {
			tried += e.tryNames(t, op, place)
		}
	}
	t.Logf("%d names", tried)
	if tried < 1000 {
		t.Errorf("only %d names were tried", tried)
	}
}

// fill makes one of each thing.
func (e *estate) fill(t *testing.T) {
	t.Helper()
	for _, create := range e.doc.Creates() {
		for _, place := range []drive.Place{drive.Workspace, drive.Organisation} {
			if _, err := e.w.Find(drive.Collection(e.doc.Linked(create, "read").Path), place); err != nil {
				t.Errorf("%s: %v", create.Path, err)
			}
		}
	}
}

// seeNothing reads every list as every stranger: none contains existing resources.
func (e *estate) seeNothing(t *testing.T) {
	t.Helper()
	lists := 0
	for _, op := range e.doc.Operations {
		if op.Public || op.Tag == "inference" || op.Method != "GET" || len(drive.Variables(op.Path)) > 0 {
			continue
		}
		path, err := e.w.Path(op, drive.Organisation, nil)
		if err != nil {
			t.Errorf("%s: %v", op.Path, err)
			continue
		}
		for i := range e.strangers {
			s := &e.strangers[i]
			got := e.send("GET", s.path(path), s.key, nil)
			lists++
			for name, where := range e.w.All() {
				if s.key == rootKey && (where == drive.Organisation || e.anywhere(op, s)) || s.name == "another workspace" && where == drive.Organisation {
					continue
				}
				if looksLikeID.MatchString(name) && strings.Contains(got.Body.String(), name) {
					t.Errorf("GET %s shows %s to %s: %.400s", path, name, s.name, got.Body)
				}
			}
		}
	}
	if lists < 100 {
		t.Errorf("only %d lists were read", lists)
	}
}

// tryNames puts every name of what a path names, and one of nothing, into it.
func (e *estate) tryNames(t *testing.T, op *drive.Operation, place drive.Place) (tried int) {
	t.Helper()
	_, sent, err := once(e.w, canonical(e.doc, op), place)
	if err != nil && (place == drive.Organisation || op.Alias) {
		return 0 // no such thing of the organization
	}
	if err != nil {
		t.Errorf("%s %s: %v", op.Method, op.Path, err)
		return 0
	}
	delete(sent, "workspace_id")
	var body []byte
	if sent != nil {
		if body, err = json.Marshal(sent); err != nil {
			t.Fatal(err)
		}
	}
	of := canonical(e.doc, op)
	values, err := e.w.Values(of, place, nil)
	if err != nil {
		return 0
	}
	enums := e.w.Variants(of)[0]
	for variable, key := range values {
		if _, fixed := enums[variable]; fixed || notThing[variable] {
			continue
		}
		collection := of.Path[:strings.Index(of.Path, "/{"+variable+"}")]
		for name, missing := range forms(e.w.NamesOf(collection, key)) {
			for i := range e.strangers {
				s := &e.strangers[i]
				if !slices.Contains(s.of, place) || e.anywhere(of, s) {
					continue
				}
				lookup := func(name string) string {
					known := maps.Clone(values)
					known[variable] = name
					path := op.Path
					for v, value := range known {
						path = strings.Replace(path, "{"+v+"}", url.PathEscape(value), 1)
					}
					full, err := e.w.Path(of, place, values)
					if err != nil {
						t.Fatal(err)
					}
					_, query, _ := strings.Cut(full, "?")
					return e.refused(t, s, op.Method, s.path(path+"?"+query), body, name)
				}
				tried++
				if a, b := lookup(name), lookup(missing); a != b {
					t.Errorf("%s %s, %s as %s:\nthere   %.400s\nmissing %.400s", op.Method, op.Path, name, s.name, a, b)
				}
			}
		}
	}
	return tried
}

// notThing are variables that name no resource.
var notThing = map[string]bool{"groupBy": true, "metadataKey": true, "family": true, "provider": true, "model": true, "file": true, "type": true, "subType": true}

var aliasSuffix = regexp.MustCompile(`Alias\d+$`)

// canonical is the operation that another path is an alias of.
func canonical(d *drive.Document, op *drive.Operation) *drive.Operation {
	if !op.Alias {
		return op
	}
	id := aliasSuffix.ReplaceAllString(op.ID, "")
	for _, o := range d.Operations {
		if o.ID == id {
			return o
		}
	}
	return op
}

// TestReferencesToWhatIsElsewhereAreMissing puts the names of another tenant's things into
// every member that names a thing, in every body. The response must be the same as for a name
// that nothing has, and nothing may be stored.
func TestReferencesToWhatIsElsewhereAreMissing(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	tried, detected := 0, 0
	for i := range e.strangers {
		s := &e.strangers[i]
		if s.workspace == "" {
			continue // the same rules, by a key that reaches less
		}
		own := drive.NewResources(e.doc, e.as(s.key))
		own.After(10_000 * (i + 1))
		own.In, own.New = s.workspace, func(collection string) string {
			if collection != "/admin/users" || s.key == rootKey {
				return ""
			}
			return e.user(s.key, "theirs@example.com", "member", s.workspace, "member")
		}
		own.Adopt("/admin/workspaces", drive.Workspace, s.workspace)
		for _, op := range e.doc.Operations {
			if op.Public || op.Alias || op.Tag == "inference" || op.Body == nil || slices.Contains(unprepared, op.Method+" "+op.Path) {
				continue
			}
			for _, r := range drive.References(op.Body) {
				thing, err := e.w.Find(r.Collection, drive.Workspace)
				if err != nil || s.key == rootKey && (thing.Place == drive.Organisation || strings.HasPrefix(r.Collection, "/admin/")) {
					continue // what the organization's workspaces share
				}
				path, body, err := once(own, op, drive.Workspace)
				if err != nil {
					continue // covered by the matrix
				}
				for name, missing := range forms(thing.Names) {
					lookup := func(name string) string {
						raw, err := json.Marshal(r.Put(body, name))
						if err != nil {
							t.Fatal(err)
						}
						return e.refused(t, s, op.Method, path, raw, name)
					}
					tried++
					a, b := lookup(name), lookup(missing)
					if a != b {
						t.Errorf("%s %s, %s is %s of %s, as %s:\nthere   %.500s\nmissing %.500s", op.Method, op.Path, r, name, r.Collection, s.name, a, b)
					}
					if strings.Contains(a, r.Field()) {
						detected++
					}
				}
			}
		}
	}
	t.Logf("%d references, %d told of", tried, detected)
	if tried < 100 || detected < tried*2/3 {
		t.Errorf("%d references were tried, of which %d were told of", tried, detected)
	}
}
