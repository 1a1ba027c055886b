package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/usage"
)

// mcpBody is a request of the protocol without sessions.
func mcpBody(method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"r1","method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}%s}}`, method, params)
}

// ask sends a request of the protocol without sessions; name is what Mcp-Name repeats.
func (r *running) callMCP(slug, method, name, params string, headers ...string) reply {
	r.t.Helper()
	all := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		all = append(all, "Mcp-Name", name)
	}
	return r.call("POST", "/mcp/"+slug+"/mcp", mcpBody(method, params), append(all, headers...)...)
}

func (r *running) callTool(slug, tool, text string, headers ...string) reply {
	r.t.Helper()
	args, _ := json.Marshal(map[string]string{"text": text})
	return r.callMCP(slug, "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args), headers...)
}

func TestMCPCallsAreGoverned(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	server, integration := r.registerMCP("files", up.URL, "")
	at := `"workspace_id":` + fmt.Sprintf("%q", r.workspace())

	// What is disabled at either level is neither listed nor called, in both eras.
	off := func(path, name, kind string, on bool) {
		r.admin("PUT", path+"/capabilities?workspace_id="+r.workspace(), fmt.Sprintf(`{"capabilities":[{"name":%q,"type":%q,"enabled":%t}],%s}`, name, kind, on, at))
	}
	off("/mcp-servers/"+server, "tool1", "tool", false)
	off("/mcp-integrations/"+integration, "tool2", "tool", false)
	off("/mcp-integrations/"+integration, "greet", "prompt", false)
	off("/mcp-servers/"+server, "file:///files/{path}", "resource", false)
	// A caller cannot tell a disabled tool from one that is not there.
	disabled, unknown := r.callTool("files", "tool1", "x"), r.callTool("files", "nothing", "x")
	if disabled.body != unknown.body || disabled.status != unknown.status || !strings.Contains(unknown.body, "-32602") {
		t.Errorf("a disabled tool: %d %s; an unknown one: %d %s", disabled.status, disabled.body, unknown.status, unknown.body)
	}
	for _, speaks := range []string{stateless, sessions} {
		s := r.connectMCP("files", speaks, nil)
		for tool, err := range s.Tools(context.Background(), nil) {
			if err != nil || tool.Name == "tool1" || tool.Name == "tool2" {
				t.Errorf("%s: listed %v %v", speaks, tool, err)
			}
		}
		for name, known := range map[string]bool{"tool0": true, "tool1": false, "tool2": false} {
			got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"text": ""}})
			if known != (err == nil) || err != nil && !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("%s: %s: %+v %v", speaks, name, got, err)
			}
		}
		if _, err := s.GetPrompt(context.Background(), &sdk.GetPromptParams{Name: "greet"}); err == nil {
			t.Errorf("%s: a disabled prompt is there", speaks)
		}
		if _, err := s.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: "file:///files/a"}); err == nil {
			t.Errorf("%s: an address of a disabled template is there", speaks)
		}
	}
	off("/mcp-servers/"+server, "tool1", "tool", true)
	if got := r.callTool("files", "tool1", "x"); got.status != 200 || !strings.Contains(got.body, "said x") {
		t.Errorf("enabled again: %d %s", got.status, got.body)
	}

	// Guardrails of the workspace judge arguments and results.
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}],"actions":{"deny":true},`+at+`}`)
	guard := func(list string) {
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"input_guardrails":`+list+`,"output_guardrails":`+list+`}}`)
	}
	guard(fmt.Sprintf(`[%q]`, words["id"]))
	if got := r.callTool("files", "tool0", "my hunter2"); got.status != 200 || !strings.Contains(got.body, `"isError":true`) || strings.Contains(got.body, "said") {
		t.Errorf("denied: %d %s", got.status, got.body)
	}
	if got := r.callTool("files", "tool0", "fine"); !strings.Contains(got.body, "said fine") {
		t.Errorf("passed: %d %s", got.status, got.body)
	}
	guard(`[]`)

	// Policies count calls of tools, and nothing else.
	r.admin("POST", "/policies/rate-limits", `{"name":"calls","conditions":[{"key":"mcp_tool","value":"tool3"},{"key":"mcp_server","value":"files"}],"group_by":[{"key":"mcp_tool"}],"target":"mcp_tools","type":"requests","unit":"rpd","value":1,`+at+`}`)
	for i, want := range []int{200, 429, 429} {
		got := r.callTool("files", "tool3", "x")
		if got.status != want || want == 429 && (!strings.Contains(got.body, `"id":"r1"`) || got.header.Get("Retry-After") == "") {
			t.Errorf("call %d: %d %s", i, got.status, got.body)
		}
	}
	if got := r.callMCP("files", "tools/list", "", ""); got.status != 200 {
		t.Errorf("a list: %d %s", got.status, got.body)
	}

	// Who may not.
	for name, c := range map[string]struct {
		key, path string
		status    int
	}{
		"no key":                   {"nobody", "/mcp/files/mcp", 401},
		"no scope":                 {r.newKeyOf("completions.write"), "/mcp/files/mcp", 403},
		"organization key":         {adminKey, "/mcp/files/mcp", 403},
		"no such server":           {workspaceKey, "/mcp/other/mcp", 404},
		"by id":                    {workspaceKey, "/mcp/" + server + "/mcp", 404},
		"of its workspace":         {workspaceKey, "/mcp/default/files/mcp", 200},
		"of another workspace":     {workspaceKey, "/mcp/elsewhere/files/mcp", 403},
		"of a workspace not there": {workspaceKey, "/mcp/nowhere/other/mcp", 403},
	} {
		got := r.call("POST", c.path, mcpBody("tools/list", ""), "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "X-Gateway-Api-Key", c.key)
		if got.status != c.status || c.status != 200 && !strings.Contains(got.body, `"jsonrpc":"2.0"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}

	// Each leaves one record.
	var calls []*usage.Call
	eventually(t, func() error {
		calls = nil
		for _, rec := range archived(t, r.g) {
			if rec.Call != nil && rec.Call.Name == "tool3" {
				calls = append(calls, rec.Call)
				if rec.Provider != "mcp" || rec.ProviderSlug != "files" || rec.Model != "tool3" || rec.IntegrationID != integration || rec.Cost != 0 || rec.Endpoint != "mcp" {
					t.Errorf("record: %+v", rec)
				}
				if rec.ClientStatus == 200 && (rec.Usage.InputTokens() == 0 || rec.Usage.OutputTokens() == 0 || !rec.Usage.Estimated) {
					t.Errorf("tokens: %+v", rec.Usage)
				}
			}
		}
		if len(calls) < 3 {
			return fmt.Errorf("%d records", len(calls))
		}
		return nil
	})
	var logs struct{ Data []map[string]any }
	if got := r.call("GET", "/logs?page_size=100&workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey); got.status != 200 || json.Unmarshal([]byte(got.body), &logs) != nil {
		t.Fatalf("%d %.300s", got.status, got.body)
	}
	shown := 0
	for _, l := range logs.Data {
		if l["mcp_name"] == "tool3" && l["mcp_server_id"] == server && l["mcp_method"] == "tools/call" && l["mcp_auth_type"] == "api_key" && l["mcp_decision"] == usage.CallAllowed && l["mcp_upstream_token_refreshed"] == false &&
			l["mcp_protocol_version"] == "2026-07-28" && l["mcp_tool_failed"] == false && l["gateway_version"] != nil && l["workspace_name"] != nil {
			shown++
		}
	}
	if shown != len(calls) {
		t.Errorf("%d of %d calls are shown among %d logs", shown, len(calls), len(logs.Data))
	}
	for _, c := range calls {
		if c.Server != server || c.Method != "tools/call" || c.Auth != "api_key" || c.Decision != usage.CallAllowed {
			t.Errorf("%+v", c)
		}
	}
}

// aCall is a call of a tool, for the matrix of routes.
var (
	aCall = mcpBody("tools/call", `"name":"tool0","arguments":{"text":"Hello"}`)
	ofMCP = []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "tool0"}
)

// aToolServer registers the server of that call, once.
func aToolServer(r *running) string {
	const slug = "of-the-matrix"
	if r.call("GET", "/mcp-servers/"+slug+"?workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey).status != 200 {
		up, _ := mcpServer(r.t, stateless)
		r.registerMCP(slug, up.URL, "")
	}
	return slug
}

// TestMCPCursorsAreTexts: another value is none that was given, and no first page is kept
// under it.
func TestMCPCursorsAreTexts(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, speaks := range []string{stateless, sessions} {
		up, _ := mcpServer(t, speaks)
		r.registerMCP(speaks, up.URL, "")
		for _, cursor := range []string{"7", "{}", "[]", "true"} {
			got := r.callMCP(speaks, "tools/list", "", `"cursor":`+cursor)
			if !strings.Contains(got.body, `"code":-32602`) || !strings.Contains(got.body, "cursor") {
				t.Errorf("%s, %s: %d %s", speaks, cursor, got.status, got.body)
			}
		}
		if got := r.callMCP(speaks, "tools/list", "", ""); got.status != 200 || !strings.Contains(got.body, `"tool0"`) {
			t.Errorf("%s: %d %s", speaks, got.status, got.body)
		}
	}
}

// TestMCPVerbs: what is neither a message nor a session's own.
func TestMCPVerbs(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, sessions)
	r.registerMCP("files", up.URL, "")
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	accept := []string{"Accept", "application/json, text/event-stream"}
	hello := r.call("POST", "/mcp/files/mcp", initialize, accept...)
	id := hello.header.Get("Mcp-Session-Id")
	if hello.status != 200 || id == "" || !strings.Contains(hello.body, `"protocolVersion":"2025-06-18"`) {
		t.Fatalf("%d %v %s", hello.status, hello.header, hello.body)
	}
	other := r.newKeyOf("mcp.invoke")
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, c := range []struct {
		name, method, body, session, key string
		status                           int
	}{
		{"a stream without session", "GET", "", "", workspaceKey, 405},
		{"an end without session", "DELETE", "", "", workspaceKey, 405},
		{"no key", "GET", "", id, "nobody", 401},
		{"a forged session", "POST", list, id[:len(id)-4] + "AAAA", workspaceKey, 404},
		{"another's session", "POST", list, id, other, 404},
		{"another's stream", "GET", "", id, other, 404},
		{"another's end", "DELETE", "", id, other, 404},
		{"no session", "POST", list, "", workspaceKey, 400},
		{"the session", "POST", list, id, workspaceKey, 200},
		{"a ping", "POST", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, id, workspaceKey, 200},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id, workspaceKey, 202},
		{"its end", "DELETE", "", id, workspaceKey, 204},
		{"after its end", "POST", list, id, workspaceKey, 404},
	} {
		headers := append([]string{"X-Gateway-Api-Key", c.key}, accept...)
		if c.session != "" {
			headers = append(headers, "Mcp-Session-Id", c.session)
		}
		got := r.call(c.method, "/mcp/files/mcp", c.body, headers...)
		if got.status != c.status || c.status == 405 && got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %v %s", c.name, got.status, got.header, got.body)
		}
	}
}
