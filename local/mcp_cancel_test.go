package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPCancellationCrosses: a client of each era that gives a call up ends it at a server
// of each era.
func TestMCPCancellationCrosses(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ client, server string }{{stateless, stateless}, {stateless, sessions}, {sessions, stateless}, {sessions, sessions}} {
		t.Run(c.client+" to "+c.server, func(t *testing.T) {
			up, s := mcpServer(t, c.server)
			begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
			sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
				begun <- struct{}{}
				select {
				case <-ctx.Done():
					ended <- struct{}{}
				case <-time.After(20 * time.Second):
				}
				return &sdk.CallToolResult{}, nil, nil
			})
			address := up.URL
			if c.server == stateless { // the SDK's server does not tell its tools that the stream was closed
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if req.Header.Get("Mcp-Method") != "tools/call" {
						up.Config.Handler.ServeHTTP(w, req)
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					begun <- struct{}{}
					select {
					case <-req.Context().Done():
						ended <- struct{}{}
					case <-time.After(20 * time.Second):
					}
				}))
				defer func() { front.CloseClientConnections(); front.Close() }()
				address = front.URL
			}
			slug := "cancel-" + c.client + "-" + c.server
			r.registerMCP(slug, address, "")
			client := r.connectMCP(slug, c.client, nil)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				_, _ = client.CallTool(ctx, &sdk.CallToolParams{Name: "wait", Arguments: map[string]any{"text": ""}})
			}() // ends with ctx
			soon := time.After(30 * time.Second)
			select {
			case <-begun:
			case <-soon:
				t.Fatal("the tool was not called")
			}
			cancel()
			select {
			case <-ended:
			case <-soon:
				t.Error("the server still works on a call that was given up")
			}
		})
	}
}
