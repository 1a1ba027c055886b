package main

import (
	"fmt"
	"testing"
)

// TestLogsTellWhatCallersCameInBy: the scope of a key, those of an access token.
func TestLogsTellWhatCallersCameInBy(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	l.bundle("several", `[{"server":"tools","prefix":"t_"}]`, "")
	l.registerAgent("agent", newAgent(t, false, "").URL, "")
	call := func(slug, token string, status int) {
		t.Helper()
		got := l.keyless("POST", "/mcp/"+slug+"/mcp", mcpBody("tools/call", `"name":"tool1","arguments":{"text":"x"}`), "Authorization", "Bearer "+token, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "tool1")
		l.wantStatus("call", got, status, "")
	}
	client := l.client()
	reads := l.tokens(exchangeOf(client, l.code(l.request(client, "scope", "mcp:read"), l.session)))
	both := l.tokens(exchangeOf(client, l.code(l.request(client, "scope", "mcp:read mcp:write"), l.session)))
	all := l.tokens(exchangeOf(client, l.code(l.request(client), l.session)))
	l.wantStatus("list", l.lists(l.resource, reads.Access), 200, `"result"`)
	call("tools", reads.Access, 403)
	call("tools", both.Access, 200)
	call("tools", all.Access, 200)
	call("tools", workspaceKey, 200)
	l.wantStatus("call of a member", l.callTool("several", "t_tool1", "x"), 200, `"result"`)
	l.wantStatus("agent", l.call("POST", "/agent/agent", anAgentCall, "A2A-Version", "1.0"), 200, `"result"`)

	want := map[string]int{
		"tools/list Bearer mcp:read allowed":           1,
		"tools/call Bearer mcp:read scope":             1,
		"tools/call Bearer mcp:read mcp:write allowed": 1,
		"tools/call Bearer mcp allowed":                1,
		"tools/call Bearer mcp.invoke allowed":         1,
		"tools/call api_key mcp.invoke allowed":        1,
		"SendMessage api_key agents.invoke allowed":    1,
	}
	eventually(t, func() error {
		seen := map[string]int{}
		for _, row := range l.call("GET", "/logs?page_size=100&workspace_id="+l.workspace(), "", "X-Gateway-Api-Key", adminKey).json(t)["data"].([]any) {
			m := row.(map[string]any)
			if m["mcp_method"] == nil {
				continue
			}
			seen[fmt.Sprint(m["mcp_method"], " ", m["mcp_auth_type"], " ", m["mcp_auth_scope"], " ", m["mcp_decision"])]++
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			return fmt.Errorf("the logs tell of %v", seen)
		}
		return nil
	})
}
