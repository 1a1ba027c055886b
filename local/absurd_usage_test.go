package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A host that claims to have used more than anything can is charged for what the request
// could have used, and the record says so. Neither budgets nor graphs take the claim over.
func TestAbsurdUsageIsNotCharged(t *testing.T) {
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
		if n := row["total_units"].(float64); n < 10 || n > 200 || row["units_limited"] != true || row["units_estimated"] != true {
			t.Errorf("a record of %v tokens, limited %v, estimated %v", n, row["units_limited"], row["units_estimated"])
		}
	}
	for graph, most := range map[string]float64{"cost": 0.1, "tokens": 200 * calls} {
		if total := member(r.get("/analytics/graphs/"+graph+"?"+lastHour(), adminKey), "summary/total").(float64); total <= 0 || total > most {
			t.Errorf("%s: total %v", graph, total)
		}
	}
	limits := r.admin("GET", "/api-keys/"+key["id"].(string), "")["usage_limits"].(map[string]any)
	if used := limits["current_usage"].(float64); used <= 0 || used > 0.001 || limits["status"] != "active" {
		t.Errorf("the budget says %v", limits)
	}
}
