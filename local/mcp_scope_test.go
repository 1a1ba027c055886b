package main

import (
	"fmt"
	"testing"
)

// TestLogsReportTheCredentialOfCallers: the scope of a key, those of an access token.
func TestLogsReportTheCredentialOfCallers(t *testing.T) {
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

// TestRejectedCallsAreReported: who is rejected a server or an agent is told so for the request,
// and the record says what was asked for.
func TestRejectedCallsAreReported(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	server, _ := r.registerMCP("files", up.URL, "")
	agent, _ := r.registerAgent("agent", newAgent(t, false, "").URL, "")
	for _, path := range []string{"/mcp-servers/" + server, "/agent-servers/" + agent} {
		r.admin("PUT", path+"/user-access?workspace_id="+r.workspace(), fmt.Sprintf(`{"default_user_access":"deny","workspace_id":%q}`, r.workspace()))
	}
	notify := func(slug string) reply {
		return r.call("POST", "/agent/"+slug, anAgentCall, "A2A-Version", "1.0")
	}
	for name, c := range map[string]struct {
		got    reply
		status int
	}{
		"no access":           {r.callTool("files", "tool1", "x"), 403},
		"no server":           {r.callTool("nowhere", "tool1", "x"), 404},
		"a foreign page":      {r.callTool("files", "tool1", "x", "Origin", "https://elsewhere.example.com"), 403},
		"no access to agents": {notify("agent"), 403},
		"no agent":            {notify("nowhere"), 404},
	} {
		if c.got.status != c.status || c.got.json(t)["id"] != "r1" {
			t.Errorf("%s: %d %s", name, c.got.status, c.got.body)
		}
	}
	want := map[string]int{"tools/call tool1 user": 1, "tools/call tool1 server": 1, "tools/call tool1 origin": 1, "SendMessage <nil> user": 1, "SendMessage <nil> server": 1}
	eventually(t, func() error {
		seen := map[string]int{}
		for _, row := range r.get("/logs?page_size=100&workspace_id="+r.workspace(), adminKey)["data"].([]any) {
			m := row.(map[string]any)
			seen[fmt.Sprint(m["mcp_method"], " ", m["mcp_name"], " ", m["mcp_decision"])]++
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			return fmt.Errorf("the logs tell of %v", seen)
		}
		return nil
	})
}
