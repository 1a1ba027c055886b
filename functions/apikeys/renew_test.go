package apikeys

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// expire makes a key an expired one; marked states whether the worker has marked it.
func expire(t *testing.T, h *admintest.Installation, id string, marked bool) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	err := h.Resources.Change(t.Context(), sc, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(sc, identity.KindKey, id)
		if err != nil {
			return err
		}
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return err
		}
		past := time.Now().Add(-time.Hour)
		k.ExpiresAt = &past
		if marked {
			rec.Status = identity.StatusExpired
		}
		if rec.Body, err = json.Marshal(k); err != nil {
			return err
		}
		if err := tx.Update(&rec); err != nil {
			return err
		}
		return identity.Stage(tx, &rec, &k, admintest.OneSlug)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A key past its time can be renewed, before and after the worker has marked it,
// and its other fields can be changed while it stays expired.
func TestAnExpiredKeyCanBeRenewed(t *testing.T) {
	t.Parallel()
	future := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	for _, marked := range []bool{false, true} {
		for _, c := range []struct{ body, status string }{
			{`{"expires_at":"` + future + `"}`, "active"},
			{`{"expires_at":null}`, "active"},
			{`{"name":"other"}`, "expired"},
			{`{"description":"other","scopes":["configs.list","configs.read"]}`, "expired"},
			{`{"name":"other","expires_at":"` + future + `"}`, "active"},
		} {
			h := newInstallation(t)
			id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
			expire(t, h, id, marked)
			path := "/api-keys/" + id
			if got := h.Do("GET", path, admintest.AdminKey, nil).OK().Text("status"); got != "expired" {
				t.Fatalf("marked %v: the key is %s", marked, got)
			}
			h.Do("POST", path+"/rotate", admintest.AdminKey, `{}`).RequireFault(409, "AB07", "id")
			h.Do("PUT", path, admintest.AdminKey, c.body).OK()
			if got := h.Do("GET", path, admintest.AdminKey, nil).OK().Text("status"); got != c.status {
				t.Errorf("marked %v, %s: the key is %s", marked, c.body, got)
			}
			if c.status == "active" {
				h.Do("POST", path+"/rotate", admintest.AdminKey, `{}`).OK()
			}
			for _, bad := range []string{`{"expires_at":"2020-01-01"}`, `{"name":"n","expires_at":"2020-01-01T00:00:00Z"}`} {
				h.Do("PUT", path, admintest.AdminKey, bad).RequireFault(400, "AB01", "expires_at")
			}
			h.Do("PUT", path, admintest.AdminKey, `{"scopes":["audit_logs.list"]}`).RequireFault(400, "AB01", "scopes[0]")
		}
	}
}

// A key belongs to a user of the workspace: a member, or an owner or admin of the organization.
// Errors do not reveal users of other workspaces.
func TestAUserKeyNamesAUserOfTheWorkspace(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const path = "/api-keys/workspace/user"
	known, there, boss := addUser(t, h, "known@example.com", membership.Member, h.One), addUser(t, h, "there@example.com", membership.Member, h.Two), addUser(t, h, "boss@example.com", membership.Admin)
	make := func(key, workspace, user string) admintest.Response {
		return h.Do("POST", path, key, fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["configs.list"],"user_id":%q}`, workspace, user))
	}
	for _, key := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.ManagerKey, admintest.WsAdminKey} {
		for _, odd := range []string{"u", "../x", "root", h.One + "x", "00000000-0000-0000-0000-00000000000g", `me@example.com`} {
			make(key, h.One, odd).RequireFault(400, "AB01", "user_id")
		}
		id := make(key, h.One, known).OK().Text("id")
		if got := make(key, h.One, boss); key == admintest.AdminKey || key == admintest.WorkspaceA {
			got.OK()
		} else {
			got.RequireFault(403, "AB03", "user_id") // its role is above the caller's
		}
		if got := h.Do("GET", "/api-keys/"+id, key, nil).OK().Text("user_id"); got != known {
			t.Errorf("the key belongs to %s", got)
		}
		var same []string
		for _, unknown := range []string{resource.NewID(), there} {
			same = append(same, make(key, h.One, unknown).RequireFault(400, "AB01", "user_id").Comparable())
		}
		if same[0] != same[1] {
			t.Errorf("%s: the refusals tell who exists elsewhere: %q", key, same)
		}
	}
	make(admintest.OtherAdmin, h.Three, known).RequireFault(400, "AB01", "user_id")
	make(admintest.MemberKey, h.One, known).RequireFault(403, "AB03", "")
}
