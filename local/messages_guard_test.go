package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// talkative is an MCP server with sessions that says hunter2 in the way that its path names.
type talkative struct {
	*httptest.Server
	mu       sync.Mutex
	received []string // bodies
}

func newTalkative(t *testing.T) *talkative {
	t.Helper()
	s := new(talkative)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// interim are the messages that precede a result, by path.
var interim = map[string]string{
	"sampling":    `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hunter2"}}]}}`,
	"elicitation": `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"hunter2","requestedSchema":{"type":"object","properties":{}}}}`,
	"log":         `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hunter2"}}`,
	"progress":    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"hunter2"}}`,
	"harmless":    `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"nothing"}}`,
}

func (s *talkative) serve(w http.ResponseWriter, req *http.Request) {
	raw, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	s.received = append(s.received, string(raw))
	s.mu.Unlock()
	how := strings.Trim(req.URL.Path, "/")
	event := func(message string) { _, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", message) }
	if req.Method == "GET" {
		w.Header().Set("Content-Type", "text/event-stream")
		event(interim[how])
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"end"}}`)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(raw, &m)
	answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result) }
	w.Header().Set("Content-Type", "application/json")
	switch {
	case m.ID == nil || m.Method == "":
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "the-session")
		_, _ = io.WriteString(w, answer(`"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"t","version":"1"}}`))
	case m.Method == "tools/list":
		_, _ = io.WriteString(w, answer(`"result":{"tools":[{"name":"speak","inputSchema":{"type":"object"}}]}`))
	case m.Method == "tools/call" && how == "error":
		_, _ = io.WriteString(w, answer(`"error":{"code":-32000,"message":"it is hunter2","data":{"more":"hunter2"}}`))
	case m.Method == "tools/call":
		w.Header().Set("Content-Type", "text/event-stream")
		event(interim[how])
		event(answer(`"result":{"content":[{"type":"text","text":"fine"}]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, answer(`"error":{"code":-32601,"message":"unknown"}`))
	}
}

// said reports whether the server has received a body that contains all parts.
func (s *talkative) said(parts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range s.received {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(body, p)
		}
		if all {
			return true
		}
	}
	return false
}

// guardWorkspace has a guardrail that denies hunter2 judge everything in the workspace.
func (r *running) guardWorkspace() {
	r.t.Helper()
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}],"actions":{"deny":true},"workspace_id":`+fmt.Sprintf("%q", r.workspace())+`}`)
	r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"input_guardrails":[%q],"output_guardrails":[%q]}}`, words["id"], words["id"]))
}

// openSession begins a session of an MCP client and returns the headers of its requests.
func (r *running) openSession(slug string) []string {
	r.t.Helper()
	headers := []string{"Accept", "application/json, text/event-stream"}
	got := r.call("POST", "/mcp/"+slug+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}`, headers...)
	if got.status != 200 {
		r.t.Fatalf("%d %s", got.status, got.body)
	}
	return append(headers, "Mcp-Session-Id", got.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18")
}

const speak = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"speak","arguments":{},"_meta":{"progressToken":1}}}`

// TestMessagesOfMCPServersAreJudged checks that guardrails judge what a server says beside a
// result: errors, requests and notifications, on the stream of a call and on that of a session.
func TestMessagesOfMCPServersAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	server := newTalkative(t)
	r.guardWorkspace()
	for _, how := range []string{"error", "sampling", "elicitation", "log", "progress", "harmless"} {
		r.registerMCP("says-"+how, server.URL+"/"+how, "")
		session := r.openSession("says-" + how)
		path := "/mcp/says-" + how + "/mcp"
		got := r.call("POST", path, speak, session...)
		want := "fine"
		if how == "error" {
			want = "guardrail"
		}
		if got.status != 200 || strings.Contains(got.body, "hunter2") || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", how, got.status, got.body)
		}
		if how == "harmless" && !strings.Contains(got.body, "nothing") {
			t.Errorf("a harmless notification was withheld: %s", got.body)
		}
		if how == "error" {
			continue
		}
		got = r.call("GET", path, "", session...)
		if got.status != 200 || strings.Contains(got.body, "hunter2") || !strings.Contains(got.body, `"end"`) {
			t.Errorf("%s, stream of the session: %d %s", how, got.status, got.body)
		}
	}
	for _, id := range []string{`"id":"s"`, `"id":"e"`} {
		if !server.said(id, `"error"`) {
			t.Errorf("the server's request %s was not declined", id)
		}
	}
}

// TestMessagesOfMCPClientsAreJudged checks that guardrails judge what a client sends to a server
// in addition to calls: responses to requests of the server, and notifications.
func TestMessagesOfMCPClientsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	server := newTalkative(t)
	r.guardWorkspace()
	r.registerMCP("hears", server.URL+"/harmless", "")
	session := r.openSession("hears")
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant","model":"m","content":{"type":"text","text":"hunter2"}}}`,
		`{"jsonrpc":"2.0","id":"s2","result":{"action":"accept","content":{"answer":"hunter2"}}}`,
		`{"jsonrpc":"2.0","id":"s3","error":{"code":-1,"message":"hunter2"}}`,
		`{"jsonrpc":"2.0","id":"s4","result":{"action":"accept","content":{"answer":"harmless"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"hunter2"}}`,
	} {
		if got := r.call("POST", "/mcp/hears/mcp", body, session...); got.status != http.StatusAccepted {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if server.said("hunter2") {
		t.Error("denied text reached the server")
	}
	for _, id := range []string{"s1", "s2", "s3"} {
		if !server.said(`"id":"`+id+`"`, `"error"`) {
			t.Errorf("the server got no error for %s", id)
		}
	}
	if !server.said(`"id":"s4"`, "harmless") {
		t.Error("a harmless response was withheld")
	}
}

// TestErrorsOfToolsAreJudgedInToolRuns checks that neither the model nor the client gets an
// error of a tool that the output guardrails of the config deny.
func TestErrorsOfToolsAreJudgedInToolRuns(t *testing.T) {
	t.Parallel()
	r := start(t)
	server := newTalkative(t)
	r.registerMCP("fails", server.URL+"/error", "")
	config := `{"provider":"@mock","output_guardrails":[{"default.regexMatch":{"rule":"hunter2","not":true,"scope":"tool_results"},"deny":true}]}`
	for _, c := range toolRequests {
		got := r.call("POST", c.path, c.body("gpt-4o-mini", "mock: call=speak {}\nSpeak.", serverTool("fails", ""), ""), "X-Gateway-Beta", toolsHeader, "X-Gateway-Config", config)
		if got.status != 200 || strings.Contains(got.body, "hunter2") || !strings.Contains(got.body, "withheld") {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
}

// TestRepliesOfAgentsAreJudged checks that guardrails judge every reply of an agent: those to
// requests without a body, errors, and artifacts that a stream sends in pieces.
func TestRepliesOfAgentsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	const task = `{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hunter2"}]}}}`
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(raw, &m)
		binding, how, _ := strings.Cut(strings.Trim(req.URL.Path, "/"), "/")
		at := "http://" + req.Host + "/" + binding
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(req.URL.Path, "agent-card.json"):
			kind := map[bool]string{true: "HTTP+JSON", false: "JSONRPC"}[binding == "rest"]
			_, _ = fmt.Fprintf(w, `{"name":"a","description":"d","version":"1","capabilities":{"streaming":true,"extendedAgentCard":true},"defaultInputModes":["text"],"defaultOutputModes":["text"],"skills":[],"supportedInterfaces":[{"url":%q,"protocolBinding":%q,"protocolVersion":"1.0"}]}`, at, kind)
		case binding == "rest" && strings.HasSuffix(how, "t2"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"it is hunter2"}}`)
		case binding == "rest" && strings.HasSuffix(how, "tasks"):
			_, _ = io.WriteString(w, `{"tasks":[`+task+`],"nextPageToken":"","pageSize":1,"totalSize":1}`)
		case binding == "rest" && strings.Contains(how, "ard"):
			_, _ = io.WriteString(w, `{"name":"a","description":"hunter2","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],"supportedInterfaces":[]}`)
		case binding == "rest":
			_, _ = io.WriteString(w, task)
		case m.Method == "SendStreamingMessage":
			w.Header().Set("Content-Type", "text/event-stream")
			for i, text := range []string{"it is hun", "ter", "2 of course"} {
				_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"append\":%t,\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":%q}]}}}}\n\n", m.ID, i > 0, text)
			}
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"it is hunter2","data":[{"more":"hunter2"}]}}`, m.ID)
		}
	}))
	t.Cleanup(func() { agent.CloseClientConnections(); agent.Close() })
	r.registerAgent("rest", agent.URL+"/rest", "")
	r.registerAgent("rpc", agent.URL+"/rpc", "")
	r.guardWorkspace()
	const message = `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"hi"}]}}`
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/agent/rest/tasks/t1", ""}, {"GET", "/agent/rest/tasks/t2", ""}, {"GET", "/agent/rest/tasks", ""}, {"GET", "/agent/rest/extendedAgentCard", ""},
		{"POST", "/agent/rest/tasks/t1:cancel", ""}, {"POST", "/agent/rest/message:send", message},
		{"POST", "/agent/rpc", rpcBody("SendMessage", message)}, {"POST", "/agent/rpc", rpcBody("GetTask", `{"id":"t1"}`)}, {"GET", "/agent/rpc/tasks/t1", ""},
		{"POST", "/agent/rpc", rpcBody("SendStreamingMessage", message)}, {"POST", "/agent/rpc/message:stream", message},
	} {
		got := r.call(c.method, c.path, c.body, versionOf(false)...)
		if strings.Contains(got.body, "hunter2") || strings.Contains(got.body, "2 of course") || !strings.Contains(got.body, "guardrail") {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
	}
}
