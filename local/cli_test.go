package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/local/cli"
)

// cliUser is a user of the command line: a home folder and an environment.
type cliUser struct {
	t    *testing.T
	home string
	vars map[string]string
	// Stdin and Terminal of the next verb.
	stdin    string
	terminal bool
	browse   func(string) error
	sleep    func(stderr string) // instead of the pauses of login
	keyring  keyring
}

func (r *running) cliUser(key string) *cliUser {
	return &cliUser{t: r.t, home: r.t.TempDir(), vars: map[string]string{"GATEWAY_URL": r.base, "GATEWAY_API_KEY": key, "USER": "bea"}}
}

// verb runs a command line in this process.
func (d *cliUser) verb(args ...string) (code int, out, errs string) {
	d.t.Helper()
	return d.verbIn(d.t.Context(), &bytes.Buffer{}, args...)
}

// verbIn runs a command line until ctx ends; tee gets its output too.
func (d *cliUser) verbIn(ctx context.Context, tee io.Writer, args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	e := cli.Env{
		Args: args, Stdin: strings.NewReader(d.stdin), Stdout: io.MultiWriter(&stdout, tee), Stderr: &stderr, Home: d.home, Host: "box", Terminal: d.terminal,
		Getenv: func(name string) string { return d.vars[name] }, Browse: d.browse,
	}
	if d.sleep != nil {
		e.Sleep = func(time.Duration) { d.sleep(stderr.String()) }
	}
	if d.keyring != nil {
		e.Keyring = d.keyring
	}
	code = cli.Run(ctx, e, cli.Server{Serve: serveVerb, Recover: recoverVerb})
	return code, stdout.String(), stderr.String()
}

// wants runs a verb and checks its exit code and a part of its output.
func (d *cliUser) wants(code int, text string, args ...string) string {
	d.t.Helper()
	got, out, errs := d.verb(args...)
	if got != code || !strings.Contains(out+errs, text) {
		d.t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, got, code, text, out, errs)
	}
	if strings.Contains(out+errs, adminKey) || strings.Contains(out+errs, workspaceKey) {
		d.t.Errorf("%v shows a key\n%s%s", args, out, errs)
	}
	return out
}

// Each agent is set up in the settings of its user with a key of its own, works with it, and
// is as before after --undo, key and folders included.
func TestSetupWritesAndRestoresSettings(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ agent, file, before, has, key string }{
		{"claude-code", ".claude/settings.json", "", `"ANTHROPIC_BASE_URL"`, `"ANTHROPIC_AUTH_TOKEN": "`},
		{"claude-code", ".claude/settings.json", "{\n  // mine\n  \"model\": \"opus\",\n  \"env\": {\"ANTHROPIC_API_KEY\": \"sk-mine\"}\n}", `// mine`, `"ANTHROPIC_AUTH_TOKEN": "`},
		{"codex", ".codex/config.toml", "", "wire_api = \"responses\"", `"x-gateway-api-key" = "`},
		{"codex", ".codex/config.toml", "# mine\nmodel = 'x'\n[model_providers.gateway]\nname = 'old'\n[tui]\nnotifications = true", `"x-gateway-refusals" = "event"`, `"x-gateway-api-key" = "`},
		{"opencode", ".config/opencode/opencode.json", "", "@ai-sdk/openai-compatible", ""},
		{"opencode", ".config/opencode/opencode.json", `{"enabled_providers": ["x"], "provider": {"x": {}},}`, `"gateway"`, ""},
	} {
		name := c.agent + " on an empty file"
		if c.before != "" {
			name = c.agent + " on settings"
		}
		t.Run(name, func(t *testing.T) {
			d := r.cliUser(adminKey)
			d.t = t
			file := filepath.Join(d.home, filepath.FromSlash(c.file))
			if c.before != "" {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(c.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out := d.wants(0, "+++ ", "setup", c.agent, "--yes")
			written, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(written), c.has) || strings.Contains(string(written), "sk-mine") {
				t.Fatalf("%v\n%s", err, written)
			}
			if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
			key := ""
			if c.key == "" {
				raw, err := os.ReadFile(filepath.Join(d.home, ".config", "gateway", "keys", c.agent))
				if err != nil {
					t.Fatal(err)
				}
				key = strings.TrimSpace(string(raw))
			} else {
				_, rest, _ := strings.Cut(string(written), c.key)
				key, _, _ = strings.Cut(rest, `"`)
			}
			if key == "" || strings.Contains(out, key) || !strings.Contains(out, "that cost 0.0") {
				t.Errorf("key %q, output:\n%s", key, out)
			}
			made := r.call("GET", "/api-keys?workspace_id=default", "", "X-Gateway-Api-Key", adminKey)
			if !strings.Contains(made.body, `"name":"`+c.agent+`@box"`) {
				t.Errorf("no key is named %s@box: %s", c.agent, made.body)
			}
			if got := r.call("GET", "/models", "", "X-Gateway-Api-Key", key); got.status != 200 {
				t.Errorf("the key does not work: %d %s", got.status, got.body)
			}
			// A second setup keeps what was there first, and replaces the key.
			d.wants(0, "now uses", "setup", c.agent, "--yes", "--model", "@mock/gpt-4o-mini")
			d.wants(0, "as it was before setup", "setup", c.agent, "--undo", "--yes")
			after, err := os.ReadFile(file)
			if c.before == "" && !os.IsNotExist(err) || c.before != "" && string(after) != c.before {
				t.Errorf("after undo: %v\n%s", err, after)
			}
			if info, err := os.Stat(file); c.before != "" && (err != nil || info.Mode().Perm() != 0o644) {
				t.Errorf("after undo: %v %v", info, err)
			}
			if _, err := os.Stat(filepath.Dir(file)); c.before == "" && c.agent != "opencode" && !os.IsNotExist(err) {
				t.Errorf("the folder that setup made is left: %v", err)
			}
			if left := r.call("GET", "/api-keys?workspace_id=default", "", "X-Gateway-Api-Key", adminKey); strings.Contains(left.body, `"name":"`+c.agent+`@box"`) {
				t.Errorf("a key is left: %s", left.body)
			}
			d.wants(1, "nothing to undo", "setup", c.agent, "--undo", "--yes")
		})
	}
}

// Undo restores the bytes even if the agent has changed its settings since, and keeps those.
func TestUndoPreservesLaterChanges(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(adminKey)
	d.wants(0, "now uses", "setup", "codex", "--yes")
	file := filepath.Join(d.home, ".codex", "config.toml")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	later := string(raw) + "\n[projects.x]\ntrust_level = \"trusted\"\n"
	if err := os.WriteFile(file, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	d.vars["GATEWAY_URL"] = "http://127.0.0.1:1" // the gateway may be gone
	d.wants(0, "was not deleted", "setup", "codex", "--undo", "--yes")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if saved, err := os.ReadFile(filepath.Join(d.home, ".config", "gateway", "setup", "codex.replaced")); err != nil || string(saved) != later {
		t.Errorf("%v %s", err, saved)
	}
}

func TestSetupPromptsOnATerminal(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(adminKey)
	d.terminal, d.stdin = true, "n\n"
	d.wants(1, "Nothing was written", "setup", "codex")
	if _, err := os.Stat(filepath.Join(d.home, ".codex")); !os.IsNotExist(err) {
		t.Error("a refused setup wrote")
	}
	if left := r.call("GET", "/api-keys?workspace_id=default", "", "X-Gateway-Api-Key", adminKey); strings.Contains(left.body, "codex@box") {
		t.Errorf("a refused setup left its key: %s", left.body)
	}
	d.stdin = "y\n"
	d.wants(0, "now uses", "setup", "codex")
}

func TestSetupRefusesBadInput(t *testing.T) {
	t.Parallel()
	r := start(t)
	broken := func(file, text string) func(*cliUser) {
		return func(d *cliUser) {
			name := filepath.Join(d.home, file)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name    string
		change  func(*cliUser)
		code    int
		message string
		args    []string
	}{
		{"no agent", nil, 2, "argument is missing", nil},
		{"an unknown agent", nil, 2, "use claude-code, codex, opencode", []string{"vim", "--yes"}},
		{"no terminal", nil, 2, "use --yes", []string{"codex"}},
		{"a wrong key", func(d *cliUser) { d.vars["GATEWAY_API_KEY"] = "no-such-key" }, 1, "401", []string{"codex", "--yes"}},
		{"a key without the right", func(d *cliUser) { d.vars["GATEWAY_API_KEY"] = workspaceKey }, 1, "workspace_service_api_keys.create", []string{"codex", "--yes"}},
		{"no key", func(d *cliUser) { d.vars["GATEWAY_API_KEY"] = "" }, 2, "GATEWAY_API_KEY", []string{"codex", "--yes"}},
		{"no gateway", func(d *cliUser) { d.vars["GATEWAY_URL"] = "http://127.0.0.1:1" }, 3, "not reachable", []string{"codex", "--yes"}},
		{"an unknown workspace", nil, 1, "workspace", []string{"codex", "--yes", "--workspace", "nowhere"}},
		{"a model that fails", nil, 1, "nothing was written", []string{"codex", "--yes", "--model", "@nobody/m"}},
		{"no home", func(d *cliUser) { d.home = "" }, 2, "HOME", []string{"codex", "--yes"}},
		{"settings that are no JSON", broken(".claude/settings.json", "{\n\"a\" 1}"), 1, "line 2: a colon", []string{"claude-code", "--yes"}},
		{"settings that are no TOML", broken(".codex/config.toml", "a = 1\nb = \"x"), 1, "line 2: a string", []string{"codex", "--yes"}},
		{"settings of another type", broken(".claude/settings.json", `{"env": 5}`), 1, "must be an object", []string{"claude-code", "--yes"}},
		{"large settings", broken(".codex/config.toml", strings.Repeat("#\n", 3<<20)), 1, "larger than", []string{"codex", "--yes"}},
		{"a folder", func(d *cliUser) { _ = os.MkdirAll(filepath.Join(d.home, ".codex/config.toml"), 0o755) }, 1, "not a regular file", []string{"codex", "--yes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := r.cliUser(adminKey)
			d.t = t
			if c.change != nil {
				c.change(d)
			}
			d.wants(c.code, c.message, append([]string{"setup"}, c.args...)...)
			if d.home != "" {
				if _, err := os.Stat(filepath.Join(d.home, ".config")); !os.IsNotExist(err) {
					t.Errorf("something was written: %v", err)
				}
			}
		})
	}
	if left := r.call("GET", "/api-keys?workspace_id=default", "", "X-Gateway-Api-Key", adminKey); strings.Contains(left.body, "@box") {
		t.Errorf("keys are left: %s", left.body)
	}
}

// safeBuffer may be read while a verb writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The tail shows rows as they come, with filters, and ends when it is interrupted.
func TestLogsTailFollows(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(workspaceKey)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all, some safeBuffer
	codes := make(chan int, 2)
	follow := func(to io.Writer, args ...string) {
		code, _, errs := d.verbIn(ctx, to, append([]string{"logs", "tail"}, args...)...)
		if errs != "" {
			t.Errorf("%v: %s", args, errs)
		}
		codes <- code
	}
	go follow(&all, "--json")
	go follow(&some, "--filter", "ai_model=gpt-4o-mini", "--limit", "1")
	// A tail shows what comes after it has begun: ask until it has.
	eventually(t, func() error {
		if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", "Hello", "")); got.status != 200 {
			t.Fatal(got.body)
		}
		if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", "")); got.status != 200 {
			t.Fatal(got.body)
		}
		time.Sleep(50 * time.Millisecond)
		if !strings.Contains(all.String(), `"ai_model":"gpt-4o"`) || !strings.Contains(some.String(), "gpt-4o-mini") {
			return errorString("no rows yet")
		}
		return nil
	})
	if code := <-codes; code != 0 {
		t.Errorf("--limit ended with %d", code)
	}
	stop()
	if code := <-codes; code != 0 {
		t.Errorf("an interrupted tail ended with %d", code)
	}
	if rows := strings.Split(strings.TrimSpace(some.String()), "\n"); len(rows) != 1 || !strings.Contains(rows[0], " 200 ") || !strings.Contains(rows[0], "USD") {
		t.Errorf("%q", rows)
	}
	for _, line := range strings.Split(strings.TrimSpace(all.String()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }

func TestLogsRefusesBadInput(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(workspaceKey)
	d.wants(2, "argument is missing", "logs")
	d.wants(2, "use tail", "logs", "head")
	d.wants(2, "name=value", "logs", "tail", "--filter", "x")
	d.wants(2, "--limit", "logs", "tail", "--limit", "-1")
	d.wants(1, "400", "logs", "tail", "--filter", "status_code=x")
	d.vars["GATEWAY_API_KEY"] = "no-such-key"
	d.wants(1, "401", "logs", "tail")
	d.vars["GATEWAY_URL"] = "http://127.0.0.1:1"
	d.wants(3, "not reachable", "logs", "tail")
}

// A name that a client sends cannot move the cursor of the terminal.
func TestLogsTailShowsNoControlCharacters(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		row, _ := json.Marshal(map[string]any{"id": "1", "ai_model": "evil\x1b[2J\u202emodel", "response_status_code": 200, "cost_usd": 0})
		_, _ = io.WriteString(w, "retry: 1\n\nevent: log\nid: 1\ndata: "+string(row)+"\n\n")
	}))
	defer host.Close()
	d := &cliUser{t: t, home: t.TempDir(), vars: map[string]string{"GATEWAY_URL": host.URL, "GATEWAY_API_KEY": "k"}}
	if out := d.wants(0, "model", "logs", "tail", "--limit", "1"); strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("%q", out)
	}
}

func TestExplainTakesLogsAndTraces(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""))
	trace := got.header.Get("X-Gateway-Trace-Id")
	id := r.records(1)[0].ID
	d := r.cliUser(workspaceKey)
	for _, args := range [][]string{{id}, {trace}} {
		d.wants(0, "Answered 200", append([]string{"explain"}, args...)...)
	}
	var list struct{ Data []struct{ Steps []any } }
	if err := json.Unmarshal([]byte(d.wants(0, "", "explain", "--json", trace)), &list); err != nil || len(list.Data) != 1 || len(list.Data[0].Steps) == 0 {
		t.Errorf("%v %+v", err, list)
	}
	admin := r.cliUser(adminKey)
	admin.wants(0, "Answered 200", "explain", id, "--workspace", "default")
	d.wants(2, "argument is missing", "explain")
	d.wants(1, "no log and no trace", "explain", "00000000-0000-0000-0000-000000000000")
	d.wants(1, "no log and no trace", "explain", "../../api-keys")
	d.wants(2, "1 to 255", "explain", strings.Repeat("x", 300))
	d.vars["GATEWAY_API_KEY"] = "no-such-key"
	d.wants(1, "401", "explain", id)
	d.vars["GATEWAY_URL"] = "http://127.0.0.1:1"
	d.wants(3, "not reachable", "explain", id)
}

// What validate accepts the gateway saves, and what it rejects the gateway rejects, offline.
func TestValidateAgreesWithTheGateway(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(adminKey)
	d.vars = nil // offline
	for _, c := range []struct {
		config string
		valid  bool
		field  string
	}{
		{`{"provider":"@mock"}`, true, ""},
		{`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock"},{"provider":"@mock","retry":{"attempts":2}}]}`, true, ""},
		{`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","retry":{"attempts":"two"}}]}`, false, "targets[0].retry.attempts"},
		{`{"provider":"@mock","cache":{"mode":"sometimes"}}`, false, "cache.mode"},
		{`{"unknown_member":1,"provider":"@mock"}`, false, "unknown_member"},
		{`{}`, false, "must name a provider"},
	} {
		name := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(name, []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		code := 0
		if !c.valid {
			code = 1
		}
		d.wants(code, c.field, "validate", name)
		var result struct {
			Valid  bool
			Errors []struct{ Field, Message string }
		}
		if err := json.Unmarshal([]byte(d.wants(code, c.field, "validate", "--json", name)), &result); err != nil || result.Valid != c.valid || (len(result.Errors) == 0) != c.valid {
			t.Errorf("%s: %v %+v", c.config, err, result)
		}
		saved := r.call("POST", "/configs", `{"name":"c","workspace_id":"default","config":`+c.config+`}`, "X-Gateway-Api-Key", adminKey)
		if (saved.status == 200) != c.valid {
			t.Errorf("%s: the gateway says %d %s", c.config, saved.status, saved.body)
		}
	}
	d.stdin = `{"name":"wrapped","config":{"provider":"@mock"}}`
	d.wants(0, "valid config", "validate", "-")
	d.stdin = strings.Repeat(" ", 17<<20)
	d.wants(1, "larger than", "validate", "-")
	d.wants(1, "no such file", "validate", filepath.Join(d.home, "missing"))
	d.wants(1, "not a regular file", "validate", d.home)
	d.wants(2, "argument is missing", "validate")
}

// The lines of env work in a shell: a request by the variables alone succeeds.
func TestEnvPointsAClientAtTheGateway(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(workspaceKey)
	out := d.wants(0, `export OPENAI_API_KEY="$GATEWAY_API_KEY"`, "env", "openai")
	if want := "export OPENAI_BASE_URL='" + r.base + "'\n"; !strings.Contains(out, want) || strings.Contains(out, "ANTHROPIC") {
		t.Errorf("%s", out)
	}
	d.wants(0, "ANTHROPIC_BASE_URL='"+strings.TrimSuffix(r.base, "/v1")+"'", "env")
	d.wants(0, "set -gx OPENAI_BASE_URL", "env", "--shell", "fish")
	d.wants(0, "$env:OPENAI_API_KEY = $env:GATEWAY_API_KEY", "env", "--shell", "powershell")
	d.wants(0, `"OPENAI_BASE_URL":"`+r.base, "env", "openai", "--json")
	d.wants(2, "use openai", "env", "cobol")
	d.wants(2, "--shell", "env", "--shell", "cmd")
	d.vars["GATEWAY_API_KEY"] = ""
	d.wants(0, "is not set", "env", "openai")
	d.vars["GATEWAY_URL"] = "http://x/'; rm -rf /; '"
	if out := d.wants(0, "%27", "env"); strings.Contains(out, "/'; rm") {
		t.Errorf("the address ends its quotes: %s", out)
	}
}
