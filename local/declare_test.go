package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// seed gives an organization resources of every kind that a declared state has.
func (r *running) seed() {
	r.t.Helper()
	post := func(path, body string) map[string]any {
		r.t.Helper()
		got := r.admin("POST", path, body)
		if d, ok := got["data"].(map[string]any); ok {
			return d
		}
		return got
	}
	r.admin("PUT", "/admin/organisation/settings", `{"budget_settings":{"unpriced":"allow"},"workspace_overrides":{"request_logging":true},"model_settings":{"allowed_models":["gpt-4o*","claude*","own-model"]}}`)
	ws := post("/admin/workspaces", `{"name":"Team A","description":"the first","icon":"🚀","defaults":{"metadata":{"team":"a"}},"usage_limits":[{"type":"cost","credit_limit":100,"periodic_reset":"monthly"}]}`)["slug"].(string)
	r.admin("PUT", "/admin/workspaces/"+ws+"/settings", `{"request_logging":{"mode":"metrics"}}`)
	in := `"workspace_id":` + fmt.Sprintf("%q", ws)
	post("/secret-references", `{"name":"Vault","slug":"vault","manager_type":"hashicorp_vault","secret_path":"secret/data/x","secret_key":"k","auth_config":{"vault_auth_type":"token","vault_addr":"https://vault.example.com","vault_token":"hvs-a-secret-token"},"tags":{"a":"b"}}`)
	post("/integrations", `{"name":"Shared","slug":"shared","ai_provider_id":"openai","key":"sk-a-shared-secret","configurations":{"custom_host":"https://models.example.com/v1","custom_headers":{"X-Team":"a-secret-header"}},"tags":{"env":"prod"}}`)
	post("/integrations", `{"name":"By reference","slug":"mapped","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"vault"}]}`)
	post("/integrations", `{"name":"Several","slug":"several","ai_provider_id":"openai","credentials":[{"label":"first","key":"sk-a-first-of-several","weight":2},{"label":"second","key":"sk-a-second-of-several","weight":1}]}`)
	r.admin("PUT", "/integrations/shared/models", `{"models":[{"slug":"own-model","enabled":true,"is_custom":true,"base_model_slug":"gpt-4o","pricing_config":{"type":"static","pay_as_you_go":{"request_token":{"price":0.000025},"response_token":{"price":0.0001}}}},{"slug":"tts-1","enabled":false}]}`)
	r.admin("PUT", "/integrations/shared/workspaces", fmt.Sprintf(`{"create_default_provider":false,"workspaces":[{"id":%q,"enabled":true,"rate_limits":[{"type":"requests","unit":"rpm","value":500}]}]}`, ws))
	post("/integrations", `{"name":"Own","slug":"own","ai_provider_id":"anthropic","key":"sk-ant-an-own-secret",`+in+`,"create_default_provider":false}`)
	post("/providers", `{"name":"Shared here","slug":"shared-here","integration_id":"shared","note":"n",`+in+`,"usage_limits":{"credit_limit":5,"periodic_reset":"weekly"},"rate_limits":[{"type":"tokens","unit":"rpm","value":1000}],"expires_at":"2031-01-01T00:00:00Z"}`)
	post("/providers", `{"name":"Own here","slug":"own-here","integration_id":"own",`+in+`}`)
	strict := post("/guardrails", `{"name":"strict","checks":[{"id":"default.contains","parameters":{"words":["forbidden"],"operator":"none"}}],"actions":{"deny":true}}`)["slug"].(string)
	vendor := post("/guardrails", `{"name":"vendor",`+in+`,"checks":[{"id":"lakera.guard","parameters":{"credentials":{"apiKey":"a-secret-of-lakera"}}}],"actions":{"deny":false}}`)["slug"].(string)
	parent := post("/collections", `{"name":"parent",`+in+`}`)["slug"].(string)
	child := post("/collections", `{"name":"child",`+in+`,"parent_collection_id":"`+parent+`"}`)["slug"].(string)
	post("/labels", `{"name":"canary","color_code":"#ff0000",`+in+`}`)
	part := post("/prompts/partials", `{"name":"greeting","string":"Hello ${NAME}",`+in+`}`)["slug"].(string)
	post("/prompts/partials", `{"name":"a salutation","string":"{{> `+part+`}} and welcome",`+in+`}`)
	prompt := post("/prompts", `{"name":"greet","collection_id":"`+child+`","string":"{{> `+part+`}} {{who}}\nand more","parameters":{"max_tokens":5},"virtual_key":"shared-here","model":"gpt-4o",`+in+`}`)["slug"].(string)
	r.admin("PUT", "/prompts/"+prompt, `{`+in+`,"string":"{{> `+part+`}} a draft","parameters":{"max_tokens":6},"virtual_key":"shared-here","model":"gpt-4o"}`)
	config := post("/configs", `{"name":"routes","isDefault":1,`+in+`,"config":{"strategy":{"mode":"fallback","on_status_codes":[429]},"input_guardrails":["`+vendor+`","`+strict+`"],"targets":[{"provider":"@shared-here","weight":0.5,"override_params":{"note":"${LITERAL}"}},{"provider":"openai","api_key":"sk-a-target-secret"},{"prompt_id":"`+prompt+`"}]}}`)["slug"].(string)
	post("/configs", `{"name":"plain",`+in+`,"config":{"retry":{"attempts":2}}}`)
	post("/policies/usage-limits", `{"name":"per user",`+in+`,"conditions":[{"key":"metadata._user","value":"a"}],"group_by":[{"key":"api_key"}],"type":"cost","credit_limit":0.000000001,"alert_threshold":null}`)
	post("/policies/usage-limits", `{`+in+`,"conditions":[{"key":"metadata._user","value":"b"}],"group_by":[{"key":"api_key"}],"type":"tokens","credit_limit":500}`)
	post("/policies/rate-limits", `{"name":"bursts",`+in+`,"conditions":[{"key":"metadata._user","value":"a"}],"group_by":[{"key":"api_key"}],"type":"requests","unit":"rpm","value":5}`)
	post("/mcp-integrations", `{"name":"Wiki","slug":"wiki","url":"https://wiki.example.com/mcp","auth_type":"headers","transport":"http","configurations":{"custom_headers":{"Authorization":"Bearer a-secret-of-the-wiki"}}}`)
	r.admin("PUT", "/mcp-integrations/wiki/workspaces", fmt.Sprintf(`{"workspaces":[{"id":%q,"enabled":true}]}`, ws))
	post("/mcp-servers", `{"name":"Wiki","slug":"wiki-here","mcp_integration_id":"wiki","description":"d",`+in+`}`)
	post("/agent-integrations", `{"name":"Agent","slug":"agent","url":"https://agent.example.com","auth_type":"none",`+in+`}`)
	post("/agent-servers", `{"name":"Agent","slug":"agent-here","agent_integration_id":"agent",`+in+`}`)
	post("/telemetry-destinations", `{"name":"collector","endpoint":"https://collector.example.com/otlp","headers":"authorization=Bearer%20a-secret-of-otlp","signals":["traces"],`+in+`}`)
	r.admin("PUT", "/admin/workspaces/"+ws, `{"defaults":{"metadata":{"team":"a"},"input_guardrails":["`+vendor+`"],"output_guardrails":[],"user_api_key_config":"`+config+`"}}`)
	r.admin("PUT", "/admin/organisation/defaults", `{"input_guardrails":["`+strict+`"]}`)
}

// seeded are the secrets of seed.
var seeded = regexp.MustCompile(`hvs-a-secret|sk-a-|a-secret-|sk-ant-an-own`)

// exported are the variables that an export names.
func exported(text string) map[string]string {
	env := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# ([A-Z][A-Z0-9_]+)$`).FindAllStringSubmatch(text, -1) {
		if env[m[1]] = "secret-value-of-" + m[1]; strings.HasSuffix(m[1], "COLLECTOR_HEADERS") {
			env[m[1]] = "authorization=secret"
		}
	}
	return env
}

// generatedSlugs are replaced before two exports are compared: each gateway makes its own.
var generatedSlugs = regexp.MustCompile(`\b((?:pc|pg|pp|col|ws)-[a-z0-9-]*)-[0-9a-f]{6}\b`)

// What is exported of one gateway brings it to no change, and another one to the same state.
//
//lane:exhaustive
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.seed()
	text := r.done(nil, "export")
	if found := seeded.FindString(text); found != "" {
		t.Errorf("a secret is exported: %s", found)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "state.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	for _, args := range [][]string{{"--plan"}, {"--yes"}, {"--plan", "--prune"}} {
		if out := r.done(nil, append([]string{"apply", "-f", file}, args...)...); strings.TrimSpace(out) != "no changes" {
			t.Errorf("%v: the round trip is not empty:\n%s", args, out)
		}
	}

	other := start(t)
	env := exported(text)
	if len(env) < 8 {
		t.Fatalf("only %d secrets are named", len(env))
	}
	// The mock provider of the other gateway has another address.
	text = strings.ReplaceAll(text, customHost(r, "mock"), customHost(other, "mock"))
	text = strings.ReplaceAll(text, customHost(r, "mock-anthropic"), customHost(other, "mock-anthropic"))
	for name := range env {
		if strings.Contains(name, "MOCK") {
			delete(env, name)
		}
	}
	write(text)
	some := maps.Clone(env)
	var left string
	for name := range some {
		if strings.Contains(name, "LAKERA") || strings.Contains(name, "VENDOR") {
			left = name
		}
	}
	delete(some, left)
	if code, _, errs := other.verb(some, "apply", "-f", file, "--yes"); code != 1 || left == "" || !strings.Contains(errs, left) {
		t.Errorf("a secret without a value (%s) is not named: %d %s", left, code, errs)
	}
	if code, _, errs := other.verb(env, "apply", "-f", file); code != 2 || !strings.Contains(errs, "--yes") {
		t.Errorf("without a terminal: %d %s", code, errs)
	}
	if got := other.admin("GET", "/admin/workspaces", ""); got["total"] != 1.0 {
		t.Fatal("something was written")
	}
	out := other.done(env, "apply", "-f", file, "--yes")
	if again := other.done(env, "apply", "-f", file, "--yes", "--prune"); strings.TrimSpace(again) != "no changes" {
		t.Errorf("the second run is not empty:\n%s\nafter\n%s", again, out)
	}
	clean := func(s string) string {
		s = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(s, "")
		return generatedSlugs.ReplaceAllString(s, "$1")
	}
	if a, b := clean(text), clean(other.done(nil, "export")); a != b {
		t.Errorf("the other gateway has another state:\n%s", firstDifference(a, b))
	}
}

func customHost(r *running, slug string) string {
	got := r.admin("GET", "/integrations/"+slug+"?workspace_id=default", "")
	return got["configurations"].(map[string]any)["custom_host"].(string)
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			return strings.Join(x[max(i-5, 0):min(i+5, len(x))], "\n") + "\n---\n" + strings.Join(y[min(max(i-5, 0), len(y)):min(i+5, len(y))], "\n")
		}
	}
	return "the second is longer"
}

// A plan names what is created, changed and deleted, and deletes only with --prune.
//
//lane:exhaustive
func TestApplyNamesChanges(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.seed()
	text := r.done(nil, "export")
	file := filepath.Join(t.TempDir(), "state.yaml")
	text = strings.Replace(text, "name: plain\n", "name: renamed\n", 1)
	text = strings.Replace(text, "attempts: 2", "attempts: 3", 1)
	text = strings.Replace(text, "value: 500\n", "value: 600\n", 1)
	text = regexp.MustCompile(`(?m)^ +slug: pc-plain-[0-9a-f]+\n|^ +- slug: pc-plain-[0-9a-f]+\n +name: renamed\n`).ReplaceAllStringFunc(text, func(s string) string {
		if strings.Contains(s, "- slug") {
			return strings.Repeat(" ", strings.Index(s, "-")) + "- name: renamed\n"
		}
		return ""
	})
	text = strings.Replace(text, "description: the first", "description: the best", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := r.done(nil, "apply", "-f", file, "--plan")
	want := "change integration shared: workspaces\ncreate config renamed in Team A\nchange workspace Team A: description\n"
	if strings.TrimSpace(out) != strings.TrimSpace(want) {
		t.Errorf("the plan is\n%s\nwant\n%s", out, want)
	}
	if out := r.done(nil, "apply", "-f", file, "--plan", "--prune"); strings.TrimSpace(out) != strings.TrimSpace(want+"delete config plain in Team A") {
		t.Errorf("the plan that deletes is\n%s", out)
	}
	if out := r.done(nil, "apply", "-f", file, "--prune", "--yes"); !strings.Contains(out, "done: delete config plain in Team A") {
		t.Error(out)
	}
	if out := r.done(nil, "apply", "-f", file, "--prune", "--plan"); strings.TrimSpace(out) != "no changes" {
		t.Error(out)
	}
	text, _, _ = strings.Cut(text, "\nworkspaces:")
	if err := os.WriteFile(file, []byte(text+"\nworkspaces:\n  - slug: default\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := r.done(nil, "apply", "-f", file, "--prune", "--yes"); !strings.Contains(out, "done: delete workspace Team A") {
		t.Error(out)
	}
	if got := r.admin("GET", "/admin/workspaces?status=active", ""); got["total"] != 1.0 {
		t.Error("the workspace is there")
	}
}

// A file that is no declared state ends with the place of the fault, before any request.
func TestApplyRejectsOtherFiles(t *testing.T) {
	t.Parallel()
	r := start(t)
	for text, want := range map[string]string{
		"version: 2\n": "state.yaml:1:10: version", "a: 1\n": "state.yaml:1:1: version", "version: 1\norganisation: {}\n": "state.yaml:2:1: organisation",
		"version: 1\norganization: {configs: []}\n": "state.yaml:2:16: organization.configs", "version: 1\nworkspaces: [{slug: a, configs: [{nam: x}]}]\n": "state.yaml:2:35: workspaces[0].configs[0].nam",
		"version: 1\nworkspaces: [{slug: a, providers: [{name: x}]}]\n": "slug: is required", "version: 1\nworkspaces: [{configs: []}]\n": "must have a slug or a name",
		"version: 1\nworkspaces: [{slug: a, configs: [{name: x}, {name: x}]}]\n": "declared twice",
	} {
		code, _, errs := r.verb(nil, "apply", "-f", writeFile(t, "state.yaml", text), "--yes")
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: %d %s", text, code, errs)
		}
	}
}

// The file of the guide is one that can be applied.
func TestApplyTheGuidesFile(t *testing.T) {
	t.Parallel()
	r := start(t)
	raw, err := os.ReadFile("../functions/docs/guides/declarative.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the guide has no file")
	}
	file := writeFile(t, "gateway.yaml", text)
	env := map[string]string{"OPENAI_API_KEY": "sk-of-the-guide"}
	r.done(env, "apply", "-f", file, "--yes")
	if out := r.done(env, "apply", "-f", file, "--yes", "--prune"); strings.TrimSpace(out) != "no changes" {
		t.Error(out)
	}
}
