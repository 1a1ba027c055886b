package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestRequestsThatGuardrailsDidNotJudgeAreWithheld: what a guardrail would have removed is in no
// log, whatever ended a request before its guardrails, and wherever they come from; nor is it in
// the record of a request of which others are made.
func TestRequestsThatGuardrailsDidNotJudgeAreWithheld(t *testing.T) {
	t.Parallel()
	r := start(t)
	const (
		text = "mail mary.poppins@example.com"
		rule = `{"gateway.pii":{"redact":true,"restore":true,"scope":"all_messages","categories":["EMAIL_ADDRESS"]}}`
	)
	up, _ := mcpServer(t, stateless)
	r.registerMCP("files", up.URL, "")
	prompt := r.prompt("Say {{x}}", "")
	limited := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":1}]`)
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", "hello", ""), "X-Gateway-Api-Key", limited)
	save := func(more string) string {
		return fmt.Sprintf("%q", r.admin("POST", "/guardrails", `{"name":"people","checks":[{"id":"gateway.pii","parameters":{"redact":true,"restore":true,"scope":"all_messages","categories":["EMAIL_ADDRESS"]}}],"actions":{}`+more+`}`)["slug"])
	}
	guard, ofAll := save(`,"workspace_id":"`+r.workspace()+`"`), save(`,"organisation_id":"default"`)
	config := fmt.Sprintf("%q", r.admin("POST", "/configs", `{"name":"guarded","workspace_id":"`+r.workspace()+`","config":{"input_guardrails":[`+guard+`],"targets":[{"provider":"@mock"}]}}`)["slug"])
	keyed := r.newKey(`"defaults":{"config_id":` + config + `}`)
	inline := `{"input_guardrails":[` + rule + `],"targets":[{"provider":"@mock"}]}`
	const none = `{"defaults":{"input_guardrails":[],"output_guardrails":[]}}`
	sources := []struct {
		name    string
		set     func(on bool)
		headers []string
	}{
		{"request", func(bool) {}, []string{"x-gateway-config", inline}},
		{"saved config", func(bool) {}, []string{"x-gateway-config", strings.Trim(config, `"`)}},
		{"key", func(bool) {}, []string{"X-Gateway-Api-Key", keyed}},
		{"workspace", func(on bool) {
			if r.admin("PUT", "/admin/workspaces/"+r.workspace(), none); on {
				r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"input_guardrails":[`+guard+`]}}`)
			}
		}, nil},
		{"organization", func(on bool) {
			list := ""
			if on {
				list = ofAll
			}
			r.admin("PUT", "/admin/organisation/defaults", `{"input_guardrails":[`+list+`]}`)
		}, nil},
	}
	chat := chatBody("@mock/gpt-4o", text, "")
	cases := []struct {
		name, path, body string
		status           int
		headers          []string
		only             string // the source with which the case is possible; empty: all
	}{
		{"invalid field", "/chat/completions", chatBody("@mock/gpt-4o", text, `,"stream":"x"`), 400, nil, ""},
		{"not JSON", "/chat/completions", chat[:len(chat)-1], 400, nil, ""},
		{"no such provider", "/chat/completions", chatBody("@nobody/gpt-4o", text, ""), 400, []string{"x-gateway-provider", "@nobody"}, "workspace"},
		{"no provider", "/chat/completions", chatBody("gpt-4o", text, ""), 400, nil, "organization"},
		{"rate", "/chat/completions", chat, 429, []string{"X-Gateway-Api-Key", limited}, "workspace"},
		{"invalid config", "/chat/completions", chat, 400, []string{"x-gateway-config", `{"input_guardrails":[` + rule + `],"targets":3}`}, "request"},
		{"no such config", "/chat/completions", chat, 400, []string{"x-gateway-config", "nothing"}, "request"},
		{"no such guardrail", "/chat/completions", chat, 400, []string{"x-gateway-config", `{"input_guardrails":["pg-none"],"targets":[{"provider":"@mock"}]}`}, "request"},
		{"second target", "/chat/completions", chat, 400, []string{"x-gateway-config", `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"fail"},"custom_host":"x"},{"provider":"@nobody","input_guardrails":[` + rule + `]}]}`}, "request"},
		{"path", "/proxy/search/mary.poppins@example.com%20and%20others", `{}`, 403, []string{"x-gateway-provider", "@mock"}, "workspace"},
		{"client secret", "/realtime/client_secrets", `{"session":{"type":"realtime","model":"@mock/gpt-realtime","instructions":"` + text + `"}}`, 200, nil, "organization"},
		{"rendered", "/prompts/" + prompt + "/render", `{"variables":{"x":"` + text + `"}}`, 200, nil, "workspace"},
		{"tool run", "/responses", `{"model":"@mock/gpt-4o","input":"mock: echo\n` + text + `","tools":[` + serverTool("files", "") + `]}`, 200, []string{"X-Gateway-Beta", toolsHeader}, "workspace"},
		{"tool run, streamed", "/responses", `{"model":"@mock/gpt-4o","stream":true,"input":"mock: echo\n` + text + `","tools":[` + serverTool("files", "") + `]}`, 200, []string{"X-Gateway-Beta", toolsHeader}, "organization"},
		{"unknown tool", "/mcp/files/mcp", mcpBody("tools/call", `"name":"nothing","arguments":{"text":"`+text+`"}`), 0, []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "nothing"}, "workspace"},
	}
	for _, s := range sources {
		s.set(true)
		for _, c := range cases {
			if c.only != "" && c.only != s.name {
				continue
			}
			where := s.name + ", " + c.name
			headers := append(append([]string{}, s.headers...), c.headers...)
			got := r.call("POST", c.path, c.body, append(headers, "X-Gateway-Trace-Id", where)...)
			if c.status != 0 && got.status != c.status {
				t.Errorf("%s: %d %s", where, got.status, got.body)
			}
			marked := false
			for _, rec := range r.traced(where, 1) {
				_, raw := logOf(t, r, rec.ID)
				if strings.Contains(raw, "poppins") {
					at := strings.Index(raw, "poppins")
					t.Errorf("%s: it is kept: %s", where, raw[max(at-600, 0):min(at+200, len(raw))])
				}
				marked = marked || strings.Contains(raw, "did not judge it")
			}
			if !marked && c.name != "path" {
				t.Errorf("%s: no record states that the body is withheld", where)
			}
		}
		s.set(false)
	}
}
