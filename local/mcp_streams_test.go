package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPForwardsChangeNotifications: what a server says automatically reaches clients of each era that
// can be told.
func TestMCPForwardsChangeNotifications(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ client, server string }{{stateless, stateless}, {sessions, stateless}, {sessions, sessions}} {
		t.Run(c.client+" to "+c.server, func(t *testing.T) {
			up, s := mcpServer(t, c.server)
			slug := "of-" + c.client + "-" + c.server
			r.registerMCP(slug, up.URL, "")
			received := make(chan struct{}, 100)
			client := r.connectMCP(slug, c.client, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { received <- struct{}{} }})
			ticker := time.NewTicker(100 * time.Millisecond) // the stream may not stand yet
			defer ticker.Stop()
			deadline := time.After(time.Minute)
			for n := 0; ; n++ {
				select {
				case <-ticker.C:
					s.AddTool(&sdk.Tool{Name: fmt.Sprintf("more%d", n), InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
						return &sdk.CallToolResult{}, nil
					})
					continue
				case <-received:
				case <-deadline:
					t.Fatal("nothing was heard")
				}
				break
			}
			found := false
			for tool, err := range client.Tools(context.Background(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				found = found || strings.HasPrefix(tool.Name, "more")
			}
			if !found {
				t.Error("the list is the one from before")
			}
		})
	}
}

// listenMCP opens a stream without session and gives its messages.
func (r *running) listenMCP(slug, notifications string) (*http.Response, <-chan string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "POST", r.base+"/mcp/"+slug+"/mcp", strings.NewReader(mcpBody("subscriptions/listen", notifications)))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Gateway-Api-Key": workspaceKey,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		req.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { res.Body.Close() })
	messages := make(chan string, 100)
	go func() { // ends with the response
		defer close(messages)
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				messages <- data
			}
		}
	}()
	return res, messages
}

// next is the next message of a stream; "" when it is over.
func (r *running) next(messages <-chan string) string {
	r.t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(time.Minute):
		r.t.Fatal("nothing came")
		return ""
	}
}

// TestMCPStreamsAreGoverned: a stream only reports what the caller may use, is rejected when
// this cannot be guaranteed, and ends when access is withdrawn.
func TestMCPStreamsAreGoverned(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, _ := mcpServer(t, stateless)
	server, _ := r.registerMCP("files", up.URL, "")
	old, _ := mcpServer(t, sessions)
	r.registerMCP("old", old.URL, "")
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	r.admin("PUT", "/mcp-servers/"+server+"/capabilities?workspace_id="+r.workspace(), `{"capabilities":[{"name":"file:///readme","type":"resource","enabled":false}],`+at+`}`)

	for params, want := range map[string]string{
		``: "params.notifications", `"notifications":null`: "params.notifications", `"notifications":[]`: "params.notifications",
		`"notifications":{"toolsListChanged":"yes"}`: "params.notifications", `"notifications":{"resourceSubscriptions":[1]}`: "params.notifications",
		`"notifications":{"resourceSubscriptions":["a` + strings.Repeat(`","a`, 1000) + `"]}`: "up to 1000",
	} {
		got := r.callMCP("files", "subscriptions/listen", "", params)
		if got.status != 200 || !strings.Contains(got.body, "-32602") || !strings.Contains(got.body, want) {
			t.Errorf("%.60s: %d %s", params, got.status, got.body)
		}
	}
	if got := r.callMCP("old", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`); got.status != 404 || !strings.Contains(got.body, "-32601") {
		t.Errorf("a server with sessions: %d %s", got.status, got.body)
	}

	res, messages := r.listenMCP("files", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///readme","file:///files/a"]}`)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	first := r.next(messages)
	if !strings.Contains(first, `"notifications/subscriptions/acknowledged"`) || strings.Contains(first, "file:///readme") || !strings.Contains(first, `"toolsListChanged":true`) || !strings.Contains(first, `"r1"`) {
		t.Errorf("first: %s", first)
	}
	r.admin("PUT", "/mcp-servers/"+server+"/user-access", `{"default_user_access":"deny",`+at+`}`)
	if last := r.next(messages); !strings.Contains(last, `"code":403`) || !strings.Contains(last, `"id":"r1"`) {
		t.Errorf("last: %s", last)
	}
	if more := r.next(messages); more != "" {
		t.Errorf("after it: %s", more)
	}
}

// TestMCPLargeResults: 10 MiB pass through.
func TestMCPLargeResults(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, s := mcpServer(t, stateless)
	s.AddTool(&sdk.Tool{Name: "large", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 10<<20)}}}, nil
	})
	r.registerMCP("files", up.URL, "")
	if got := r.callTool("files", "large", ""); got.status != 200 || len(got.body) < 10<<20 {
		t.Errorf("%d, %d bytes", got.status, len(got.body))
	}
}
