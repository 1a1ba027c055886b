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
	in.keep(t, own, other, service, token)
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
	in.Govern(tenant.Settings{Rights: tenant.Rights{MembersViewAllData: no()}})
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
		if hidden.Status != 404 || hidden.Same() != missing.Same() {
			t.Errorf("a log of somebody else: %s", hidden.Body)
		}
	}
	in.Govern(tenant.Settings{Rights: tenant.Rights{ManagersViewAllData: no()}})
	total(admintest.MemberKey, 4)
	total(admintest.ManagerKey, 0)
}

func TestARoleSeesLogsWithoutBodies(t *testing.T) {
	in := install(t)
	mine, _ := ofEverybody(t, in)
	in.Govern(tenant.Settings{Rights: tenant.Rights{MembersViewLogs: no()}})
	got := in.Do("GET", "/logs/"+mine, admintest.MemberKey, nil).OK()
	if got.At("request", "body") != nil || got.At("request", "headers") != nil || got.At("response", "body") != nil || got.At("bodies_hidden") != true || got.At("metrics", "total_units") != 15.0 {
		t.Errorf("%s", got.Body)
	}
	if got := in.Do("GET", "/logs/"+mine, admintest.ManagerKey, nil).OK(); got.Text("request", "body", "secret") != "text" || got.At("bodies_hidden") != false {
		t.Errorf("%s", got.Body)
	}
	in.Do("GET", "/logs", admintest.MemberKey, nil).OK()
	in.Govern(tenant.Settings{Rights: tenant.Rights{MembersViewLogs: no(), MembersViewLogMetadata: no()}})
	in.Do("GET", "/logs", admintest.MemberKey, nil).Refused(403, "AB03", "")
	in.Do("GET", "/logs/"+mine, admintest.MemberKey, nil).Refused(403, "AB03", "")
}

func TestAdminsOfTheOrganisationMayBeKeptFromLogs(t *testing.T) {
	in := install(t)
	mine, _ := ofEverybody(t, in)
	chief := in.Caller(admintest.WsAdminKey)
	chief.Role = tenant.OrganisationAdmin
	in.SetCaller("chief", chief)
	in.Govern(tenant.Settings{Rights: tenant.Rights{AdminsViewLogs: no()}})
	if got := in.Do("GET", "/logs/"+mine, "chief", nil).OK(); got.At("request", "body") != nil || got.At("bodies_hidden") != true {
		t.Errorf("%s", got.Body)
	}
	if got := in.Do("GET", "/logs/"+mine, admintest.WsAdminKey, nil).OK(); got.At("bodies_hidden") != false {
		t.Errorf("an admin of the workspace: %s", got.Body)
	}
	in.Govern(tenant.Settings{Rights: tenant.Rights{AdminsViewLogs: no(), AdminsViewLogMetadata: no()}})
	in.Do("GET", "/logs", "chief", nil).Refused(403, "AB03", "")
	owner := chief
	owner.Role = "owner"
	in.SetCaller("owner", owner)
	if got := in.Do("GET", "/logs/"+mine, "owner", nil).OK(); got.At("bodies_hidden") != false {
		t.Errorf("an owner: %s", got.Body)
	}
}
