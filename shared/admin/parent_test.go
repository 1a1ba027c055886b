package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// box has items below it, which are written one by one or many at once.
type box struct {
	Note string `json:"note,omitempty" max:"20"`
}

type itemForm struct {
	Enabled bool  `json:"enabled"`
	Size    int64 `json:"size,omitempty" min:"1" max:"9"`
}

func boxFamily() admin.Family {
	boxes := &admin.Collection[box]{
		Kind: "BOX", Object: "box", Path: "/boxes", Param: "boxId", Scope: "boxes", Level: admin.InWorkspace,
		Slugs: &admin.Slugs{Prefix: "bx-"}, Fields: []admin.Field{admin.NameField(20), {Name: "note"}},
	}
	items := &admin.Collection[itemForm]{
		Kind: "BOXITEM", Object: "box-item", Path: "/boxes/{boxId}/items", Param: "itemId", Scope: "boxes", Level: admin.InWorkspace,
		Parent: boxes.AsParent(), Fields: []admin.Field{{Name: "enabled", Required: true}, {Name: "size"}},
		Before: func(_ *admin.Call, _ *resource.Tx, ch *admin.Change[itemForm]) error {
			if ch.Form.Size == 9 && !ch.Form.Enabled {
				return fault.Invalid("size", "9 is for items that are enabled")
			}
			return nil
		},
	}
	routes := append(boxes.Routes(), items.Routes()...)
	return admin.Family{Name: "boxes", Doc: "Boxes with items.", Routes: append(routes, items.BulkRoute(admin.BulkWrite{
		Name: "writeBoxItems", Doc: "Write items.", Field: "items", Key: "id", Max: 500,
	}))}
}

func makeBox(t testing.TB, h *admintest.Installation, key string) string {
	t.Helper()
	return h.Do("POST", "/boxes", key, `{"name":"b"}`).OK().Text("id")
}

func TestBoxFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	admintest.CheckFamily(t, admintest.New(t, boxFamily()))
}

func TestChildrenAreFoundThroughTheirParentOnly(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, boxFamily())
	one, two := makeBox(t, h, admintest.WorkspaceA), makeBox(t, h, admintest.WorkspaceA)
	slug := h.Do("GET", "/boxes/"+one, admintest.WorkspaceA, nil).OK().Text("slug")
	id := h.Do("POST", "/boxes/"+one+"/items", admintest.WorkspaceA, `{"enabled":true,"size":2}`).OK().Text("id")
	for _, parent := range []string{one, slug} {
		if got := h.Do("GET", "/boxes/"+parent+"/items/"+id, admintest.WorkspaceA, nil).OK(); got.At("size") != 2.0 {
			t.Errorf("%s", got.Body)
		}
	}
	h.Do("GET", "/boxes/"+two+"/items/"+id, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "itemId")
	if got := h.Do("GET", "/boxes/"+two+"/items", admintest.WorkspaceA, nil).OK().At("total"); got != 0.0 {
		t.Errorf("the other box lists %v", got)
	}
	// Of a parent that is not there, and of one of others, children are missing the same way.
	for _, call := range [][2]string{{"GET", ""}, {"POST", `{"enabled":true}`}, {"PUT", `{"items":[{"id":"a","enabled":true}]}`}} {
		var body any
		if call[1] != "" {
			body = call[1]
		}
		missing := h.Do(call[0], "/boxes/"+resource.NewID()+"/items", admintest.WorkspaceB, body).RequireFault(404, "AB08", "boxId")
		foreign := h.Do(call[0], "/boxes/"+one+"/items", admintest.WorkspaceB, body)
		if missing.Comparable() != foreign.Comparable() {
			t.Errorf("%s tells that a foreign parent exists: %s", call[0], foreign.Body)
		}
	}
	h.Do("DELETE", "/boxes/"+one+"/items/"+id, admintest.WorkspaceA, nil).OK()
	h.Do("GET", "/boxes/"+one+"/items/"+id, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "itemId")
}

func manyItems(n int, member string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"id":"i%03d",%s}`, i, member)
	}
	return `{"items":[` + b.String()[1:] + `]}`
}

func TestBulkWritesAreDoneInChunksAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, boxFamily())
	id := makeBox(t, h, admintest.WorkspaceA)
	at := "/boxes/" + id + "/items"
	total := func(want float64) {
		t.Helper()
		if got := h.Do("GET", at+"?page_size=1000", admintest.WorkspaceA, nil).OK().At("total"); got != want {
			t.Errorf("there are %v items, want %v", got, want)
		}
	}
	for range 2 {
		h.Do("PUT", at, admintest.WorkspaceA, manyItems(250, `"enabled":false,"size":3`)).OK()
		total(250)
	}
	h.Do("PUT", at, admintest.WorkspaceA, `{"items":[{"id":"i007","enabled":true},{"id":"new","enabled":true}]}`).OK()
	total(251)
	if got := h.Do("GET", at+"/i007", admintest.WorkspaceA, nil).OK(); got.At("enabled") != true || got.At("size") != 3.0 {
		t.Errorf("what the entry does not name changed: %s", got.Body)
	}
	// All faults by the description are reported before anything is written.
	h.Do("PUT", at, admintest.WorkspaceA, `{"items":[{"id":"x1","enabled":true},{"id":"x2"},{"id":"x3","enabled":1,"size":10},{"id":"x1","enabled":true}]}`).
		RequireFault(400, "AB01", "items[1].enabled").RequireFault(400, "AB01", "items[2].enabled").RequireFault(400, "AB01", "items[2].size")
	h.Do("PUT", at, admintest.WorkspaceA, `{"items":[{"id":"x1","enabled":true},{"id":"x1","enabled":true}]}`).RequireFault(400, "AB01", "items[1].id")
	for _, bad := range []string{`{"items":[]}`, `{"items":null}`, `{}`, `{"items":{}}`, manyItems(501, `"enabled":true`)} {
		h.Do("PUT", at, admintest.WorkspaceA, bad).RequireFault(400, "AB01", "items")
	}
	total(251)
	audited := 0
	for _, e := range h.Audit() {
		if e.Action == "manage" && e.StatusCode == 200 {
			audited++
		}
	}
	if audited != 3 {
		t.Errorf("%d bulk writes in the audit log", audited)
	}
}

func TestAFailedBulkWriteReportsItsProgress(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, boxFamily())
	at := "/boxes/" + makeBox(t, h, admintest.WorkspaceA) + "/items"
	body := manyItems(100, `"enabled":true`)
	broken := strings.Replace(body, `{"id":"i060","enabled":true}`, `{"id":"i060","enabled":false,"size":9}`, 1)
	got := h.Do("PUT", at, admintest.WorkspaceA, broken).RequireFault(400, "AB01", "items[60].size")
	saved := h.Do("GET", at, admintest.WorkspaceA, nil).OK().At("total").(float64)
	if !strings.Contains(string(got.Body), fmt.Sprintf("the first %v of 100 entries are saved", saved)) || saved == 0 || saved > 60 {
		t.Errorf("%v are saved, and the answer says %s", saved, got.Body)
	}
	h.Do("PUT", at, admintest.WorkspaceA, body).OK()
	if got := h.Do("GET", at, admintest.WorkspaceA, nil).OK().At("total"); got != 100.0 {
		t.Errorf("the same call again left %v", got)
	}
}

func TestChildrenGoWithTheirParent(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, boxFamily())
	retained, gone := makeBox(t, h, admintest.WorkspaceA), makeBox(t, h, admintest.WorkspaceA)
	for _, id := range []string{retained, gone} {
		h.Do("PUT", "/boxes/"+id+"/items", admintest.WorkspaceA, manyItems(60, `"enabled":true`)).OK()
	}
	h.Do("DELETE", "/boxes/"+gone, admintest.WorkspaceA, nil).OK()
	rows, err := h.Resources.List(t.Context(), h.Caller(admintest.WorkspaceA).Scope, resource.Kind("BOXITEM").Of(gone))
	if err != nil || len(rows) != 0 {
		t.Errorf("%d items are left (%v)", len(rows), err)
	}
	if got := h.Do("GET", "/boxes/"+retained+"/items", admintest.WorkspaceA, nil).OK().At("total"); got != 60.0 {
		t.Errorf("the other box has %v", got)
	}
}

// member is a user in a workspace, found through it.
type member struct {
	Role string `json:"role" enum:"admin,manager,member"`
}

func memberFamily() admin.Family {
	spaces := &admin.Collection[struct{}]{
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/workspaces", Param: "workspaceId", Scope: "workspaces", Level: admin.Shared, Excluded: []string{"create", "update", "delete"},
		Fields: []admin.Field{admin.NameField(255)}, Slugs: &admin.Slugs{},
		Authorize: func(c *admin.Call, _ string, row *resource.Row) bool {
			return c.Caller.OfOrganisation() || c.Caller.Scope.Workspace == row.ID
		},
	}
	members := &admin.Collection[member]{
		Kind: "MEMBER", Object: "workspace-user", Path: "/workspaces/{workspaceId}/users", Param: "userId", Scope: "workspace_users", Level: admin.Shared,
		Parent: spaces.AsWorkspace(), Excluded: []string{"create"}, WriteRole: admin.Manager,
		Fields:   []admin.Field{{Name: "role", Required: true, Listed: true}},
		Computed: []admin.ComputedField[member]{{Field: admin.Field{Name: "workspace_id", Type: admin.String, Required: true}, Value: func(_ *admin.Call, it admin.Item[member]) any { return it.Scope.Workspace }}},
	}
	routes := append(spaces.Routes(), members.Routes()...)
	return admin.Family{Name: "members", Doc: "Members.", Routes: append(routes, members.BulkRoute(admin.BulkWrite{
		Method: "POST", Name: "addMembers", Doc: "Add users to a workspace.", Field: "users", Key: "id",
	}))}
}

func TestMembersOfAWorkspaceAreInItsScope(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, memberFamily())
	admintest.CheckFamily(t, h)
	h.Do("POST", "/workspaces/"+admintest.OneSlug+"/users", admintest.AdminKey, `{"users":[{"id":"u1","role":"admin"},{"id":"u2","role":"member"}]}`).OK()
	for _, key := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.MemberKey} {
		got := h.Do("GET", "/workspaces/"+h.One+"/users?role=member", key, nil).OK()
		if got.At("total") != 1.0 || got.Text("data", "0", "id") != "u2" || got.Text("data", "0", "workspace_id") != h.One {
			t.Errorf("%s: %s", key, got.Body)
		}
	}
	h.Do("PUT", "/workspaces/"+h.One+"/users/u2", admintest.ManagerKey, `{"role":"manager"}`).OK()
	h.Do("PUT", "/workspaces/"+h.One+"/users/u2", admintest.MemberKey, `{"role":"admin"}`).RequireFault(403, "AB03", "")
	h.Do("PUT", "/workspaces/"+h.One+"/users/u2", admintest.AdminKey, `{"role":"emperor"}`).RequireFault(400, "AB01", "role")
	for _, key := range []string{admintest.WorkspaceB, admintest.OtherAdmin} { // these do not reach it
		for _, path := range []string{"/users", "/users/u1"} {
			foreign := h.Do("GET", "/workspaces/"+h.One+path, key, nil)
			missing := h.Do("GET", "/workspaces/"+resource.NewID()+path, key, nil)
			if foreign.Status != 404 || foreign.Comparable() != missing.Comparable() {
				t.Errorf("%s %s: %s", key, path, foreign.Body)
			}
		}
	}
	if got := h.Do("GET", "/workspaces/"+h.Two+"/users", admintest.AdminKey, nil).OK().At("total"); got != 0.0 {
		t.Errorf("the other workspace has %v", got)
	}
}
