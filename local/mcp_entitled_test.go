package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPListsWhatCanBeCalled: after any changes of who may use what, clients of both eras
// can call exactly the tools that are listed to them.
func TestMCPListsWhatCanBeCalled(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	server, integration := r.registerMCP("files", up.URL, "")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	ofServer, ofIntegration := "/mcp-servers/"+server, "/mcp-integrations/"+integration
	expected := map[string]map[string]bool{ofServer: {}, ofIntegration: {}} // what is off
	open := true
	for step := range 14 {
		if random.IntN(4) == 0 {
			open = !open
			r.admin("PUT", ofServer+"/user-access", fmt.Sprintf(`{"default_user_access":%q,%s}`, map[bool]string{true: "allow", false: "deny"}[open], at))
		}
		for range 3 {
			path := []string{ofServer, ofIntegration}[random.IntN(2)]
			tool, on := fmt.Sprintf("tool%d", random.IntN(5)), random.IntN(2) == 0
			r.admin("PUT", path+"/capabilities?workspace_id="+r.workspace(), fmt.Sprintf(`{"capabilities":[{"name":%q,"type":"tool","enabled":%t}],%s}`, tool, on, at))
			expected[path][tool] = !on
		}
		for _, speaks := range []string{stateless, sessions} {
			if !open {
				if got := r.callMCP("files", "tools/list", "", ""); got.status != 403 {
					t.Errorf("seed %d, step %d: listed: %d", seed, step, got.status)
				}
				if got := r.callTool("files", "tool0", "x"); got.status != 403 {
					t.Errorf("seed %d, step %d: called: %d", seed, step, got.status)
				}
				continue
			}
			s := r.connectMCP("files", speaks, nil)
			listed := map[string]bool{}
			for tool, err := range s.Tools(context.Background(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				listed[tool.Name] = true
			}
			for n := range 5 {
				tool := fmt.Sprintf("tool%d", n)
				got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{"text": "x"}})
				if err != nil && !strings.Contains(err.Error(), "unknown tool") {
					t.Fatal(err)
				}
				called, want := err == nil && !got.IsError, !expected[ofServer][tool] && !expected[ofIntegration][tool]
				if listed[tool] != want || called != want {
					t.Errorf("seed %d, step %d: %s: %s is listed %t and called %t, want %t", seed, step, speaks, tool, listed[tool], called, want)
				}
			}
		}
	}
}
