package integrations

import "testing"

func TestAccessAndModelsAreManaged(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, "")
	h.Do("PUT", "/integrations/"+slug+"/models", chief, `{"allow_all_models":false}`).OK()
	h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true}]}`).OK()
	h.Do("PUT", "/integrations/"+slug, chief, `{"description":"d"}`).OK()
	got := map[string]int{}
	for _, e := range h.Audit() {
		got[e.Action]++
	}
	if got["create"] != 1 || got["manage"] != 2 || got["update"] != 1 {
		t.Errorf("actions %v", got)
	}
}

func TestAResetOfAWorkspaceShowsAtTheIntegration(t *testing.T) {
	h := newInstallation(t)
	slug := create(t, h, chief, "")
	open := `{"workspaces":[{"id":"` + h.One + `","enabled":true`
	h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, open+`,"usage_limits":[{"type":"cost","credit_limit":5}]}]}`).OK()
	if at := h.Do("GET", "/integrations/"+slug, chief, nil).OK().At("last_reset_at"); at != nil {
		t.Errorf("reset at %v", at)
	}
	h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, open+`,"reset_usage":true}]}`).OK()
	if h.Do("GET", "/integrations/"+slug, chief, nil).OK().Text("last_reset_at") == "" {
		t.Error("the integration does not tell of the reset")
	}
}
