//lint:file-ignore SA1019 clients and servers of earlier versions ask and log in this way

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPSettingsOfSessionsReachStatelessServers: the level of log messages and the
// resources that a client with a session watches are told to a server without.
func TestMCPSettingsOfSessionsReachStatelessServers(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := sdk.NewServer(&sdk.Implementation{Name: "settings", Version: "1"}, &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	for _, uri := range []string{"file:///a", "file:///b"} {
		s.AddResource(&sdk.Resource{Name: uri, URI: uri}, func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: q.Params.URI, Text: "x"}}}, nil
		})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "chat"}, func(ctx context.Context, q *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
		for _, level := range []sdk.LoggingLevel{"debug", "warning"} {
			if err := q.Session.Log(ctx, &sdk.LoggingMessageParams{Level: level, Data: "of the tool"}); err != nil {
				return nil, nil, err
			}
		}
		return &sdk.CallToolResult{}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Mcp-Protocol-Version") < "2026-07-28" {
			http.Error(w, "another era", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	r.registerMCP("settings", up.URL, "")
	logs, updates := make(chan sdk.LoggingLevel, 100), make(chan string, 100)
	client := r.connectMCP("settings", sessions, &sdk.ClientOptions{
		LoggingMessageHandler:  func(_ context.Context, q *sdk.LoggingMessageRequest) { logs <- q.Params.Level },
		ResourceUpdatedHandler: func(_ context.Context, q *sdk.ResourceUpdatedNotificationRequest) { updates <- q.Params.URI },
	})
	ctx := context.Background()
	call := func(level sdk.LoggingLevel) (got []sdk.LoggingLevel) {
		t.Helper()
		if level != "" {
			if err := client.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "chat", Arguments: map[string]any{"text": ""}}); err != nil {
			t.Fatal(err)
		}
		for {
			select {
			case l := <-logs:
				got = append(got, l)
			case <-time.After(200 * time.Millisecond):
				return got
			}
		}
	}
	if got := call(""); len(got) != 0 {
		t.Errorf("without a level: %v", got)
	}
	if got := call("debug"); len(got) != 2 {
		t.Errorf("debug: %v", got)
	}
	if got := call("warning"); len(got) != 1 || got[0] != "warning" {
		t.Errorf("warning: %v", got)
	}
	if err := client.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "loud"}); err == nil {
		t.Error("a level that is none is taken")
	}
	// The server is told again until the stream that asks for the resource is open.
	notify := func(uri string) {
		t.Helper()
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for deadline := time.After(time.Minute); ; {
			select {
			case <-ticker.C:
				for _, one := range []string{"file:///a", "file:///b"} {
					if err := s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: one}); err != nil {
						t.Fatal(err)
					}
				}
			case got := <-updates:
				if got == uri {
					return
				}
			case <-deadline:
				t.Fatalf("%s: no update", uri)
			}
		}
	}
	if err := client.Subscribe(ctx, &sdk.SubscribeParams{URI: "file:///a"}); err != nil {
		t.Fatal(err)
	}
	notify("file:///a")
	if err := client.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: "file:///a"}); err != nil {
		t.Fatal(err)
	}
	if err := client.Subscribe(ctx, &sdk.SubscribeParams{URI: "file:///b"}); err != nil {
		t.Fatal(err)
	}
	notify("file:///b")
	for len(updates) > 0 {
		<-updates
	}
	notify("file:///b")
	for len(updates) > 0 {
		if got := <-updates; got != "file:///b" {
			t.Errorf("%s is told though it is no longer watched", got)
		}
	}
}
