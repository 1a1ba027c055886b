package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMCPAddressesReachClientsWithoutSession: a server with sessions reports that an
// address must be opened by an error that clients without sessions do not know. Clients
// that can open addresses are asked to, and call again.
func TestMCPAddressesReachClientsWithoutSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	var opened atomic.Bool
	var last atomic.Value
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if json.NewDecoder(q.Body).Decode(&m) != nil {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
		case m.Method == "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "tools/call" && opened.Load():
			last.Store(string(m.Params))
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"thanks"}]}}`, m.ID)
		case m.Method == "tools/call":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"open it","data":{"elicitations":[{"mode":"url","elicitationId":"e1","message":"Pay","url":"https://pay.example.com/1"}]}}}`, m.ID)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(up.Close)
	r.registerMCP("paid", up.URL, "")
	call := func(abilities, more string) reply {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"r1","method":"tools/call","params":{"name":"buy","arguments":{"n":1}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, more, abilities)
		return r.call("POST", "/mcp/paid/mcp", body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "buy")
	}
	if got := call("{}", ""); got.status != 400 || !strings.Contains(got.body, `"code":-32021`) || !strings.Contains(got.body, `"requiredCapabilities":{"elicitation":{"url":{}}}`) {
		t.Errorf("a client that cannot: %d %s", got.status, got.body)
	}
	got := call(`{"elicitation":{"url":{}}}`, "")
	var metadata struct {
		Result struct {
			Type     string                                                 `json:"resultType"`
			Requests map[string]struct{ Params struct{ Mode, URL string } } `json:"inputRequests"`
			State    string                                                 `json:"requestState"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &metadata); err != nil || got.status != 200 || metadata.Result.Type != "input_required" || metadata.Result.State == "" || metadata.Result.Requests["open-1"].Params != (struct{ Mode, URL string }{"url", "https://pay.example.com/1"}) {
		t.Fatalf("%v %d %s", err, got.status, got.body)
	}
	opened.Store(true)
	again := `,"inputResponses":{"open-1":{"action":"accept"}},"requestState":`
	if got := call(`{"elicitation":{"url":{}}}`, again+fmt.Sprintf("%q", metadata.Result.State)); got.status != 200 || !strings.Contains(got.body, "thanks") {
		t.Errorf("again: %d %s", got.status, got.body)
	}
	if sent := fmt.Sprint(last.Load()); strings.Contains(sent, "inputResponses") || strings.Contains(sent, "requestState") {
		t.Errorf("the server got %s", sent)
	}
	if got := call(`{"elicitation":{"url":{}}}`, again+`"forged"`); got.status != 200 || !strings.Contains(got.body, "-32602") {
		t.Errorf("with a forged state: %d %s", got.status, got.body)
	}
}
