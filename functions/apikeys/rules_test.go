package apikeys

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

var org = store.Scope{Org: admintest.Org}

// addUser makes a user with memberships and gives its id.
func addUser(t testing.TB, h *admintest.Installation, email, role string, workspaces ...string) (id string) {
	t.Helper()
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		u := &membership.User{Email: email, Role: role}
		rec, err := membership.Create(tx, org, u, "test")
		if err != nil {
			return err
		}
		id = rec.ID
		for _, ws := range workspaces {
			if _, err := membership.Join(tx, rec, u, ws, membership.Member, "test"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// set stores settings of the organization.
func set(t testing.TB, h *admintest.Installation, s tenant.Settings) {
	t.Helper()
	body, err := json.Marshal(tenant.Organisation{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	rec := resource.Record{Scope: org, Kind: tenant.KindOrganisation, ID: admintest.Org, Status: "active", Body: body}
	if err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
}

func userKey(h *admintest.Installation, user, more string) string {
	return fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["configs.list"],"user_id":%q%s}`, h.One, user, more)
}

const userPath = "/api-keys/workspace/user"

func TestKeysOfUsersObeyTheSettings(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann := addUser(t, h, "ann@example.com", membership.Member, h.One)
	set(t, h, tenant.Settings{UserKeys: tenant.UserKeys{TTL: 86_400, MaxTTL: 864_000, RotationPeriod: 14}})
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	const day = 24 * time.Hour
	for more, field := range map[string]string{
		`,"expires_at":"` + in(11*day) + `"`: "expires_at", `,"expires_at":"` + in(400*day) + `"`: "expires_at",
		`,"rotation_policy":{"rotation_period":"weekly"}`:                                       "rotation_policy.rotation_period_days",
		`,"rotation_policy":{"rotation_period_days":15}`:                                        "rotation_policy.rotation_period_days",
		`,"rotation_policy":{"rotation_period_days":14,"next_rotation_at":"` + in(3*day) + `"}`: "rotation_policy.next_rotation_at",
	} {
		h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, more)).RequireFault(400, "AB01", field)
	}
	for _, more := range []string{"", `,"expires_at":null`, `,"expires_at":"` + in(9*day) + `"`, `,"rotation_policy":{"rotation_period_days":14}`} {
		id := h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, more)).OK().Text("id")
		got := h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK()
		at, err := time.Parse(time.RFC3339, got.Text("expires_at"))
		if err != nil || time.Until(at) > 10*day || got.At("rotation_policy", "rotation_period_days") != 14.0 || got.Text("rotation_policy", "next_rotation_at") == "" {
			t.Errorf("%s: %s", more, got.Body)
		}
		h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"expires_at":null}`).RequireFault(400, "AB01", "expires_at")
		h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"rotation_policy":null}`).RequireFault(400, "AB01", "rotation_policy")
		h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"name":"other"}`).OK()
	}
	// Keys of services are free.
	h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"expires_at":"`+in(400*day)+`"`)).OK()
}

// A workspace has no more keys of users than it may, also of calls at a time.
func TestAWorkspaceHasNoMoreKeysThanItMay(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann := addUser(t, h, "ann@example.com", membership.Member, h.One)
	set(t, h, tenant.Settings{UserKeys: tenant.UserKeys{MaxKeys: 3}})
	var wg sync.WaitGroup
	status := make([]int, 8)
	for i := range status {
		wg.Go(func() {
			status[i] = h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).Status
		})
	}
	wg.Wait()
	made := 0
	for _, s := range status {
		if s == 200 {
			made++
		} else if s != 403 && s != 503 {
			t.Errorf("status %d", s)
		}
	}
	if got := h.Do("GET", "/api-keys?workspace_id="+h.One, admintest.AdminKey, nil).OK().At("total"); made != 3 || got != 3.0 {
		t.Errorf("%d made, %v there", made, got)
	}
	h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).RequireFault(403, "AB03", "workspace_id")
}

func TestMetadataOfKeysFollowsItsSchema(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	team := "red"
	set(t, h, tenant.Settings{KeyMetadata: &tenant.MetadataSchema{Type: "object", Required: []string{"team", "cost"}, Properties: map[string]tenant.MetadataMember{
		"team": {Type: "string", Enum: []string{"red", "blue"}, Default: &team}, "cost": {Type: "string", Pattern: "^[0-9]+$"},
	}}})
	post := func(more string) admintest.Response {
		return h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, more))
	}
	post("").RequireFault(400, "AB01", "defaults.metadata.cost")
	post(`"defaults":{"metadata":{"cost":"x"}}`).RequireFault(400, "AB01", "defaults.metadata.cost")
	post(`"defaults":{"metadata":{"cost":"7","team":"green"}}`).RequireFault(400, "AB01", "defaults.metadata.team")
	id := post(`"defaults":{"metadata":{"cost":"7","other":"x"}}`).OK().Text("id")
	if got := h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK(); got.Text("defaults", "metadata", "team") != "red" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"defaults":{"metadata":{"team":"blue"}}}`).RequireFault(400, "AB01", "defaults.metadata.cost")
	h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"name":"other"}`).OK()
}

func TestUsersDoNotSeeTheKeysOfOthers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann := addUser(t, h, "ann@example.com", membership.Member, h.One)
	id := h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).OK().Text("id")
	own := h.Caller(admintest.ManagerKey)
	for _, path := range []string{"/api-keys/" + id, "/api-keys"} {
		for key, want := range map[string]bool{admintest.ManagerKey: true, admintest.AdminKey: false} {
			a := h.Do("GET", path, key, nil).OK()
			got := a.Text("key")
			if path == "/api-keys" {
				got = a.Text("data", "0", "key")
			}
			if (got == hidden) != want {
				t.Errorf("%s sees %s at %s", key, got, path)
			}
		}
	}
	own.UserID = ann
	h.SetCaller("key-ann", own)
	if got := h.Do("GET", "/api-keys/"+id, "key-ann", nil).OK().Text("key"); got == hidden {
		t.Error("a user does not see the mask of its own key")
	}
}
