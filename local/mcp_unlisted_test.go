package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPUnlistedToolsAreNotCalled: a tool that the server does not list gets the response of
// one that is switched off, without a call of the server, in both eras and at a virtual
// server. A tool that was added since is called.
func TestMCPUnlistedToolsAreNotCalled(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, speaks := range []string{stateless, sessions} {
		t.Run(speaks, func(t *testing.T) {
			up, s := mcpServer(t, speaks)
			calls := new(atomic.Int64)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if strings.Contains(peek(req), `"tools/call"`) {
					calls.Add(1)
				}
				up.Config.Handler.ServeHTTP(w, req)
			}))
			t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
			slug := "listed-" + speaks
			server, _ := r.registerMCP(slug, front.URL, "")
			r.bundle("of-"+slug, fmt.Sprintf(`[{"server":%q}]`, slug), "")
			unlisted := map[string]string{}
			for _, at := range []string{slug, "of-" + slug} {
				for _, tool := range []string{"nothing", "nothing", "Tool1"} {
					got := r.callTool(at, tool, "x")
					if got.status != 200 || !strings.Contains(got.body, "-32602") || !strings.Contains(got.body, "unknown tool") {
						t.Errorf("%s at %s: %d %s", tool, at, got.status, got.body)
					}
					unlisted[at] = got.body
				}
				client := r.connectMCP(at, sessions, nil)
				if got, err := client.CallTool(context.Background(), &sdk.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("with a session at %s: %v %+v", at, err, got)
				}
			}
			if n := calls.Load(); n != 0 {
				t.Errorf("the server was called %d times for tools that it does not list", n)
			}
			r.admin("PUT", "/mcp-servers/"+server+"/capabilities?workspace_id="+r.workspace(), fmt.Sprintf(`{"capabilities":[{"name":"tool1","type":"tool","enabled":false}],"workspace_id":%q}`, r.workspace()))
			for at, want := range unlisted {
				if got := r.callTool(at, "tool1", "x"); got.status != 200 || got.body != want {
					t.Errorf("a disabled tool at %s: %d %s, want %s", at, got.status, got.body, want)
				}
			}
			r.admin("PUT", "/mcp-servers/"+server+"/capabilities?workspace_id="+r.workspace(), fmt.Sprintf(`{"capabilities":[{"name":"tool1","type":"tool","enabled":true}],"workspace_id":%q}`, r.workspace()))
			sdk.AddTool(s, &sdk.Tool{Name: "added"}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "there"}}}, nil, nil
			})
			late := r.newKeyOf("mcp.invoke") // has named no unknown tool yet
			if got := r.callTool(slug, "added", "x", "X-Gateway-Api-Key", late); got.status != 200 || !strings.Contains(got.body, "there") {
				t.Errorf("a tool that was added: %d %s", got.status, got.body)
			}
			if got := r.callTool(slug, "added", "x"); got.status != 200 || !strings.Contains(got.body, "there") {
				t.Errorf("a tool that another caller was listed: %d %s", got.status, got.body)
			}
		})
	}
}

// peek returns the body of a request, which can still be read.
func peek(r *http.Request) string {
	raw, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return string(raw)
}

// TestMCPVirtualNamesAreRewrittenInHeaders: the member is told its own name of a tool in the
// header Mcp-Name as well as in the body.
func TestMCPVirtualNamesAreRewrittenInHeaders(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	names := make(chan string, 10)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if body := peek(req); strings.Contains(body, `"tools/call"`) {
			names <- fmt.Sprint(req.Header["Mcp-Name"], strings.Contains(body, `"name":"tool1"`))
		}
		up.Config.Handler.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	r.registerMCP("files", front.URL, "")
	r.bundle("all", `[{"server":"files","rename":{"tool1":"say"}}]`, "")
	if got := r.callTool("all", "say", "x"); got.status != 200 || !strings.Contains(got.body, "said x") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := <-names; got != "[tool1] true" {
		t.Errorf("the member was sent %s", got)
	}
}
