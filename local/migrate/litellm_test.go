package migrate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/local/declare"
	"gateway/local/document"
)

var update = flag.Bool("update", false, "write the golden files")

// environment is that of the golden cases.
func environment(name string) string {
	return map[string]string{
		"OPENAI_API_KEY": "sk-openai-test-value", "ANTHROPIC_API_KEY": "sk-anthropic-test-value", "AZURE_API_KEY": "azure-test-value", "MY_BASE": "https://models.example.com/v1",
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "aws-test-value",
	}[name]
}

// written is a result as text: the report and the resources, secrets by name.
func written(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	r.Report.Print(&b)
	sections := map[string]any{}
	for name, list := range r.Document.Workspaces[0].Sections {
		var all []any
		for _, res := range list {
			all = append(all, map[string]any(res.Fields))
		}
		sections[name] = declare.Native(all)
	}
	var keys []any
	for _, k := range r.Access.Keys {
		keys = append(keys, map[string]any{"name": k.Name, "workspace": k.Workspace, "fields": declare.Native(k.Fields)})
	}
	if keys != nil {
		sections["new keys"] = keys
	}
	raw, err := document.Write(sections)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n" + string(raw)
}

// Every construct of a source has a case: what becomes of it is written beside it.
func TestImportsAreAsWritten(t *testing.T) {
	read := map[string]func(path string) (*Result, error){
		"litellm":    func(path string) (*Result, error) { return LiteLLM(path, environment) },
		"bifrost":    func(path string) (*Result, error) { return Bifrost(path, environment) },
		"openrouter": func(path string) (*Result, error) { return OpenRouter(path, environment) },
	}
	for source, from := range read {
		files, err := filepath.Glob(filepath.Join("testdata", source, "*.[yj]*"))
		if err != nil || len(files) == 0 {
			t.Fatal(source, err)
		}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), "part-") {
				continue
			}
			t.Run(file, func(t *testing.T) {
				r, err := from(file)
				if err != nil {
					t.Fatal(err)
				}
				got := strings.ReplaceAll(written(t, r), "\\", "/")
				for _, secret := range []string{"test-value", "literal-secret", "sk-or-v1"} {
					if strings.Contains(got, secret) {
						t.Errorf("a secret is printed: %s", secret)
					}
				}
				golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".txt"
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("differs from %s (go test ./local/migrate -args -update writes it):\n%s", golden, got)
				}
			})
		}
	}
}

// Every key of a file has exactly one line, whatever the file has.
func TestReportNamesEveryKey(t *testing.T) {
	files, err := filepath.Glob("testdata/litellm/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "part-") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		root, err := document.Parse(filepath.Base(file), raw)
		if err != nil {
			t.Fatal(err)
		}
		r, err := LiteLLM(file, environment)
		if err != nil {
			t.Fatal(err)
		}
		lines := map[string]int{}
		for _, l := range r.Report.Lines {
			if strings.HasPrefix(l.Place, filepath.Base(file)+":") { // not of an included file
				lines[l.Key]++
			}
			if l.Status != Mapped && l.Note == "" {
				t.Errorf("%s: %s does not say why", file, l.Key)
			}
		}
		var visit func(n *document.Node, at string)
		visit = func(n *document.Node, at string) {
			switch {
			case len(n.Fields()) > 0:
				for _, f := range n.Fields() {
					visit(f.Value, strings.TrimPrefix(at+"."+f.Name, "."))
				}
				return
			case len(n.Items()) > 0 && lines[at] == 0:
				for i, item := range n.Items() {
					visit(item, fmt.Sprintf("%s[%d]", at, i))
				}
				return
			}
			if lines[at] != 1 && !strings.Contains(at, "include") {
				t.Errorf("%s: %s has %d lines", file, at, lines[at])
			}
		}
		visit(root, "")
	}
}

// Wrong types end with the place in the file; nothing is returned that could be written.
func TestLiteLLMRejectsWrongTypes(t *testing.T) {
	for _, c := range []struct{ text, place string }{
		{"- a\n", "config.yaml:1:1"},
		{"model_list: x\n", "config.yaml:1:13"},
		{"model_list:\n  - x\n", "config.yaml:2:5"},
		{"model_list:\n  - model_name: [a]\n    litellm_params: {model: a}\n", "config.yaml:2:17"},
		{"model_list:\n  - model_name: a\n    litellm_params: [a]\n", "config.yaml:3:21"},
		{"model_list:\n  - model_name: a\n    litellm_params: {model: {a: 1}}\n", "config.yaml:3:29"},
		{"model_list:\n  - model_name: a\n    litellm_params: {model: openai/a, rpm: many}\n", "config.yaml:3:44"},
		{"model_list:\n  - model_name: a\n    litellm_params: {model: openai/a, timeout: -1}\n", "config.yaml:3:48"},
		{"model_list:\n  - model_name: a\n    litellm_params: {model: openai/a}\n    model_info: {input_cost_per_token: cheap}\n", "config.yaml:4:40"},
		{"litellm_settings: []\n", "config.yaml:1:19"},
		{"litellm_settings: {num_retries: x}\n", "config.yaml:1:33"},
		{"litellm_settings: {fallbacks: {a: b}}\n", "config.yaml:1:31"},
		{"litellm_settings: {fallbacks: [{a: b}]}\n", "config.yaml:1:36"},
		{"litellm_settings: {cache_params: 1}\n", "config.yaml:1:34"},
		{"router_settings: {model_group_alias: 1}\n", "config.yaml:1:38"},
		{"router_settings: {retry_policy: {TimeoutErrorRetries: x}}\n", "config.yaml:1:55"},
		{"environment_variables: [a]\n", "config.yaml:1:24"},
		{"credential_list: {a: 1}\n", "config.yaml:1:18"},
		{"guardrails: {a: 1}\n", "config.yaml:1:13"},
		{"mcp_servers: [a]\n", "config.yaml:1:14"},
		{"mcp_servers: {a: {transport: http}}\n", "config.yaml:1:18"},
		{"include: x\n", "config.yaml:1:10"},
		{"include: [../other.yaml]\n", "config.yaml:1:11"},
		{"include: [/etc/passwd]\n", "config.yaml:1:11"},
		{"include: [config.yaml]\n", "config.yaml:1:11"},
		{"include: [none.yaml]\n", "config.yaml:1:11"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := LiteLLM(filepath.Join(dir, "config.yaml"), environment)
		if err == nil || r != nil || !strings.HasPrefix(err.Error(), c.place+": ") {
			t.Errorf("%q: %v, want it at %s", c.text, err, c.place)
		}
	}
}
