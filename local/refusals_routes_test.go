package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/relay"
)

var updateRefusals = flag.Bool("update-refusals", false, "write the table of refusals")

func init() {
	// MCP and A2A: an error of JSON-RPC or, on the paths of A2A's HTTP binding, of HTTP.
	readsError["protocol"] = func(e errorBodies, _ int) bool {
		object, _ := e["error"].(map[string]any)
		_, coded := object["code"].(float64)
		return coded && e.text("error", "message") != ""
	}
}

// refusedBodies are bodies of the native routes and of the paths that are passed through in
// a provider's own shape, by method and path.
var refusedBodies = map[string]string{
	"POST /v1beta/models/{model+}:generateContent":       `{"contents":[{"parts":[{"text":"x"}]}]}`,
	"POST /v1beta/models/{model+}:streamGenerateContent": `{"contents":[{"parts":[{"text":"x"}]}]}`,
	"POST /v1beta/models/{model+}:countTokens":           `{"contents":[{"parts":[{"text":"x"}]}]}`,
	"POST /v1beta/models/{model+}:embedContent":          `{"content":{"parts":[{"text":"x"}]}}`,
	"GET /v1beta/models":                                 "",
	"POST /model/{model+}/converse":                      `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`,
	"POST /model/{model+}/converse-stream":               `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`,
	"POST /model/{model+}/invoke":                        `{"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
	"POST /model/{model+}/invoke-with-response-stream":   `{"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
	"POST /v2/chat":   `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}]}`,
	"POST /v2/embed":  `{"model":"m","texts":["x"],"input_type":"search_query"}`,
	"POST /v2/rerank": `{"model":"m","query":"x","documents":["x"]}`,
}

// passedInShape are the paths of no route that are passed through in a provider's shape.
var passedInShape = []string{
	"POST /v1beta/models/{model+}:embedContent", "GET /v1beta/models", "POST /model/{model+}/invoke", "POST /model/{model+}/invoke-with-response-stream", "POST /v2/embed", "POST /v2/rerank",
}

// refusable is a request of a route that can be rejected.
type refusable struct {
	name, shape, method, path, body string
	headers                         []string
}

// shapeOfPath returns the SDKs that call a path.
func shapeOfPath(path string) string {
	for begins, shape := range map[string]string{"/messages": "anthropic", "/v1beta/": "google", "/model/": "bedrock", "/v2/": "cohere", "/mcp/": "protocol", "/agent/": "protocol"} {
		if strings.HasPrefix(path, begins) {
			return shape
		}
	}
	return "openai"
}

// refusables are requests of all routes of the data plane: a route without one is a mistake.
func (r *running) refusables(t *testing.T) (all []refusable, scopes []string) {
	t.Helper()
	made := map[string]string{} // things of the gateway's own, by the paths that name them
	add := func(name, path, body string, headers []string) {
		method, of, _ := strings.Cut(name, " ")
		id := cmp.Or(made[name], "none")
		path = strings.NewReplacer("{model+}", "gpt-4o-mini", "{model}", "gpt-4o-mini", "{id}", id).Replace(cmp.Or(path, of))
		if strings.HasSuffix(path, ":streamGenerateContent") {
			path += "?alt=sse"
		}
		all = append(all, refusable{name, shapeOfPath(of), method, path, body, headers})
	}
	for _, rt := range assembly.DataPlane() {
		scopes = append(append(scopes, rt.OrScopes...), rt.Scope)
		methods := rt.Methods
		if rt.Method != "" {
			methods = append(methods[:len(methods):len(methods)], rt.Method)
		}
		for _, m := range methods {
			name := m + " " + rt.Path
			s, ok := samples[name]
			switch {
			case ok:
				_, composed := rt.Handler.(*relay.Composed)
				if s.prepare != nil && (rt.Prompt() != nil || composed || rt.Protocol() != nil) {
					made[name] = s.prepare(r)
				}
				add(name, s.path, strings.ReplaceAll(strings.ReplaceAll(s.body, "@mock/", ""), "@mock-anthropic/", ""), withoutProvider(s.headers))
			case rt.Protocol() == nil && rt.Live() == nil: // those have one by POST, and a wire of their own
				t.Errorf("%s has no sample", name)
			}
		}
		for _, native := range rt.Native {
			name := native.Method + " " + native.Path
			body, ok := refusedBodies[name]
			if !ok {
				t.Errorf("%s has no sample", name)
			}
			add(name, "", body, nil)
		}
	}
	for _, name := range passedInShape {
		add(name, "", refusedBodies[name], nil)
	}
	for _, path := range []string{"/models", "/models/{model}"} { // Anthropic's SDK calls them, too
		add("GET "+path, "", "", []string{"Anthropic-Version", "2023-06-01"})
		all[len(all)-1].name, all[len(all)-1].shape = "GET "+path+" (Anthropic)", "anthropic"
	}
	slices.Sort(scopes)
	return all, slices.Compact(slices.DeleteFunc(scopes, func(s string) bool { return s == "" }))
}

// withoutProvider returns headers without that of the provider.
func withoutProvider(headers []string) (out []string) {
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] != "X-Gateway-Provider" {
			out = append(out, pair...)
		}
	}
	return out
}

// TestRefusalsOfEveryRoute sends each rejection to each route of the route table and reads the
// body as the SDK of that route does. The statuses are in testdata/rejections.txt: 2xx where a
// route has no such rejection.
//
//lane:exhaustive
func TestRefusalsOfEveryRoute(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.exhaust()
	all, scopes := r.refusables(t)
	raw, _ := json.Marshal(scopes) // texts
	limited := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"limited","workspace_id":%q,"scopes":%s,"rate_limits":[{"type":"requests","unit":"rpd","value":1}]}`, r.workspace(), raw))["key"].(string)
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", limited)
	unscoped := r.newKeyOf("logs.list")
	r.saveUnreachable("gone")
	onMock := []string{"X-Gateway-Provider", "@mock"}
	denies := `{"provider":"@mock","input_guardrails":[{"default.contains":{"words":["nothing of this"],"operator":"any"},"deny":true}]}`
	refusals := []struct {
		name    string
		always  int // every route rejects with this status
		headers []string
		body    string
		passes  bool // the provider may be the one that rejects
	}{
		{"key", 401, []string{"X-Gateway-Api-Key", "wrong"}, "", false},
		{"scope", 403, append([]string{"X-Gateway-Api-Key", unscoped}, onMock...), "", false},
		{"rate", 429, append([]string{"X-Gateway-Api-Key", limited}, onMock...), "", false},
		{"budget", 0, append(exhausted[:len(exhausted):len(exhausted)], onMock...), "", false},
		{"provider", 0, []string{"X-Gateway-Provider", "nobody"}, "", false},
		{"slug", 0, []string{"X-Gateway-Provider", "@nobody"}, "", false},
		{"header", 400, append([]string{"X-Gateway-Translation", "loose"}, onMock...), "", false},
		{"config", 0, []string{"X-Gateway-Config", `{"retry":{"attempts":-1}}`}, "", false},
		{"unreachable", 0, []string{"X-Gateway-Provider", "@gone"}, "", false},
		{"guardrail", 0, []string{"X-Gateway-Config", denies}, "", true},
		{"json", 0, onMock, `{"model":`, true},
		{"form", 0, onMock, `[]`, true},
	}
	var table strings.Builder
	for _, c := range all {
		fmt.Fprintf(&table, "%s %s:", c.shape, c.name)
		for _, f := range refusals {
			body := c.body
			if f.body != "" && body != "" {
				body = f.body
			}
			got := r.call(c.method, c.path, body, append(append([]string(nil), c.headers...), f.headers...)...)
			shown := fmt.Sprint(got.status)
			if got.status < 400 {
				shown = "2xx"
			}
			fmt.Fprintf(&table, " %s=%s", f.name, shown)
			if f.always != 0 && got.status != f.always {
				t.Errorf("%s, %s: %d, want %d: %.300s", c.name, f.name, got.status, f.always, got.body)
			}
			if got.status < 400 {
				continue
			}
			var read errorBodies
			err := json.Unmarshal([]byte(got.body), &read)
			socket := c.method == "GET" && c.path == "/responses" // an event, without headers
			if got.header.Get("X-Gateway-Error-Code") == "" && !socket {
				// The provider's own, as it came, or an error of a protocol.
				if c.shape != "protocol" && !f.passes && got.status != 404 {
					t.Errorf("%s, %s: no code: %d %.300s", c.name, f.name, got.status, got.body)
				}
				if c.shape != "protocol" {
					continue
				}
			}
			if err != nil || !readsError[c.shape](read, got.status) {
				t.Errorf("%s, %s: not %s's: %d %.300s", c.name, f.name, c.shape, got.status, got.body)
			}
			wait, _ := strconv.Atoi(got.header.Get("Retry-After"))
			if f.name == "rate" && !socket && (wait > 60) == (c.path == "/responses") {
				t.Errorf("%s: Retry-After %d", c.name, wait)
			}
			if c.path == "/responses" && f.name == "unreachable" && read.text("error", "code") != "server_is_overloaded" {
				t.Errorf("%s, %s: %.300s", c.name, f.name, got.body)
			}
			if socket || c.shape == "protocol" || read.text("error", "source") == "provider" {
				continue
			}
			if final := got.status < 500; (got.header.Get("X-Should-Retry") == "false") != final {
				t.Errorf("%s, %s: %d with X-Should-Retry %q", c.name, f.name, got.status, got.header.Get("X-Should-Retry"))
			}
		}
		table.WriteByte('\n')
	}
	const golden = "testdata/refusals.txt"
	if *updateRefusals {
		if err := os.WriteFile(golden, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != table.String() {
		t.Errorf("the statuses are not those of %s (%v):\n%s", golden, err, table.String())
	}
}
