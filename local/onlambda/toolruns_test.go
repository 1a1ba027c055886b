package onlambda_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestToolRunsOnLambda: the functions of responses and messages call tools for the model,
// plain and streamed, with no more than the permissions of their roles; each turn and each call
// has a record below that of the request.
func TestToolRunsOnLambda(t *testing.T) {
	in := restrictTo(t, []string{"responses", "messages", "logs", "usage", "audit", "apikeys"})
	key, _ := in.send("POST", "/api-keys/workspace/service", adminKey, `{"name":"limited","workspace_id":"default","scopes":["completions.write","mcp.invoke"],
		"rate_limits":[{"type":"requests","unit":"rpd","value":10000}],"usage_limits":{"type":"cost","credit_limit":100}}`)["key"].(string)
	const tool = `"tools":[{"type":"mcp","server_label":"@gateway-mcp/sample"}]`
	traces := map[string]bool{}
	for path, c := range map[string]struct{ body, made, ended string }{
		"/responses": {`{"model":"@mock/gpt-4o","input":"mock: call=echo {\"text\":\"hey\"}\nGo.",` + tool, `"output":"hey"`, `"status":"completed"`},
		"/messages":  {`{"model":"@mock/gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"mock: call=echo {\"text\":\"hey\"}\nGo."}],` + tool, `"text":"hey"`, `"stop_reason":"end_turn"`},
	} {
		for _, stream := range []bool{false, true} {
			trace := fmt.Sprintf("run of %s %t", path, stream)
			traces[trace] = true
			res := in.do(t, "POST", path, key, fmt.Sprintf(`%s,"stream":%t}`, c.body, stream), "X-Gateway-Beta", "server-side-mcp-2026-06-01", "X-Gateway-Trace-Id", trace)
			got := whole(t, res)
			if res.StatusCode != 200 || !strings.Contains(got, c.made) || !strings.Contains(got, c.ended) || stream != strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%s: %d %.2000s", trace, res.StatusCode, got)
			}
		}
	}
	in.work(func() error {
		seen := map[string][]string{}
		list := in.send("GET", "/logs?workspace_id=default&page_size=100", adminKey, "")
		raw, err := json.Marshal(list["data"])
		if err != nil {
			return err
		}
		var rows []struct {
			Trace  string `json:"trace_id"`
			Method string `json:"mcp_method"`
			Parent string `json:"parent_span_id"`
		}
		if err := json.Unmarshal(raw, &rows); err != nil {
			return err
		}
		for _, row := range rows {
			if traces[row.Trace] {
				of := row.Method
				if of == "" {
					of = map[bool]string{true: "request", false: "turn"}[row.Parent == ""]
				}
				seen[row.Trace] = append(seen[row.Trace], of)
			}
		}
		for trace := range traces {
			if slices.Sort(seen[trace]); !slices.Equal(seen[trace], []string{"request", "tools/call", "tools/list", "turn", "turn"}) {
				return fmt.Errorf("%s: %v", trace, seen[trace])
			}
		}
		return nil
	})
	for _, refused := range in.recorder.Denied() {
		t.Errorf("missing: %s", refused)
	}
	if t.Failed() {
		t.Log(in.log.text())
	}
}
