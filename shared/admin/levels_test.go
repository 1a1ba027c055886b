package admin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/admintest"
)

// rule belongs to the organization or to a workspace.
type rule struct {
	Text   string `json:"text,omitempty" max:"100"`
	Closed bool   `json:"closed,omitempty"` // of the organization, not for workspaces
}

func ruleFamily(shared bool) admin.Family {
	col := &admin.Collection[rule]{
		Kind: "RULE", Object: "rule", Path: "/rules", Scope: "rules", Resource: "rules", WriteRole: admin.Manager,
		Slugs: &admin.Slugs{Prefix: "ru-"}, Fields: []admin.Field{admin.NameField(20), {Name: "text"}, {Name: "closed"}},
		Computed: []admin.ComputedField[rule]{{Field: admin.Field{Name: "type", Type: admin.String, Required: true}, Value: func(_ *admin.Call, it admin.Item[rule]) any { return admin.LevelOf(it.Record) }}},
		Levels: &admin.Levels[rule]{Organisation: "organisation_rules", Workspace: "rules", Filter: true, Shared: shared,
			Open: func(it admin.Item[rule], _ string) bool { return !it.Form.Closed }},
		List: admin.List{Search: true, IDs: "ids"},
	}
	parts := &admin.Collection[itemForm]{
		Kind: "RULEPART", Object: "rule-part", Path: "/rules/{id}/parts", Param: "partId", Parent: col.AsParent(), Fields: []admin.Field{{Name: "enabled"}},
	}
	skills := &admin.Collection[itemForm]{
		Kind: "RULESKILL", Object: "rule-skill", Path: "/rules/{id}/skills", Param: "skillId", Parent: col.AsParent(), Scope: "rule_skills", Fields: []admin.Field{{Name: "enabled"}},
	}
	return admin.Family{Name: "rules", Doc: "Rules.", Routes: slices.Concat(col.Routes(), parts.Routes(), skills.Routes())}
}

// Things below a resource of the organization are changed by callers who may change that
// resource, whatever the scopes of the children. The scopes are the parent's or the
// children's own.
func TestChildrenFollowTheLevelOfTheirParent(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, ruleFamily(true))
	org := h.Do("POST", "/rules", admintest.AdminKey, `{"name":"org"}`).OK().Text("id")
	own := h.Do("POST", "/rules", admintest.WorkspaceA, `{"name":"own"}`).OK().Text("id")
	caller := func(name, like string, scopes ...string) string {
		c := h.Caller(like)
		c.Scopes = admintest.ScopeList(scopes)
		h.SetCaller(name, c)
		return name
	}
	for _, c := range []struct {
		key, path string
		get, post int
	}{
		{admintest.AdminKey, org + "/parts", 200, 200}, {admintest.AdminKey, own + "/parts", 200, 200}, {admintest.WorkspaceA, own + "/parts", 200, 200},
		{admintest.WorkspaceA, org + "/parts", 200, 403}, {admintest.WorkspaceA, org + "/skills", 200, 403}, {admintest.WorkspaceB, own + "/parts", 404, 404},
		{admintest.OtherAdmin, org + "/parts", 404, 404}, {admintest.WsAdminKey, org + "/skills", 200, 403},
		{caller("org-update", admintest.AdminKey, "organisation_rules.update"), org + "/parts", 403, 200},
		{caller("org-update-2", admintest.AdminKey, "organisation_rules.update"), own + "/parts", 403, 403},
		{caller("ws-read", admintest.AdminKey, "rules.read"), own + "/parts", 200, 403},
		{caller("skills", admintest.AdminKey, "rule_skills.list", "rule_skills.create"), org + "/skills", 200, 200},
		{caller("skills-2", admintest.WorkspaceA, "rule_skills.list", "rule_skills.create"), own + "/skills", 200, 200},
		{caller("no-skills", admintest.AdminKey, "organisation_rules.update", "organisation_rules.read"), org + "/skills", 403, 403},
	} {
		if got := h.Do("GET", "/rules/"+c.path, c.key, nil); got.Status != c.get {
			t.Errorf("GET %s as %s: %d, want %d", c.path, c.key, got.Status, c.get)
		}
		if got := h.Do("POST", "/rules/"+c.path, c.key, `{"enabled":true}`); got.Status != c.post {
			t.Errorf("POST %s as %s: %d, want %d: %s", c.path, c.key, got.Status, c.post, got.Body)
		}
	}
}

func TestRuleFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	admintest.CheckFamily(t, admintest.New(t, ruleFamily(true)))
}

func TestLevelsDecideWhoSeesAndWhoChanges(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		h := admintest.New(t, ruleFamily(shared))
		of := func(key, query, body string) string {
			return h.Do("POST", "/rules"+query, key, body).OK().Text("id")
		}
		org, closed := of(admintest.AdminKey, "", `{"name":"org"}`), of(admintest.AdminKey, "", `{"name":"closed","closed":true}`)
		one, two := of(admintest.WorkspaceA, "", `{"name":"one"}`), of(admintest.AdminKey, "?workspace_id="+h.Two, `{"name":"two"}`)
		names := func(key, query string) (out string) {
			t.Helper()
			a := h.Do("GET", "/rules"+query, key, nil).OK()
			for i := range 9 {
				if n := a.Text("data", fmt.Sprint(i), "name"); n != "" {
					out += n + " "
				}
			}
			return fmt.Sprint(out, a.At("total"))
		}
		for _, c := range []struct{ key, query, want string }{
			{admintest.AdminKey, "", "two one closed org 4"}, {admintest.AdminKey, "?type=organisation", "closed org 2"}, {admintest.AdminKey, "?type=workspace", "two one 2"},
			{admintest.AdminKey, "?workspace_id=" + h.One, "one org 2"}, {admintest.AdminKey, "?page_size=2&current_page=1", "closed org 4"},
			{admintest.AdminKey, "?search=O", "two one closed org 4"}, {admintest.AdminKey, "?search=TW", "two 1"}, {admintest.AdminKey, "?ids=" + two + "," + org, "two org 2"},
			{admintest.WorkspaceA, "", "one org 2"}, {admintest.WorkspaceB, "?type=workspace", "two 1"}, {admintest.WorkspaceB, "?type=organisation", "org 1"},
		} {
			if got := names(c.key, c.query); got != c.want {
				t.Errorf("shared %v, %s%s: %s, want %s", shared, c.key, c.query, got, c.want)
			}
		}
		reads, writes := 404, 404 // what a workspace does not see does not exist for it
		if shared {
			reads, writes = 200, 403
		}
		for _, c := range []struct {
			method, id, key string
			status          int
		}{
			{"GET", org, admintest.WorkspaceA, reads}, {"GET", closed, admintest.WorkspaceA, 404}, {"GET", two, admintest.WorkspaceA, 404}, {"GET", one, admintest.WorkspaceA, 200},
			{"PUT", org, admintest.WorkspaceA, writes}, {"DELETE", org, admintest.WorkspaceA, writes}, {"PUT", org, admintest.WsAdminKey, writes}, {"PUT", one, admintest.MemberKey, 403},
			{"PUT", one, admintest.ManagerKey, 200}, {"PUT", two, admintest.AdminKey, 200}, {"PUT", org, admintest.AdminKey, 200}, {"GET", two, admintest.AdminKey, 200},
			{"GET", org, admintest.OtherAdmin, 404}, {"GET", two, admintest.OtherAdmin, 404}, {"DELETE", two, admintest.AdminKey, 200}, {"GET", two, admintest.AdminKey, 404},
		} {
			var body any
			if c.method == "PUT" {
				body = `{"text":"t"}`
			}
			if got := h.Do(c.method, "/rules/"+c.id, c.key, body); got.Status != c.status {
				t.Errorf("shared %v, %s %s: %d, want %d: %s", shared, c.method, c.key, got.Status, c.status, got.Body)
			}
		}
		// Each level has its own scopes.
		for scope, want := range map[string][2]int{"rules.create": {403, 200}, "organisation_rules.create": {200, 403}} {
			c := h.Caller(admintest.AdminKey)
			c.Scopes = admintest.ScopeList{scope}
			h.SetCaller("narrow", c)
			if a, b := h.Do("POST", "/rules", "narrow", `{"name":"x"}`).Status, h.Do("POST", "/rules?workspace_id="+h.One, "narrow", `{"name":"x"}`).Status; a != want[0] || b != want[1] {
				t.Errorf("%s: %d %d, want %v", scope, a, b, want)
			}
		}
	}
}

// countingStore counts calls that read.
type countingStore struct {
	store.Store
	reads *atomic.Int64
}

type countingTable struct {
	store.Table
	reads *atomic.Int64
}

func (s countingStore) Table(n store.TableName) store.Table {
	return countingTable{s.Store.Table(n), s.reads}
}

func (t countingTable) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	t.reads.Add(1)
	return t.Table.Get(ctx, k, consistent)
}

func (t countingTable) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	t.reads.Add(1)
	return t.Table.GetMany(ctx, keys)
}

// A page over several scopes reads the records of each scope together, however
// many there are, and each list once per generation.
func TestAListOverSeveralScopesReadsNoRowByItself(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var reads atomic.Int64
	r := resource.New(countingStore{s, &reads})
	h := admintest.NewWithStore(t, s, r, ruleFamily(true))
	for i := range 40 {
		h.Do("POST", "/rules", admintest.AdminKey, fmt.Sprintf(`{"name":"o%d"}`, i)).OK()
		h.Do("POST", "/rules", admintest.WorkspaceA, fmt.Sprintf(`{"name":"a%d"}`, i)).OK()
		h.Do("POST", "/rules", admintest.WorkspaceB, fmt.Sprintf(`{"name":"b%d"}`, i)).OK()
	}
	var counts []int64
	for _, size := range []int{6, 60, 120} {
		before := reads.Load()
		got := h.Do("GET", fmt.Sprintf("/rules?page_size=%d", size), admintest.AdminKey, nil).OK()
		if got.At("total") != 120.0 || got.Text("data", fmt.Sprint(size-1), "id") == "" {
			t.Fatalf("%.200s", got.Body)
		}
		counts = append(counts, reads.Load()-before)
	}
	if counts[1] != counts[0] || counts[2] != counts[0] || counts[0] > 8 {
		t.Errorf("pages of 6, 60 and 120 take %v reads", counts)
	}
}
