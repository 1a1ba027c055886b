package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// administer connects a client of the official SDK to the administration.
func (r *running) administer(speaks, key, query string) *sdk.ClientSession {
	r.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	session, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: r.base + "/mcp" + query, HTTPClient: &http.Client{Transport: speaking{speaks, key}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		r.t.Fatalf("%s: %v", speaks, err)
	}
	r.t.Cleanup(func() { _ = session.Close() })
	return session
}

func toolbox(t *testing.T, s *sdk.ClientSession) (tools []*sdk.Tool) {
	t.Helper()
	for tool, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	return tools
}

func has(tools []*sdk.Tool, name string) *sdk.Tool {
	for _, tool := range tools {
		if tool.Name == name {
			return tool
		}
	}
	return nil
}

func useTool(t *testing.T, s *sdk.ClientSession, name string, args any) (text string, failed bool) {
	t.Helper()
	res, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

// TestTheAdministrationAsTools: what a key may do is what its tools are, in both eras;
// each gives what the API gives.
func TestTheAdministrationAsTools(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.workspace()
	mine := member(r.admin("POST", "/configs", fmt.Sprintf(`{"name":"Mine","config":{"retry":{"attempts":2}},"workspace_id":%q}`, ws)), "data/slug").(string)
	narrow := r.newKeyOf("configs.list", "configs.read", "configs.create")
	for _, speaks := range []string{stateless, sessions} {
		all := r.administer(speaks, adminKey, "")
		tools := toolbox(t, all)
		if len(tools) < 80 {
			t.Fatalf("%s: %d tools", speaks, len(tools))
		}
		for _, tool := range tools {
			if !tool.Annotations.ReadOnlyHint || tool.Description == "" || tool.InputSchema == nil {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		for _, not := range []string{"createConfig", "createChatCompletion", "scimListUsers", "getSelf", "getDocument", "callAdministration", "tailLogs"} {
			if has(tools, not) != nil {
				t.Errorf("%s: there is a tool %s", speaks, not)
			}
		}
		text, failed := useTool(t, all, "listConfigs", map[string]any{"workspace_id": ws, "page_size": 5})
		if plain := r.call("GET", "/configs?page_size=5&workspace_id="+ws, "", "X-Gateway-Api-Key", adminKey); failed || text != plain.body || !strings.Contains(text, mine) {
			t.Errorf("%s: %s\n%s", speaks, text, plain.body)
		}
		if text, failed := useTool(t, all, "getConfig", map[string]any{"slug": mine, "workspace_id": ws}); failed || !strings.Contains(text, "Mine") {
			t.Errorf("%s: %s", speaks, text)
		}
		for what, c := range map[string]struct {
			tool, text string
			args       map[string]any
		}{
			"nothing of the name": {"getConfig", "does not exist", map[string]any{"slug": "../" + mine, "workspace_id": ws}},
			"a variable missing":  {"getConfig", "slug is required", map[string]any{"workspace_id": ws}},
			"an empty variable":   {"getConfig", "must name something", map[string]any{"slug": "..", "workspace_id": ws}},
			"another argument":    {"listConfigs", `no argument \"size\"`, map[string]any{"size": 1}},
			"a wrong type":        {"listConfigs", "page_size", map[string]any{"page_size": "many", "workspace_id": ws}},
			"an object inside":    {"getConfig", "must be a value", map[string]any{"slug": []any{[]any{1}}}},
			"a tool that writes":  {"deleteConfig", "writes=true", map[string]any{"slug": mine}},
			"an unknown tool":     {"nothing", "unknown tool", nil},
		} {
			text, failed := useTool(t, all, c.tool, c.args)
			if !failed || !strings.Contains(strings.ToLower(text+strings.ReplaceAll(text, `"`, `\"`)), strings.ToLower(c.text)) {
				t.Errorf("%s: %s: %s", speaks, what, text)
			}
		}

		few := r.administer(speaks, narrow, "?writes=true")
		tools = toolbox(t, few)
		if has(tools, "listConfigs") == nil || has(tools, "createConfig") == nil || has(tools, "deleteConfig") != nil || has(tools, "listPrompts") != nil {
			t.Errorf("%s: %d tools", speaks, len(tools))
		}
		if hints := has(tools, "createConfig").Annotations; hints.ReadOnlyHint || hints.DestructiveHint == nil || *hints.DestructiveHint {
			t.Errorf("%+v", hints)
		}
		// What is not listed is rejected as the API does it.
		plain := r.call("DELETE", "/configs/"+mine, "", "X-Gateway-Api-Key", narrow)
		if text, failed := useTool(t, few, "deleteConfig", map[string]any{"slug": mine}); !failed || plain.status != 403 || withoutID(text) != withoutID(plain.body) {
			t.Errorf("%s: %s\n%s", speaks, text, plain.body)
		}
		if text, failed := useTool(t, few, "createConfig", map[string]any{"body": map[string]any{"name": "Made", "config": map[string]any{"retry": map[string]any{"attempts": 1}}}}); failed || !strings.Contains(text, "id") {
			t.Errorf("%s: %s", speaks, text)
		}
		if text, failed := useTool(t, few, "createConfig", map[string]any{"body": map[string]any{"name": 1}}); !failed || !strings.Contains(text, "config") {
			t.Errorf("%s: %s", speaks, text)
		}
		if text, failed := useTool(t, few, "createConfig", map[string]any{}); !failed || !strings.Contains(text, "body is required") {
			t.Errorf("%s: %s", speaks, text)
		}
	}
	// What was made by a tool stands in the audit log as what it is, with who called.
	eventually(t, func() error {
		at := time.Now().UTC()
		got := r.call("GET", "/audit-logs?uri=/v1/configs&start_time="+at.Add(-time.Hour).Format(time.RFC3339)+"&end_time="+at.Add(time.Hour).Format(time.RFC3339), "", "X-Gateway-Api-Key", adminKey)
		if strings.Count(got.body, `"action":"create"`) < 3 { // one by HTTP, two by tools
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	if tools := toolbox(t, r.administer(stateless, adminKey, "?families=configs,prompts&writes=true")); has(tools, "listConfigs") == nil || has(tools, "deletePrompt") == nil || has(tools, "listProviders") != nil {
		t.Errorf("%d tools", len(tools))
	}
}

// withoutID is a rejection without the id of its request.
func withoutID(body string) string {
	var m map[string]any
	_ = json.Unmarshal([]byte(body), &m)
	delete(m, "request_id")
	raw, _ := json.Marshal(m)
	return string(raw)
}

// TestTheToolsRefuse what is no call of a known caller.
func TestTheToolsRefuse(t *testing.T) {
	t.Parallel()
	r := start(t)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	both := []string{"Accept", "application/json, text/event-stream"}
	for what, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		text               string
	}{
		"no key":             {"POST", "/mcp", list, []string{"X-Gateway-Api-Key", ""}, 401, `"error"`},
		"a wrong key":        {"POST", "/mcp", list, []string{"X-Gateway-Api-Key", "nobody"}, 401, `"error"`},
		"an origin":          {"POST", "/mcp", list, []string{"Origin", "https://evil.example.com"}, 403, "origin"},
		"no JSON":            {"POST", "/mcp", `{`, nil, 400, "-32700"},
		"not UTF-8":          {"POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}", nil, 400, "-32700"},
		"a list":             {"POST", "/mcp", `[` + list + `]`, nil, 400, "-32600"},
		"a member twice":     {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, "-32700"},
		"no method":          {"POST", "/mcp", `{"jsonrpc":"2.0","id":1}`, nil, 400, "-32600"},
		"another method":     {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, nil, 200, "-32601"},
		"a cursor":           {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, nil, 200, "-32602"},
		"arguments":          {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"listConfigs","arguments":[1]}}`, nil, 200, "must be an object"},
		"a notification":     {"POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		"families":           {"POST", "/mcp?families=nothing", list, nil, 400, "configs"},
		"a parameter":        {"POST", "/mcp?writes=perhaps", list, nil, 400, "writes"},
		"another media type": {"POST", "/mcp", list, []string{"Content-Type", "text/plain"}, 400, `"error"`},
		"too large":          {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, nil, 413, `"error"`},
		"too deep":           {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 201), nil, 400, "-32700"},
		"another verb":       {"GET", "/mcp", "", nil, 405, ""},
		"an end":             {"DELETE", "/mcp", "", nil, 405, ""},
	} {
		got := r.call(c.method, c.path, c.body, append(slices.Clone(both), append([]string{"X-Gateway-Api-Key", adminKey}, c.headers...)...)...)
		if got.status != c.status || !strings.Contains(got.body, c.text) {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
		if c.status == 401 && got.header.Get("Www-Authenticate") != "Bearer" {
			t.Errorf("%s: %v", what, got.header)
		}
	}
}
