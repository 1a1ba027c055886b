package workspaces

import (
	"testing"

	"gateway/shared/identity/membership"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

func TestMetadataFollowsTheSchemaOfTheOrganisation(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	blue := "blue"
	h.SetSettings(tenant.Settings{WorkspaceMetadata: &tenant.MetadataSchema{Type: "object", Required: []string{"team", "color"}, Properties: map[string]tenant.MetadataMember{
		"team": {Type: "string", Enum: []string{"data", "web"}}, "color": {Type: "string", Default: &blue}, "cost": {Type: "string", Pattern: "^[0-9]{4}$"},
	}}})
	const path = "/admin/workspaces"
	for body, fields := range map[string][]string{
		`{"name":"A"}`:                 {"defaults.metadata.team"},
		`{"name":"A","defaults":null}`: {"defaults.metadata.team"},
		`{"name":"A","defaults":{"metadata":{"team":"ops","cost":"x"}}}`:             {"defaults.metadata.team", "defaults.metadata.cost"},
		`{"name":"A","defaults":{"metadata":{"team":"data","cost":"12345"}}}`:        {"defaults.metadata.cost"},
		`{"name":"A","defaults":{"metadata":{"team":7}}}`:                            {"defaults.metadata.team"},
		`{"name":"A","defaults":{"metadata":{"cost":"1"},"input_guardrails":["x"]}}`: {"defaults.metadata.team", "defaults.metadata.cost"},
	} {
		got := h.Do("POST", path, key, body)
		for _, field := range fields {
			got.RequireFault(400, "AB01", field)
		}
	}
	if got := h.Do("GET", path+"?exact_name=A", key, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("a refused workspace was made: %s", got.Body)
	}
	made := h.Do("POST", path, key, `{"name":"A","defaults":{"metadata":{"team":"data","more":"is fine"}}}`).OK()
	if made.Text("defaults", "metadata", "color") != "blue" || made.Text("defaults", "metadata", "more") != "is fine" {
		t.Errorf("%s", made.Body)
	}
	at := path + "/" + made.Text("id")
	h.Do("PUT", at, key, `{"defaults":{"metadata":{"team":"data"}}}`).RequireFault(400, "AB01", "defaults.metadata.color")
	h.Do("PUT", at, key, `{"defaults":null}`).RequireFault(400, "AB01", "defaults.metadata.team")
	h.Do("PUT", at, key, `{"defaults":{"metadata":{"team":"web","color":"red","cost":"0042"}}}`).OK()
	// Resources created before the schema are not checked until their metadata changes.
	h.Do("PUT", path+"/"+h.One, key, `{"description":"old"}`).OK()
	h.Do("PUT", path+"/"+h.One, key, `{"defaults":{"metadata":{"a":"b"}}}`).RequireFault(400, "AB01", "defaults.metadata.team")
	h.Do("POST", path, admintest.OtherAdmin, `{"name":"A"}`).OK()
}

func TestAWorkspaceShowsItsMembers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann := addUser(t, h, "ann@example.com", membership.Member)
	at := "/admin/workspaces/" + h.One
	h.Do("POST", at+"/users", key, `{"users":[{"id":"`+ann+`","role":"manager"}]}`).OK()
	got := h.Do("GET", at, key, nil).OK()
	if got.At("users", "0", "id") != ann || got.At("users", "0", "role") != "manager" || got.At("users", "0", "email") != "ann@example.com" || got.At("users", "1") != nil {
		t.Errorf("%s", got.Body)
	}
	reader := h.Caller(key)
	reader.Scopes = admintest.ScopeList{"workspaces.read"}
	h.SetCaller("reader", reader)
	if got := h.Do("GET", at, "reader", nil).OK(); got.At("users") != nil {
		t.Errorf("who may not list members: %s", got.Body)
	}
}

func TestArchivedWorkspacesAreTheOrganisations(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("DELETE", "/workspaces/"+h.One, key, `{"name":"One"}`).OK()
	for who, want := range map[string]float64{key: 1, admintest.WorkspaceA: 0, admintest.WorkspaceB: 0, admintest.OtherAdmin: 0} {
		if got := h.Do("GET", "/workspaces?status=archived", who, nil).OK(); got.At("total") != want {
			t.Errorf("%s sees %v archived workspaces, want %v", who, got.At("total"), want)
		}
	}
}
