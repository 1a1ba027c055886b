package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/usage"
)

// toolsHeader has the gateway call the tools of its MCP servers itself.
const toolsHeader = "server-side-mcp-2026-06-01"

// toolRequest is a request of one of the two shapes of clients. more are members of the body.
type toolRequest struct {
	name, path string
	body       func(model, text, tools, more string) string
}

var toolRequests = []toolRequest{
	{"responses", "/responses", func(model, text, tools, more string) string {
		return fmt.Sprintf(`{"model":%q,"input":[{"role":"user","content":%q}],"tools":[%s]%s}`, model, text, tools, more)
	}},
	{"messages", "/messages", func(model, text, tools, more string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":400,"messages":[{"role":"user","content":%q}],"tools":[%s]%s}`, model, text, tools, more)
	}},
}

func serverTool(slug, more string) string {
	return fmt.Sprintf(`{"type":"mcp","server_label":"@gateway-mcp/%s"%s}`, slug, more)
}

// answered returns the kinds of parts that a response has, and all that it says; for a
// stream, those in its last event.
func (a *toolRequest) answered(t *testing.T, got *reply, stream bool) (kinds []string, whole string) {
	t.Helper()
	of := got.body
	var v struct {
		Output   []json.RawMessage
		Content  []json.RawMessage
		Response *struct{ Output []json.RawMessage }
		Type     string
		Block    json.RawMessage `json:"content_block"`
	}
	var parts []json.RawMessage
	switch {
	case !stream:
		if err := json.Unmarshal([]byte(of), &v); err != nil {
			t.Fatalf("%v: %s", err, of)
		}
		parts = append(v.Output, v.Content...)
	default:
		for _, e := range events(of) {
			v.Response, v.Block = nil, nil
			if err := json.Unmarshal([]byte(e), &v); err != nil {
				t.Fatalf("%v: %s", err, e)
			}
			if v.Response != nil {
				parts = v.Response.Output
			}
			if v.Type == "content_block_start" {
				parts = append(parts, v.Block)
			}
		}
	}
	for _, p := range parts {
		var of struct{ Type string }
		_ = json.Unmarshal(p, &of)
		kinds, whole = append(kinds, of.Type), whole+string(p)
	}
	return kinds, whole
}

// traced waits for n records of a trace.
func (r *running) traced(trace string, n int) (out []usage.Record) {
	r.t.Helper()
	eventually(r.t, func() error {
		out = nil
		for _, rec := range archived(r.t, r.g) {
			if rec.TraceID == trace {
				out = append(out, rec)
			}
		}
		if len(out) < n {
			return fmt.Errorf("%d of %d records", len(out), n)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b usage.Record) int { return a.Start.Compare(b.Start) })
	return out
}

// TestToolRuns: both shapes of clients with every shape of provider and both eras of
// servers, plain and streamed. Each turn and call is recorded as a part of the request.
func TestToolRuns(t *testing.T) {
	t.Parallel()
	r, _ := startShapes(t)
	for _, era := range []string{stateless, sessions} {
		up, _ := mcpServer(t, era)
		r.registerMCP("up-"+era, up.URL, "")
	}
	const text = "mock: call=tool3 {\"text\":\"hey\"}\nSay hey by tool3."
	for i, c := range toolRequests {
		for j, p := range shapes() {
			for _, stream := range []bool{false, true} {
				slug := "up-" + []string{stateless, sessions}[(i+j)%2]
				trace := fmt.Sprintf("%s to %s %t", c.name, p.name, stream)
				got := r.call("POST", c.path, c.body(p.model, text, serverTool(slug, ""), fmt.Sprintf(`,"stream":%t`, stream)),
					append([]string{"X-Gateway-Beta", toolsHeader, "X-Gateway-Trace-Id", trace}, p.headers...)...)
				if got.status != 200 {
					t.Errorf("%s: %d %s", trace, got.status, got.body)
					continue
				}
				kinds, whole := c.answered(t, &got, stream)
				want := []string{"mcp_list_tools", "mcp_call", "message"}
				if c.name == "messages" {
					want = []string{"mcp_tool_use", "mcp_tool_result", "text"}
				}
				kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "reasoning" || k == "thinking" })
				if at := slices.IndexFunc(kinds, func(k string) bool { return k == "message" || k == "text" }); p.name == "Cohere" && at >= 0 && at < len(kinds)-1 {
					kinds = slices.Delete(kinds, at, at+1) // it says what it is going to do
				}
				if !slices.Equal(kinds, want) || !strings.Contains(whole, "said hey") || !strings.Contains(whole, "@gateway-mcp/"+slug) {
					t.Errorf("%s: %v %s", trace, kinds, whole)
				}
				r.checkToolRecords(t, trace, &got, stream)
			}
		}
	}
}

// checkToolRecords holds the records of a run against its response: one of the request,
// which cost nothing, below it two turns, lists and a call.
func (r *running) checkToolRecords(t *testing.T, trace string, got *reply, stream bool) {
	t.Helper()
	all := r.traced(trace, 6)
	root := all[slices.IndexFunc(all, func(rec usage.Record) bool { return rec.ParentSpanID == "" })]
	turns, calls, out := 0, 0, int64(0)
	for _, rec := range all {
		switch {
		case rec.ID == root.ID:
			if rec.Cost != 0 || rec.Usage.IsReported() || rec.ClientStatus != 200 {
				t.Errorf("%s: the request itself: %+v", trace, rec)
			}
			continue
		case rec.ParentSpanID != root.ID:
			t.Errorf("%s: %s is below %s, not %s", trace, rec.Path, rec.ParentSpanID, root.ID)
		case rec.Call == nil:
			turns, out = turns+1, out+rec.Usage.OutputTokens()
			if !rec.Usage.IsReported() || rec.Usage.Estimated {
				t.Errorf("%s: a turn is booked with %+v", trace, rec.Usage)
			}
		case rec.Call.Method == "tools/call":
			calls++
			if rec.Call.Name != "tool3" || rec.Call.Decision != "allowed" {
				t.Errorf("%s: %+v", trace, rec.Call)
			}
		}
	}
	if turns != 2 || calls != 1 {
		t.Errorf("%s: %d turns, %d calls of %d records", trace, turns, calls, len(all))
	}
	reported := int64(0)
	for _, e := range append(events(got.body), got.body) {
		var v struct {
			Usage struct {
				Output int64 `json:"output_tokens"`
			}
			Response struct {
				Usage struct {
					Output int64 `json:"output_tokens"`
				}
			}
		}
		if json.Unmarshal([]byte(e), &v) == nil {
			reported = max(v.Usage.Output, v.Response.Usage.Output, reported)
		}
	}
	if reported != out {
		t.Errorf("%s: %d output tokens are told, %d booked", trace, reported, out)
	}
}

// TestToolRunsOfWhom: scopes, entitlement, other workspaces, what servers reject, and
// bodies that are wrong.
func TestToolRunsOfWhom(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	server, _ := r.registerMCP("files", up.URL, "")
	r.registerMCP("closed", up.URL, "")
	in := r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":"Mail","slug":"mail","url":%q,"auth_type":"oauth_auto","transport":"http","workspace_id":%q}`, up.URL, r.workspace()))
	r.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":"Mail","slug":"mail","mcp_integration_id":%q,"workspace_id":%q}`, in["id"], r.workspace()))
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	r.registerMCP("dead", dead.URL, "")
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	closed := r.admin("GET", "/mcp-servers/closed?workspace_id="+r.workspace(), "")
	r.admin("PUT", "/mcp-servers/"+closed["id"].(string)+"/user-access", `{"default_user_access":"deny",`+at+`}`)
	for _, c := range toolRequests {
		send := func(key, tools, more string) reply {
			return r.call("POST", c.path, c.body("@mock/gpt-4o", "hi", tools, more), "X-Gateway-Beta", toolsHeader, "X-Gateway-Api-Key", key)
		}
		for name, w := range map[string]struct {
			key, tools, more string
			status           int
			message          string
		}{
			"no scope":        {r.newKeyOf("completions.write"), serverTool("files", ""), "", 403, "mcp.invoke"},
			"no completions":  {r.newKeyOf("mcp.invoke"), serverTool("files", ""), "", 403, "completions.write"},
			"no such server":  {workspaceKey, serverTool("nothing", ""), "", 404, "tools[0].server_label"},
			"no access":       {workspaceKey, serverTool("closed", ""), "", 403, "tools[0].server_label"},
			"another's":       {r.otherWorkspaceKey(), serverTool("files", ""), "", 404, "tools[0].server_label"},
			"not signed in":   {workspaceKey, serverTool("mail", ""), "", 403, "user"},
			"dead":            {workspaceKey, serverTool("dead", ""), "", 424, "tools[0].server_label"},
			"with an address": {workspaceKey, serverTool("files", `,"server_url":"https://x"`), "", 400, "tools[0].server_url"},
			"twice":           {workspaceKey, serverTool("files", "") + "," + serverTool("files", ""), "", 400, "tools[1].server_label"},
			"a member twice":  {workspaceKey, serverTool("files", ""), `,"metadata":{"a":"b","a":"c"}`, 400, "metadata"},
			"no slug":         {workspaceKey, serverTool("", ""), "", 400, "tools[0].server_label"},
			"too few calls":   {workspaceKey, serverTool("files", ""), `,"max_tool_calls":0`, 400, "max_tool_calls"},
		} {
			got := send(w.key, w.tools, w.more)
			if got.status != w.status || !strings.Contains(got.body, w.message) {
				t.Errorf("%s, %s: %d %s", c.name, name, got.status, got.body)
			}
		}
		// Without the header the request continues as it came.
		if got := r.call("POST", c.path, c.body("@mock/gpt-4o", "hi", serverTool("nothing", ""), "")); got.status == 404 {
			t.Errorf("%s without the header: %d %s", c.name, got.status, got.body)
		}
	}
	// A tool that is off is neither offered nor called.
	r.admin("PUT", "/mcp-servers/"+server+"/capabilities", `{"capabilities":[{"name":"tool0","type":"tool","enabled":false}],`+at+`}`)
	got := r.call("POST", "/responses", toolRequests[0].body("@mock/gpt-4o", "mock: no-tools\nhi", serverTool("files", ""), ""), "X-Gateway-Beta", toolsHeader)
	if strings.Contains(got.body, `"tool0"`) || !strings.Contains(got.body, `"tool1"`) {
		t.Errorf("offered: %s", got.body)
	}
}

// otherWorkspaceKey makes a key of another workspace.
func (r *running) otherWorkspaceKey() string {
	r.t.Helper()
	ws := r.admin("POST", "/admin/workspaces", `{"name":"Elsewhere of tools"}`)
	got := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"a key of elsewhere","workspace_id":%q,"scopes":["completions.write","mcp.invoke"]}`, ws["id"]))
	return got["key"].(string)
}

// TestToolRunsAreBounded: by turns and calls, by policies, guardrails, budgets and a client
// that leaves; and the model is told of errors of tools.
func TestToolRunsAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, s := mcpServer(t, stateless)
	sdk.AddTool(s, &sdk.Tool{Name: "broken"}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("the disk is full")
	})
	r.registerMCP("files", up.URL, "")
	send := func(text, more string, headers ...string) reply {
		return r.call("POST", "/responses", toolRequests[0].body("@mock/gpt-4o", text, serverTool("files", ""), more), append([]string{"X-Gateway-Beta", toolsHeader}, headers...)...)
	}
	again := "mock: tools=1 call=tool3 {\"text\":\"hey\"}\nAgain."
	for more, calls := range map[string]int{`,"max_tool_calls":2`: 2, "": 9} {
		got := send(again, more)
		kinds, _ := toolRequests[0].answered(t, &got, false)
		made := 0
		for _, k := range kinds {
			if k == "mcp_call" {
				made++
			}
		}
		if got.status != 200 || made != calls || kinds[len(kinds)-1] != "message" {
			t.Errorf("%q: %d, %v", more, got.status, kinds)
		}
	}
	if got := send("mock: call=broken {\"text\":\"x\"}\nGo.", ""); !strings.Contains(got.body, "the disk is full") || !strings.Contains(got.body, "mcp_tool_execution_error") || !strings.Contains(got.body, `"type":"message"`) {
		t.Errorf("a tool that fails: %d %s", got.status, got.body)
	}
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"said hunter2","not":true}}],"actions":{"deny":true},`+at+`}`)
	r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"output_guardrails":[%q]}}`, words["id"]))
	if got := send("mock: call=tool1 {\"text\":\"hunter2\"}\nGo.", ""); got.status != 200 || strings.Contains(got.body, `"output":"said hunter2"`) || strings.Contains(got.body, "says: said hunter2") || !strings.Contains(got.body, "denied this call") {
		t.Errorf("a guardrail: %d %s", got.status, got.body)
	}
	r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"output_guardrails":[]}}`)
	r.admin("POST", "/policies/rate-limits", `{"name":"calls","conditions":[{"key":"mcp_server","value":"files"}],"group_by":[{"key":"mcp_tool"}],"target":"mcp_tools","type":"requests","unit":"rpd","value":1,`+at+`}`)
	got := send("mock: tools=1 call=tool2 {\"text\":\"hey\"}\nGo.", `,"max_tool_calls":2`)
	if got.status != 200 || strings.Count(got.body, `"output":"said hey"`) != 1 || strings.Count(got.body, `"code":429`) != 1 {
		t.Errorf("a policy: %d %s", got.status, got.body)
	}
}

// TestToolRunsStopForTheClient: a call of its own function is handed back beside the
// result of ours, and it continues with both; over a WebSocket runs are made as well.
func TestToolRunsStopForTheClient(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	r.registerMCP("files", up.URL, "")
	ours := serverTool("files", `,"allowed_tools":["tool3"]`)
	headers := []string{"X-Gateway-Beta", toolsHeader}
	schema := `{"type":"object","properties":{}}`
	const prompt = "mock: parallel\nDo both."
	body := toolRequests[0].body("@mock/gpt-4o", prompt, ours+`,{"type":"function","name":"mine","parameters":`+schema+`,"strict":false}`, "")
	got := r.call("POST", "/responses", body, headers...)
	var first struct{ Output []map[string]any }
	if err := json.Unmarshal([]byte(got.body), &first); err != nil || got.status != 200 {
		t.Fatalf("%v %d %s", err, got.status, got.body)
	}
	kinds, _ := toolRequests[0].answered(t, &got, false)
	if !slices.Equal(kinds, []string{"mcp_list_tools", "mcp_call", "function_call"}) || first.Output[1]["status"] != "completed" {
		t.Fatalf("%v %s", kinds, got.body)
	}
	input := []any{map[string]any{"role": "user", "content": prompt}}
	for _, item := range first.Output {
		input = append(input, item)
	}
	input = append(input, map[string]any{"type": "function_call_output", "call_id": first.Output[2]["call_id"], "output": "mine too"})
	raw, _ := json.Marshal(input)
	var whole map[string]json.RawMessage
	_ = json.Unmarshal([]byte(body), &whole)
	whole["input"] = raw
	again, _ := json.Marshal(whole)
	got = r.call("POST", "/responses", string(again), headers...)
	if kinds, _ := toolRequests[0].answered(t, &got, false); got.status != 200 || !slices.Equal(kinds, []string{"message"}) {
		t.Errorf("%d %s", got.status, got.body)
	}

	got = r.call("POST", "/messages", toolRequests[1].body("@mock-anthropic/claude-sonnet-4-5", prompt, ours+`,{"name":"mine","input_schema":`+schema+`}`, ""), headers...)
	kinds, _ = toolRequests[1].answered(t, &got, false)
	if !slices.Equal(kinds, []string{"mcp_tool_use", "tool_use", "mcp_tool_result"}) && !slices.Equal(kinds, []string{"text", "mcp_tool_use", "tool_use", "mcp_tool_result"}) || !strings.Contains(got.body, `"stop_reason":"tool_use"`) {
		t.Errorf("%v %s", kinds, got.body)
	}

	event := toolRequests[0].body("@mock/gpt-4o", "mock: call=tool3 {\"text\":\"hey\"}\nGo.", ours, "")
	if got := r.call("GET", "/responses", event, headers...); !strings.Contains(got.body, `"mcp_call"`) || !strings.Contains(got.body, "said hey") {
		t.Errorf("over a WebSocket: %d %s", got.status, got.body)
	}
}

// TestToolRunsEnd: a rate that is used up ends a run before its next turn, a client that
// goes ends it too, and what was made is in the accounting.
func TestToolRunsEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, s := mcpServer(t, stateless)
	began, release := make(chan struct{}, 1), make(chan struct{})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
		began <- struct{}{}
		select { // it ends with the call, once the gateway has given the client up
		case <-ctx.Done():
		case <-release:
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "over"}}}, nil, nil
	})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	r.registerMCP("files", up.URL, "")
	for i, c := range toolRequests {
		for _, stream := range []bool{false, true} {
			made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"two a day","workspace_id":%q,"scopes":["completions.write","mcp.invoke"],"rate_limits":[{"type":"requests","unit":"rpd","value":2}]}`, r.workspace()))
			key := made["key"].(string)
			got := r.call("POST", c.path, c.body([]string{"@mock/gpt-4o", "@mock-anthropic/claude-sonnet-4-5"}[i], "mock: call=tool3 {\"text\":\"hey\"}\nGo.", serverTool("files", ""), fmt.Sprintf(`,"stream":%t`, stream)),
				"X-Gateway-Beta", toolsHeader, "X-Gateway-Api-Key", key)
			all := events(got.body)
			end := [...]string{`{"type":"response.failed","sequence_number":14,"response":{"id":"resp_mock`, `{"type":"error"`}[i]
			switch {
			case !stream && (got.status != 429 || !strings.Contains(got.body, "error")):
				t.Errorf("%s: %d %s", c.name, got.status, got.body)
			case stream && (got.status != 200 || len(all) == 0 || !strings.HasPrefix(all[len(all)-1], end) || !strings.Contains(got.body, "said hey")):
				t.Errorf("%s: %d %s", c.name, got.status, got.body)
			}
		}
	}
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+"/responses", strings.NewReader(toolRequests[0].body("@mock/gpt-4o", "mock: call=wait {\"text\":\"x\"}\nGo.", serverTool("files", ""), `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"Content-Type": "application/json", "X-Gateway-Api-Key": workspaceKey, "X-Gateway-Beta": toolsHeader, "X-Gateway-Trace-Id": "left"} {
		req.Header.Set(name, v)
	}
	go func() {
		<-began
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Error("the client has not left")
		}
	}
	turns, ended := 0, false
	eventually(t, func() error {
		turns, ended = 0, false
		for _, rec := range archived(t, r.g) {
			if rec.TraceID != "left" || rec.Call != nil {
				continue
			}
			if rec.ParentSpanID == "" {
				ended = true
			} else if turns++; !rec.Usage.IsReported() {
				t.Errorf("a turn is booked with %+v", rec.Usage)
			}
		}
		if !ended {
			return fmt.Errorf("the request has no record")
		}
		return nil
	})
	if turns != 1 {
		t.Errorf("%d turns", turns)
	}
}
