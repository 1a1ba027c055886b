package logs

import (
	"testing"
	"time"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

func no() *bool { return new(bool) }

// ofEverybody stores one log of a member, one of another user, one of a service and one of a
// signed token.
func ofEverybody(t *testing.T, in *installation) (mine, theirs string) {
	t.Helper()
	own, other := made(admintest.Org, in.One, admintest.OneSlug, time.Minute), made(admintest.Org, in.One, admintest.OneSlug, 2*time.Minute)
	service, token := made(admintest.Org, in.One, admintest.OneSlug, 3*time.Minute), made(admintest.Org, in.One, admintest.OneSlug, 4*time.Minute)
	own.UserID, own.KeyType = in.Caller(admintest.MemberKey).UserID, "workspace-user"
	other.UserID, other.KeyType = "another", "workspace-user"
	token.KeyType = "jwt"
	seals(t, &own, usage.Bodies{Request: []byte(`{"secret":"text"}`), RequestHeaders: []byte(`{"X-A":"b"}`), Response: []byte(`{}`)})
	in.store(t, own, other, service, token)
	return own.ID, other.ID
}

func TestARoleSeesItsOwnLogsOnly(t *testing.T) {
	in := install(t)
	mine, theirs := ofEverybody(t, in)
	total := func(who string, want float64) {
		t.Helper()
		if got := in.Do("GET", "/logs", who, nil).OK(); got.At("total") != want {
			t.Errorf("%s sees %v logs, want %v", who, got.At("total"), want)
		}
	}
	total(admintest.MemberKey, 4)
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewAllData: no()}})
	total(admintest.MemberKey, 1)
	for _, who := range []string{admintest.ManagerKey, admintest.WsAdminKey, admintest.WorkspaceA, admintest.AdminKey} {
		total(who, 4)
	}
	in.Do("GET", "/logs/"+mine, admintest.MemberKey, nil).OK()
	// A query for other users returns nothing, not the caller's own.
	for users, want := range map[string]float64{"another": 0, "another," + in.Caller(admintest.MemberKey).UserID: 1} {
		if got := in.Do("GET", "/logs?user_ids="+users, admintest.MemberKey, nil).OK(); got.At("total") != want {
			t.Errorf("of %s: %v logs, want %v", users, got.At("total"), want)
		}
	}
	for _, more := range []string{"", "/explain"} {
		hidden, missing := in.Do("GET", "/logs/"+theirs+more, admintest.MemberKey, nil), in.Do("GET", "/logs/01J00000000000000000000000"+more, admintest.MemberKey, nil)
		if hidden.Status != 404 || hidden.Comparable() != missing.Comparable() {
			t.Errorf("a log of somebody else: %s", hidden.Body)
		}
	}
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{ManagersViewAllData: no()}})
	total(admintest.MemberKey, 4)
	total(admintest.ManagerKey, 0)
}

func TestARoleSeesLogsWithoutBodies(t *testing.T) {
	in := install(t)
	mine, _ := ofEverybody(t, in)
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewLogs: no()}})
	got := in.Do("GET", "/logs/"+mine, admintest.MemberKey, nil).OK()
	if got.At("request", "body") != nil || got.At("request", "headers") != nil || got.At("response", "body") != nil || got.At("bodies_hidden") != true || got.At("metrics", "total_units") != 15.0 {
		t.Errorf("%s", got.Body)
	}
	if got := in.Do("GET", "/logs/"+mine, admintest.ManagerKey, nil).OK(); got.Text("request", "body", "secret") != "text" || got.At("bodies_hidden") != false {
		t.Errorf("%s", got.Body)
	}
	in.Do("GET", "/logs", admintest.MemberKey, nil).OK()
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewLogs: no(), MembersViewLogMetadata: no()}})
	in.Do("GET", "/logs", admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	in.Do("GET", "/logs/"+mine, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
}

func TestAdminsOfTheOrganisationMayBeExcludedFromLogs(t *testing.T) {
	in := install(t)
	mine, _ := ofEverybody(t, in)
	chief := in.Caller(admintest.WsAdminKey)
	chief.Role = tenant.OrganisationAdmin
	in.SetCaller("chief", chief)
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{AdminsViewLogs: no()}})
	if got := in.Do("GET", "/logs/"+mine, "chief", nil).OK(); got.At("request", "body") != nil || got.At("bodies_hidden") != true {
		t.Errorf("%s", got.Body)
	}
	if got := in.Do("GET", "/logs/"+mine, admintest.WsAdminKey, nil).OK(); got.At("bodies_hidden") != false {
		t.Errorf("an admin of the workspace: %s", got.Body)
	}
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{AdminsViewLogs: no(), AdminsViewLogMetadata: no()}})
	in.Do("GET", "/logs", "chief", nil).RequireFault(403, "AB03", "")
	owner := chief
	owner.Role = "owner"
	in.SetCaller("owner", owner)
	if got := in.Do("GET", "/logs/"+mine, "owner", nil).OK(); got.At("bodies_hidden") != false {
		t.Errorf("an owner: %s", got.Body)
	}
}

// TestKeysThatOthersKnowSeeTheirOwnLogs checks that a key of a user that others may know shows
// neither the logs of the user's other keys nor the user's exports.
func TestKeysThatOthersKnowSeeTheirOwnLogs(t *testing.T) {
	in := install(t)
	mine, _ := ofEverybody(t, in)
	shared := in.Caller(admintest.ManagerKey)
	shared.UserID, shared.KeyID, shared.Shared = in.Caller(admintest.MemberKey).UserID, "known-key", true
	in.SetCaller("known to others", shared)
	own := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	own.UserID, own.KeyID, own.KeyType = shared.UserID, shared.KeyID, "workspace-user"
	in.store(t, own)
	in.SetCaller("its user", shared.As(shared.Rank))
	user := in.Caller("its user")
	user.Shared, user.KeyID = false, "another-key"
	in.SetCaller("its user", user)
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{ManagersViewAllData: no()}})
	for who, want := range map[string]float64{"its user": 2, "known to others": 1} {
		if got := in.Do("GET", "/logs", who, nil).OK(); got.At("total") != want {
			t.Errorf("%s sees %v logs, want %v", who, got.At("total"), want)
		}
	}
	in.Do("GET", "/logs/"+own.ID, "known to others", nil).OK()
	in.Do("GET", "/logs/"+mine, "known to others", nil).RequireFault(404, "AB08", "logId")

	const body = `{"filters":{},"requested_data":["id"]}`
	id := in.Do("POST", "/logs/exports", "its user", body).OK().Text("id")
	in.Do("GET", "/logs/exports/"+id, "its user", nil).OK()
	in.Do("GET", "/logs/exports/"+id, "known to others", nil).RequireFault(404, "AB08", "exportId")
	id = in.Do("POST", "/logs/exports", "known to others", body).OK().Text("id")
	in.Do("GET", "/logs/exports/"+id, "known to others", nil).OK()
}

// TestFilesOfExportsAreReadWithTheRightsOfNow checks that an export that was written when its
// author saw more is not a way around the present settings.
func TestFilesOfExportsAreReadWithTheRightsOfNow(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		now  tenant.Settings
		want int
	}{
		"nothing has changed":   {"response", tenant.Settings{}, 200},
		"no bodies":             {"response", tenant.Settings{RolePermissions: tenant.RolePermissions{ManagersViewLogs: no()}}, 403},
		"only the author's own": {"ai_model", tenant.Settings{RolePermissions: tenant.RolePermissions{ManagersViewAllData: no()}}, 403},
		"a field is denied":     {"response", tenant.Settings{DeniedExportFields: []string{"response"}}, 403},
		"another is denied":     {"response", tenant.Settings{DeniedExportFields: []string{"request"}}, 200},
	} {
		in := install(t)
		ofEverybody(t, in)
		in.SetSettings(tenant.Settings{})
		id := in.Do("POST", "/logs/exports", admintest.ManagerKey, `{"filters":{},"requested_data":["id","`+c.data+`"]}`).OK().Text("id")
		in.Do("POST", "/logs/exports/"+id+"/start", admintest.ManagerKey, nil).OK()
		in.work(t)
		in.SetSettings(c.now)
		if got := in.Do("GET", "/logs/exports/"+id+"/download", admintest.ManagerKey, nil); got.Status != c.want {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	in := install(t)
	ofEverybody(t, in)
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{ManagersViewAllData: no()}})
	id := in.Do("POST", "/logs/exports", admintest.ManagerKey, `{"filters":{},"requested_data":["id"]}`).OK().Text("id")
	in.Do("POST", "/logs/exports/"+id+"/start", admintest.ManagerKey, nil).OK()
	in.work(t)
	in.Do("GET", "/logs/exports/"+id+"/download", admintest.ManagerKey, nil).OK()
}
