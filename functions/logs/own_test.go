package logs

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// TestAKeyWithoutALogScopeReadsItsOwnLogsOnly enumerates the routes that such a key opens,
// and the scopes that open them.
func TestAKeyWithoutALogScopeReadsItsOwnLogsOnly(t *testing.T) {
	in := install(t)
	foreign, own := made(admintest.Org, in.One, admintest.OneSlug, time.Minute), made(admintest.Org, in.One, admintest.OneSlug, 2*time.Minute)
	foreign.KeyID = "another-key"
	caller := in.Caller(admintest.WorkspaceA)
	own.KeyID = caller.KeyID
	in.store(t, foreign, own)
	routes := 0
	for _, r := range in.Families[0].Routes {
		if !slices.Contains(r.Scopes, "completions.write") || r.Method != http.MethodGet {
			continue
		}
		routes++
		for _, scope := range r.Scopes {
			all := slices.Contains(readScopes, scope)
			restricted := caller
			restricted.Scopes = identity.NewScopeSet(scope)
			in.SetCaller(admintest.WorkspaceA, restricted)
			want := http.StatusNotFound
			if all {
				want = http.StatusOK
			}
			path := func(id string) string { return "/logs/" + id + r.Path[len("/logs/{logId}"):] }
			got, missing := in.Do("GET", path(foreign.ID), admintest.WorkspaceA, nil), in.Do("GET", path("01J00000000000000000000000"), admintest.WorkspaceA, nil)
			if got.Status != want || !all && got.Comparable() != missing.Comparable() {
				t.Errorf("%s with %s, another key's: %d %s", r.Path, scope, got.Status, got.Body)
			}
			if got := in.Do("GET", path(own.ID), admintest.WorkspaceA, nil); got.Status != http.StatusOK {
				t.Errorf("%s with %s, its own: %d %s", r.Path, scope, got.Status, got.Body)
			}
		}
	}
	if routes < 2 {
		t.Errorf("only %d routes were found", routes)
	}
}

// TestServiceKeysReachOnlyExportsThatTheyMaySee checks that the file of an export, which has
// what its author could see, is not a way around the settings for the rank of another key.
func TestServiceKeysReachOnlyExportsThatTheyMaySee(t *testing.T) {
	in := install(t)
	no := false
	in.store(t, made(admintest.Org, in.One, admintest.OneSlug, time.Minute))
	limited := in.Caller(admintest.WorkspaceA).As(identity.RankManager)
	limited.KeyID = "limited-key"
	in.SetCaller("limited", limited)
	body := `{"filters":{},"requested_data":["id","response"]}`
	foreign := in.Do("POST", "/logs/exports", admintest.WorkspaceA, body).OK().Text("id")
	in.Do("POST", "/logs/exports/"+foreign+"/start", admintest.WorkspaceA, nil).OK()
	in.work(t)
	for _, rights := range []tenant.RolePermissions{{}, {ManagersViewAllData: &no}} {
		in.SetSettings(tenant.Settings{RolePermissions: rights})
		own := in.Do("POST", "/logs/exports", "limited", body).OK().Text("id")
		want, total := http.StatusOK, 1
		if rights.ManagersViewAllData != nil {
			want = http.StatusNotFound
		}
		for _, path := range []string{"/logs/exports/" + foreign, "/logs/exports/" + foreign + "/download"} {
			if got := in.Do("GET", path, "limited", nil); got.Status != want {
				t.Errorf("%+v: GET %s of another key: %d %s", rights, path, got.Status, got.Body)
			}
			in.Do("GET", path, admintest.WorkspaceA, nil).OK()
		}
		if got := in.Do("GET", "/logs/exports/"+own, "limited", nil); got.Status != http.StatusOK {
			t.Errorf("%+v: its own: %d %s", rights, got.Status, got.Body)
		}
		if want == http.StatusOK {
			total = 2
		}
		if got := in.Do("GET", "/logs/exports", "limited", nil).OK(); got.At("total") != float64(total) {
			t.Errorf("%+v: the list has %v", rights, got.At("total"))
		}
		in.Do("DELETE", "/logs/exports/"+own, "limited", nil).OK()
	}
}
