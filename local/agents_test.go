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

	"gateway/shared/usage"
)

// anAgent is an agent for tests: it speaks one version, answers as the test says, and keeps
// what it was sent.
type anAgent struct {
	*httptest.Server
	old bool
	mu  sync.Mutex
	got []seenByAgent
}

type seenByAgent struct {
	method, path, body string
	header             http.Header
}

// newAgent starts an agent that speaks a version in JSON-RPC. answer returns the result of
// a method, or something that is not a response.
func newAgent(t testing.TB, old bool, more string) *anAgent {
	t.Helper()
	a := &anAgent{old: old}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			_, _ = io.WriteString(w, a.card(more))
			return
		}
		raw, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.got = append(a.got, seenByAgent{r.Method, r.URL.RequestURI(), string(raw), r.Header.Clone()})
		a.mu.Unlock()
		a.rpc(w, raw)
	}))
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

func (a *anAgent) card(more string) string {
	skills := `"skills":[{"id":"one","name":"One","description":"","tags":[]},{"id":"two","name":"Two","description":"","tags":[]}],"capabilities":{"streaming":true,"pushNotifications":true},"signatures":[{"protected":"x","signature":"y"}]` + more
	if a.old {
		return fmt.Sprintf(`{"name":"Agent","description":"d","version":"1","url":"%s/rpc","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","defaultInputModes":[],"defaultOutputModes":[],%s}`, a.URL, skills)
	}
	return fmt.Sprintf(`{"name":"Agent","description":"d","version":"1","supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"grpc://x","protocolBinding":"GRPC","protocolVersion":"1.0"}],"defaultInputModes":[],"defaultOutputModes":[],%s}`, a.URL, skills)
}

func (a *anAgent) rpc(w http.ResponseWriter, raw []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params map[string]any
	}
	if json.Unmarshal(raw, &m) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	text := "nothing"
	if msg, ok := m.Params["message"].(map[string]any); ok {
		parts, _ := msg["parts"].([]any)
		if len(parts) > 0 {
			text, _ = parts[0].(map[string]any)["text"].(string)
		}
	}
	state, agent, kind, textKind := `"TASK_STATE_COMPLETED"`, `"ROLE_AGENT"`, ``, ``
	if a.old {
		state, agent, kind, textKind = `"completed"`, `"agent"`, `"kind":"task",`, `"kind":"text",`
	}
	task := fmt.Sprintf(`{%s"id":"task-1","contextId":"ctx-1","status":{"state":%s,"message":{"messageId":"m","role":%s,"parts":[{%s"text":%q}]}}}`, kind, state, agent, textKind, "heard "+text)
	wrapped := task
	if !a.old {
		wrapped = `{"task":` + task + `}`
	}
	result := ""
	switch m.Method {
	case "message/send", "SendMessage", "tasks/send":
		result = wrapped
	case "message/stream", "SendStreamingMessage", "tasks/resubscribe", "SubscribeToTask":
		w.Header().Set("Content-Type", "text/event-stream")
		artifact := fmt.Sprintf(`{"taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a","parts":[{"text":%q}]}}`, "heard "+text)
		final := `{"taskId":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"}}`
		events := []string{`{"artifactUpdate":` + artifact + `}`, `{"statusUpdate":` + final + `}`}
		if a.old {
			events = []string{
				fmt.Sprintf(`{"kind":"artifact-update","taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a","parts":[{"kind":"text","text":%q}]}}`, "heard "+text),
				`{"kind":"status-update","taskId":"task-1","contextId":"ctx-1","status":{"state":"completed"},"final":true}`,
			}
		}
		for _, e := range events {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, e)
			w.(http.Flusher).Flush()
		}
		return
	case "tasks/get", "GetTask", "tasks/cancel", "CancelTask":
		result = task
		if m.Params["id"] == "gone" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Task not found"}}`, m.ID)
			return
		}
	case "ListTasks":
		result = `{"tasks":[` + task + `,{"id":"task-of-others"}],"nextPageToken":"","pageSize":50,"totalSize":2}`
	case "tasks/pushNotificationConfig/set":
		result = `{"taskId":"task-1","pushNotificationConfig":{"id":"c","url":"https://example.com/x"}}`
	case "garbage":
		_, _ = io.WriteString(w, "<html>secret of the agent</html>")
		return
	case "redirect":
		w.Header().Set("Location", "http://169.254.169.254/latest")
		w.WriteHeader(http.StatusFound)
		return
	case "other-id":
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"other","result":{}}`)
		return
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (a *anAgent) calls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.got)
}

func (a *anAgent) last() seenByAgent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.got) == 0 {
		return seenByAgent{}
	}
	return a.got[len(a.got)-1]
}

// registerAgent makes an integration of the default workspace and its server.
func (r *running) registerAgent(slug, url, more string) (server, integration string) {
	r.t.Helper()
	at := fmt.Sprintf(`,"workspace_id":%q`, r.workspace())
	in := r.admin("POST", "/agent-integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"url":%q%s%s}`, slug, slug, url, more, at))
	made := r.admin("POST", "/agent-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"agent_integration_id":%q%s}`, slug, slug, slug, at))
	return made["id"].(string), in["id"].(string)
}

// rpcBody is a request of JSON-RPC; text is what its message says, in a version.
func rpcBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"r1","method":%q,"params":%s}`, method, params)
}

func agentMessage(old bool, text string) string {
	if old {
		return fmt.Sprintf(`{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":%q}]}}`, text)
	}
	return fmt.Sprintf(`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":%q}]}}`, text)
}

func versionOf(old bool) []string {
	if old {
		return []string{"A2A-Version", "0.3"}
	}
	return []string{"A2A-Version", "1.0"}
}

// TestAgentBridges: each version and binding of a client, at an agent of each version.
func TestAgentBridges(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, old := range []bool{true, false} {
		up := newAgent(t, old, "")
		slug := fmt.Sprintf("agent-%t", old)
		r.registerAgent(slug, up.URL, "")
		for _, client := range []bool{true, false} {
			send, stream, get := "SendMessage", "SendStreamingMessage", "GetTask"
			state := "TASK_STATE_COMPLETED"
			if client {
				send, stream, get, state = "message/send", "message/stream", "tasks/get", `"completed"`
			}
			name := fmt.Sprintf("client 0.3 %t, agent 0.3 %t", client, old)
			got := r.call("POST", "/agent/"+slug, rpcBody(send, agentMessage(client, "hi")), versionOf(client)...)
			if got.status != 200 || !strings.Contains(got.body, "heard hi") || !strings.Contains(got.body, state) || !strings.Contains(got.body, `"id":"r1"`) || strings.Contains(got.body, `"kind"`) != client {
				t.Errorf("%s: send: %d %s", name, got.status, got.body)
			}
			if want := map[bool]string{true: "0.3", false: "1.0"}[old]; up.last().header.Get("A2A-Version") != want || strings.Contains(up.last().body, `"kind":"message"`) != old {
				t.Errorf("%s: the agent was sent %+v", name, up.last())
			}
			got = r.call("POST", "/agent/"+slug, rpcBody(stream, agentMessage(client, "hi")), versionOf(client)...)
			if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || strings.Count(got.body, "data: ") != 2 || !strings.Contains(got.body, "heard hi") || strings.Contains(got.body, `"final":true`) != client {
				t.Errorf("%s: stream: %d %v %s", name, got.status, got.header, got.body)
			}
			got = r.call("POST", "/agent/"+slug, rpcBody(get, `{"id":"gone"}`), versionOf(client)...)
			if got.status != 200 || !strings.Contains(got.body, `"code":-32001`) {
				t.Errorf("%s: a task that is gone: %d %s", name, got.status, got.body)
			}

			// The same by HTTP+JSON.
			prefix, response := "/agent/"+slug, `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"rest"}]}}`
			if client {
				prefix, response = prefix+"/v1", `{"request":{"messageId":"m1","role":"ROLE_USER","content":[{"text":"rest"}]}}`
			}
			got = r.call("POST", prefix+"/message:send", response, versionOf(client)...)
			if got.status != 200 || !strings.Contains(got.body, "heard rest") || !strings.Contains(got.body, `"task":{`) || strings.Contains(got.body, `"content":[`) != client {
				t.Errorf("%s: REST send: %d %s", name, got.status, got.body)
			}
			got = r.call("POST", prefix+"/message:stream", response, versionOf(client)...)
			if got.status != 200 || strings.Count(got.body, "data: {\"artifactUpdate\"")+strings.Count(got.body, "data: {\"statusUpdate\"") != 2 {
				t.Errorf("%s: REST stream: %d %s", name, got.status, got.body)
			}
			got = r.call("GET", prefix+"/tasks/task-1?historyLength=2", "", versionOf(client)...)
			if got.status != 200 || !strings.Contains(got.body, `"id":"task-1"`) || !strings.Contains(up.last().body, `"historyLength":2`) {
				t.Errorf("%s: REST task: %d %s; %s", name, got.status, got.body, up.last().body)
			}
			if got = r.call("GET", prefix+"/tasks/gone", "", versionOf(client)...); got.status != 404 {
				t.Errorf("%s: REST task that is gone: %d %s", name, got.status, got.body)
			}
			if got = r.call("POST", prefix+"/tasks/task-1:cancel", "", versionOf(client)...); got.status != 200 {
				t.Errorf("%s: REST cancel: %d %s", name, got.status, got.body)
			}
		}
	}
}

// TestAgentsAreGoverned: who may call, what guardrails and limits say, what is recorded.
func TestAgentsAreGoverned(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := newAgent(t, false, "")
	server, integration := r.registerAgent("agent", up.URL, "")
	at := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	call := func(method, params string, headers ...string) reply {
		return r.call("POST", "/agent/agent", rpcBody(method, params), append([]string{"A2A-Version", "1.0"}, headers...)...)
	}

	// The card names the gateway, and hides a skill that is disabled; a call that names
	// the skill is rejected by the same decision.
	skill := func(path string, on bool) {
		r.admin("PUT", path+"/skills?workspace_id="+r.workspace(), fmt.Sprintf(`{"skills":[{"id":"two","enabled":%t}],%s}`, on, at))
	}
	const named = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{"skillId":"two"}}}`
	for _, path := range []string{"/agent-servers/" + server, "/agent-integrations/" + integration} {
		for _, on := range []bool{false, true} {
			skill(path, on)
			for _, card := range []string{"agent-card.json", "agent.json"} {
				for _, method := range []string{"GET", "POST"} {
					got := r.call(method, "/agent/agent/.well-known/"+card, "")
					if got.status != 200 || strings.Contains(got.body, `"two"`) != on || strings.Contains(got.body, up.URL) || strings.Contains(got.body, "grpc") || !strings.Contains(got.body, r.base+"/agent/agent") || !strings.Contains(got.body, `"pushNotifications":false`) {
						t.Errorf("card: %d %s", got.status, got.body)
					}
					if again := r.call(method, "/agent/agent/.well-known/"+card, "", "If-None-Match", got.header.Get("Etag")); again.status != 304 {
						t.Errorf("the same card: %d", again.status)
					}
				}
			}
			if got := call("SendMessage", named); strings.Contains(got.body, "heard x") != on || !on && !strings.Contains(got.body, "-32004") {
				t.Errorf("skill %t: %d %s", on, got.status, got.body)
			}
		}
	}

	// Guardrails judge what is said and what comes back, in streams too.
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}],"actions":{"deny":true},`+at+`}`)
	guard := func(in, out string) {
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"input_guardrails":`+in+`,"output_guardrails":`+out+`}}`)
	}
	one := fmt.Sprintf(`[%q]`, words["id"])
	guard(one, `[]`)
	for _, method := range []string{"SendMessage", "SendStreamingMessage"} {
		if got := call(method, agentMessage(false, "my hunter2")); got.status != 446 || strings.Contains(got.body, "heard") {
			t.Errorf("%s, before: %d %s", method, got.status, got.body)
		}
		if got := call(method, agentMessage(false, "fine")); got.status != 200 || !strings.Contains(got.body, "heard fine") {
			t.Errorf("%s, passed: %d %s", method, got.status, got.body)
		}
	}
	guard(`[]`, one)
	for _, method := range []string{"SendMessage", "SendStreamingMessage"} {
		if got := call(method, agentMessage(false, "my hunter2")); strings.Contains(got.body, "heard") || !strings.Contains(got.body, "446") {
			t.Errorf("%s, behind: %d %s", method, got.status, got.body)
		}
	}
	guard(`[]`, `[]`)

	// Rates count calls.
	limited := r.admin("POST", "/api-keys/workspace/service", `{"name":"limited","scopes":["agents.invoke"],"rate_limits":[{"type":"requests","unit":"rpd","value":1}],`+at+`}`)["key"].(string)
	for i, want := range []int{200, 429, 429} {
		got := call("SendMessage", agentMessage(false, "x"), "X-Gateway-Api-Key", limited)
		if got.status != want || want == 429 && (!strings.Contains(got.body, `"id":"r1"`) || got.header.Get("Retry-After") == "") {
			t.Errorf("call %d: %d %s", i, got.status, got.body)
		}
	}

	// Who may not.
	for name, c := range map[string]struct {
		key, path string
		status    int
	}{
		"no key":           {"nobody", "/agent/agent", 401},
		"no scope":         {r.newKeyOf("completions.write"), "/agent/agent", 403},
		"organization key": {adminKey, "/agent/agent", 403},
		"no such agent":    {workspaceKey, "/agent/other", 404},
		"by id":            {workspaceKey, "/agent/" + server, 404},
	} {
		for below, shape := range map[string]string{"": `"jsonrpc":"2.0"`, "/message:send": `"error":{`, "/.well-known/agent-card.json": `"error":{`} {
			got := r.call("POST", c.path+below, rpcBody("SendMessage", agentMessage(false, "x")), "A2A-Version", "1.0", "X-Gateway-Api-Key", c.key)
			if got.status != c.status || !strings.Contains(got.body, shape) {
				t.Errorf("%s%s: %d %s", name, below, got.status, got.body)
			}
		}
	}
	r.admin("PUT", "/agent-servers/"+server+"/user-access", `{"default_user_access":"deny",`+at+`}`)
	if got := call("SendMessage", agentMessage(false, "x")); got.status != 403 {
		t.Errorf("no access: %d %s", got.status, got.body)
	}

	// Each leaves one record.
	eventually(t, func() error {
		responses, limits := 0, 0
		for _, rec := range archived(t, r.g) {
			if rec.Call == nil || rec.Call.Protocol != "a2a" || rec.Call.Decision == "server" {
				continue
			}
			if rec.Provider != "a2a" || rec.ProviderSlug != "agent" || rec.IntegrationID != integration || rec.Cost != 0 || rec.Endpoint != "agent" || rec.Call.Server != server {
				t.Errorf("record: %+v", rec)
			}
			switch {
			case rec.ClientStatus == 429:
				limits++
			case rec.Call.Method == "SendMessage" && rec.Call.Decision == usage.CallAllowed && rec.ClientStatus == 200:
				if responses++; rec.Usage.InputTokens() == 0 || rec.Usage.OutputTokens() == 0 || !rec.Usage.Estimated {
					t.Errorf("tokens: %+v", rec.Usage)
				}
			}
		}
		if responses < 4 || limits != 2 {
			return fmt.Errorf("%d calls and %d refusals are recorded", responses, limits)
		}
		return nil
	})
}

var anAgentCall = rpcBody("SendMessage", agentMessage(false, "Hello"))

// aSampleAgent registers the agent of the matrix of routes, once.
func aSampleAgent(r *running) string {
	const slug = "agent-of-the-matrix"
	if r.call("GET", "/agent-servers/"+slug+"?workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey).status != 200 {
		r.registerAgent(slug, newAgent(r.t, false, "").URL, "")
	}
	return slug
}
