package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// forged are members that a caller may not set, whatever it is allowed to do:
// identity, ownership, secrets and states that the gateway keeps itself.
const forged = `,"id":"forged-0001","object":"forged-0001","created_at":"2001-01-01T00:00:00Z","last_updated_at":"2001-01-01T00:00:00Z","created_by":"forged-0001","updated_by":"forged-0001",` +
	`"owner_id":"forged-0001","creation_mode":"ui","role":"owner","is_admin":true,"version":77,"version_id":"forged-0001","revision":77,"hash":"forged-0001","secret":{"hash":"forged-0001"},"previous":{"hash":"forged-0001"},` +
	`"masked":{"key":"forged-0001"},"masked_key":"forged-0001","masked_api_key":"forged-0001","current_usage":-5,"last_reset_at":"2001-01-01T00:00:00Z","last_rotated_at":"2001-01-01T00:00:00Z",` +
	`"integration_scope":"forged-0001","__proto__":{"role":"owner"}`

// TestNobodyBindsWhatIsTheGatewaysOwn creates and changes one of each kind with
// forged members, and compares what is read with one made without them.
func TestNobodyBindsWhatIsTheGatewaysOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.workspace()
	for name, c := range map[string]struct{ post, get, body, change string }{
		"key":          {"/api-keys/workspace/service", "/api-keys/", `"name":"one","scopes":["configs.list"]`, `"description":"changed"`},
		"admin key":    {"/api-keys/organisation/service", "/api-keys/", `"name":"one","scopes":["configs.list"]`, `"description":"changed"`},
		"config":       {"/configs", "/configs/", `"name":"one","config":{"provider":"@mock"}`, `"name":"changed"`},
		"integration":  {"/integrations", "/integrations/", `"name":"one","ai_provider_id":"openai","key":"sk-of-the-integration"`, `"description":"changed"`},
		"virtual key":  {"/virtual-keys", "/virtual-keys/", `"name":"one","provider":"openai","key":"sk-of-the-integration"`, `"note":"changed"`},
		"workspace":    {"/workspaces", "/workspaces/", `"name":"one"`, `"description":"changed"`},
		"workspace v1": {"/admin/workspaces", "/admin/workspaces/", `"name":"one"`, `"description":"changed"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &running{t: t, base: r.base}
			in := ""
			if !strings.Contains(name, "workspace") && name != "admin key" {
				in = fmt.Sprintf(`,"workspace_id":%q`, ws)
			}
			// Without the header, unknown members are errors.
			lenient := func(method, path, body string) map[string]any {
				t.Helper()
				got := r.call(method, path, body, "X-Gateway-Api-Key", adminKey, "X-Gateway-Lenient", "true")
				if got.status != 200 {
					t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
				}
				return got.json(t)
			}
			if got := r.call("POST", c.post, "{"+c.body+in+forged+"}", "X-Gateway-Api-Key", adminKey); got.status != 400 || !strings.Contains(got.body, "__proto__") {
				t.Errorf("forged members are accepted: %d %s", got.status, got.body)
			}
			read := func(extra string) string {
				made := lenient("POST", c.post, "{"+c.body+in+extra+"}")
				ref, _ := made["id"].(string)
				for _, name := range []string{"slug", "id"} { // of envelopes that hold it deeper
					if s, ok := member(made, "data/"+name).(string); ok && ref == "" {
						ref = s
					}
				}
				if ref == "" || strings.Contains(ref, "forged") {
					t.Fatalf("made %v", made)
				}
				at := c.get + ref
				if in != "" {
					at += "?workspace_id=" + ws
				}
				lenient("PUT", at, "{"+c.change+extra+"}")
				got := r.admin("GET", at, "")
				for _, own := range []string{"id", "slug", "created_at", "last_updated_at", "key", "version_id", "integration_id", "provider"} { // differ from one to the next
					delete(got, own)
					if data, ok := got["data"].(map[string]any); ok {
						delete(data, own)
					}
				}
				text, err := json.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				return uuids.ReplaceAllString(string(text), "id")
			}
			want, got := read(""), read(forged)
			if got != want {
				t.Errorf("forged members change it:\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(got, "forged") || strings.Contains(got, "2001-01-01") {
				t.Errorf("forged members are kept: %s", got)
			}
		})
	}
}

// TestAKeyGivesNoMoreThanItHas lets keys with few permissions make and change keys.
func TestAKeyGivesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	r := start(t)
	other := r.admin("POST", "/workspaces", `{"name":"Other"}`)["id"].(string)
	maker := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"maker","workspace_id":%q,"scopes":["workspace_service_api_keys.create","workspace_service_api_keys.update","workspace_service_api_keys.read","configs.list"]}`, r.workspace()))
	key, id := maker["key"].(string), maker["id"].(string)
	call := func(method, path, body string) reply { return r.call(method, path, body, "X-Gateway-Api-Key", key) }
	if got := call("POST", "/api-keys/workspace/service", `{"name":"k","scopes":["configs.list"]}`); got.status != 200 {
		t.Fatalf("its own right: %d %s", got.status, got.body)
	}
	for name, c := range map[string]struct{ method, path, body string }{
		"another right":            {"POST", "/api-keys/workspace/service", `{"name":"k","scopes":["configs.list","configs.create"]}`},
		"another spelling":         {"POST", "/api-keys/workspace/service", `{"name":"k","scopes":["gateway.configs:create"]}`},
		"the data plane":           {"POST", "/api-keys/workspace/service", `{"name":"k","scopes":["completions.write"]}`},
		"an organization key":      {"POST", "/api-keys/organisation/service", `{"name":"k","scopes":["configs.list"]}`},
		"a user key":               {"POST", "/api-keys/workspace/user", `{"name":"k","user_id":"u","scopes":["configs.list"]}`},
		"another workspace":        {"POST", "/api-keys/workspace/service", `{"name":"k","workspace_id":"` + other + `","scopes":["configs.list"]}`},
		"another workspace, query": {"POST", "/api-keys/workspace/service?workspace_id=" + other, `{"name":"k","scopes":["configs.list"]}`},
		"another organisation":     {"POST", "/api-keys/workspace/service", `{"name":"k","organisation_id":"other","scopes":["configs.list"]}`},
		"more for itself":          {"PUT", "/api-keys/" + id, `{"scopes":["configs.list","configs.delete"]}`},
		"delete":                   {"DELETE", "/api-keys/" + id, ""},
		"the admin key":            {"PUT", "/api-keys/" + r.keyID("first admin key"), `{"name":"mine"}`},
		"configs":                  {"POST", "/configs", `{"name":"c","config":{"provider":"@mock"}}`},
		"workspaces":               {"POST", "/workspaces", `{"name":"mine"}`},
		"the audit log":            {"GET", "/audit-logs", ""},
	} {
		want := 403
		if name == "the admin key" {
			want = 404 // as for a key that does not exist
		}
		if got := call(c.method, c.path, c.body); got.status != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
