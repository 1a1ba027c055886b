package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each kind of file is recognized, and hostile ones end with a place and exit code 1.
func TestValidateReadsEachKindOfFile(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       int
		message    string
	}{
		{"c.json", `{"provider":"@a"}`, 0, "valid config"},
		{"c.yaml", "provider: '@a'\nretry:\n  attempts: 2\n", 0, "valid config"},
		{"c.json", `{"name":"n","config":{"provider":"@a"}}`, 0, "valid config"},
		{"c.json", `{"config":{"provider":"@a"}}`, 1, "name: is required"},
		{"c.json", `{"provider":"@a","retry":{"attempts":"x"}}`, 1, "retry.attempts"},
		{"c.yaml", "provider: '@a'\nretry: {attempts: x}\n", 1, "retry.attempts"},
		{"l.yaml", "model_list:\n- model_name: a\n  litellm_params:\n    model: openai/gpt-4o\n    api_key: os.environ/K\n", 0, "valid litellm import"},
		{"l.yaml", "model_list: 5\n", 1, "l.yaml:1"},
		{"l.yaml", "include: [../../etc/passwd]\nmodel_list: []\n", 1, "etc/passwd"},
		{"s.yaml", "version: 1\nworkspaces: []\n", 0, "valid declared state"},
		{"s.yaml", "version: 1\nworkspaces: 5\n", 1, "s.yaml:2"},
		{"x.json", "{\n\"provider\": }", 1, "2"},
		{"x.json", `[1]`, 1, "must be an object"},
		{"x.json", ``, 1, "must be an object"},
		{"x.json", strings.Repeat("[", 100_000), 1, "x.json"},
		{"x.yaml", "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n" + strings.Repeat("d: [*c, *c]\n", 1000), 1, "x.yaml"},
		{"x.yaml", "a: \x00\xff", 1, "x.yaml"},
		{"x.json", "{" + strings.Repeat(" ", maxValidated) + "}", 1, "larger than"},
	} {
		name := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, ran := newShell(t, nil, "validate", name), ""
		if code := Run(t.Context(), s.Env, server(&ran)); code != c.code || !strings.Contains(s.out.String()+s.err.String(), c.message) {
			t.Errorf("%s %.40q: %d %s%s", c.name, c.text, code, s.out.String(), s.err.String())
		}
	}
	s, ran := newShell(t, nil, "validate", "-"), ""
	s.Stdin = strings.NewReader("model_list: []\n")
	if code := Run(t.Context(), s.Env, server(&ran)); code != ExitUsage || !strings.Contains(s.err.String(), "name it instead") {
		t.Errorf("%d %s", code, s.err.String())
	}
}
