package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a provider is asked carries the trace on, as a span below the gateway's own; where
// a coding agent made the request is noted, found again, and not sent on.
func TestTracesGoOnAndAgentsAreNoted(t *testing.T) {
	t.Parallel()
	r := start(t)
	seen := make(chan http.Header, 1)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen <- req.Header
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"a","object":"chat.completion","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer host.Close()
	r.save("seen", `"ai_provider_id":"openai","key":"sk-seen","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	agent := []string{"X-Claude-Code-Session-Id", "s-1", "X-Claude-Code-Agent-Id", "a-1", "X-Claude-Code-Parent-Agent-Id", "p-1"}
	paths := []string{"/chat/completions", "/proxy/chat/completions"}
	for _, path := range paths {
		headers := append([]string{"X-Gateway-Provider", "@seen", "Traceparent", "00-" + trace + "-" + parent + "-01", "Tracestate", "vendor=1"}, agent...)
		if got := r.call("POST", path, chatBody("gpt-4o-mini", "Hello", ""), headers...); got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		h := <-seen
		if got := h.Get("Traceparent"); !strings.HasPrefix(got, "00-"+trace+"-") || !strings.HasSuffix(got, "-01") || strings.Contains(got, parent) || h.Get("Tracestate") != "vendor=1" {
			t.Errorf("%s: traceparent %q, tracestate %q", path, got, h.Get("Tracestate"))
		}
		for i := 0; i < len(agent); i += 2 {
			if h.Get(agent[i]) != "" {
				t.Errorf("%s: the provider is told %s", path, agent[i])
			}
		}
	}
	// Without a trace, or with ids of another form, nothing is sent.
	for _, headers := range [][]string{{}, {"Traceparent", "00-" + trace + "-" + parent + "-01", "X-Gateway-Trace-Id", "mine"}} {
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), append(headers, "X-Gateway-Provider", "@seen", agent[0], strings.Repeat("x", 300))...); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if got := (<-seen).Get("Traceparent"); got != "" {
			t.Errorf("traceparent %q", got)
		}
	}
	all := r.records(4)
	for i, rec := range all {
		want := [3]string{}
		if i < len(paths) {
			want = [3]string{"s-1", "a-1", "p-1"}
		}
		if got := [3]string{rec.Agent.Session, rec.Agent.ID, rec.Agent.Parent}; got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	r.logs(4, workspaceKey)
	for query, want := range map[string]float64{"session_id=s-1": 2, "agent_id=a-1,other": 2, "parent_agent_id=p-1&session_id=s-1": 2, "session_id=a-1": 0, "user_ids=nobody": 0, "end_users=nobody": 0} {
		got := r.call("GET", "/logs?"+query, "").json(t)
		if got["total"] != want {
			t.Errorf("%s: %v logs, want %v", query, got["total"], want)
		}
		for _, row := range got["data"].([]any) {
			if row := row.(map[string]any); row["session_id"] != "s-1" || row["agent_id"] != "a-1" || row["parent_agent_id"] != "p-1" {
				t.Errorf("%s: %v %v %v", query, row["session_id"], row["agent_id"], row["parent_agent_id"])
			}
		}
	}
}
