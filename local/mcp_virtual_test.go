package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bundle makes a virtual server of the default workspace.
func (r *running) bundle(slug, members, more string) (id string) {
	r.t.Helper()
	return r.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"members":%s,"workspace_id":%q%s}`, slug, slug, members, r.workspace(), more))["id"].(string)
}

// twoServers are a server of each era, files and notes, with the same tools.
func (r *running) twoServers() (files, notes string, integrations map[string]string) {
	r.t.Helper()
	one, _ := mcpServer(r.t, stateless)
	two, _ := mcpServer(r.t, sessions)
	integrations = map[string]string{}
	files, integrations["files"] = r.registerMCP("files", one.URL, "")
	notes, integrations["notes"] = r.registerMCP("notes", two.URL, "")
	return files, notes, integrations
}

// toolsOf are the names that a client is listed, sorted.
func toolsOf(t testing.TB, s *sdk.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// toolText calls a tool; known is false for one that the server does not know.
func toolText(t testing.TB, s *sdk.ClientSession, tool string) (text string, known bool) {
	t.Helper()
	got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{"text": "x"}})
	if err != nil {
		if !strings.Contains(err.Error(), "unknown tool") {
			t.Fatalf("%s: %v", tool, err)
		}
		return "", false
	}
	if len(got.Content) == 1 {
		if c, ok := got.Content[0].(*sdk.TextContent); ok {
			text = c.Text
		}
	}
	return text, !got.IsError
}

func TestMCPVirtualServersBundleTools(t *testing.T) {
	t.Parallel()
	r := start(t)
	files, _, _ := r.twoServers()
	id := r.bundle("all", `[{"server":"files","prefix":"f_"},{"server":"notes","tools":["tool0","tool1","slow"],"prefix":"n_","rename":{"tool1":"say"}}]`, `,"description":"Be brief."`)
	want := []string{"f_slow", "f_tool0", "f_tool1", "f_tool2", "f_tool3", "f_tool4", "n_slow", "n_tool0", "say"}
	for _, speaks := range []string{stateless, sessions} {
		s := r.connectMCP("all", speaks, nil)
		if got := toolsOf(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: %v", speaks, got)
		}
		for _, tool := range want {
			text, known := toolText(t, s, tool)
			if expected := map[bool]string{true: "done", false: "said x"}[strings.HasSuffix(tool, "slow")]; !known || text != expected {
				t.Errorf("%s: %s says %q, %t", speaks, tool, text, known)
			}
		}
		for _, tool := range []string{"tool0", "n_tool1", "n_tool2", "f_", "F_tool0", "tool1"} {
			if text, known := toolText(t, s, tool); known {
				t.Errorf("%s: %s says %q", speaks, tool, text)
			}
		}
		if hello := s.InitializeResult(); hello != nil && (hello.ServerInfo.Name != "all" || hello.Instructions != "Be brief.") {
			t.Errorf("%s: %+v", speaks, hello)
		}
		if _, err := s.ListPrompts(context.Background(), nil); err == nil && speaks == sessions {
			t.Errorf("%s: prompts are listed", speaks)
		}
	}
	// Rates and records see the member, and the virtual server beside it.
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	r.admin("POST", "/policies/rate-limits", `{"name":"calls","conditions":[{"key":"mcp_tool","value":"tool3"},{"key":"mcp_server","value":"files"}],"group_by":[{"key":"mcp_tool"}],"target":"mcp_tools","type":"requests","unit":"rpd","value":1,`+at+`}`)
	for i, status := range []int{200, 429} {
		if got := r.callTool("all", "f_tool3", "x"); got.status != status {
			t.Errorf("call %d: %d %s", i, got.status, got.body)
		}
	}
	if got := r.callTool("files", "tool3", "x"); got.status != 429 {
		t.Errorf("the member itself: %d %s", got.status, got.body)
	}
	eventually(t, func() error {
		calls, lists := 0, 0
		for _, row := range r.get("/logs?page_size=1000", workspaceKey)["data"].([]any) {
			switch l := row.(map[string]any); {
			case l["mcp_name"] == "tool3" && l["mcp_server_id"] == files && l["mcp_virtual_server_id"] == id:
				calls++
			case l["mcp_method"] == "tools/list" && l["mcp_server_id"] == id && l["mcp_virtual_server_id"] == nil:
				lists++
			}
		}
		if calls < 2 || lists < 2 {
			return fmt.Errorf("%d calls, %d lists", calls, lists)
		}
		return nil
	})
	for name, c := range map[string]struct {
		method, path, body, key string
		status                  int
	}{
		"no scope":      {"POST", "/mcp/all/mcp", mcpBody("tools/list", ""), r.newKeyOf("completions.write"), 403},
		"organisation":  {"POST", "/mcp/all/mcp", mcpBody("tools/list", ""), adminKey, 403},
		"a cursor":      {"POST", "/mcp/all/mcp", mcpBody("tools/list", `"cursor":"x"`), workspaceKey, 200},
		"no workspace":  {"POST", "/mcp/elsewhere/all/mcp", mcpBody("tools/list", ""), workspaceKey, 403},
		"its workspace": {"POST", "/mcp/default/all/mcp", mcpBody("tools/list", ""), workspaceKey, 200},
		"a stream":      {"GET", "/mcp/all/mcp", "", workspaceKey, 405},
		"an end":        {"DELETE", "/mcp/all/mcp", "", workspaceKey, 405},
	} {
		got := r.call(c.method, c.path, c.body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "X-Gateway-Api-Key", c.key)
		if got.status != c.status || name == "a cursor" && !strings.Contains(got.body, "-32602") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, params := range []string{`"arguments":{}`, `"name":1`, `"name":""`} {
		if got := r.callMCP("all", "tools/call", "x", params); got.status != 400 {
			t.Errorf("%s: %d %s", params, got.status, got.body)
		}
	}
	if got := r.callMCP("all", "prompts/list", "", ""); got.status != 404 || !strings.Contains(got.body, "-32601") {
		t.Errorf("prompts: %d %s", got.status, got.body)
	}
}

// TestMCPVirtualServersListWhatCanBeCalled: after any changes of who may use what, clients
// of both eras can call exactly the tools that are listed to them.
func TestMCPVirtualServersListWhatCanBeCalled(t *testing.T) {
	t.Parallel()
	r := start(t)
	files, notes, integrations := r.twoServers()
	id := r.bundle("all", `[{"server":"files","prefix":"f_"},{"server":"notes","prefix":"n_"}]`, "")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	off := map[string]bool{} // path and tool
	servers := map[string]string{"f_": "/mcp-servers/" + files, "n_": "/mcp-servers/" + notes}
	above := map[string]string{"f_": "/mcp-integrations/" + integrations["files"], "n_": "/mcp-integrations/" + integrations["notes"]}
	shut := map[string]bool{}
	taken := map[string][]string{}
	for step := range 8 {
		prefix := []string{"f_", "n_"}[random.IntN(2)]
		switch random.IntN(4) {
		case 0:
			shut[prefix] = !shut[prefix]
			r.admin("PUT", servers[prefix]+"/user-access", fmt.Sprintf(`{"default_user_access":%q,%s}`, map[bool]string{false: "allow", true: "deny"}[shut[prefix]], at))
		case 1:
			taken[prefix] = [][]string{nil, {"tool0", "tool3"}, {"tool1"}}[random.IntN(3)]
			members, _ := json.Marshal([]map[string]any{{"server": "files", "prefix": "f_", "tools": taken["f_"]}, {"server": "notes", "prefix": "n_", "tools": taken["n_"]}})
			r.admin("PUT", "/mcp-servers/"+id, fmt.Sprintf(`{"members":%s,%s}`, strings.ReplaceAll(string(members), `"tools":null,`, ""), at))
		}
		for range 3 {
			path := []string{servers[prefix], above[prefix]}[random.IntN(2)]
			tool, on := fmt.Sprintf("tool%d", random.IntN(5)), random.IntN(2) == 0
			r.admin("PUT", path+"/capabilities?workspace_id="+r.workspace(), fmt.Sprintf(`{"capabilities":[{"name":%q,"type":"tool","enabled":%t}],%s}`, tool, on, at))
			off[path+tool] = !on
		}
		for _, speaks := range []string{stateless, sessions} {
			s := r.connectMCP("all", speaks, nil)
			names := toolsOf(t, s)
			for _, prefix := range []string{"f_", "n_"} {
				for n := range 5 {
					tool := fmt.Sprintf("tool%d", n)
					want := !shut[prefix] && !off[servers[prefix]+tool] && !off[above[prefix]+tool] && (taken[prefix] == nil || slices.Contains(taken[prefix], tool))
					_, called := toolText(t, s, prefix+tool)
					if is := slices.Contains(names, prefix+tool); is != want || called != want {
						t.Errorf("seed %d, step %d: %s: %s%s is listed %t and called %t, want %t", seed, step, speaks, prefix, tool, is, called, want)
					}
				}
			}
		}
	}
	r.admin("PUT", "/mcp-servers/"+id+"/user-access", `{"default_user_access":"deny",`+at+`}`)
	if got := r.callMCP("all", "tools/list", "", ""); got.status != 403 {
		t.Errorf("listed: %d %s", got.status, got.body)
	}
	if got := r.callTool("all", "f_tool0", "x"); got.status != 403 {
		t.Errorf("called: %d %s", got.status, got.body)
	}
}

func TestMCPVirtualServersWorkWithoutAMember(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.twoServers()
	held := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-held:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(func() { close(held); hung.CloseClientConnections(); hung.Close() })
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"na`))
	}))
	t.Cleanup(broken.Close)
	r.registerMCP("hung", hung.URL, "")
	r.registerMCP("broken", broken.URL, "")
	r.bundle("all", `[{"server":"hung","prefix":"h_"},{"server":"broken","prefix":"b_"},{"server":"files","prefix":"f_"},{"server":"notes","prefix":"n_"}]`, "")
	for range 2 { // the second time what hangs is left alone
		got := r.callMCP("all", "tools/list", "", "")
		var body struct {
			Result struct {
				Tools []struct{ Name string }
				Meta  map[string][]struct{ Server, Reason string } `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 {
			t.Fatalf("%d %s: %v", got.status, got.body, err)
		}
		missing := body.Result.Meta["ai.gateway/missing"]
		if len(body.Result.Tools) != 12 || len(missing) != 2 || missing[0].Server != "hung" || missing[1].Server != "broken" || missing[0].Reason == "" || missing[1].Reason == "" {
			t.Errorf("%s", got.body)
		}
	}
	if got := r.callTool("all", "b_tool0", "x"); got.status != 200 || !strings.Contains(got.body, "-32603") {
		t.Errorf("a broken member: %d %s", got.status, got.body)
	}
	if got := r.callTool("all", "n_tool0", "x"); !strings.Contains(got.body, "said x") {
		t.Errorf("another member: %d %s", got.status, got.body)
	}
}

func TestMCPVirtualServersAreSearched(t *testing.T) {
	t.Parallel()
	r := start(t)
	files, _, _ := r.twoServers()
	r.bundle("all", `[{"server":"files","prefix":"f_"},{"server":"notes","prefix":"n_"}]`, `,"search_threshold":11`)
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	for _, speaks := range []string{stateless, sessions} {
		changed := make(chan struct{}, 8)
		options := &sdk.ClientOptions{}
		if speaks == sessions { // without one the client would ask for a stream
			options.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }
		}
		s := r.connectMCP("all", speaks, options)
		if got := toolsOf(t, s); !slices.Equal(got, []string{"search_tools"}) {
			t.Errorf("%s: %v", speaks, got)
		}
		got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "tool3 please", "limit": 1}})
		if err != nil || got.IsError {
			t.Fatalf("%s: %+v, %v", speaks, got, err)
		}
		raw, _ := json.Marshal(got.StructuredContent)
		var found struct {
			Tools []struct {
				Name   string
				Schema map[string]any `json:"inputSchema"`
			}
		}
		if err := json.Unmarshal(raw, &found); err != nil || len(found.Tools) != 1 || found.Tools[0].Name != "f_tool3" || found.Tools[0].Schema["type"] != "object" {
			t.Errorf("%s: %s, %v", speaks, raw, err)
		}
		want := []string{"search_tools"}
		if speaks == sessions {
			<-changed
			want = []string{"f_tool3", "search_tools"}
		}
		if got := toolsOf(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: after the search %v", speaks, got)
		}
		for _, tool := range []string{"f_tool3", "n_tool4"} { // found, and not
			if text, known := toolText(t, s, tool); !known || text != "said x" {
				t.Errorf("%s: %s says %q, %t", speaks, tool, text, known)
			}
		}
		for _, args := range []any{nil, map[string]any{}, map[string]any{"query": ""}, map[string]any{"query": 1}, map[string]any{"query": "?!"}, map[string]any{"query": strings.Repeat("a", 1001)},
			map[string]any{"query": "a", "limit": 0}, map[string]any{"query": "a", "limit": 51}, map[string]any{"query": "a", "limit": "1"}, map[string]any{"query": "a", "limit": 1.5}} {
			got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "search_tools", Arguments: args})
			if err != nil || !got.IsError {
				t.Errorf("%s: %v: %+v, %v", speaks, args, got, err)
			}
		}
		// What is taken away is neither found nor listed, also where it was found before.
		r.admin("PUT", "/mcp-servers/"+files+"/capabilities?workspace_id="+r.workspace(), `{"capabilities":[{"name":"tool3","type":"tool","enabled":false}],`+at+`}`)
		if got := toolsOf(t, s); slices.Contains(got, "search_tools") || slices.Contains(got, "f_tool3") || len(got) != 11 {
			t.Errorf("%s: with fewer tools than are searched: %v", speaks, got)
		}
		got, err = s.CallTool(context.Background(), &sdk.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "tool3"}})
		if raw, _ := json.Marshal(got); err != nil || strings.Contains(string(raw), "f_tool3") || !strings.Contains(string(raw), "n_tool3") {
			t.Errorf("%s: %s, %v", speaks, raw, err)
		}
		if _, known := toolText(t, s, "f_tool3"); known {
			t.Errorf("%s: a disabled tool is called", speaks)
		}
		r.admin("PUT", "/mcp-servers/"+files+"/capabilities?workspace_id="+r.workspace(), `{"capabilities":[{"name":"tool3","type":"tool","enabled":true}],`+at+`}`)
	}
}

// TestMCPRegistryLeadsToServers: a client finds a server in the catalog and connects to
// the address that it reads there.
func TestMCPRegistryLeadsToServers(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.twoServers()
	r.bundle("all", `[{"server":"files","prefix":"f_"},{"server":"notes","prefix":"n_"}]`, "")
	key := r.newKeyOf("mcp_servers.list")
	for _, path := range []string{"/v0.1/servers", "/mcp/v0.1/servers"} {
		var body struct {
			Servers []struct {
				Server struct {
					Name    string
					Version string
					Remotes []struct{ Type, URL string }
				}
			}
		}
		got := r.call("GET", path+"?limit=2", "", "X-Gateway-Api-Key", key)
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 || len(body.Servers) != 2 || !strings.Contains(got.body, `"nextCursor"`) {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		for i, want := range []string{"all", "notes"} {
			s := body.Servers[i].Server
			if s.Name != "ai.gateway.default/"+want || len(s.Remotes) != 1 || s.Remotes[0].Type != "streamable-http" {
				t.Errorf("%+v", s)
			}
			c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
			session, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{Endpoint: s.Remotes[0].URL, HTTPClient: &http.Client{Transport: speaking{stateless, workspaceKey}}, MaxRetries: -1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(toolsOf(t, session)) == 0 {
				t.Errorf("%s lists nothing", s.Name)
			}
			_ = session.Close()
		}
	}
	for name, headers := range map[string][]string{
		"a bearer token": {"X-Gateway-Api-Key", "", "Authorization", "Bearer " + key},
		"no scope":       {"X-Gateway-Api-Key", r.newKeyOf("mcp.invoke")},
	} {
		want := map[string]int{"a bearer token": 401, "no scope": 403}[name]
		if got := r.call("GET", "/v0.1/servers", "", headers...); got.status != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
