package main

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// explained returns the steps of the only log, each as its name and text, of guardrails, calls,
// skips and the response.
func (r *running) explained(key string) string {
	r.t.Helper()
	rec := r.records(1)[0]
	var out []string
	for _, s := range r.get("/logs/"+rec.ID+"/explain", key)["steps"].([]any) {
		s := s.(map[string]any)
		if name := s["step"].(string); name == "guardrail" || name == "attempt" || name == "skip" || name == "answer" {
			out = append(out, name+": "+s["text"].(string))
		}
	}
	return strings.Join(out, "\n")
}

// The call of a denied response was made and paid: it comes before the verdict and the denial,
// also in a stream.
func TestExplanationOfADeniedResponseBeginsWithTheCall(t *testing.T) {
	t.Parallel()
	const denies = `{"provider":"@mock","output_guardrails":[{"default.contains":{"words":["secret-42"],"operator":"none"},"id":"no secrets","deny":true}]}`
	const logs = `{"provider":"@mock","output_guardrails":[{"default.contains":{"words":["secret-42"],"operator":"none"},"id":"no secrets"}]}`
	for name, c := range map[string]struct {
		config, more, want string
	}{
		"plain":              {denies, "", `^attempt: Called @mock with model gpt-4o-mini: 200\nguardrail: The guardrail no secrets of this target's response failed and denied: default.contains\nskip: Its response was rejected by the gateway: guardrail_denied\nanswer: Answered 446 guardrail_denied$`},
		"stream":             {denies, `,"stream":true`, `^attempt: Called @mock with model gpt-4o-mini: 200[^\n]*\nguardrail: The guardrail no secrets of this target's response failed and denied: default.contains\n(skip: .*\n)?answer: Answered \d+ guardrail_denied`},
		"stream, not denied": {logs, `,"stream":true`, `^attempt: Called @mock with model gpt-4o-mini: 200\nguardrail: The guardrail no secrets of this target's response failed: default.contains\nanswer: Answered 200`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "mock: say=secret-42", c.more), "X-Gateway-Config", c.config)
			if got := r.explained(workspaceKey); !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Who may read providers is told where and why a host did not answer; others are told neither
// the address nor the cause, and the record does not contain the address.
func TestDeadHostsAreNamedToThoseWhoSeeTheProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	dead := httptest.NewServer(nil)
	dead.Close()
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Dead","slug":"dead","workspace_id":"default","provider":"openai","key":"sk-test","custom_host":%q}`, dead.URL))
	host := strings.TrimPrefix(dead.URL, "http://")
	sees := r.admin("POST", "/api-keys/workspace/service", `{"name":"sees","workspace_id":"default","scopes":["completions.write","providers.read","logs.view","logs.list"]}`)["key"].(string)
	for key, want := range map[string]string{
		sees:         "The provider openai (@dead at " + host + ") refuses connections",
		workspaceKey: "The provider openai did not answer",
	} {
		got := r.call("POST", "/chat/completions", chatBody("@dead/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", key)
		if got.status != 503 || !strings.Contains(got.body, `"`+want+`"`) {
			t.Errorf("%d %s, want %s", got.status, got.body, want)
		}
	}
	rec := r.records(2)[0]
	if rec.ErrorMessage != "The provider openai refuses connections" {
		t.Errorf("the record says %q", rec.ErrorMessage)
	}
	if got := r.explained(sees); !strings.Contains(got, "provider_unreachable; its address is "+dead.URL) {
		t.Error(got)
	}
	if got := r.explained(workspaceKey); strings.Contains(got, host) {
		t.Error(got)
	}
}
