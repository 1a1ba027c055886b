//lint:file-ignore SA1019 clients and servers of earlier versions ask and log in this way

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// formMessage is the message of the form that the tests' servers send.
const formMessage = "What is your name?"

// ownState is the state that the server without sessions gives; no client may see it.
const ownState = "the server's own state"

// elicitingServer is a server whose tool "ask" needs a form, a sample and the roots of the
// client before it returns them as text. Without sessions it asks by a result of the type
// input_required, in two rounds; with sessions by requests on the stream of the call.
func elicitingServer(t testing.TB, speaks string) (address string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	up, s := mcpServer(t, speaks)
	if speaks == sessions {
		s.AddTool(&sdk.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			calls.Add(1)
			form, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: formMessage, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
			if err != nil {
				return nil, err
			}
			sample, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 9, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Two plus two?"}}}})
			if err != nil {
				return nil, err
			}
			roots, err := r.Session.ListRoots(ctx, nil)
			if err != nil || len(roots.Roots) != 1 {
				return nil, fmt.Errorf("roots: %+v %w", roots, err)
			}
			text := fmt.Sprint(form.Action, " ", form.Content["name"], ", ", sample.Content.(*sdk.TextContent).Text, ", ", roots.Roots[0].URI)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
		})
		return up.URL, calls
	}
	for _, name := range []string{"ask", "error-32020", "error-32021", "error-32022", "error-32000", "error-32602"} {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			up.Config.Handler.ServeHTTP(w, r)
			return
		}
		calls.Add(1)
		raw, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Params struct {
				Name           string `json:"name"`
				RequestState   string `json:"requestState"`
				InputResponses map[string]struct {
					Action  string
					Content json.RawMessage
					Roots   []struct{ URI string }
				} `json:"inputResponses"`
			}
		}
		_ = json.Unmarshal(raw, &m)
		member, value := "result", ""
		in := m.Params.InputResponses
		var form struct{ Name string }
		_ = json.Unmarshal(in["who"].Content, &form)
		switch {
		case strings.HasPrefix(m.Params.Name, "error"):
			member, value = "error", `{"code":`+strings.TrimPrefix(m.Params.Name, "error")+`,"message":"of the server"}`
		case m.Params.RequestState == "":
			value = `{"resultType":"input_required","requestState":"` + ownState + `","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"` + formMessage + `","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`
		case m.Params.RequestState == ownState:
			value = `{"resultType":"input_required","requestState":"` + ownState + in["who"].Action + " " + form.Name + `","inputRequests":{"sum":{"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"Two plus two?"}}]}},"where":{"method":"roots/list","params":{}}}}`
		default:
			var sample struct{ Text string }
			if json.Unmarshal(in["sum"].Content, &sample) != nil || len(in["where"].Roots) != 1 {
				member, value = "error", `{"code":-32602,"message":"answers are missing"}`
				break
			}
			text, _ := json.Marshal(strings.TrimPrefix(m.Params.RequestState, ownState) + ", " + sample.Text + ", " + in["where"].Roots[0].URI)
			value = `{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"`+member+`":`+value+`}`)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return front.URL, calls
}

// responders returns the handlers of a client of the official SDK that answers everything.
func responders() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if r.Params.Message != formMessage {
				return nil, fmt.Errorf("asked %q", r.Params.Message)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "4"}}, nil
		},
	}
}

// connectAnswering connects a client with one root that answers what servers ask.
func (r *running) connectAnswering(t *testing.T, slug, speaks string) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, responders())
	c.AddRoots(&sdk.Root{URI: "file:///home"})
	s, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: r.base + "/mcp/" + slug + "/mcp", HTTPClient: &http.Client{Transport: speaking{speaks, workspaceKey}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatalf("%s: %v", speaks, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestMCPQuestionsCrossEras: forms, samples and roots that a server of either era asks for
// reach clients of either era, directly and through a virtual server.
func TestMCPQuestionsCrossEras(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, server := range []string{stateless, sessions} {
		address, calls := elicitingServer(t, server)
		slug := "asks-" + server
		r.registerMCP(slug, address, "")
		r.bundle("bundle-"+server, fmt.Sprintf(`[{"server":%q}]`, slug), "")
		for _, client := range []string{stateless, sessions} {
			for _, at := range []string{slug, "bundle-" + server} {
				t.Run(client+" to "+at, func(t *testing.T) {
					before := calls.Load()
					got, err := r.connectAnswering(t, at, client).CallTool(context.Background(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{}})
					if err != nil || got.IsError || len(got.Content) != 1 || got.Content[0].(*sdk.TextContent).Text != "accept Ann, 4, file:///home" {
						t.Errorf("%v %+v", err, got)
					}
					want := int64(3) // rounds
					if server == sessions {
						want = 1
					}
					if n := calls.Load() - before; n != want {
						t.Errorf("the tool was called %d times, want %d", n, want)
					}
				})
			}
		}
	}
}

// TestMCPQuestionsNeedTheirCapability: a client that does not declare what a server asks for
// is not asked, and is told so in its own era's form.
func TestMCPQuestionsNeedTheirCapability(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, server := range []string{stateless, sessions} {
		address, _ := elicitingServer(t, server)
		r.registerMCP("asks-"+server, address, "")
	}
	for _, c := range []struct{ client, server string }{{stateless, sessions}, {sessions, stateless}, {sessions, sessions}} {
		c2 := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
		s, err := c2.Connect(context.Background(), &sdk.StreamableClientTransport{
			Endpoint: r.base + "/mcp/asks-" + c.server + "/mcp", HTTPClient: &http.Client{Transport: speaking{c.client, workspaceKey}}, MaxRetries: -1,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{}})
		if err == nil && !got.IsError {
			t.Errorf("%s to %s: %+v", c.client, c.server, got)
		}
	}
}

// TestMCPStatesAreSealed: the state of a question opens for the caller and the request that
// it was given for, and names nothing of the server.
func TestMCPStatesAreSealed(t *testing.T) {
	t.Parallel()
	r := start(t)
	other := r.newKeyOf("mcp.invoke")
	for _, server := range []string{stateless, sessions} {
		t.Run(server, func(t *testing.T) {
			address, _ := elicitingServer(t, server)
			slug := "asks-" + server
			r.registerMCP(slug, address, "")
			call := func(key, arguments, more string) reply {
				body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":` + arguments + more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}}}`
				return r.call("POST", "/mcp/"+slug+"/mcp", body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "ask", "X-Gateway-Api-Key", key)
			}
			questions := func(got reply) (names []string, state string) {
				var result struct {
					Result struct {
						ResultType    string                     `json:"resultType"`
						RequestState  string                     `json:"requestState"`
						InputRequests map[string]json.RawMessage `json:"inputRequests"`
					}
				}
				if json.Unmarshal([]byte(got.body), &result) != nil || result.Result.ResultType != "input_required" || result.Result.RequestState == "" {
					t.Fatalf("%d %s", got.status, got.body)
				}
				for name := range result.Result.InputRequests {
					names = append(names, name)
				}
				return names, result.Result.RequestState
			}
			first := call(workspaceKey, "{}", "")
			names, state := questions(first)
			if len(names) != 1 || strings.Contains(first.body, ownState) {
				t.Fatalf("%s", first.body)
			}
			with := func(state string) string {
				return fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ann"}}}`, state, names[0])
			}
			for what, got := range map[string]reply{
				"another caller":  call(other, "{}", with(state)),
				"another request": call(workspaceKey, `{"a":1}`, with(state)),
				"a changed state": call(workspaceKey, "{}", with(state[:len(state)-4]+"AAAA")),
				"a server's own":  call(workspaceKey, "{}", with(ownState)),
			} {
				if got.status != 200 || !strings.Contains(got.body, "-32602") || !strings.Contains(got.body, "requestState") {
					t.Errorf("%s: %d %s", what, got.status, got.body)
				}
			}
			if _, next := questions(call(workspaceKey, "{}", with(state))); next == state {
				t.Error("the next question has the state of the one before")
			}
			if server == stateless {
				return
			}
			if got := call(workspaceKey, "{}", with(state)); !strings.Contains(got.body, `"isError":true`) || !strings.Contains(got.body, "no longer waits") {
				t.Errorf("a call that has gone on: %d %s", got.status, got.body)
			}
		})
	}
}

// TestMCPErrorsAreOfTheClientsEra: no client with a session sees a code that only the
// protocol without sessions has.
func TestMCPErrorsAreOfTheClientsEra(t *testing.T) {
	t.Parallel()
	r := start(t)
	address, _ := elicitingServer(t, stateless)
	r.registerMCP("errs", address, "")
	s := r.connectMCP("errs", sessions, nil)
	for code, want := range map[string]string{"-32020": "-32603", "-32021": "-32600", "-32022": "-32603", "-32000": "-32000", "-32602": "-32602"} {
		if got := r.inSession(s, "tools/call", `"name":"error`+code+`","arguments":{}`); got.status != 200 || !strings.Contains(got.body, `"code":`+want) {
			t.Errorf("%s: %d %s", code, got.status, got.body)
		}
	}
}

// inSession sends a request in the session of a client.
func (r *running) inSession(s *sdk.ClientSession, method, params string) reply {
	return r.call("POST", "/mcp/errs/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", s.ID())
}
