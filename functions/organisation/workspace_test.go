package organisation

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// holding reads the settings that hold in the first workspace, as requests do.
func holding(t *testing.T, h *admintest.Installation) tenant.Settings {
	t.Helper()
	view, err := resource.NewLoader(h.Resources).Fresh(t.Context(), admintest.Org)
	if err != nil {
		t.Fatal(err)
	}
	o, err := tenant.LoadSettings(t.Context(), view, store.Scope{Org: admintest.Org, Workspace: h.One})
	if err != nil {
		t.Fatal(err)
	}
	return o.Settings
}

func TestAWorkspaceHasSettingsOfItsOwnWhereItMay(t *testing.T) {
	h := admintest.New(t, New())
	at := "/admin/workspaces/" + h.One + "/settings"
	org := func(body string) { t.Helper(); h.Do("PUT", path, key, body).OK() }
	own := func(body string) admintest.Response { t.Helper(); return h.Do("PUT", at, admintest.WsAdminKey, body) }
	shows := func(path, value, origin string) {
		t.Helper()
		a := h.Do("GET", at, admintest.WorkspaceA, nil).OK()
		raw, _ := json.Marshal(a.At(strings.Split(path, ".")...))
		if string(raw) != value || a.Text("origins", path) != origin {
			t.Errorf("%s is %s from %s, want %s from %s", path, raw, a.Text("origins", path), value, origin)
		}
	}
	const visible, logging, models = "security_settings.membersViewAllData", "request_logging.mode", "model_settings.allowed_models"
	shows(visible, "true", "standard")
	own(`{"security_settings":{"membersViewAllData":false}}`).RequireFault(400, "AB01", visible)
	own(`{"security_settings":null}`).RequireFault(400, "AB01", "security_settings")

	org(`{"security_settings":{"membersViewAllData":false},"workspace_overrides":{"data_visibility":true,"request_logging":true},"model_settings":{"allowed_models":["a"]}}`)
	shows(visible, "false", "organisation")
	shows(models, `["a"]`, "organisation")
	if got := own(`{"security_settings":{"membersViewAllData":true,"membersWritePrompts":true},"model_settings":{"allowed_models":[]}}`).RequireFault(400, "AB01", "security_settings.membersWritePrompts").Failure(); len(got.Fields) != 2 {
		t.Errorf("%v", got.Fields)
	}
	own(`{"security_settings":{"membersViewAllData":true},"request_logging":{"mode":"metrics"}}`).OK()
	shows(visible, "true", "workspace")
	shows(logging, `"metrics"`, "workspace")
	if s := holding(t, h); !seesAll(&s) || s.RequestLogging != tenant.LogMetrics || len(s.AllowedModels) != 1 {
		t.Errorf("requests go by %+v", s)
	}
	if a := h.Do("GET", "/workspaces/"+h.Two+"/settings", key, nil).OK(); a.At("security_settings", "membersViewAllData") != false || a.Text("request_logging", "mode") != "full" {
		t.Errorf("another workspace: %s", a.Body)
	}

	// A category that is closed, and opened again, begins again.
	org(`{"workspace_overrides":{"data_visibility":false}}`)
	shows(visible, "false", "organisation")
	shows(logging, `"metrics"`, "workspace")
	org(`{"workspace_overrides":{"data_visibility":true}}`)
	shows(visible, "false", "organisation")
	if s := holding(t, h); seesAll(&s) || s.RequestLogging != tenant.LogMetrics {
		t.Errorf("requests go by %+v", s)
	}
	own(`{"security_settings":{"managersViewAllData":false}}`).OK()
	shows(visible, "false", "organisation")
	shows("security_settings.managersViewAllData", "false", "workspace")
	own(`{"security_settings":null,"request_logging":{"mode":null}}`).OK()
	shows("security_settings.managersViewAllData", "true", "standard")
	shows(logging, `"full"`, "standard")
}

func TestSettingsOfAWorkspaceGoTogetherWithTheOrganisations(t *testing.T) {
	h := admintest.New(t, New())
	at := "/admin/workspaces/" + admintest.OneSlug + "/settings"
	h.Do("PUT", path, key, `{"user_api_key_settings":{"user_api_key_max_ttl":3600,"user_api_key_rotation_period":"monthly"},"workspace_overrides":{"user_api_key_settings":true}}`).OK()
	h.Do("PUT", at, key, `{"user_api_key_settings":{"user_api_key_ttl":7200}}`).RequireFault(400, "AB01", "user_api_key_settings.user_api_key_ttl")
	h.Do("PUT", at, key, `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":true}}`).RequireFault(400, "AB01", "user_api_key_settings.default_workspace_user_api_key_auto_create")
	h.Do("PUT", at, key, `{"user_api_key_settings":{"user_api_key_rotation_period":"weekly"}}`).OK()
	if a := h.Do("GET", at, key, nil).OK(); a.At("user_api_key_settings", "user_api_key_rotation_period") != 7.0 {
		t.Errorf("%s", a.Body)
	}
	if a := h.Do("GET", path, key, nil).OK(); a.At("user_api_key_settings", "user_api_key_rotation_period") != 30.0 {
		t.Errorf("%s", a.Body)
	}
	for _, section := range []string{"auth_settings", "session_settings", "workspace_overrides", "metadata_schemas", "budget_settings", "cache_settings"} {
		h.Do("PUT", at, key, `{"`+section+`":{},"request_logging":{}}`).RequireFault(400, "AB01", section)
		if a := h.Do("GET", at, key, nil).OK(); a.At(section) != nil {
			t.Errorf("a workspace shows %s", section)
		}
	}
}

func TestWhoReachesTheSettingsOfAWorkspace(t *testing.T) {
	h := admintest.New(t, New())
	h.Do("PUT", path, key, `{"workspace_overrides":{"data_visibility":true}}`).OK()
	const body = `{"security_settings":{"membersViewAllData":false}}`
	for _, ws := range []string{h.One, admintest.OneSlug} {
		at := "/admin/workspaces/" + ws + "/settings"
		for _, who := range []string{key, admintest.WorkspaceA, admintest.WsAdminKey} {
			h.Do("GET", at, who, nil).OK()
			h.Do("PUT", at, who, body).OK()
		}
		for _, who := range []string{admintest.ManagerKey, admintest.MemberKey} {
			h.Do("GET", at, who, nil).OK()
			h.Do("PUT", at, who, body).RequireFault(403, "AB03", "")
		}
		for _, who := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
			for method, body := range map[string]any{"GET": nil, "PUT": body} {
				foreign, missing := h.Do(method, at, who, body), h.Do(method, "/admin/workspaces/"+resource.NewID()+"/settings", who, body)
				if foreign.Status != 404 || foreign.Comparable() != missing.Comparable() {
					t.Errorf("%s %s as %s: %s", method, at, who, foreign.Body)
				}
			}
		}
	}
	admintest.BadBodies(t, h, "PUT", "/admin/workspaces/"+h.One+"/settings", key, body)
	var last string
	for _, e := range h.Audit() {
		if strings.HasSuffix(e.URI, "/settings") && e.StatusCode == 200 {
			last = e.ResourceType + " " + e.Action + " " + e.WorkspaceID
		}
	}
	if last != "workspaces update "+h.One {
		t.Errorf("audit: %s", last)
	}
}

// seesAll reports whether members see others' logs.
func seesAll(s *tenant.Settings) bool {
	allowed, _ := s.Rule("member", tenant.SeeOthers)
	return allowed
}
