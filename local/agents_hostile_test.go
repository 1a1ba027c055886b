package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTasksBelongToTheirWorkspace: an agent of the organization serves several workspaces
// with one credential; no workspace can see the tasks of another.
func TestTasksBelongToTheirWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := newAgent(t, false, "")
	r.admin("POST", "/agent-integrations", fmt.Sprintf(`{"name":"all","slug":"all","url":%q}`, up.URL))
	r.admin("PUT", "/agent-integrations/all/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true}}`)
	other := r.admin("POST", "/admin/workspaces", `{"name":"Other"}`)["id"].(string)
	keys := map[string]string{}
	for slug, ws := range map[string]string{"first": r.workspace(), "second": other} {
		r.admin("POST", "/agent-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"agent_integration_id":"all","workspace_id":%q}`, slug, slug, ws))
		keys[slug] = r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["agents.invoke"]}`, ws))["key"].(string)
	}
	call := func(who, method, params string) reply {
		return r.call("POST", "/agent/"+who, rpcBody(method, params), "A2A-Version", "1.0", "X-Gateway-Api-Key", keys[who])
	}
	// Nobody's until it is made; then its maker's alone.
	if got := call("first", "GetTask", `{"id":"task-1"}`); !strings.Contains(got.body, "-32001") {
		t.Errorf("before it is made: %s", got.body)
	}
	if got := call("first", "SendMessage", agentMessage(false, "a secret")); !strings.Contains(got.body, "heard a secret") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	calls := up.calls()
	for method, params := range map[string]string{
		"GetTask": `{"id":%q}`, "CancelTask": `{"id":%q}`, "SubscribeToTask": `{"id":%q}`, "ListTaskPushNotificationConfigs": `{"taskId":%q}`,
		"SendMessage":          `{"message":{"messageId":"m","role":"ROLE_USER","taskId":%q,"parts":[]}}`,
		"SendStreamingMessage": `{"message":{"messageId":"m","role":"ROLE_USER","referenceTaskIds":[%q],"parts":[]}}`,
	} {
		foreign, missing := call("second", method, fmt.Sprintf(params, "task-1")), call("second", method, fmt.Sprintf(params, "nothing"))
		if foreign.status != missing.status || foreign.body != missing.body || !strings.Contains(foreign.body, "-32001") {
			t.Errorf("%s: %d %s\n%d %s", method, foreign.status, foreign.body, missing.status, missing.body)
		}
		for _, path := range []string{"/tasks/task-1", "/tasks/nothing"} {
			if got := r.call("GET", "/agent/second"+path, "", "A2A-Version", "1.0", "X-Gateway-Api-Key", keys["second"]); got.status != 404 || strings.Contains(got.body, "secret") {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
	for _, id := range []string{"ctx-1", "nothing"} {
		got := call("second", "SendMessage", fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","contextId":%q,"parts":[]}}`, id))
		if !strings.Contains(got.body, "-32602") {
			t.Errorf("context %s: %s", id, got.body)
		}
	}
	// What would be read in another spelling is rejected, and so is what cannot be told.
	for _, params := range []string{`{"id":"x","Id":"task-1"}`, `{"id":"x","taskId":"x","task_id":"task-1"}`} {
		if got := call("second", "GetTask", params); !strings.Contains(got.body, "-32602") {
			t.Errorf("%s: %s", params, got.body)
		}
	}
	if got := call("second", "tasks/everything", `{}`); !strings.Contains(got.body, "-32004") {
		t.Errorf("a method that is not known: %s", got.body)
	}
	if up.calls() != calls {
		t.Errorf("the agent was asked: %+v", up.last())
	}
	// A list is divided.
	if got := call("first", "ListTasks", `{}`); !strings.Contains(got.body, "task-1") || strings.Contains(got.body, "task-of-others") || !strings.Contains(got.body, `"totalSize":1`) {
		t.Errorf("the list: %s", got.body)
	}
	if got := call("second", "ListTasks", `{}`); strings.Contains(got.body, "task-1") || strings.Contains(got.body, "task-of-others") || !strings.Contains(got.body, `"tasks":[]`) {
		t.Errorf("the other list: %s", got.body)
	}
	if got := call("first", "GetTask", `{"id":"task-1"}`); !strings.Contains(got.body, "task-1") {
		t.Errorf("its own: %s", got.body)
	}
	// The other's agent is not there either, whatever is called.
	for _, slug := range []string{"second", "nothing"} {
		got := r.call("POST", "/agent/"+slug, rpcBody("GetTask", `{"id":"task-1"}`), "A2A-Version", "1.0", "X-Gateway-Api-Key", keys["first"])
		if got.status != 404 {
			t.Errorf("%s: %d %s", slug, got.status, got.body)
		}
	}
}

// TestHostileAgentsAndClients: when clients or agents do something wrong, the client gets
// the error that the protocol names, and nothing that the agent said.
//
//lane:standard
func TestHostileAgentsAndClients(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := newAgent(t, true, "")
	r.registerAgent("agent", up.URL, "")
	deep := strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 80)
	for name, c := range map[string]struct {
		version, body, code string
		status              int
	}{
		"not JSON":                    {"0.3", "{", "-32700", 200},
		"a key twice":                 {"0.3", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tasks/get","params":{"id":"a"}}`, "-32700", 200},
		"not UTF-8":                   {"0.3", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}", "-32700", 200},
		"too deep":                    {"0.3", `{"jsonrpc":"2.0","id":1,"method":"x","params":` + deep + `}`, "-32700", 200},
		"a batch":                     {"0.3", `[` + rpcBody("tasks/get", `{"id":"a"}`) + `]`, "-32600", 200},
		"no version of JSON-RPC":      {"0.3", `{"id":1,"method":"tasks/get","params":{"id":"a"}}`, "-32600", 200},
		"an id that is none":          {"0.3", `{"jsonrpc":"2.0","id":{},"method":"tasks/get","params":{"id":"a"}}`, "-32600", 200},
		"no id":                       {"0.3", `{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"a"}}`, "-32600", 200},
		"no method":                   {"0.3", `{"jsonrpc":"2.0","id":1,"params":{}}`, "-32600", 200},
		"params that are none":        {"0.3", rpcBody("message/send", `[]`), "-32602", 200},
		"no message":                  {"0.3", rpcBody("message/send", `{}`), "-32602", 200},
		"no parts":                    {"0.3", rpcBody("message/send", `{"message":{"role":"user"}}`), "-32602", 200},
		"a task that is not a string": {"0.3", rpcBody("tasks/get", `{"id":7}`), "-32602", 200},
		"a task's name too long":      {"0.3", rpcBody("tasks/get", `{"id":"`+strings.Repeat("a", 300)+`"}`), "-32602", 200},
		"a method of 1.0":             {"0.3", rpcBody("SendMessage", agentMessage(false, "x")), "-32601", 200},
		"a method of 1.0 without":     {"", rpcBody("SendMessage", agentMessage(false, "x")), "-32601", 200},
		"a method of 0.3":             {"1.0", rpcBody("message/send", agentMessage(true, "x")), "-32601", 200},
		"an unknown version":          {"2.0", rpcBody("SendMessage", agentMessage(false, "x")), "-32009", 200},
		"a tenant that is not there":  {"1.0", rpcBody("GetTask", `{"tenant":"other","id":"a"}`), "-32602", 200},
		"push":                        {"0.3", rpcBody("tasks/pushNotificationConfig/set", `{"taskId":"t","pushNotificationConfig":{"url":"https://example.com"}}`), "-32003", 200},
		"push beside a message":       {"0.3", rpcBody("message/send", `{"message":{"role":"user","parts":[]},"configuration":{"pushNotificationConfig":{"url":"https://example.com"}}}`), "-32003", 200},
		"push of an older method":     {"0.3", rpcBody("tasks/send", `{"id":"t","message":{"parts":[]},"push_notification":{"url":"http://169.254.169.254"}}`), "-32003", 200},
		"garbage":                     {"0.3", rpcBody("garbage", `{}`), "-32006", 200},
		"another's answer":            {"0.3", rpcBody("other-id", `{}`), "-32006", 200},
		"a redirect inwards":          {"0.3", rpcBody("redirect", `{}`), "-32603", 200},
		"an unknown method":           {"0.3", rpcBody("no/such", `{}`), "-32601", 200},
	} {
		headers := []string{}
		if c.version != "" {
			headers = append(headers, "A2A-Version", c.version)
		}
		got := r.call("POST", "/agent/agent", c.body, headers...)
		if got.status != c.status || !strings.Contains(got.body, `"code":`+c.code) || !strings.Contains(got.body, `"jsonrpc":"2.0"`) || strings.Contains(got.body, "secret of the agent") || strings.Contains(got.body, up.URL) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	// Methods that neither version knows pass as they are.
	if got := r.call("POST", "/agent/agent", rpcBody("tasks/send", `{"id":"t","message":{"parts":[{"text":"older"}]},"x":1.50}`)); !strings.Contains(got.body, "heard older") || !strings.Contains(up.last().body, `"x":1.50`) {
		t.Errorf("%d %s: %s", got.status, got.body, up.last().body)
	}
	for path, status := range map[string]int{
		"/v1/nothing": 404, "/tasks": 400, "/v1/tasks/a/b": 404, "/v1/card/x": 404, "/v1/..%2f": 404, "/v1/tasks/%00": 404, "/.well-known/other": 400,
	} {
		got := r.call("GET", "/agent/agent"+path, "")
		if got.status != status || !strings.HasPrefix(got.body, "{") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.call("POST", "/agent/agent", strings.Repeat(" ", 13<<20)); got.status != 413 {
		t.Errorf("too large: %d %s", got.status, got.body)
	}
	if got := r.call("POST", "/agent/agent", "x", "Content-Type", "text/plain"); !strings.Contains(got.body, "-32005") {
		t.Errorf("another type: %d %s", got.status, got.body)
	}
	if got := r.call("DELETE", "/agent/agent/.well-known/agent-card.json", ""); got.status != http.StatusMethodNotAllowed {
		t.Errorf("a card is deleted: %d", got.status)
	}
}

// TestStreamsThatAreNone: an agent has not answered if it sends a stream for a plain
// request, or a stream with nothing in it.
func TestStreamsThatAreNone(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if strings.Contains(req.URL.Path, "agent") {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), "something") {
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"r1\",\"result\":{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"completed\"}}}\n\n")
		}
	}))
	t.Cleanup(up.Close)
	r.registerAgent("odd", up.URL, "")
	for _, old := range []bool{true, false} {
		plain, streamed := "SendMessage", "SendStreamingMessage"
		if old {
			plain, streamed = "message/send", "message/stream"
		}
		for _, c := range []struct{ method, content string }{{plain, "something"}, {plain, "nothing"}, {streamed, "nothing"}} {
			got := r.call("POST", "/agent/odd", rpcBody(c.method, agentMessage(old, c.content)), versionOf(old)...)
			if got.status != 200 || !strings.Contains(got.body, `"code":-32006`) || !strings.Contains(got.body, `"id":"r1"`) || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
				t.Errorf("%s, %s: %d %v %s", c.method, c.content, got.status, got.header.Get("Content-Type"), got.body)
			}
		}
		if got := r.call("POST", "/agent/odd", rpcBody(streamed, agentMessage(old, "something")), versionOf(old)...); got.status != 200 || !strings.Contains(strings.ToLower(got.body), "completed") {
			t.Errorf("%s: %d %s", streamed, got.status, got.body)
		}
	}
}

// TestPushAddressesAreGuarded: where pushing is allowed, addresses are public ones.
func TestPushAddressesAreGuarded(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := newAgent(t, true, "")
	r.registerAgent("agent", up.URL, `,"configurations":{"push_notifications":true}`)
	if got := r.call("GET", "/agent/agent/.well-known/agent-card.json", ""); !strings.Contains(got.body, `"pushNotifications":true`) {
		t.Errorf("the card: %s", got.body)
	}
	for at, passes := range map[string]bool{"https://example.com/x": true, "http://169.254.169.254/": false, "http://10.0.0.1/": false, "ftp://example.com": false, "": false, "https://u:p@example.com": false} {
		for method, params := range map[string]string{
			"tasks/pushNotificationConfig/set": `{"taskId":"t","pushNotificationConfig":{"url":%q}}`,
			"message/send":                     `{"message":{"role":"user","parts":[]},"configuration":{"pushNotificationConfig":{"url":%q}}}`,
		} {
			got := r.call("POST", "/agent/agent", rpcBody(method, fmt.Sprintf(params, at)))
			if strings.Contains(got.body, `"result"`) != passes || !passes && !strings.Contains(got.body, "-32602") {
				t.Errorf("%s to %q: %s", method, at, got.body)
			}
		}
	}
}

// In a row: the variable is the process's. An agent that says nothing, or no more, is
// given up.
func TestAgentsThatAreSilent(t *testing.T) {
	t.Setenv("A2A_REQUEST_TIMEOUT_MS", "300")
	r := start(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		switch {
		case strings.Contains(req.URL.Path, "agent"):
			http.NotFound(w, req)
			return
		case strings.Contains(string(body), "message/stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"r1\",\"result\":{\"kind\":\"task\",\"id\":\"t\",\"status\":{\"state\":\"working\"}}}\n\n")
			w.(http.Flusher).Flush()
			if strings.Contains(string(body), "break off") {
				panic(http.ErrAbortHandler)
			}
		}
		<-req.Context().Done()
	}))
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	r.registerAgent("silent", up.URL, "")
	for _, c := range []struct{ method, content, code string }{
		{"message/send", "x", "-32603"}, {"message/stream", "x", "-32603"}, {"message/stream", "break off", "-32006"},
	} {
		got := r.call("POST", "/agent/silent", rpcBody(c.method, agentMessage(true, c.content)))
		if got.status != 200 || !strings.Contains(got.body, `"code":`+c.code) || !strings.Contains(got.body, "trace_id") || (c.method == "message/stream") != strings.Contains(got.body, `"state":"working"`) {
			t.Errorf("%s, %s: %d %s", c.method, c.content, got.status, got.body)
		}
	}
}

// TestCredentialsGoToTheirHostAlone: a card may name any host, but only the registered host
// gets the credentials.
func TestCredentialsGoToTheirHostAlone(t *testing.T) {
	t.Parallel()
	r := start(t)
	const secret = "the-pass-of-the-agent"
	elsewhere := newAgent(t, true, "")
	var own atomic.Int32
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Pass") != secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		own.Add(1)
		_, _ = io.WriteString(w, elsewhere.card(""))
	}))
	t.Cleanup(home.Close)
	r.registerAgent("moved", home.URL, `,"auth_type":"headers","configurations":{"headers":{"X-Pass":"`+secret+`"},"forward_headers":["x-mine"]}`)
	got := r.call("POST", "/agent/moved", rpcBody("message/send", agentMessage(true, "x")), "X-Mine", "mine")
	if !strings.Contains(got.body, "heard x") || own.Load() == 0 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for name := range elsewhere.last().header {
		if name == "X-Pass" || name == "X-Mine" || name == "X-Gateway-Api-Key" || name == "Authorization" {
			t.Errorf("the other host got %s", name)
		}
	}
	r.registerAgent("home", elsewhere.URL, `,"auth_type":"headers","configurations":{"headers":{"X-Pass":"`+secret+`"},"forward_headers":["x-mine"]}`)
	r.call("POST", "/agent/home", rpcBody("message/send", agentMessage(true, "x")), "X-Mine", "mine", "A2A-Extensions", "https://e.example.com")
	if h := elsewhere.last().header; h.Get("X-Pass") != secret || h.Get("X-Mine") != "mine" || h.Get("X-A2A-Extensions") != "https://e.example.com" || h.Get("X-Gateway-Api-Key") != "" {
		t.Errorf("the host that is registered got %v", h)
	}
}
