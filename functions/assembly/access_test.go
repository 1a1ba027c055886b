package assembly_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest/drive"
	"gateway/shared/usage"
)

// caller is a column of the matrix: a key of some kind, for a user with a role if it has
// one, with every scope that such a key may have or with some of them.
type caller struct {
	name string
	kind identity.KeyType
	role string // of the user: owner, org-admin, admin, manager, member
	key  func(scopes ...string) string
}

const matrixFile = "testdata/access.txt"

// signingKey signs the tokens of all tests: making one takes a while.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// jwksOf is the set with the public part of the signing key.
func jwksOf() map[string]any {
	b64 := base64.RawURLEncoding.EncodeToString
	public := signingKey().PublicKey
	return map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k1", "n": b64(public.N.Bytes()), "e": b64(big.NewInt(int64(public.E)).Bytes())}}}
}

// callers makes the columns, all of which reach the first workspace.
func callers(in *installation, workspace string) []caller {
	in.t.Helper()
	set, err := json.Marshal(map[string]any{"auth_settings": map[string]any{"jwks": jwksOf()}})
	if err != nil {
		in.t.Fatal(err)
	}
	in.must("PUT", "/admin/organisation/settings", rootKey, string(set))
	made := 0
	of := func(kind identity.KeyType, path, fields, user string) func(...string) string {
		return func(scopes ...string) string {
			if len(scopes) == 0 {
				scopes = identity.ScopesFor(kind)
			}
			list, err := json.Marshal(scopes)
			if err != nil {
				in.t.Fatal(err)
			}
			made++
			key := in.must("POST", "/api-keys/"+path, rootKey, fmt.Sprintf(`{"name":"key-%d","scopes":%s%s}`, made, list, fields))
			if kind == identity.WorkspaceUser {
				return in.collect(key["id"].(string), user)
			}
			return key["key"].(string)
		}
	}
	there := fmt.Sprintf(`,"workspace_id":%q`, workspace)
	out := []caller{
		{"admin", identity.OrganisationService, "", of(identity.OrganisationService, "organisation/service", "", "")},
		{"service", identity.WorkspaceService, "", of(identity.WorkspaceService, "workspace/service", there, "")},
	}
	for _, role := range []string{"owner", "org-admin", "ws-admin", "manager", "member"} {
		email := role + "@example.com"
		atTop, inside := "member", strings.TrimPrefix(role, "ws-")
		if role == "owner" || role == "org-admin" {
			atTop, inside = "admin", "admin"
		}
		id := in.user(rootKey, email, atTop, workspace, inside)
		if role == "owner" {
			in.own(id)
		}
		out = append(out, caller{role, identity.WorkspaceUser, role, of(identity.WorkspaceUser, "workspace/user", there+fmt.Sprintf(`,"user_id":%q`, id), email)})
	}
	token := func(email string) func(...string) string {
		return func(scopes ...string) string {
			if len(scopes) == 0 {
				scopes = identity.ScopesFor(identity.SignedToken)
			}
			made++
			t := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, golangjwt.MapClaims{"organisation_id": "first", "workspace_slug": "first-space", "scope": strings.Join(scopes, " "), "exp": time.Now().Add(time.Hour).Unix(), "email_id": email, "jti": fmt.Sprint(made)})
			t.Header["kid"] = "k1"
			s, err := t.SignedString(signingKey())
			if err != nil {
				in.t.Fatal(err)
			}
			return s
		}
	}
	out = append(out,
		caller{"jwt", identity.SignedToken, "", token("nobody@example.com")},
		caller{"jwt-member", identity.SignedToken, "member", token("member@example.com")})
	for _, role := range roles { // the same people, signed in
		out = append(out, caller{"in-" + role, signedIn, role, func(...string) string { return in.session(role + "@example.com") }})
	}
	return out
}

// signedIn is the kind of callers with sessions. It is none of keys.
const signedIn identity.KeyType = "session"

// collect gives the secret of a key to its user, who signs in for it.
func (in *installation) collect(key, email string) string {
	in.t.Helper()
	return in.must("POST", "/api-keys/"+key+"/collect", in.session(email), "")["key"].(string)
}

// session signs a user in.
func (in *installation) session(email string) (token string) {
	in.t.Helper()
	org := store.Scope{Org: "first"}
	if err := in.core.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec, _, ok, err := membership.ByEmail(tx, org, email)
		if err != nil || !ok {
			return fmt.Errorf("%s: %v, %w", email, ok, err)
		}
		token, err = signin.Begin(tx, &signin.Session{Org: org.Org, User: rec.ID, Method: signin.ByOIDC})
		return err
	}); err != nil {
		in.t.Fatal(err)
	}
	return token
}

// own makes a user an owner.
func (in *installation) own(id string) {
	in.t.Helper()
	in.must("PUT", "/users/"+id+"/ownership", rootKey, `{"owner":true}`)
}

// cell is what a caller gets: y if the call is served, - if it is rejected as out of reach,
// otherwise the status.
func cell(status int, answer []byte) string {
	switch {
	case status < 300:
		return "y"
	case status == http.StatusForbidden && strings.Contains(string(answer), `"AB03"`):
		return "-"
	}
	return fmt.Sprint(status)
}

// line is a row of the matrix.
type line struct {
	op    *drive.Operation
	place drive.Place
	cells []string
}

func (l *line) name() string {
	if l.place == drive.Organisation {
		return l.op.Method + " " + l.op.Path + " organisation"
	}
	return l.op.Method + " " + l.op.Path
}

// tried calls an operation with each of the keys. What a served call has changed is made
// again for the next call.
func tried(t *testing.T, in *installation, w *drive.Resources, op *drive.Operation, place drive.Place, keys []string) *line {
	t.Helper()
	l := &line{op: op, place: place}
	var path string
	var body []byte
	fresh := func() bool {
		p, b, err := once(w, op, place)
		if err != nil && place == drive.Organisation && strings.Contains(err.Error(), `"param":"workspace_id"`) {
			return false // things of workspaces alone
		}
		if err != nil {
			t.Errorf("%s %s: %v", op.Method, op.Path, err)
			return false
		}
		if path = p; op.Body == nil {
			body = nil
		} else if body, err = json.Marshal(b); err != nil {
			t.Error(err)
		}
		return true
	}
	again := func() bool { // after a call that was served
		if n := strings.LastIndex(op.Path, "/{"); n >= 0 && op.Method != "PUT" {
			w.InvalidateIn(op.Path[:n])
		}
		return fresh()
	}
	if !fresh() {
		return nil
	}
	if place == drive.Organisation { // whether there is such a place
		status, answer := in.request(op.Method, path, rootKey, body)
		if status == 400 && names(answer, "workspace_id") {
			return nil
		}
		if status < 300 && op.Method != "GET" && !again() {
			return nil
		}
	}
	for _, key := range slices.Backward(keys) {
		status, answer := in.request(op.Method, path, key, body)
		l.cells = append(l.cells, cell(status, answer))
		if status >= 300 || op.Method == "GET" {
			continue
		}
		if !again() {
			return nil
		}
	}
	slices.Reverse(l.cells)
	return l
}

// once is a path and a body that an operation accepts one time: things that it makes have
// new names, an update gives every member, and a deletion is confirmed.
func once(w *drive.Resources, op *drive.Operation, place drive.Place) (string, map[string]any, error) {
	path, body, err := request(w, op, place)
	if err != nil || op.Body == nil {
		return path, nil, err
	}
	if w.Doc.Linked(op, "read") != nil {
		body, err = w.CopyBody(&drive.Resource{Create: op, Place: place, Sent: body})
		return path, body, err
	}
	if op.Path[len(op.Path)-1] != '}' {
		return path, body, nil
	}
	of, err := w.Find(drive.Collection(op.Path), place)
	if err != nil || of.Create == nil {
		return path, body, err
	}
	switch op {
	case w.Doc.Linked(of.Create, "delete"):
		body, err = w.Confirm(op, of)
	case w.Doc.Linked(of.Create, "update"):
		if whole := w.FullUpdate(op, of); len(whole) > 0 {
			body = whole
		}
	}
	return path, body, err
}

// placeless reports whether an operation concerns only the organization.
func placeless(op *drive.Operation) bool {
	properties, _ := op.Body["properties"].(map[string]any)
	_, inBody := properties["workspace_id"]
	return len(drive.Variables(op.Path)) == 0 && !inBody && !slices.ContainsFunc(op.Query, func(p drive.Param) bool { return p.Name == "workspace_id" })
}

// places are where there are things that an operation is about.
func places(w *drive.Resources, op *drive.Operation) []drive.Place {
	both := []drive.Place{drive.Workspace, drive.Organisation}
	if placeless(op) {
		return both[1:]
	}
	variables := drive.Variables(op.Path)
	if len(variables) == 0 {
		return both
	}
	collection, _, _ := strings.Cut(op.Path, "/{")
	if t, err := w.Find(collection, drive.Organisation); err != nil || t.Create == nil || t.Place != drive.Organisation {
		return both[:1]
	}
	return both
}

// unprepared are operations on things that only exist after use; the tests of their
// families say who may call them. Operations that end sessions would end those of the
// matrix.
var unprepared = []string{"PUT /policies/usage-limits/{policyId}/entities/{entityId}/reset", "POST /auth/logout", "DELETE /auth/sessions/{sessionId}"}

// TestEveryCellOfTheAccessMatrix calls every route as every kind of caller. It compares
// what each gets with the rules, and writes it down.
func TestEveryCellOfTheAccessMatrix(t *testing.T) {
	t.Parallel()
	in, w, all := matrixOf(t)
	keys := make([]string, len(all))
	for i, c := range all {
		keys[i] = c.key()
	}
	rules := readRules(t)
	scoped := scopedKeys{made: map[string]string{}}
	var lines []*line
	for _, op := range in.doc.Operations {
		if op.Alias || op.Tag == "inference" || op.Public || slices.Contains(unprepared, op.Method+" "+op.Path) {
			continue
		}
		for _, place := range places(w, op) {
			if l := tried(t, in, w, op, place, keys); l != nil {
				lines = append(lines, l)
				scoped.check(t, in, w, rules, l, all)
			}
		}
	}
	rules.compare(t, lines, all)
	table := write(lines, all)
	if *update {
		if err := os.WriteFile(matrixFile, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), table); diff != "" {
		t.Errorf("the matrix changed (-want +got):\n%s", diff)
	}
}

// scopedKeys are keys with some scopes, by caller and scopes.
type scopedKeys struct{ made map[string]string }

func (k *scopedKeys) of(c *caller, scopes []string) string {
	at := fmt.Sprint(c.name, scopes)
	if k.made[at] == "" {
		k.made[at] = c.key(scopes...)
	}
	return k.made[at]
}

// check calls a route with keys that have every scope except the needed ones, which must be
// rejected. It also calls it with keys that have only one of the needed scopes, which must
// be served if the scope is for things of that place.
func (k *scopedKeys) check(t *testing.T, in *installation, w *drive.Resources, rules *accessRules, l *line, all []caller) {
	t.Helper()
	if slices.Contains(l.op.Scopes, "auth.self") || slices.Contains(l.op.Scopes, admin.AnyScope) {
		return // no key holds the one, and every caller has the other
	}
	var keys, wanted, why []string
	for i := range all {
		c := &all[i]
		if !slices.Contains([]string{"admin", "service", "manager", "jwt"}, c.name) {
			continue
		}
		held := identity.ScopesFor(c.kind)
		rest := slices.DeleteFunc(slices.Clone(held), func(s string) bool { return slices.Contains(l.op.Scopes, s) })
		keys, wanted, why = append(keys, k.of(c, rest)), append(wanted, "-"), append(why, c.name+" without its scopes")
		for _, s := range slices.Compact(slices.Sorted(slices.Values(l.op.Scopes))) {
			if !slices.Contains(held, s) || strings.HasPrefix(l.op.Path, "/api-keys") {
				continue // which scope a key needs follows from its type, and none makes or renews a key that may more
			}
			want := "-"
			if scopes, _ := rules.scopes(l.op, rules.placeOf(l, c)); slices.Contains(scopes, s) {
				want = l.cells[i]
			}
			if rules.grants[l.op.Method+" "+l.op.Path] {
				want = "-"
			}
			held := []string{s}
			if other := rules.also[l.op.Method+" "+l.op.Path]; other != "" {
				keys, wanted, why = append(keys, k.of(c, held)), append(wanted, "-"), append(why, c.name+" with "+s+" without "+other)
				held = append(held, other)
			}
			keys, wanted, why = append(keys, k.of(c, held)), append(wanted, want), append(why, c.name+" with "+s+" alone")
		}
	}
	got := tried(t, in, w, l.op, l.place, keys)
	if got == nil {
		t.Errorf("%s cannot be tried again", l.name())
		return
	}
	for i, cell := range got.cells {
		if wanted[i] == "-" && cell == "404" && l.place == drive.Organisation {
			continue // a resource out of reach does not exist for the caller
		}
		if (cell == "-") != (wanted[i] == "-") {
			t.Errorf("%s as %s: %s, want %s", l.name(), why[i], cell, wanted[i])
		}
	}
}

// matrixOf is an installation with a caller of every kind, and a client that makes the
// things that the calls are about.
func matrixOf(t *testing.T) (*installation, *drive.Resources, []caller) {
	t.Helper()
	in := install(t, nil)
	in.user(rootKey, "somebody@example.com", "member", "first-space", "member")
	w := drive.NewResources(in.doc, in.as(rootKey))
	w.In = in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string)
	w.Adopt("/admin/workspaces", drive.Workspace, w.In)
	made := 0
	w.New = func(collection string) string {
		made++
		switch collection {
		case "/admin/users":
			return in.user(rootKey, fmt.Sprintf("new-%d@example.com", made), "member", w.In, "member")
		case "/feedback":
			return in.must("POST", collection, in.serviceKey(w.In), `{"trace_id":"a-trace","value":1}`)["feedback_ids"].([]any)[0].(string)
		case "/scim/workspaces":
			in.must("POST", collection, rootKey, fmt.Sprintf(`{"workspace_id":%q,"role":"member","scim_group_name":"group-%d"}`, w.In, made))
			all := in.must("GET", collection, rootKey, "")["mappings"].([]any)
			return all[0].(map[string]any)["id"].(string)
		case "/logs":
			return in.log(w.In)
		case "/notices/mails":
			return in.mail()
		}
		return ""
	}
	open := map[string]bool{}
	for name := range in.must("GET", "/admin/organisation/settings", rootKey, "")["workspace_overrides"].(map[string]any) {
		open[name] = true
	}
	raw, err := json.Marshal(map[string]any{"workspace_overrides": open})
	if err != nil {
		t.Fatal(err)
	}
	in.must("PUT", "/admin/organisation/settings", rootKey, string(raw))
	return in, w, callers(in, w.In)
}

// mail returns the id of a notification mail of the first organization.
func (in *installation) mail() string {
	in.t.Helper()
	in.must("POST", "/webhooks", rootKey, `{"name":"of a mail","url":"https://hooks.example.com"}`)
	return in.must("GET", "/notices/mails", rootKey, "")["data"].([]any)[0].(map[string]any)["id"].(string)
}

// serviceKey is a key of a workspace that may write feedback.
func (in *installation) serviceKey(workspace string) string {
	in.t.Helper()
	return in.must("POST", "/api-keys/workspace/service", rootKey, fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["feedbacks.write"]}`, workspace))["key"].(string)
}

// log stores a log and returns its id.
func (in *installation) log(workspace string) string {
	in.t.Helper()
	at := time.Now().UTC().Truncate(time.Millisecond)
	r := usage.Record{
		ID: ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String(), Start: at, Org: "first", Workspace: workspace, WorkspaceSlug: "first-space",
		KeyID: "key", KeyType: "workspace-service", Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", ClientStatus: 200,
	}
	if err := in.archive.Ingest(context.Background(), []usage.Record{r}); err != nil {
		in.t.Fatal(err)
	}
	return r.ID
}
