package declare

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// notDeclared are the operations that create something which a document does not contain,
// with the reason.
var notDeclared = map[string]string{
	"/admin/workspaces":               "a workspace is an entry of its own",
	"/admin/workspaces/{id}/users":    "people join by invitations and groups",
	"/admin/users/invites":            "an invitation is sent once",
	"/admin/users/invites/accept":     "is of one person",
	"/api-keys/{type}/{subType}":      "a key is shown once to who creates it",
	"/virtual-keys":                   "a virtual key is an integration and a provider",
	"/webhooks":                       "its secret is shown once",
	"/deployments":                    "its token is shown once",
	"/scim/workspaces":                "groups belong to the identity provider",
	"/logs/exports":                   "an export is run once",
	"/prompts/{promptId}/experiments": "an experiment is run for a time",
}

// settable are fields of bodies that a document does not give, with the reason.
var settable = map[string]string{
	"workspace_id": "the place in the document", "slug": "of every kind", "create_default_provider": "providers are declared", "default_provider_slug": "providers are declared",
	"isDefault": "is_default", "version_description": "describes one change", "next_usage_reset_at": "moves with time", "temporary_raise": "ends by itself", "prompt_metadata": "template_metadata by its other name", "expires_at": "of every kind",
}

// Every field of a body that creates a declared resource is in the table of kinds, and every
// operation that creates something is a kind or says why it is none.
func TestKindsCoverTheAPI(t *testing.T) {
	raw, err := os.ReadFile("../../functions/docs/document/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref        string                     `json:"$ref"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema schema } `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct{ Schemas map[string]schema } `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		s := doc.Paths[k.path]["post"].RequestBody.Content["application/json"].Schema
		if s.Ref != "" {
			s = doc.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		}
		if len(s.Properties) == 0 {
			t.Errorf("%s: the document has no body", k.path)
		}
		for name := range s.Properties {
			if k.field(name) == nil && settable[name] == "" && !slices.ContainsFunc(k.fields, func(f field) bool { return f.write == name }) {
				t.Errorf("%s: the field %s can be set, and no row of the table has it", k.section, name)
			}
		}
		for _, f := range k.fields {
			write := f.name
			if f.write != "" {
				write = f.write
			}
			if _, ok := s.Properties[write]; !ok {
				t.Errorf("%s: the table has the field %s, and the API does not", k.section, f.name)
			}
		}
	}
	for path, methods := range doc.Paths {
		_, creates := methods["post"]
		_, lists := methods["get"]
		if !creates || !lists || !administration(path) || slices.ContainsFunc(kinds, func(k *kind) bool { return k.path == path }) {
			continue
		}
		if notDeclared[path] == "" {
			t.Errorf("POST %s creates something that no document contains; say why, or add a kind", path)
		}
	}
}

// administration reports whether a path is of resources of an organization.
func administration(path string) bool {
	for _, p := range []string{"/admin/", "/integrations", "/providers", "/virtual-keys", "/configs", "/guardrails", "/prompts", "/collections", "/labels", "/policies", "/mcp-", "/agent-", "/secret-references", "/deployments", "/api-keys", "/scim/workspaces", "/webhooks", "/telemetry"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}
