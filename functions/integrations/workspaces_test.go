package integrations

import (
	"testing"

	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

func TestAccessOpensWithAProviderAndCloses(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	if got := h.Do("GET", path, chief, nil).OK(); got.At("total") != 0.0 || len(got.At("workspaces").([]any)) != 0 || got.At("global_workspace_access", "enabled") != false {
		t.Errorf("a new integration: %s", got.Body)
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true,"default_provider_slug":"bee",
		"usage_limits":[{"credit_limit":5,"alert_threshold":3,"periodic_reset":"monthly"}],"rate_limits":[{"type":"requests","unit":"rpm","value":9}]},
		{"id":"`+h.Two+`","enabled":true,"create_default_provider":false}]}`).OK()
	one, two := providersIn(t, h, h.One), providersIn(t, h, h.Two)
	if len(one) != 1 || one[0].Slug != "bee" || len(two) != 0 {
		t.Errorf("providers %v, %v", one, two)
	}
	a := h.Do("GET", path, chief, nil).OK()
	entry := map[string]any{}
	for _, e := range a.At("workspaces").([]any) {
		entry[e.(map[string]any)["id"].(string)] = e
	}
	first := entry[admintest.OneSlug].(map[string]any)
	limit := first["usage_limits"].([]any)[0].(map[string]any)
	if a.At("total") != 2.0 || first["enabled"] != true || limit["credit_limit"] != 5.0 || limit["current_usage"] != 0.0 || limit["status"] != "active" || limit["next_reset_at"] == nil ||
		first["rate_limits"].([]any)[0].(map[string]any)["value"] != 9.0 || entry[admintest.TwoSlug].(map[string]any)["usage_limits"] != nil {
		t.Errorf("workspaces: %s", a.Body)
	}
	if got := h.Do("GET", "/integrations/"+slug, chief, nil).OK().At("workspace_count"); got != 2.0 {
		t.Errorf("workspace_count %v", got)
	}
	// Absent fields are unchanged, null clears, and existing access creates no provider.
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"rate_limits":null},{"id":"`+h.Two+`","enabled":true}]}`).OK()
	_, i := stored(t, h, "", slug)
	if got := i.Access(h.One); len(got.UsageLimits) != 1 || len(got.RateLimits) != 0 || len(providersIn(t, h, h.Two)) != 0 {
		t.Errorf("after the second call: %+v", got)
	}
	// Closed and opened again: the provider is still there.
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).OK()
	if _, i = stored(t, h, "", slug); i.Access(h.One).Enabled || !i.Access(h.Two).Enabled {
		t.Error("access is not closed")
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"default_provider_slug":"wasp"}]}`).OK()
	if one = providersIn(t, h, h.One); len(one) != 1 || one[0].Slug != "bee" {
		t.Errorf("providers %v", one)
	}
}

func TestTakenDefaultSlugRefusesTheWholeCall(t *testing.T) {
	h := newInstallation(t)
	create(t, h, admintest.WorkspaceB, `,"slug":"bee"`)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"default_provider_slug":"bee","workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true}]}`).RequireFault(400, "AB01", "default_provider_slug")
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true,"default_provider_slug":"bee"}]}`).RequireFault(400, "AB01", "workspaces[1].default_provider_slug")
	if _, i := stored(t, h, "", slug); len(i.Workspaces) != 0 || len(providersIn(t, h, h.One)) != 0 {
		t.Error("a refused call opened access")
	}
	// The entry's own slug wins over the common one.
	h.Do("PUT", path, chief, `{"default_provider_slug":"bee","workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true,"default_provider_slug":"wasp"}]}`).OK()
	if got := providersIn(t, h, h.Two)[0].Slug; got != "wasp" {
		t.Errorf("slug %s", got)
	}
}

func TestGlobalAccessAndOverride(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).OK()
	h.Do("PUT", path, chief, `{"global_workspace_access":{"enabled":true,"usage_limits":[{"credit_limit":7}]}}`).OK()
	_, i := stored(t, h, "", slug)
	if i.Access(h.One).Enabled || !i.Access(h.Two).Enabled || len(i.Access(h.Two).UsageLimits) != 1 || !i.Access(resource.NewID()).Enabled {
		t.Errorf("global access: %+v", i)
	}
	if len(providersIn(t, h, h.One)) != 0 || len(providersIn(t, h, h.Two)) != 1 {
		t.Error("default providers do not follow access")
	}
	if got := h.Do("GET", path, chief, nil).OK(); got.At("total") != 2.0 || got.At("global_workspace_access", "usage_limits", "0", "credit_limit") != 7.0 {
		t.Errorf("workspaces: %s", got.Body)
	}
	h.Do("PUT", path, chief, `{"workspaces":[],"override_existing_workspace_access":true}`).OK()
	if _, i = stored(t, h, "", slug); !i.Access(h.One).Enabled || len(i.Workspaces) != 0 || len(providersIn(t, h, h.One)) != 1 {
		t.Errorf("after the override: %+v", i)
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"usage_limits":null}],"global_workspace_access":{"enabled":false,"usage_limits":null},"override_existing_workspace_access":true}`).OK()
	if _, i = stored(t, h, "", slug); !i.Access(h.One).Enabled || i.Access(h.Two).Enabled || len(i.Global.UsageLimits) != 0 {
		t.Errorf("an entry beside the override: %+v", i)
	}
}

func TestUsageIsResetPerWorkspace(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"global_workspace_access":{"enabled":true,"usage_limits":[{"credit_limit":7}]}}`).OK()
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"reset_usage":true}]}`).OK()
	_, i := stored(t, h, "", slug)
	if a := i.Access(h.One); len(a.UsageLimits) != 1 || a.UsageLimits[0].ResetAt.IsZero() || a.LastResetAt == nil || !i.Global.UsageLimits[0].ResetAt.IsZero() {
		t.Errorf("reset: %+v", i)
	}
	for _, e := range h.Do("GET", path, chief, nil).OK().At("workspaces").([]any) {
		o := e.(map[string]any)
		if (o["last_reset_at"] != nil) != (o["id"] == admintest.OneSlug) {
			t.Errorf("last_reset_at of %v", o)
		}
	}
}
