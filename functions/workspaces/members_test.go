package workspaces

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

var org = store.Scope{Org: admintest.Org}

// addUser makes a user of the organization and gives its id.
func addUser(t testing.TB, h *admintest.Installation, email, role string) (id string) {
	t.Helper()
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec, err := membership.Create(tx, org, &membership.User{Email: email, FirstName: "F", LastName: "L", Role: role}, "test")
		if err == nil {
			id = rec.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// autoCreate makes the organization hand keys to those who join.
func autoCreate(t testing.TB, h *admintest.Installation) {
	t.Helper()
	body, err := json.Marshal(tenant.Organisation{Settings: tenant.Settings{UserKeys: tenant.UserKeys{AutoCreate: new(true)}}})
	if err != nil {
		t.Fatal(err)
	}
	rec := resource.Record{Scope: org, Kind: tenant.KindOrganisation, ID: admintest.Org, Status: "active", Body: body}
	if err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
}

func keysIn(t testing.TB, h *admintest.Installation, workspace, user string) (n int) {
	t.Helper()
	rows, err := h.Resources.List(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, identity.KindKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Fields["user"] == user {
			n++
		}
	}
	return n
}

func entry(id, role string) string { return fmt.Sprintf(`{"id":%q,"role":%q}`, id, role) }

func TestMembersJoinAndLeaveWithTheirKeys(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	autoCreate(t, h)
	ann, bob := addUser(t, h, "ann@example.com", "member"), addUser(t, h, "bob@example.com", "admin")
	for _, top := range []string{"/admin/workspaces/", "/workspaces/"} {
		at := top + h.One + "/users"
		if got := string(h.Do("POST", at, key, `{"users":[`+entry(ann, "manager")+`,`+entry(bob, "member")+`]}`).OK().Body); got != "{}" {
			t.Errorf("answered %s", got)
		}
		if keysIn(t, h, h.One, ann) != 1 || keysIn(t, h, h.One, bob) != 1 {
			t.Error("those who join get no key each")
		}
		h.Do("POST", at, key, `{"users":[`+entry(ann, "member")+`]}`).OK() // again: another role, no other key
		a := h.Do("GET", at+"/"+ann, key, nil).OK()
		if a.Text("role") != "member" || a.Text("id") != ann || a.Text("first_name") != "F" || a.Text("org_role") != "member" || a.Text("email") != "ann@example.com" || a.Text("workspace_id") != h.One || a.Text("object") != "workspace-user" || keysIn(t, h, h.One, ann) != 1 {
			t.Errorf("%s", a.Body)
		}
		for query, want := range map[string]int{"": 2, "?role=member": 2, "?role=admin": 0, "?email=BOB@example.com": 1, "?page_size=1&current_page=1": 1} {
			if got := h.Do("GET", at+query, key, nil).OK(); len(got.At("data").([]any)) != want {
				t.Errorf("%s: %s", query, got.Body)
			}
		}
		h.Do("PUT", at+"/"+ann, key, `{"role":"admin"}`).OK()
		if got := h.Do("GET", at+"/"+ann, admintest.WorkspaceA, nil).OK().Text("role"); got != "admin" {
			t.Errorf("role %s", got)
		}
		for _, id := range []string{ann, bob} {
			h.Do("DELETE", at+"/"+id, key, nil).OK()
			if keysIn(t, h, h.One, id) != 0 {
				t.Error("a key outlived the membership")
			}
			h.Do("GET", at+"/"+id, key, nil).RequireFault(404, "AB08", "")
		}
	}
}

func TestManyJoinInOneCall(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	autoCreate(t, h)
	var entries []string
	for i := range 40 {
		entries = append(entries, entry(addUser(t, h, fmt.Sprintf("u%d@example.com", i), "member"), "member"))
	}
	h.Do("POST", "/workspaces/"+h.One+"/users", key, `{"users":[`+strings.Join(entries, ",")+`]}`).OK()
	if got := h.Do("GET", "/workspaces/"+h.One+"/users", key, nil).OK().At("total"); got != 40.0 {
		t.Errorf("%v members", got)
	}
	h.Do("POST", "/workspaces/"+h.Two+"/users", key, `{"users":[`+strings.Join(entries, ",")+`,`+entry(resource.NewID(), "member")+`]}`).RequireFault(400, "AB01", "users[40].id")
	if got := h.Do("GET", "/workspaces/"+h.Two+"/users", key, nil).OK().At("total"); got != 0.0 {
		t.Errorf("a refused call added %v members", got)
	}
}

// No caller grants a role above its own, or changes a member with such a role.
func TestRolesAreBoundedByTheCallers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	boss, mate, new1 := addUser(t, h, "boss@example.com", "member"), addUser(t, h, "mate@example.com", "member"), addUser(t, h, "new@example.com", "member")
	at := "/workspaces/" + h.One + "/users"
	h.Do("POST", at, key, `{"users":[`+entry(boss, "admin")+`,`+entry(mate, "member")+`]}`).OK()
	for caller, want := range map[string]map[string]int{
		admintest.MemberKey:  {"member": 403, "manager": 403, "admin": 403},
		admintest.ManagerKey: {"member": 200, "manager": 200, "admin": 403},
		admintest.WsAdminKey: {"member": 200, "manager": 200, "admin": 200},
		admintest.WorkspaceA: {"member": 200, "manager": 200, "admin": 200},
		admintest.WorkspaceB: {"member": 404, "manager": 404, "admin": 404},
	} {
		for role, status := range want {
			if got := h.Do("POST", at, caller, `{"users":[`+entry(new1, role)+`]}`); got.Status != status {
				t.Errorf("%s adds a %s: %d %s", caller, role, got.Status, got.Body)
			}
			if got := h.Do("PUT", at+"/"+mate, caller, `{"role":"`+role+`"}`); got.Status != status {
				t.Errorf("%s makes a %s: %d %s", caller, role, got.Status, got.Body)
			}
			h.Do("POST", at, key, `{"users":[`+entry(mate, "member")+`]}`).OK()
			h.Do("DELETE", at+"/"+new1, key, nil)
		}
	}
	h.Do("PUT", at+"/"+boss, admintest.ManagerKey, `{"role":"member"}`).RequireFault(403, "AB03", "")
	h.Do("POST", at, admintest.ManagerKey, `{"users":[`+entry(boss, "member")+`]}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", at+"/"+boss, admintest.ManagerKey, nil).RequireFault(403, "AB03", "")
	for body, field := range map[string]string{`{}`: "users", `{"users":[]}`: "users", `{"users":[{}]}`: "users[0].id", `{"users":[{"id":"x","role":"owner"}]}`: "users[0].role", `{"users":[` + entry(mate, "member") + `,` + entry(mate, "admin") + `]}`: "users[1].id"} {
		h.Do("POST", at, key, body).RequireFault(400, "AB01", field)
	}
	foreign, missing := h.Do("GET", at+"/"+mate, admintest.OtherAdmin, nil), h.Do("GET", at+"/"+resource.NewID(), admintest.OtherAdmin, nil)
	if foreign.Status != 404 || foreign.Comparable() != missing.Comparable() {
		t.Errorf("%s", foreign.Body)
	}
}

func TestWorkspacesBeginAndEndWithTheirMembers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann := addUser(t, h, "ann@example.com", "member")
	made := h.Do("POST", "/workspaces", key, `{"name":"New","users":["`+ann+`"]}`).OK()
	at := "/workspaces/" + made.Text("id")
	if got := h.Do("GET", at+"/users/"+ann, key, nil).OK().Text("role"); got != "admin" {
		t.Errorf("role %s", got)
	}
	h.Do("POST", "/workspaces", key, `{"name":"Other","users":["`+resource.NewID()+`"]}`).RequireFault(400, "AB01", "users[0]")
	h.Do("DELETE", at, key, `{"name":"New"}`).OK()
	err := h.Resources.Change(t.Context(), org, func(tx *resource.Tx) error {
		_, u, _, err := membership.ByID(tx, org, ann)
		if err == nil && len(u.Workspaces) != 0 {
			t.Errorf("the user is still a member of %v", u.Workspaces)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
