package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// gadget is the stored form of the sample family.
type gadget struct {
	Color  string            `json:"color,omitempty" enum:"red,blue"`
	Size   int64             `json:"size,omitempty" min:"1" max:"10"`
	Parts  []string          `json:"parts,omitempty" max:"3" each:"min=1"`
	Labels map[string]string `json:"labels,omitempty"`
	Setup  *setup            `json:"setup,omitempty"`
	Made   string            `json:"made,omitempty"`
	Masked map[string]string `json:"masked,omitempty"`
}

type setup struct {
	Fast  bool   `json:"fast"`
	Level string `json:"level,omitempty" enum:"low,high"`
}

func gadgets() *admin.Collection[gadget] {
	return &admin.Collection[gadget]{
		Kind: "GADGET", Object: "gadget", Path: "/gadgets", Aliases: []string{"/admin/gadgets"},
		Scope: "gadgets", Level: admin.InWorkspace, WriteRole: admin.Manager,
		Slugs: &admin.Slugs{Prefix: "gg-"}, Versions: &admin.Versions[gadget]{},
		List:              admin.List{Status: true, Tags: true},
		ArchivedReachable: true,
		Fields: []admin.Field{
			{Name: "name", Required: true, Min: 1, Max: 20, Column: true},
			{Name: "slug", Max: 255, Pattern: admin.SlugPattern, Column: true, CreateOnly: true},
			{Name: "status", Enum: []string{"active", "archived"}, Column: true, UpdateOnly: true},
			{Name: "tags", Type: admin.Map, Of: &admin.Field{Type: admin.String}, Column: true},
			{Name: "color", Listed: true},
			{Name: "size"},
			{Name: "parts"},
			{Name: "labels"},
			{Name: "setup", Merge: true},
			{Name: "made", Type: admin.String, Fixed: true, Check: isTime},
			{Name: "key", Min: 1, Secret: true},
		},
		Computed: []admin.ComputedField[gadget]{
			{Field: admin.Field{Name: "version", Type: admin.Integer, Required: true}, Value: func(_ *admin.Call, it admin.Item[gadget]) any { return it.Version }},
		},
		Check: func(_ *admin.Call, ch *admin.Change[gadget]) []fault.Detail {
			if ch.Form.Color == "red" && ch.Form.Size > 5 {
				return []fault.Detail{{Field: "size", Message: "red gadgets have at most 5"}}
			}
			return nil
		},
	}
}

// isTime accepts a time, and stores it as it was written.
func isTime(raw json.RawMessage) []fault.Detail {
	if _, err := admin.ParseTime(strings.Trim(string(raw), `"`)); err != nil {
		return []fault.Detail{{Message: "must be an ISO 8601 time"}}
	}
	return nil
}

func gadgetFamily() admin.Family {
	col := gadgets()
	routes := append(col.Routes(),
		admin.Route{Method: "GET", Path: "/gadgets/special", Name: "specialGadgets", Doc: "A static path.", Scopes: []string{"gadgets.list"}, Level: admin.InWorkspace,
			Do: func(*admin.Call) (any, error) { return map[string]any{"special": true}, nil }},
		admin.Route{Method: "POST", Path: "/gadgets/{id}/panic", Name: "panicGadget", Doc: "Breaks.", Scopes: []string{"gadgets.update"}, Level: admin.InWorkspace,
			Action: audit.Test, Resource: "gadgets", Do: func(*admin.Call) (any, error) { panic("secret detail") }},
		admin.Route{Method: "GET", Path: "/open", Name: "open", Doc: "Needs no key.", Public: true, Do: func(*admin.Call) (any, error) { return nil, nil }},
	)
	return admin.Family{Name: "gadgets", Doc: "A sample.", Routes: routes}
}

func newInstallation(t testing.TB) *admintest.Installation { return admintest.New(t, gadgetFamily()) }

// make creates a gadget in the first workspace and gives its id.
func makeGadget(t testing.TB, h *admintest.Installation, body string) (id, slug string) {
	t.Helper()
	a := h.Do("POST", "/gadgets", admintest.WorkspaceA, body).OK()
	return a.Text("id"), a.Text("slug")
}

func TestSampleFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	admintest.CheckFamily(t, newInstallation(t))
}

func TestForeignAndMissingIDsGetTheSameBytes(t *testing.T) {
	h := newInstallation(t)
	id, slug := makeGadget(t, h, `{"name":"a"}`)
	gone, _ := makeGadget(t, h, `{"name":"gone"}`)
	h.Do("DELETE", "/gadgets/"+gone, admintest.WorkspaceA, nil).OK()
	for _, name := range []string{id, slug} {
		admintest.ForeignIsMissing(t, h, "GET", "/gadgets", name, nil)
		admintest.ForeignIsMissing(t, h, "PUT", "/gadgets", name, `{"name":"b"}`)
		admintest.ForeignIsMissing(t, h, "DELETE", "/gadgets", name, nil)
	}
	for _, name := range []string{resource.NewID(), gone} {
		h.Do("GET", "/gadgets/"+name, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
		h.Do("PUT", "/gadgets/"+name, admintest.WorkspaceA, `{"name":"b"}`).RequireFault(404, "AB08", "")
		h.Do("DELETE", "/gadgets/"+name, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
	}
	if got := h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil).OK(); got.Text("name") != "a" {
		t.Errorf("a refused call changed something: %s", got.Body)
	}
}

func TestWorkspaceRule(t *testing.T) {
	h := newInstallation(t)
	makeGadget(t, h, `{"name":"in one"}`)
	if n := h.Do("GET", "/gadgets", admintest.AdminKey, nil).OK().At("total"); n != 1.0 {
		t.Errorf("list of all workspaces: %v", n)
	}
	h.Do("POST", "/gadgets", admintest.AdminKey, `{"name":"nowhere"}`).RequireFault(400, "AB01", "workspace_id")
	for _, ws := range []string{h.One, admintest.OneSlug} {
		if n := h.Do("GET", "/gadgets?workspace_id="+ws, admintest.AdminKey, nil).OK().At("total"); n != 1.0 {
			t.Errorf("list in %s: %v", ws, n)
		}
		h.Do("GET", "/gadgets?workspace_id="+ws, admintest.WorkspaceA, nil).OK()
	}
	if n := h.Do("GET", "/gadgets?workspace_id="+h.Two, admintest.AdminKey, nil).OK().At("total"); n != 0.0 {
		t.Errorf("list in two: %v", n)
	}
	a := h.Do("POST", "/gadgets", admintest.AdminKey, map[string]any{"name": "by admin", "workspace_id": admintest.TwoSlug}).OK()
	got := h.Do("GET", "/gadgets/"+a.Text("id"), admintest.WorkspaceB, nil).OK()
	if got.Text("workspace_id") != h.Two {
		t.Errorf("made in %s", got.Text("workspace_id"))
	}
	h.Do("POST", "/gadgets", admintest.WorkspaceA, map[string]any{"name": "x", "workspace_id": h.Two}).RequireFault(403, "AB03", "")
	h.Do("POST", "/gadgets?workspace_id="+h.One, admintest.AdminKey, map[string]any{"name": "x", "workspace_id": h.Two}).RequireFault(400, "AB01", "workspace_id")
	h.Do("GET", "/gadgets?organisation_id=o2", admintest.WorkspaceA, nil).RequireFault(403, "AB03", "")
	h.Do("GET", "/gadgets?organisation_id=o1", admintest.WorkspaceA, nil).OK()
}

func TestRoleOfAUserIsEnforced(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a"}`)
	h.Do("GET", "/gadgets/"+id, admintest.MemberKey, nil).OK()
	h.Do("PUT", "/gadgets/"+id, admintest.MemberKey, `{"name":"b"}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/gadgets/"+id, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	h.Do("PUT", "/gadgets/"+id, admintest.ManagerKey, `{"name":"b"}`).OK()
	odd := h.Caller(admintest.MemberKey)
	odd.Role = "emperor"
	h.SetCaller("odd", odd)
	h.Do("PUT", "/gadgets/"+id, "odd", `{"name":"c"}`).RequireFault(403, "AB03", "")
}

func TestBadBodiesAreRefusedAndNeverBreakAnything(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a"}`)
	admintest.BadBodies(t, h, "POST", "/gadgets", admintest.WorkspaceA, `{"name":"ok"}`)
	admintest.BadBodies(t, h, "PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"name":"ok"}`)
	r := httptest.NewRequest("POST", "/v1/gadgets", strings.NewReader(`{"name":"ok"}`))
	r.Header.Set("x-gateway-api-key", admintest.WorkspaceA)
	r.Header.Set("content-type", "text/plain")
	h.Send(r).RequireFault(400, "AB01", "content-type")
}

func TestAllFieldErrorsAreNamedAtOnce(t *testing.T) {
	h := newInstallation(t)
	got := h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"color":"green","size":1.5,"parts":["a","",3,"b"],"labels":{"a":1},
		"setup":{"fast":"yes","level":"mid","more":1},"made":"soon","slug":"a b","tags":[],"key":""}`)
	f := got.RequireFault(400, "AB01", "name").Failure()
	for field, text := range map[string]string{
		"name": "is required", "color": "red, blue", "size": "integer", "parts": "0 to 3 entries", "parts[1]": "empty", "parts[2]": "a string, not a number",
		"labels.a": "a string", "setup.fast": "true or false", "setup.level": "low, high", "setup.more": "unknown field", "made": "ISO 8601",
		"slug": "match", "tags": "an object, not an array", "key": "empty",
	} {
		if !strings.Contains(f.Fields[field], text) {
			t.Errorf("%s: %q, want %q", field, f.Fields[field], text)
		}
	}
	for body, field := range map[string]string{
		`{"name":""}`:   "name",
		`{"name":null}`: "name",
		`{"name":5}`:    "name",
		`{"name":"` + strings.Repeat("é", 21) + `"}`:             "name",
		`{"name":"a","size":0}`:                                  "size",
		`{"name":"a","size":11}`:                                 "size",
		`{"name":"a","size":99999999999999999999}`:               "size",
		`{"name":"a","size":1e1}`:                                "size",
		`{"name":"a","color":"red","size":6}`:                    "size",
		`{"name":"a","tags":{"":"x"}}`:                           "tags",
		`{"name":"a","parts":[null]}`:                            "parts[0]",
		`{"name":"a","labels":{"a":null}}`:                       "labels.a",
		`{"name":"a","slug":"` + strings.Repeat("a", 256) + `"}`: "slug",
	} {
		h.Do("POST", "/gadgets", admintest.WorkspaceA, body).RequireFault(400, "AB01", field)
	}
	if n := h.Do("GET", "/gadgets", admintest.WorkspaceA, nil).OK().At("total"); n != 0.0 {
		t.Errorf("refused creates left %v records", n)
	}
}

func TestUpdateDistinguishesAbsentNullAndValue(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a","color":"red","size":3,"parts":["x"],"labels":{"k":"v"},"setup":{"fast":true,"level":"low"},
		"made":"2026-01-02","tags":{"t":"1"},"key":"abcdefghij"}`)
	put := func(body string) { t.Helper(); h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, body).OK() }
	get := func() string {
		t.Helper()
		m := h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil).OK().Object()
		for _, k := range []string{"id", "slug", "created_at", "last_updated_at", "workspace_id", "organisation_id", "object", "status"} {
			if m[k] == nil {
				t.Errorf("the record lacks %s", k)
			}
			delete(m, k)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := func(s string) {
		t.Helper()
		if got := get(); got != s {
			t.Errorf("got  %s\nwant %s", got, s)
		}
	}
	want(`{"color":"red","labels":{"k":"v"},"made":"2026-01-02","masked_key":"ab****ij","name":"a","parts":["x"],"setup":{"fast":true,"level":"low"},"size":3,"tags":{"t":"1"},"version":1}`)
	put(`{"size":4}`)
	want(`{"color":"red","labels":{"k":"v"},"made":"2026-01-02","masked_key":"ab****ij","name":"a","parts":["x"],"setup":{"fast":true,"level":"low"},"size":4,"tags":{"t":"1"},"version":2}`)
	put(`{"color":null,"parts":[],"labels":null,"setup":{"level":"high"},"tags":null,"key":null,"made":"2026-01-02"}`)
	want(`{"color":null,"labels":null,"made":"2026-01-02","name":"a","parts":null,"setup":{"fast":true,"level":"high"},"size":4,"tags":null,"version":3}`)
	put(`{"setup":{"level":null}}`)
	want(`{"color":null,"labels":null,"made":"2026-01-02","name":"a","parts":null,"setup":{"fast":true},"size":4,"tags":null,"version":4}`)
	put(`{"name":"a"}`) // no new content, no new version
	want(`{"color":null,"labels":null,"made":"2026-01-02","name":"a","parts":null,"setup":{"fast":true},"size":4,"tags":null,"version":4}`)

	h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"made":"2027-01-02"}`).RequireFault(400, "AB01", "made")
	for _, empty := range []string{`{}`, `{"workspace_id":"` + h.One + `"}`, `{"slug":"other"}`} {
		h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, empty).RequireFault(400, "AB01", "")
	}
	a := h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"size":5,"created_at":"2026-01-01","slug":"other"}`).OK()
	if got := a.Header.Get("X-Gateway-Ignored-Fields"); got != "created_at, slug" {
		t.Errorf("ignored fields: %q", got)
	}
}

func TestSecretIsSealedAndNeverShown(t *testing.T) {
	const canary = "CANARY-secret-value"
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a","key":"`+canary+`"}`)
	h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"size":2}`).OK()
	rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, "GADGET", id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	plain, err := rec.OpenSecrets(context.Background(), admintest.Sealer{})
	if err != nil || string(plain["key"]) != canary {
		t.Errorf("the sealed secret: %q %v", plain["key"], err)
	}
	if bytes.Contains(rec.Body, []byte(canary)) || bytes.Contains(rec.Sealed, []byte(canary)) {
		t.Error("the secret is stored in the clear")
	}
	for _, path := range []string{"/gadgets/" + id, "/gadgets"} {
		if got := h.Do("GET", path, admintest.WorkspaceA, nil).OK(); bytes.Contains(got.Body, []byte(canary)) {
			t.Errorf("%s shows the secret", path)
		}
	}
	log, err := json.Marshal(h.Audit())
	if err != nil || bytes.Contains(log, []byte(canary)) {
		t.Errorf("the audit log shows the secret: %v", err)
	}
}

func TestListPagesFiltersAndCounts(t *testing.T) {
	h := newInstallation(t)
	for i := range 12 {
		makeGadget(t, h, fmt.Sprintf(`{"name":"n%d","color":"%s","tags":{"i":"%d","all":"1"}}`, i, []string{"red", "blue"}[i%2], i))
	}
	for query, want := range map[string]string{
		"":                              "12: n11 n10 n9 n8 n7 n6 n5 n4 n3 n2 n1 n0",
		"?page_size=5":                  "12: n11 n10 n9 n8 n7",
		"?page_size=5&current_page=1":   "12: n6 n5 n4 n3 n2",
		"?page_size=5&current_page=2":   "12: n1 n0",
		"?page_size=5&current_page=9":   "12:",
		"?color=blue&page_size=2":       "6: n11 n9",
		`?tags={"i":"3"}`:               "1: n3",
		`?tags={"i":"3","all":"1"}`:     "1: n3",
		`?tags={"i":"3","all":"2"}`:     "0:",
		"?status=archived":              "0:",
		"?status=active,archived":       "12: n11 n10 n9 n8 n7 n6 n5 n4 n3 n2 n1 n0",
		"?current_page=&page_size=1000": "12: n11 n10 n9 n8 n7 n6 n5 n4 n3 n2 n1 n0",
	} {
		a := h.Do("GET", "/gadgets"+strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D").Replace(query), admintest.WorkspaceA, nil).OK()
		got := fmt.Sprint(a.At("total"), ":")
		for i := range 12 {
			if n := a.Text("data", fmt.Sprint(i), "name"); n != "" {
				got += " " + n
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for query, field := range map[string]string{
		"?page_size=0": "page_size", "?page_size=1001": "page_size", "?page_size=x": "page_size", "?current_page=-1": "current_page",
		"?current_page=1.5": "current_page", "?page_size=5&page_size=6": "page_size", "?tags=x": "tags", "?tags=%7B%22a%22:1%7D": "tags.a",
		"?status=gone": "status", "?current_page=99999999999999999999": "current_page", "?color=%ff": "color",
	} {
		h.Do("GET", "/gadgets"+query, admintest.WorkspaceA, nil).RequireFault(400, "AB01", field)
	}
}

func TestArchivedRecordLeavesTheListAndIsRestored(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a"}`)
	makeGadget(t, h, `{"name":"b"}`)
	h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"status":"archived"}`).OK()
	for query, want := range map[string]any{"": 1.0, "?status=archived": 1.0, "?status=archived,active": 2.0} {
		if got := h.Do("GET", "/gadgets"+query, admintest.WorkspaceA, nil).OK().At("total"); got != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"status":"active"}`).OK()
	h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil).OK()
	h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
	h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
}

func TestSlugsAreMadeFromNamesAndConflictsAreNamed(t *testing.T) {
	h := newInstallation(t)
	_, slug := makeGadget(t, h, `{"name":"Pplx Cache Test"}`)
	if !regexp.MustCompile(`^gg-pplx-c-[0-9a-f]{6}$`).MatchString(slug) {
		t.Errorf("slug %s", slug)
	}
	if _, slug = makeGadget(t, h, `{"name":"日本"}`); !regexp.MustCompile(`^gg-[0-9a-f]{6}$`).MatchString(slug) {
		t.Errorf("slug %s", slug)
	}
	makeGadget(t, h, `{"name":"a","slug":"mine"}`)
	h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"b","slug":"mine"}`).RequireFault(409, "AB07", "slug")
	h.Do("POST", "/gadgets", admintest.WorkspaceB, `{"name":"b","slug":"mine"}`).OK()
}

func TestPathsAreMatchedAsTheyWereSent(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a"}`)
	for path, status := range map[string]int{
		"/gadgets/special": 200, "/admin/gadgets": 200, "/admin/gadgets/" + id: 200,
		"/gadgets/": 200, "/gadgets//" + id: 404, "/Gadgets": 404, "/gadgets/" + id + "/": 404, "/gadgets/a/b/c": 404,
		"/gadgets/..%2fadmin": 404, "/gadgets/%2e%2e": 404, "/gadgets/%00": 404, "/gadgets/%ff": 404, "/gadgets/a%23b": 404,
		"/gadgets/" + strings.Repeat("x", 5000): 404, "/gadgets;x": 404, "/%67adgets": 200, "/gadgets/special%2F": 404,
	} {
		if got := h.Do("GET", path, admintest.WorkspaceA, nil); got.Status != status {
			t.Errorf("%.60s: %d, want %d", path, got.Status, status)
		}
	}
	got := h.Do("PATCH", "/gadgets/"+id, admintest.WorkspaceA, `{}`).RequireFault(405, "AB01", "")
	if allow := got.Header.Get("Allow"); allow != "DELETE, GET, PUT" {
		t.Errorf("Allow: %s", allow)
	}
	if !h.Handler.Serves("/v1/gadgets/x") || !h.Handler.Serves("/v2/gadgets") || h.Handler.Serves("/v1/other") || h.Handler.Serves("") {
		t.Error("Serves")
	}
	h.Do("GET", "/open", "", nil).OK()
}

func TestEveryWriteIsAuditedOnceWithItsOutcome(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a","key":"abcdefghij"}`)
	h.Do("PUT", "/gadgets/"+id, admintest.MemberKey, `{"name":"b"}`)
	h.Do("PUT", "/gadgets/"+id+"?workspace_id="+h.One, admintest.AdminKey, `{"name":"b"}`)
	h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"name":`)
	h.Do("POST", "/gadgets/"+id+"/panic", admintest.WorkspaceA, nil)
	h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil)
	h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil)
	h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil)
	h.Do("DELETE", "/gadgets/"+id, "", nil)
	h.Do("DELETE", "/nowhere", admintest.WorkspaceA, nil)
	var got []string
	for _, e := range h.Audit() {
		got = append(got, fmt.Sprint(e.Method, " ", e.Action, " ", e.StatusCode))
		if e.ResourceType != "gadgets" || e.OrganisationID != "o1" || e.ClientIP != "192.0.2.7" || e.UserID == "" || e.RequestID == "" || e.ResourceID != id && e.StatusCode == 200 {
			t.Errorf("record lacks something: %+v", e)
		}
		if e.WorkspaceID != h.One {
			t.Errorf("%s %d in workspace %q", e.Method, e.StatusCode, e.WorkspaceID)
		}
	}
	want := "POST create 200|PUT update 403|PUT update 200|PUT update 400|POST test 500|DELETE delete 200|DELETE delete 404"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if e := h.Audit()[0]; e.RequestBody != `{"key":"ab****ij","name":"a"}` || e.URI != "/v1/gadgets" || !strings.Contains(e.RequestHeaders, `"x-gateway-api-key":"ke****ne"`) {
		t.Errorf("record: %+v", e)
	}
	if e := h.Audit()[1]; e.UserType != audit.UserTypeUser || e.APIKeyID == "" || e.APIKeyID == e.UserID {
		t.Errorf("a call with a user's key is recorded as that of %s %s by the key %q", e.UserType, e.UserID, e.APIKeyID)
	}
}

func TestPanicIsAnInternalErrorWithoutDetails(t *testing.T) {
	h := newInstallation(t)
	got := h.Do("POST", "/gadgets/x/panic", admintest.WorkspaceA, nil).RequireFault(500, "AB04", "")
	if bytes.Contains(got.Body, []byte("secret detail")) {
		t.Errorf("the answer tells the panic: %s", got.Body)
	}
}

func TestMistakesOfADescriptionStopTheStart(t *testing.T) {
	do := func(*admin.Call) (any, error) { return nil, nil }
	good := admin.Route{Method: "GET", Path: "/a", Name: "a", Scopes: []string{"s"}, Level: admin.InWorkspace, Do: do}
	for name, edit := range map[string]func(*admin.Route){
		"no scope":        func(r *admin.Route) { r.Scopes = nil },
		"no place":        func(r *admin.Route) { r.Level = 0 },
		"no work":         func(r *admin.Route) { r.Do = nil },
		"no name":         func(r *admin.Route) { r.Name = "" },
		"not audited":     func(r *admin.Route) { r.Method = "POST" },
		"public, guarded": func(r *admin.Route) { r.Public = true },
		"odd alias":       func(r *admin.Route) { r.Aliases = []string{"/b/{x}"} },
		"no path":         func(r *admin.Route) { r.Path = "a" },
	} {
		r := good
		edit(&r)
		if _, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "f", Routes: []admin.Route{r}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "f", Routes: []admin.Route{good, good}}); err == nil {
		t.Error("declared twice: accepted")
	}
	if _, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "f", Routes: []admin.Route{good}}); err != nil {
		t.Error(err)
	}
}

func TestDocumentOfTheSampleFamily(t *testing.T) {
	got := admin.OpenAPI("Gateway administration", "1", gadgetFamily())
	if !bytes.Equal(got, admin.OpenAPI("Gateway administration", "1", gadgetFamily())) {
		t.Error("the document is not always the same")
	}
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the document changed; look at the diff of go test -update")
	}
}

func TestArchivedWorkspaceIsReadAndNotWritten(t *testing.T) {
	h := newInstallation(t)
	org := store.Scope{Org: admintest.Org}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(org, "WORKSPACE", h.One)
		if err != nil {
			return err
		}
		return tx.Archive(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Do("GET", "/gadgets?workspace_id="+h.One, admintest.AdminKey, nil).OK()
	h.Do("POST", "/gadgets?workspace_id="+h.One, admintest.AdminKey, `{"name":"a"}`).RequireFault(403, "AB03", "")
}

func TestCallOfAClientThatHasGoneIsDoneToItsEnd(t *testing.T) {
	h := newInstallation(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req := httptest.NewRequestWithContext(ctx, "POST", "/v1/gadgets", strings.NewReader(`{"name":"kept"}`))
	req.Header.Set("x-gateway-api-key", admintest.WorkspaceA)
	req.Header.Set("content-type", "application/json")
	id := h.Send(req).OK().Text("id")
	if got := h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil).OK(); got.Text("name") != "kept" {
		t.Errorf("the change of a client that has gone: %s", got.Body)
	}
}
