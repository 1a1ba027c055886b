package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/local/cli"
)

// verb runs a verb of the command line and returns its exit code and what it prints.
func (r *running) verb(env map[string]string, args ...string) (int, string, string) {
	r.t.Helper()
	var out, errs bytes.Buffer
	e := cli.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Home: r.t.TempDir(), Getenv: func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		switch name {
		case "GATEWAY_URL":
			return strings.TrimSuffix(r.base, "/v1")
		case "GATEWAY_API_KEY":
			return adminKey
		}
		return ""
	}}
	code := cli.Run(context.Background(), e, cli.Server{})
	return code, out.String(), errs.String()
}

// done runs a verb that must succeed.
func (r *running) done(env map[string]string, args ...string) string {
	r.t.Helper()
	code, out, errs := r.verb(env, args...)
	if code != 0 {
		r.t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
	}
	return out
}

// mockEnv are variables by which imported providers reach the mock provider.
func (r *running) mockEnv() map[string]string {
	r.t.Helper()
	env := map[string]string{"OPENAI_API_KEY": "sk-imported-openai", "ANTHROPIC_API_KEY": "sk-imported-anthropic"}
	for name, slug := range map[string]string{"MOCK_BASE": "mock", "MOCK_ANTHROPIC": "mock-anthropic"} {
		got := r.admin("GET", "/integrations/"+slug+"?workspace_id=default", "")
		env[name], _ = got["configurations"].(map[string]any)["custom_host"].(string)
	}
	return env
}

const litellmConfig = `model_list:
  - model_name: smart
    litellm_params: {model: openai/gpt-4o, api_base: os.environ/MOCK_BASE, api_key: os.environ/OPENAI_API_KEY, rpm: 1000}
    model_info: {input_cost_per_token: 0.000002, output_cost_per_token: 0.000004}
  - model_name: helper
    litellm_params: {model: anthropic/claude-haiku-4-5, api_base: os.environ/MOCK_ANTHROPIC, api_key: os.environ/ANTHROPIC_API_KEY}
  - model_name: down
    litellm_params: {model: openai/gpt-4o, api_base: "http://127.0.0.1:45999/v1", api_key: literal-secret-key}
litellm_settings:
  fallbacks: [{down: [helper]}]
  num_retries: 0
guardrails:
  - guardrail_name: words
    litellm_params: {guardrail: hide-secrets, mode: pre_call, default_on: true}
general_settings: {master_key: literal-secret-master}
unknown: 1
`

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// chatModel sends a chat request with a bare model name and returns its status and the model
// that answered.
func (r *running) chatModel(model, key string) (int, string) {
	r.t.Helper()
	got := r.call("POST", "/chat/completions", chatBody(model, "hi", `,"max_tokens":5`), "X-Gateway-Api-Key", key)
	if got.status != http.StatusOK {
		return got.status, got.body
	}
	name, _ := got.json(r.t)["model"].(string)
	return got.status, name
}

// An import is a dry run, then writes once; models are asked for by their bare names.
func TestImportLiteLLM(t *testing.T) {
	t.Parallel()
	r := start(t)
	env, file := r.mockEnv(), writeFile(t, "config.yaml", litellmConfig)
	out := r.done(env, "import", "litellm", file)
	for _, part := range []string{"mapped      model_list[0].model_name  (config.yaml:2:17)", "changed     general_settings.master_key", "not mapped  unknown", "create config Imported models in default", "nothing was written"} {
		if !strings.Contains(out, part) {
			t.Errorf("the dry run does not print %q:\n%s", part, out)
		}
	}
	if got := r.admin("GET", "/configs?workspace_id=default", ""); got["total"] != 0.0 {
		t.Fatal("the dry run has written", got)
	}
	out += r.done(env, "import", "litellm", file, "--apply")
	if again := r.done(env, "import", "litellm", file, "--apply"); !strings.Contains(again, "no changes") {
		t.Errorf("a second run is not empty:\n%s", again)
	}
	for model, answers := range map[string]string{"smart": "gpt-4o", "helper": "claude-haiku-4-5", "down": "claude-haiku-4-5", "@mock/gpt-4o-mini": "gpt-4o-mini"} {
		if status, got := r.chatModel(model, workspaceKey); status != http.StatusOK || got != answers {
			t.Errorf("%s: %d %s, want %s", model, status, got, answers)
		}
	}
	if status, _ := r.chatModel("nobody", workspaceKey); status != http.StatusBadRequest {
		t.Errorf("an unknown model is answered with %d", status)
	}
	for _, secret := range []string{"literal-secret", "sk-imported"} {
		if strings.Contains(out, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
	env["OPENAI_API_KEY"] = "sk-rotated-secret"
	if out := r.done(env, "import", "litellm", file, "--apply"); strings.Count(out, "done: change integration") != 1 {
		t.Errorf("a rotated key changes one integration:\n%s", out)
	}
}

// With the key of a workspace, the import is into that workspace.
func TestImportLiteLLMIntoAWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	env, file := r.mockEnv(), writeFile(t, "config.yaml", litellmConfig)
	r.done(env, "import", "litellm", file, "--apply", "--workspace", "Team A")
	spaces := r.admin("GET", "/admin/workspaces?exact_name=Team%20A", "")["data"].([]any)
	slug := spaces[0].(map[string]any)["slug"].(string)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write","workspace_integrations.create","workspace_integrations.list","workspace_integrations.read","workspace_integrations.update","providers.create","providers.list","providers.read","providers.update","guardrails.create","guardrails.list","guardrails.read","guardrails.update","configs.create","configs.list","configs.read","configs.update"]}`, slug))["key"].(string)
	if status, got := r.chatModel("smart", key); status != http.StatusOK || got != "gpt-4o" {
		t.Error(status, got)
	}
	if status, _ := r.chatModel("smart", workspaceKey); status == http.StatusOK {
		t.Error("another workspace has the model too")
	}
	env["GATEWAY_API_KEY"] = key
	if out := r.done(env, "import", "litellm", file, "--apply"); !strings.Contains(out, "no changes") {
		t.Errorf("the workspace of the key is not that of the import:\n%s", out)
	}
	if code, _, errs := r.verb(map[string]string{}, "import", "litellm", file, "--apply", "--workspace", "Team C"); code != 1 || !strings.Contains(errs, "MOCK_BASE") || !strings.Contains(errs, "OPENAI_API_KEY") {
		t.Error("variables without a value are not named", code, errs)
	}
	if got := r.admin("GET", "/admin/workspaces?exact_name=Team%20C", ""); got["total"] != 0.0 {
		t.Error("something was written although variables have no value")
	}
	r.done(map[string]string{"MOCK_BASE": env["MOCK_BASE"], "MOCK_ANTHROPIC": env["MOCK_ANTHROPIC"]}, "import", "litellm", file, "--apply", "--workspace", "Team C", "--inactive")
	slug = r.admin("GET", "/admin/workspaces?exact_name=Team%20C", "")["data"].([]any)[0].(map[string]any)["slug"].(string)
	other := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, slug))["key"].(string)
	if status, _ := r.chatModel("smart", other); status == http.StatusOK {
		t.Error("a provider without its secret is active")
	}
	env["GATEWAY_API_KEY"] = adminKey
	r.done(env, "import", "litellm", file, "--apply", "--workspace", "Team C")
	if status, got := r.chatModel("smart", other); status != http.StatusOK {
		t.Error("a provider is not active after its secret is set", status, got)
	}
}

// The default config of a workspace is not replaced by an import.
func TestImportPreservesAnotherDefaultConfig(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/configs", `{"name":"mine","isDefault":1,"workspace_id":"default","config":{"retry":{"attempts":1}}}`)
	code, _, errs := r.verb(r.mockEnv(), "import", "litellm", writeFile(t, "config.yaml", litellmConfig), "--apply")
	if code != 1 || !strings.Contains(errs, `"mine"`) || !strings.Contains(errs, "--workspace") {
		t.Error(code, errs)
	}
	if got := r.admin("GET", "/configs?workspace_id=default", ""); got["total"] != 1.0 {
		t.Error("something was written")
	}
}

// flaky forwards requests to a gateway. It fails each write after the first few.
func flaky(t *testing.T, base string, writes int64) string {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && n.Add(1) > writes {
			w.Header().Set("X-Gateway-Error-Code", "internal_error")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"data":{"message":"a failure of the test"}}`)
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// An import that was interrupted anywhere is completed by running it again, with each
// resource once.
func TestImportResumes(t *testing.T) {
	t.Parallel()
	r := start(t)
	file := writeFile(t, "config.yaml", litellmConfig)
	env := r.mockEnv()
	failures := 0
	for n := int64(1); ; n++ {
		env["GATEWAY_URL"] = flaky(t, strings.TrimSuffix(r.base, "/v1"), 1)
		code, out, errs := r.verb(env, "import", "litellm", file, "--apply")
		if code == 0 && strings.Contains(out, "no changes") {
			break
		}
		if code == 1 {
			if failures++; !strings.Contains(errs, "run the command again") {
				t.Fatal(errs)
			}
		}
		if n > 50 {
			t.Fatal("the import does not end")
		}
	}
	if failures < 5 {
		t.Errorf("only %d runs failed", failures)
	}
	for path, want := range map[string]float64{"/configs?workspace_id=default": 1, "/guardrails?workspace_id=default": 1, "/providers?workspace_id=default": 2 + 3} {
		if got := r.admin("GET", path, "")["total"]; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if status, got := r.chatModel("down", workspaceKey); status != http.StatusOK || got != "claude-haiku-4-5" {
		t.Error(status, got)
	}
}

// Hostile files end with exit code 1 and the place in the file, and nothing is written.
func TestImportRejectsHostileFiles(t *testing.T) {
	t.Parallel()
	r := start(t)
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 20; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	for name, text := range map[string]string{
		"aliases": bomb, "include": "include: [../secret.yaml]\n" + litellmConfig, "types": litellmConfig + "mcp_servers: [a]\n", "not valid YAML": "a: [\n",
	} {
		code, out, errs := r.verb(r.mockEnv(), "import", "litellm", writeFile(t, "config.yaml", text), "--apply")
		if code != 1 || out != "" || !strings.Contains(errs, "config.yaml:") {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
	}
	if got := r.admin("GET", "/providers?workspace_id=default", ""); got["total"] != 2.0 {
		t.Error("something was written")
	}
}
