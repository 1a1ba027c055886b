package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// eras in which the tests' clients and servers speak.
const (
	stateless = "stateless"
	sessions  = "sessions"
)

type textArgs struct {
	Text string `json:"text"`
}

// mcpServer is a server of the official SDK that speaks in one era.
func mcpServer(t testing.TB, speaks string) (*httptest.Server, *sdk.Server) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "fixture", Version: "1.2.3"}, &sdk.ServerOptions{PageSize: 3, Instructions: "Be brief.",
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"red"}}}, nil
		}})
	for i := range 5 {
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprintf("tool%d", i), Description: "Says it."}, func(_ context.Context, _ *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said " + a.Text}}}, nil, nil
		})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, r *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, any, error) {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, err
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello"}}}}, nil
	})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "content"}}}, nil
	}
	s.AddResource(&sdk.Resource{Name: "readme", URI: "file:///readme"}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "files", URITemplate: "file:///files/{path}"}, read)
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: speaks == stateless})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		modern := r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28"
		if modern != (speaks == stateless) {
			http.Error(w, "another era", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	return up, s
}

// speaking is a client's way out that keeps it to one era, with a key.
type speaking struct{ era, key string }

func (s speaking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Gateway-Api-Key", s.key)
	if s.era == sessions && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(`"server/discover"`)) {
			return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// registerMCP makes an integration and a server of the default workspace.
func (r *running) registerMCP(slug, url, more string) (server, integration string) {
	r.t.Helper()
	at := `,"workspace_id":` + fmt.Sprintf("%q", r.workspace())
	in := r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"url":%q,"auth_type":"none","transport":"http"%s%s}`, slug, slug, url, more, at))
	made := r.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"mcp_integration_id":%q%s}`, slug, slug, slug, at))
	return made["id"].(string), in["id"].(string)
}

// newKeyOf makes a workspace key with scopes.
func (r *running) newKeyOf(scopes ...string) string {
	r.t.Helper()
	quoted := strings.Join(scopes, `","`)
	got := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"a key of the tests","workspace_id":%q,"scopes":["%s"]}`, r.workspace(), quoted))
	return got["key"].(string)
}

// connectMCP connects a client of the official SDK.
func (r *running) connectMCP(slug, speaks string, o *sdk.ClientOptions) *sdk.ClientSession {
	r.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, o)
	session, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: r.base + "/mcp/" + slug + "/mcp", HTTPClient: &http.Client{Transport: speaking{speaks, workspaceKey}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		r.t.Fatalf("%s: %v", speaks, err)
	}
	r.t.Cleanup(func() { _ = session.Close() })
	return session
}

// TestMCPBridges: clients and servers of the official SDK, in each era on each side.
func TestMCPBridges(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, server := range []string{stateless, sessions} {
		up, _ := mcpServer(t, server)
		slug := "up-" + server
		r.registerMCP(slug, up.URL, "")
		for _, client := range []string{stateless, sessions} {
			t.Run(client+" to "+server, func(t *testing.T) { r.tryMCP(t, slug, client) })
		}
	}
}

func (r *running) tryMCP(t *testing.T, slug, speaks string) {
	ctx := context.Background()
	progress := make(chan string, 8)
	s := r.connectMCP(slug, speaks, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
		progress <- n.Params.Message
	}})
	var names []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if want := []string{"slow", "tool0", "tool1", "tool2", "tool3", "tool4"}; !slices.Equal(names, want) {
		t.Errorf("tools: %q", names)
	}
	got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "tool1", Arguments: map[string]any{"text": "é\n"}})
	if err != nil || got.IsError || got.Content[0].(*sdk.TextContent).Text != "said é\n" {
		t.Errorf("call: %v %+v", err, got)
	}
	params := &sdk.CallToolParams{Name: "slow", Arguments: map[string]any{"text": ""}}
	params.SetProgressToken("p")
	if got, err = s.CallTool(ctx, params); err != nil || got.Content[0].(*sdk.TextContent).Text != "done" {
		t.Errorf("slow call: %v %+v", err, got)
	}
	select {
	case got := <-progress:
		if got != "half" {
			t.Errorf("progress: %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("no progress was told")
	}
	if got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("unknown tool: %v %+v", err, got)
	}
	prompt, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet"})
	if err != nil || prompt.Messages[0].Content.(*sdk.TextContent).Text != "hello" {
		t.Errorf("prompt: %v %+v", err, prompt)
	}
	for _, uri := range []string{"file:///readme", "file:///files/a"} {
		read, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil || read.Contents[0].Text != "content" {
			t.Errorf("%s: %v %+v", uri, err, read)
		}
	}
	if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "file:///nothing"}); err == nil || !strings.Contains(strings.ToLower(err.Error()), "not found") {
		t.Errorf("missing resource: %v", err)
	}
	for name, list := range map[string]func() (int, error){
		"prompts":   func() (int, error) { l, err := s.ListPrompts(ctx, nil); return len(l.Prompts), err },
		"resources": func() (int, error) { l, err := s.ListResources(ctx, nil); return len(l.Resources), err },
		"templates": func() (int, error) { l, err := s.ListResourceTemplates(ctx, nil); return len(l.ResourceTemplates), err },
	} {
		if n, err := list(); n != 1 || err != nil {
			t.Errorf("%s: %d %v", name, n, err)
		}
	}
	done, err := s.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: sdk.CompleteParamsArgument{Name: "a", Value: "r"}})
	if err != nil || !slices.Equal(done.Completion.Values, []string{"red"}) {
		t.Errorf("completion: %v %+v", err, done)
	}
}
