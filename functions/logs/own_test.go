package logs

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"gateway/shared/admin/admintest"
	"gateway/shared/identity"
)

// TestAKeyWithoutALogScopeReadsItsOwnLogsOnly enumerates the routes that such a key opens,
// and the scopes that open them.
func TestAKeyWithoutALogScopeReadsItsOwnLogsOnly(t *testing.T) {
	in := install(t)
	foreign, own := made(admintest.Org, in.One, admintest.OneSlug, time.Minute), made(admintest.Org, in.One, admintest.OneSlug, 2*time.Minute)
	foreign.KeyID = "another-key"
	caller := in.Caller(admintest.WorkspaceA)
	own.KeyID = caller.KeyID
	in.keep(t, foreign, own)
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
			if got.Status != want || !all && got.Same() != missing.Same() {
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
