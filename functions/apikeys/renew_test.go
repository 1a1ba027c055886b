package apikeys

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gateway/shared/admin/admintest"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// expire makes a key one whose time has passed; marked tells whether the worker
// has noted it.
func expire(t *testing.T, h *admintest.House, id string, marked bool) {
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
			h := newHouse(t)
			id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
			expire(t, h, id, marked)
			path := "/api-keys/" + id
			if got := h.Do("GET", path, admintest.AdminKey, nil).OK().Text("status"); got != "expired" {
				t.Fatalf("marked %v: the key is %s", marked, got)
			}
			h.Do("POST", path+"/rotate", admintest.AdminKey, `{}`).Refused(409, "AB07", "id")
			h.Do("PUT", path, admintest.AdminKey, c.body).OK()
			if got := h.Do("GET", path, admintest.AdminKey, nil).OK().Text("status"); got != c.status {
				t.Errorf("marked %v, %s: the key is %s", marked, c.body, got)
			}
			if c.status == "active" {
				h.Do("POST", path+"/rotate", admintest.AdminKey, `{}`).OK()
			}
			for _, bad := range []string{`{"expires_at":"2020-01-01"}`, `{"name":"n","expires_at":"2020-01-01T00:00:00Z"}`} {
				h.Do("PUT", path, admintest.AdminKey, bad).Refused(400, "AB01", "expires_at")
			}
			h.Do("PUT", path, admintest.AdminKey, `{"scopes":["audit_logs.list"]}`).Refused(400, "AB01", "scopes[0]")
		}
	}
}

// Whoever reaches one workspace names nobody as the owner of a key that the
// workspace does not know. An organisation key may bring in a new user.
func TestAUserKeyNamesAUserOfTheWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const path = "/api-keys/workspace/user"
	known, foreign, there := resource.NewID(), resource.NewID(), resource.NewID()
	make := func(key, workspace, user string) admintest.Answer {
		return h.Do("POST", path, key, fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["configs.list"],"user_id":%q}`, workspace, user))
	}
	make(admintest.AdminKey, h.One, known).OK()
	make(admintest.OtherAdmin, h.Three, foreign).OK()
	make(admintest.AdminKey, h.Two, there).OK()
	for _, key := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.ManagerKey, admintest.WsAdminKey} {
		for _, odd := range []string{"u", "../x", "root", h.One + "x", "00000000-0000-0000-0000-00000000000g", `me@example.com`} {
			make(key, h.One, odd).Refused(400, "AB01", "user_id")
		}
	}
	for _, key := range []string{admintest.WorkspaceA, admintest.ManagerKey, admintest.WsAdminKey} {
		make(key, h.One, known).OK()
		var same []string
		for _, unknown := range []string{resource.NewID(), foreign, there} {
			got := make(key, h.One, unknown).Refused(400, "AB01", "user_id")
			same = append(same, got.Same())
		}
		if same[0] != same[1] || same[1] != same[2] {
			t.Errorf("%s: the refusals tell who exists elsewhere: %q", key, same)
		}
	}
	own := h.Caller(admintest.ManagerKey).UserID
	id := make(admintest.ManagerKey, h.One, own).OK().Text("id")
	if got := h.Do("GET", "/api-keys/"+id, admintest.ManagerKey, nil).OK().Text("user_id"); got != own {
		t.Errorf("the key belongs to %s", got)
	}
	h.Do("POST", path, admintest.ManagerKey, `{"name":"k","scopes":["configs.list"]}`).OK()
	make(admintest.AdminKey, h.One, resource.NewID()).OK()
}
