package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// olderServer speaks by the transport of 2024-11-05.
func olderServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "older", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "talk"}, func(ctx context.Context, r *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, any, error) {
		if err := r.Session.Ping(ctx, nil); err != nil {
			return nil, nil, fmt.Errorf("the ping: %w", err)
		}
		//lint:ignore SA1019 servers of the older transport ask for roots
		_, refused := r.Session.ListRoots(ctx, nil)
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("roots: %v", refused)}}}, nil, err
	})
	up := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	return up
}

// TestMCPServersOfTheOlderTransportAreAnswered: questions that they ask during a call are
// answered or rejected, and what they report reaches the client.
func TestMCPServersOfTheOlderTransportAreAnswered(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := olderServer(t)
	at := fmt.Sprintf(`"workspace_id":%q}`, r.workspace())
	r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":"older","slug":"older","url":%q,"auth_type":"none","transport":"sse",`, up.URL)+at)
	r.admin("POST", "/mcp-servers", `{"name":"older","slug":"older","mcp_integration_id":"older",`+at)
	call := `{"jsonrpc":"2.0","id":"r1","method":"tools/call","params":{"name":"talk","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}}}`
	got := r.call("POST", "/mcp/older/mcp", call, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "talk")
	if got.status != 200 || !strings.Contains(got.body, "has not declared this") || !strings.Contains(got.body, `"message":"half"`) || !strings.Contains(got.body, `"progressToken":"p"`) {
		t.Errorf("%d %s", got.status, got.body)
	}

	// Registered as what it is not, it says what it is.
	r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":"wrong","slug":"wrong","url":%q,"auth_type":"none","transport":"http",`, up.URL)+at)
	metadata := r.call("GET", "/mcp-integrations/wrong/metadata?workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey)
	if !strings.Contains(metadata.body, "transport to sse") {
		t.Errorf("%d %s", metadata.status, metadata.body)
	}
}

// TestStreamsThatServersRefuse: where no message waits for a response, the status tells it.
func TestStreamsThatServersRefuse(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, sessions)
	conflict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet {
			http.Error(w, "one stream at a time", http.StatusConflict)
			return
		}
		up.Config.Handler.ServeHTTP(w, q)
	}))
	t.Cleanup(conflict.Close)
	r.registerMCP("files", conflict.URL, "")
	id := r.initializeMCP("files").header.Get("Mcp-Session-Id")
	if got := r.call("GET", "/mcp/files/mcp", "", "Accept", "text/event-stream", "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"); got.status != 502 || !strings.Contains(got.body, "status 409") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
