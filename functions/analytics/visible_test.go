package analytics

import (
	"context"
	"testing"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

func TestARoleSeesWhatItsOwnKeysUsed(t *testing.T) {
	h, archive := newInstallation(t)
	own, other := made(admintest.Org, h.One, admintest.OneSlug, 0), made(admintest.Org, h.One, admintest.OneSlug, 1)
	own.UserID, other.UserID = h.Caller(admintest.MemberKey).UserID, "another"
	service := made(admintest.Org, h.One, admintest.OneSlug, 2)
	if err := archive.Ingest(context.Background(), []usage.Record{own, other, service}); err != nil {
		t.Fatal(err)
	}
	const span = "?time_of_generation_min=2026-03-10T00:00:00Z&time_of_generation_max=2026-03-11T00:00:00Z"
	sees := func(who string, want float64) {
		t.Helper()
		if got := h.Do("GET", "/analytics/graphs/requests"+span, who, nil).OK(); got.At("summary", "total") != want {
			t.Errorf("%s: graph of %v, want %v", who, got.At("summary", "total"), want)
		}
		sum := 0.0
		for _, path := range []string{"/analytics/groups/model", "/analytics/groups/users", "/analytics/groups/ai-models", "/logs/groups/api_key", "/analytics/groups/metadata/team"} {
			sum = 0
			rows, _ := h.Do("GET", path+span, who, nil).OK().At("data").([]any)
			for _, r := range rows {
				n, _ := r.(map[string]any)["requests"].(float64)
				sum += n
			}
			if sum != want {
				t.Errorf("%s: %s of %v, want %v", who, path, sum, want)
			}
		}
		if got := h.Do("GET", "/analytics/summary/cache"+span, who, nil).OK(); got.At("summary", "total_requests") != want {
			t.Errorf("%s: cache of %s", who, got.Body)
		}
	}
	sees(admintest.MemberKey, 3)
	no := false
	h.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewAllData: &no, ManagersViewAnalytics: &no}})
	sees(admintest.MemberKey, 1)
	sees(admintest.WsAdminKey, 3)
	sees(admintest.WorkspaceA, 3)
	h.Do("GET", "/analytics/graphs/requests"+span, admintest.ManagerKey, nil).RequireFault(403, "AB03", "")
}
