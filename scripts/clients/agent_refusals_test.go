package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const guide = "../../functions/docs/guides/requests.md"

// agentTable is a table of the guide for coding agents.
type agentTable struct {
	head string
	rows string
}

func (a *agentTable) add(cells ...string) {
	a.rows += "| " + strings.Join(cells, " | ") + " |\n"
}

// write writes the table into the guide, if every row was run and the flag is set.
func (a *agentTable) write(t *testing.T) {
	t.Helper()
	t.Logf("\n%s%s", a.head, a.rows)
	if !*updateTable || strings.Contains(a.rows, "not run") {
		return
	}
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), a.head)
	_, after, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatalf("%s has no table with the head %q", guide, a.head)
	}
	if err := os.WriteFile(guide, []byte(before+a.head+a.rows+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// versionOf returns the pinned versions of packages, which are separated as the versions are.
func versionOf(t *testing.T, packages string) string {
	t.Helper()
	raw, err := os.ReadFile("../agents/package.json")
	var all struct{ Dependencies, OptionalDependencies map[string]string }
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	versions := strings.Split(packages, ", ")
	for i, pkg := range versions {
		if versions[i] = all.Dependencies[pkg] + all.OptionalDependencies[pkg]; versions[i] == "" {
			t.Fatalf("%s is not pinned", pkg)
		}
	}
	return strings.Join(versions, ", ")
}

const (
	turnsHead    = "| Agent | Version | API | Date | Seven turns |\n|---|---|---|---|---|\n"
	refusalsHead = "| Agent | API | Wrong key, 401 | Budget, 412 | Daily rate, 429 | Guardrail, 446 |\n|---|---|---|---|---|---|\n"
)

// TestTheGuideNamesThePinnedAgents compares the tables of the guide with the pinned packages. make
// agents writes them.
func TestTheGuideNamesThePinnedAgents(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	section := func(head string) string {
		_, rest, ok := strings.Cut(string(raw), head)
		table, _, _ := strings.Cut(rest, "\n\n")
		if !ok {
			t.Errorf("no table with the head %s", head)
		}
		return table
	}
	turns, refusals := section(turnsHead), section(refusalsHead)
	for _, a := range append(pinnedAgents(), drivers()...) {
		if row := fmt.Sprintf("| %s | %s | %s | ", a.agent, versionOf(t, a.pkg), a.wire); !strings.Contains(turns, row) {
			t.Errorf("run make agents: the guide lacks %q", row)
		}
	}
	for _, a := range pinnedAgents() {
		if row := fmt.Sprintf("| %s | %s | ", a.agent, a.wire); !strings.Contains(refusals, row) {
			t.Errorf("run make agents: the guide lacks %q in the table of rejections", row)
		}
	}
}

// refusal is a request that the gateway rejects.
type refusal struct {
	status   int
	key      string
	sentence *regexp.Regexp
}

// refusals creates keys whose requests are rejected.
func (p *process) refusals(t *testing.T) []refusal {
	t.Helper()
	workspace := ""
	for _, w := range p.admin(t, "GET", "/workspaces", "")["data"].([]any) {
		workspace, _ = w.(map[string]any)["id"].(string)
	}
	key := func(fields string) string {
		return p.admin(t, "POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"rejected","workspace_id":%q,"scopes":["completions.write"],%s}`, workspace, fields))["key"].(string)
	}
	config := p.admin(t, "POST", "/configs", fmt.Sprintf(`{"name":"denies","workspace_id":%q,"config":{"input_guardrails":[{"name":"house rules","default.contains":{"words":["a word that no request has"],"operator":"any"},"deny":true}]}}`, workspace))["data"].(map[string]any)
	// One request takes up the day, and one, of which the host states 1,050 tokens, the budget.
	daily, budget := key(`"rate_limits":[{"type":"requests","unit":"rpd","value":1}]`), key(`"usage_limits":{"type":"tokens","credit_limit":100}`)
	for _, k := range []string{daily, budget} {
		req, err := http.NewRequest("POST", p.url+"/chat/completions", strings.NewReader(`{"model":"`+strictModel+`","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("x-gateway-api-key", k)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	return []refusal{
		{401, "no-such-key", regexp.MustCompile(`(?i)api key`)},
		{412, budget, regexp.MustCompile(`(?i)budget|usage limit`)},
		{429, daily, regexp.MustCompile(`(?i)rate limit|requests per day`)},
		{446, key(fmt.Sprintf(`"defaults":{"config_id":%q}`, config["slug"])), regexp.MustCompile(`guardrail checks`)},
	}
}

// TestAgentsTakeRefusals counts, in a proxy, how often a coding agent repeats a request that the gateway
// rejects for good, and reads whether it shows the gateway's sentence.
func TestAgentsTakeRefusals(t *testing.T) {
	onlyByMake(t)
	host := httptest.NewServer(&strictHost{results: map[string]string{}})
	t.Cleanup(host.Close)
	p := startGateway(t)
	p.saveStrict(t, host.URL)
	base, err := url.Parse(strings.TrimSuffix(p.url, "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	var rejected, answered atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(base)
	proxy.ErrorLog = nil
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method != http.MethodPost {
			return nil
		}
		if resp.StatusCode >= 400 || resp.Header.Get("X-Gateway-Error-Status") != "" {
			rejected.Add(1)
		} else {
			answered.Add(1)
		}
		return nil
	}
	counting := httptest.NewServer(proxy)
	t.Cleanup(counting.Close)
	table := agentTable{head: refusalsHead}
	all := p.refusals(t)
	for _, a := range pinnedAgents() {
		cells := []string{a.agent, a.wire}
		for _, r := range all {
			cell := "not run"
			t.Run(fmt.Sprintf("%s by %s, %d", a.agent, a.wire, r.status), func(t *testing.T) {
				rejected.Store(0)
				answered.Store(0)
				out, err := a.start(t, p, counting.URL, r.key, t.TempDir(), "Say hello.", 40*time.Second)
				n := rejected.Load()
				if n == 0 || answered.Load() > 0 {
					t.Errorf("%d requests were rejected, %d were answered: %v\n%.3000s", n, answered.Load(), err, out)
				}
				code, failed := 0, (*exec.ExitError)(nil)
				if errors.As(err, &failed) {
					code = failed.ExitCode()
				}
				cell = fmt.Sprintf("%d, exit %d", n, code)
				if err != nil && err.Error() == "it was ended" {
					cell = fmt.Sprintf("%d+, does not end", n)
				}
				if !r.sentence.Match(out) {
					cell += ", own words"
				}
				t.Logf("%s\n%.1500s", cell, out)
			})
			cells = append(cells, cell)
		}
		table.add(cells...)
	}
	table.write(t)
}
