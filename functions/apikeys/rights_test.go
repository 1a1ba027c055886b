package apikeys

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// signIn makes a user the caller of a credential, as a session does.
func signIn(h *admintest.Installation, credential, user string, rank identity.Rank) {
	h.SetCaller(credential, admin.Caller{
		UserID: user, Type: "session", Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Scopes: identity.NewScopeSet(membership.ScopesOf(rank.Role())...), Since: time.Now(),
	}.As(rank))
}

// The secret of a user's key is shown to this user alone, whoever created or rotated it.
func TestOnlyTheUserSeesTheSecretOfItsKey(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.SetSettings(tenant.Settings{})
	ann, bob := addUser(t, h, "ann@example.com", membership.Member, h.One), addUser(t, h, "bob@example.com", membership.Member, h.One)
	signIn(h, "ann", ann, identity.RankMember)
	signIn(h, "bob", bob, identity.RankMember)
	for _, by := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.ManagerKey, admintest.WsAdminKey} {
		made := h.Do("POST", userPath, by, fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["configs.update"],"user_id":%q}`, h.One, ann)).OK()
		at := "/api-keys/" + made.Text("id")
		if made.At("key") != nil {
			t.Errorf("%s sees %v", by, made.At("key"))
		}
		for range 2 { // as created, and rotated by others
			for _, other := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.ManagerKey, admintest.WsAdminKey, "bob"} {
				if got := h.Do("POST", at+"/collect", other, nil); other == "bob" { // who does not see the key
					got.RequireFault(404, "AB08", "id")
				} else {
					got.RequireFault(403, "AB03", "")
				}
			}
			if raw := h.Do("POST", at+"/collect", "ann", nil).OK().Text("key"); len(raw) < 30 {
				t.Errorf("its user collects %q", raw)
			}
			h.Do("POST", at+"/collect", "ann", nil).RequireFault(404, "AB08", "id")
			if got := h.Do("POST", at+"/rotate", by, nil); got.Status == 200 && got.At("key") != nil {
				t.Errorf("%s sees the rotated key: %s", by, got.Body)
			}
		}
	}
	own := h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).OK().Text("id")
	if raw := h.Do("POST", "/api-keys/"+own+"/rotate", "ann", nil).OK().Text("key"); len(raw) < 30 {
		t.Errorf("a user who rotates its own key sees %q", raw)
	}
}

// A key that others may know, from before ranks were stored, may rotate itself, but its user alone
// gets the new secret, and it creates keys of its user as it creates those of others: a key of
// which only the user can know the secret acts for the user.
func TestKeysThatOthersKnowGetNoSecretsOfTheirUser(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.SetSettings(tenant.Settings{})
	ann := addUser(t, h, "ann@example.com", membership.Member, h.One)
	signIn(h, "ann", ann, identity.RankMember)
	id := h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).OK().Text("id")
	at := "/api-keys/" + id
	h.Do("POST", at+"/collect", "ann", nil).OK()
	shared := h.Caller("ann")
	shared.Shared, shared.KeyID = true, id
	shared.Scopes = identity.NewScopeSet("configs.list", "workspace_user_api_keys.create", "workspace_user_api_keys.rotate", "workspace_user_api_keys.update")
	h.SetCaller("known to others", shared)

	if got := h.Do("POST", at+"/rotate", "known to others", nil).OK(); got.At("key") != nil {
		t.Errorf("it gets its own new secret: %s", got.Body)
	}
	h.Do("POST", at+"/collect", "known to others", nil).RequireFault(403, "AB03", "id")
	h.Do("POST", userPath, "known to others", userKey(h, ann, "")).RequireFault(403, "AB03", "")
	shared = shared.As(identity.RankManager) // who may create keys of others
	h.SetCaller("known to others", shared)
	made := h.Do("POST", userPath, "known to others", userKey(h, ann, "")).OK()
	if made.At("key") != nil {
		t.Errorf("it gets a key of its user: %s", made.Body)
	}
	own := "/api-keys/" + made.Text("id")
	h.Do("POST", own+"/collect", "known to others", nil).RequireFault(403, "AB03", "id")
	if got := h.Do("POST", own+"/rotate", "known to others", nil); got.Status == 200 && got.At("key") != nil {
		t.Errorf("it rotates a key of its user for itself: %s", got.Body)
	}
	for _, key := range []string{at, own} {
		if raw := h.Do("POST", key+"/collect", "ann", nil).OK().Text("key"); len(raw) < 30 {
			t.Errorf("the user collects %q", raw)
		}
	}
}

// Keys store the rank of their creator. A caller with a lower one neither rotates nor resumes
// them, nor adds to them.
func TestKeysCarryTheRankOfTheirCreator(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.SetSettings(tenant.Settings{})
	ann := addUser(t, h, "ann@example.com", membership.Member, h.One)
	const path = "/api-keys/workspace/service"
	at := map[string]string{}
	for by, want := range map[string]identity.Rank{admintest.AdminKey: identity.RankWorkspaceAdmin, admintest.WsAdminKey: identity.RankWorkspaceAdmin, admintest.ManagerKey: identity.RankManager} {
		id := h.Do("POST", path, by, body(h, `"expires_at":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"`)).OK().Text("id")
		at[by] = "/api-keys/" + id
		rec, _, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, identity.KindKey, id)
		var k identity.Key
		if err != nil || json.Unmarshal(rec.Body, &k) != nil || k.Rank != want {
			t.Errorf("the key of %s has the rank %q, %v", by, k.Rank, err)
		}
	}
	for _, above := range []string{at[admintest.AdminKey], at[admintest.WsAdminKey]} {
		h.Do("POST", above+"/rotate", admintest.ManagerKey, nil).RequireFault(403, "AB03", "id")
		h.Do("POST", above+"/collect", admintest.ManagerKey, nil).RequireFault(403, "AB03", "id")
		h.Do("PUT", above, admintest.ManagerKey, `{"scopes":["configs.list","workspace_users.update"]}`).RequireFault(403, "AB03", "scopes")
		h.Do("PUT", above, admintest.ManagerKey, `{"expires_at":null}`).RequireFault(403, "AB03", "expires_at")
		h.Do("PUT", above, admintest.ManagerKey, `{"name":"renamed"}`).OK()
		h.Do("PUT", above, admintest.ManagerKey, `{"status":"paused"}`).OK()
		h.Do("PUT", above, admintest.ManagerKey, `{"status":"active"}`).RequireFault(403, "AB03", "status")
		h.Do("PUT", above, admintest.WsAdminKey, `{"status":"active"}`).OK()
	}
	h.Do("PUT", at[admintest.ManagerKey], admintest.WsAdminKey, `{"status":"paused"}`).OK()
	h.Do("PUT", at[admintest.ManagerKey], admintest.ManagerKey, `{"status":"active"}`).OK()
	h.Do("POST", at[admintest.ManagerKey]+"/rotate", admintest.ManagerKey, nil).OK()
	boss := addUser(t, h, "boss@example.com", membership.Owner)
	h.Do("POST", userPath, admintest.WsAdminKey, userKey(h, boss, "")).RequireFault(403, "AB03", "user_id")
	h.Do("POST", userPath, admintest.ManagerKey, userKey(h, ann, "")).OK()
}
