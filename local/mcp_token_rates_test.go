package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestCallsCountAgainstRatesOfTokens: what goes to tools and agents and what they say
// counts as tokens, for policies on tools and for keys.
func TestCallsCountAgainstRatesOfTokens(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	r.registerMCP("files", up.URL, "")
	r.registerAgent("agent", newAgent(t, false, "").URL, "")
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	policy := r.admin("POST", "/policies/rate-limits", `{"name":"tokens","conditions":[{"key":"mcp_server","value":"files"}],"group_by":[{"key":"mcp_tool"}],"target":"mcp_tools","type":"tokens","unit":"rpd","value":400,`+at+`}`)["id"].(string)
	long := strings.Repeat("word ", 200) // some 250 tokens, and as many in the response
	for i, want := range []int{200, 429} {
		if got := r.callTool("files", "tool1", long); got.status != want || want == 429 && !strings.Contains(got.body, "tokens per day") {
			t.Errorf("call %d: %d %s", i, got.status, got.body)
		}
	}
	if got := r.callTool("files", "tool2", "x"); got.status != 200 {
		t.Errorf("another tool: %d %s", got.status, got.body)
	}
	if got := r.callMCP("files", "tools/list", "", ""); got.status != 200 {
		t.Errorf("a list: %d %s", got.status, got.body)
	}
	r.admin("DELETE", "/policies/rate-limits/"+policy+"?workspace_id="+r.workspace(), "")

	limited := func() string {
		return r.admin("POST", "/api-keys/workspace/service", `{"name":"limited","scopes":["mcp.invoke","agents.invoke"],"rate_limits":[{"type":"tokens","unit":"rpd","value":400}],`+at+`}`)["key"].(string)
	}
	key := limited()
	for i, want := range []int{200, 429} {
		if got := r.callTool("files", "tool1", long, "X-Gateway-Api-Key", key); got.status != want {
			t.Errorf("call %d with the key: %d %s", i, got.status, got.body)
		}
	}
	for _, method := range []string{"SendMessage", "SendStreamingMessage"} {
		key = limited()
		for i, want := range []int{200, 429} {
			if got := r.call("POST", "/agent/agent", rpcBody(method, agentMessage(false, long)), "A2A-Version", "1.0", "X-Gateway-Api-Key", key); got.status != want {
				t.Errorf("%s %d: %d %s", method, i, got.status, got.body)
			}
		}
	}
}
