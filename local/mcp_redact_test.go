package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCredentialsRepeatedByMcpServersReachNobody has a server repeat its credential in
// everything that it says: no response and no log contains it.
func TestCredentialsRepeatedByMcpServersReachNobody(t *testing.T) {
	t.Parallel()
	r := start(t)
	const secret = "MCP-SECRET-ERR-123"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if req.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" || json.Unmarshal(raw, &m) != nil {
			http.Error(w, "another era", http.StatusBadRequest)
			return
		}
		if len(m.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		payload, _ := json.Marshal("bad credential " + req.Header.Get("Authorization"))
		body := fmt.Sprintf(`"error":{"code":-32000,"message":%s,"data":{"why":%s}}`, payload, payload)
		switch {
		case m.Method == "initialize":
			body = fmt.Sprintf(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"},"instructions":%s}`, payload)
		case m.Method == "tools/list":
			body = fmt.Sprintf(`"result":{"tools":[{"name":"whoami","description":%s,"inputSchema":{"type":"object","description":%s}},{"name":"fails","inputSchema":{"type":"object"}}]}`, payload, payload)
		case m.Method == "prompts/list":
			body = `"result":{"prompts":[]}`
		case m.Params.Name == "whoami":
			body = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, payload)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body)
	}))
	t.Cleanup(up.Close)
	server, integration := r.registerMCP("echo", up.URL, `,"configurations":{"headers":{"Authorization":"Bearer `+secret+`"}}`)
	clean := func(what string, got reply, has string) {
		t.Helper()
		if strings.Contains(got.body+fmt.Sprint(got.header), secret) || !strings.Contains(got.body, has) {
			t.Errorf("%s: %d %v %s", what, got.status, got.header, got.body)
		}
	}
	headers := []string{"Accept", "application/json, text/event-stream"}
	begun := r.call("POST", "/mcp/echo/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, headers...)
	clean("instructions", begun, "bad credential ****")
	headers = append(headers, "Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25")
	for what, method := range map[string]string{"listing": `"tools/list"`, "result": `"tools/call","params":{"name":"whoami","arguments":{}}`, "error": `"tools/call","params":{"name":"fails","arguments":{}}`, "error of a prompt": `"prompts/get","params":{"name":"p"}`} {
		clean(what, r.call("POST", "/mcp/echo/mcp", `{"jsonrpc":"2.0","id":2,"method":`+method+`}`, headers...), "bad credential ****")
	}
	clean("capabilities", r.call("GET", "/mcp-servers/"+server+"/capabilities?workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey), "whoami")
	clean("integration", r.call("GET", "/mcp-integrations/"+integration, "", "X-Gateway-Api-Key", adminKey), "echo")
	for _, row := range r.logs(5, adminKey) {
		clean("log", r.call("GET", "/logs/"+row["id"].(string), "", "X-Gateway-Api-Key", adminKey), "bad credential ****")
	}
}
