package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gateway/functions/docs/document"
)

// TestTheGatewayRunsWithoutItsOptionalParts builds the gateway with the tag core: it has no code
// and no route of the parts in functions/assembly/part_*.go, and everything else works.
//
//lane:exhaustive
func TestTheGatewayRunsWithoutItsOptionalParts(t *testing.T) {
	t.Parallel()
	run := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v %s", args, err, out)
		}
		return string(out)
	}
	// Cors of MCP and the records of single sign-on remain.
	for _, pkg := range strings.Fields(run("list", "-deps", "-tags", "core", "gateway/local", "gateway/functions/container")) {
		if regexp.MustCompile(`^gateway/(functions/(auth|scim|mcp|mcpservers|agentservers|docs/toolbox|realtime|dryrun)|shared/(mcp|mcp/[a-z]*(gate|auth|serverrequest).*|a2a.*|relay/tools|signin/(saml|scim|confirm|device)))$`).MatchString(pkg) {
			t.Errorf("the core links %s", pkg)
		}
	}
	program := filepath.Join(t.TempDir(), "gateway")
	run("build", "-tags", "core", "-o", program, "gateway/local")
	linked, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	// Of packages that have more, the linker omits what nothing calls.
	for _, name := range []string{"dialect/job.Vertex.", "relay/realtime.OpenLive", "host/http1.(*conn).serve", "egress.(*HTTP1).RoundTrip"} {
		if bytes.Contains(linked, []byte("gateway/shared/"+name)) {
			t.Errorf("the core links %s", name)
		}
	}
	p := launch(t, exec.Command(program, "-addr", "127.0.0.1:0", "-data", t.TempDir()))
	r := &running{t: t, base: p.base}

	core, all := operations(t, r.call("GET", "/openapi.json", "").body), operations(t, string(document.JSON))
	for op := range core {
		if all[op] == nil {
			t.Errorf("only the core describes %s", op)
		}
	}
	status := func(method, path string) int {
		req, err := http.NewRequest(method, p.base+regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gateway-Api-Key", adminKey)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	// A path is unknown, like any path of a provider, or serves other methods alone.
	for op := range all {
		method, path, _ := strings.Cut(op, " ")
		if core[op] != nil {
			continue
		}
		if got := status(method, path); got != 404 && got != 405 && got != status(method, "/no-such-route") {
			t.Errorf("%s: %d", op, got)
		}
	}
	for _, op := range []string{"POST /mcp", "POST /mcp/{slug}/mcp", "POST /agent/{slug}", "GET /mcp-servers", "GET /scim/Users", "POST /auth/sso-configurations", "GET /auth/self", "POST /oauth/token", "GET /realtime", "POST /realtime/client_secrets", "POST /configs/dry-run"} {
		if core[op] != nil {
			t.Errorf("the core describes %s", op)
		}
		if all[op] == nil {
			t.Errorf("no gateway describes %s", op)
		}
	}

	if got := r.call("POST", "/chat/completions", `{"model":"@mock/gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`); got.status != 200 {
		t.Errorf("chat: %d %s", got.status, got.body)
	}
	for _, kind := range conversations {
		path, body := echoRequest(kind, "hunter2", "")
		config := `{"input_guardrails":[{"default.regexMatch":{"rule":"hunter2","not":true},"deny":true}]}`
		if got := r.call("POST", path, body, "X-Gateway-Config", config); got.status != 446 {
			t.Errorf("guarded %s: %d %s", kind, got.status, got.body)
		}
	}
	if got := r.call("POST", "/embeddings", `{"model":"@mock/text-embedding-3-small","input":"Hello"}`); got.status != 200 {
		t.Errorf("embeddings: %d %s", got.status, got.body)
	}
	for path, body := range map[string]string{"/configs": `{"name":"a","workspace_id":"default","config":{"retry":{"attempts":2}}}`, "/workspaces": "", "/api-keys": "", "/guardrails": "", "/logs": ""} {
		method := "GET"
		if body != "" {
			method = "POST"
		}
		if got := r.call(method, path, body, "X-Gateway-Api-Key", adminKey); got.status != 200 || !strings.HasPrefix(got.body, "{") {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
		}
	}
}
