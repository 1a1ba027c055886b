package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A host that claims to have used more than anything can does not make sums run
// over: neither those of a key's budget nor those of graphs.
func TestAbsurdUsageDoesNotRunOver(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9000000000000000000,"completion_tokens":9000000000000000000,"total_tokens":-5}}`)
	}))
	defer host.Close()
	r.save("absurd", `"ai_provider_id":"openai","key":"sk-absurd","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":100}}`, r.workspace()))
	const calls = 4
	for i := range calls {
		path, body := "/chat/completions", `{"model":"gpt-4o-mini","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`
		if i%2 == 1 {
			path = "/proxy/chat/completions"
		}
		with := workspaceKey
		if i == calls-1 {
			with = key["key"].(string)
		}
		if got := r.call("POST", path, body, "X-Gateway-Provider", "@absurd", "X-Gateway-Api-Key", with); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for _, row := range r.logs(calls, workspaceKey) {
		if n := row["total_units"].(float64); n < 1e12 {
			t.Errorf("a record of %v tokens", n)
		}
	}
	for _, graph := range []string{"cost", "tokens"} {
		if total := member(r.get("/analytics/graphs/"+graph+"?"+lastHour(), adminKey), "summary/total").(float64); total < 2e8 {
			t.Errorf("%s: total %v", graph, total)
		}
	}
	limits := r.admin("GET", "/api-keys/"+key["id"].(string), "")["usage_limits"].(map[string]any)
	if used := limits["current_usage"].(float64); used < 1e5 || limits["status"] != "exhausted" {
		t.Errorf("the budget says %v", limits)
	}
}
