package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another gateway is imported with everything that its API shows. What lacks its secret is
// not active, and is when the secret comes by a file; a second run changes nothing.
//
//lane:exhaustive
func TestImportReference(t *testing.T) {
	t.Parallel()
	from, to := start(t), start(t)
	from.seed()
	from.newKey(`"rate_limits":[{"type":"requests","unit":"rpm","value":100}]`)
	env := map[string]string{"OLD_KEY": adminKey}
	args := []string{"import", "reference", "--url", from.base, "--key-env", "OLD_KEY"}
	out := to.done(env, args...)
	for _, part := range []string{"workspaces.Team A.configs.", "create workspace Team A", "create prompt greet in Team A", "name a file with --keys-file to create 2 API keys", "to do: set", "nothing was written"} {
		if !strings.Contains(out, part) {
			t.Errorf("the dry run does not print %q:\n%s", part, out)
		}
	}
	if got := to.admin("GET", "/admin/workspaces", ""); got["total"] != 1.0 {
		t.Fatal("the dry run has written")
	}
	keys := filepath.Join(t.TempDir(), "keys.jsonl")
	out = to.done(env, append(args, "--apply", "--keys-file", keys)...)
	if seeded.MatchString(out) {
		t.Error("a secret is printed")
	}
	if again := to.done(env, append(args, "--apply", "--keys-file", keys)...); !strings.Contains(again, "no changes") {
		t.Errorf("the second run is not empty:\n%s", again)
	}
	info, err := os.Stat(keys)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	raw, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	var key map[string]string
	if err := json.Unmarshal([]byte(strings.SplitN(string(raw), "\n", 2)[0]), &key); err != nil {
		t.Fatal(err)
	}
	if status, _ := to.chatModel("@mock/gpt-4o", key["key"]); status != http.StatusOK {
		t.Error("a new key does not work", status)
	}
	models := to.admin("GET", "/integrations/shared/models", "")
	if models["allow_all_models"] != false {
		t.Error("an integration without its secret is active")
	}
	secrets := writeFile(t, "secrets.yaml", "ORGANIZATION_INTEGRATION_SHARED_KEY: sk-a-new-secret\nORGANIZATION_INTEGRATION_SHARED_CONFIGURATIONS_CUSTOM_HEADERS_X_TEAM: a-new-header\n")
	to.done(env, append(args, "--apply", "--secrets", secrets)...)
	if got := to.admin("GET", "/integrations/shared/models", ""); got["allow_all_models"] != true {
		t.Error("an integration is not active after its secret came")
	}
}

// The models of a Bifrost gateway response by both of their names.
func TestImportBifrost(t *testing.T) {
	t.Parallel()
	r := start(t)
	env := r.mockEnv()
	file := writeFile(t, "config.json", fmt.Sprintf(`{"providers":{"openai":{"keys":[{"name":"a","value":"env.OPENAI_API_KEY","models":["gpt-4o"],"weight":1}],"network_config":{"base_url":%q}}},
	 "governance":{"virtual_keys":[{"id":"v","name":"ci","is_active":true,"budget_id":"b"}],"budgets":[{"id":"b","max_limit":5,"reset_duration":"1M"}]}}`, env["MOCK_BASE"]))
	keys := filepath.Join(t.TempDir(), "keys.jsonl")
	r.done(env, "import", "bifrost", file, "--apply", "--keys-file", keys)
	for _, model := range []string{"gpt-4o", "openai/gpt-4o"} {
		if status, got := r.chatModel(model, workspaceKey); status != http.StatusOK || got != "gpt-4o" {
			t.Error(model, status, got)
		}
	}
	if raw, err := os.ReadFile(keys); err != nil || strings.Count(string(raw), "\n") != 1 {
		t.Error(string(raw), err)
	}
	if out := r.done(env, "import", "bifrost", file, "--apply", "--keys-file", keys); !strings.Contains(out, "no changes") {
		t.Error(out)
	}
}

// An account of OpenRouter needs no file: its models are those of the price list.
func TestImportOpenRouter(t *testing.T) {
	t.Parallel()
	r := start(t)
	if code, _, errs := r.verb(nil, "import", "openrouter", "--apply"); code != 1 || !strings.Contains(errs, "OPENROUTER_API_KEY") {
		t.Error(code, errs)
	}
	env := map[string]string{"OPENROUTER_API_KEY": "sk-or-an-openrouter-secret"}
	out := r.done(env, "import", "openrouter", "--apply")
	if again := r.done(env, "import", "openrouter", "--apply"); !strings.Contains(again, "no changes") || strings.Contains(out, "an-openrouter-secret") {
		t.Error(again)
	}
}
