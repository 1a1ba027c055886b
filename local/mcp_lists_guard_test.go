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

// TestDescriptionsOfMCPServersAreJudged: a model reads the descriptions of tools, prompts and
// resources and the instructions of a server, so what a guardrail denies in one of them is left
// out, and what it changes is changed. All else is listed.
func TestDescriptionsOfMCPServersAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := httptest.NewServer(http.HandlerFunc(describing))
	t.Cleanup(up.Close)
	r.registerMCP("lists", up.URL+"/mcp", "")
	save := func(check, actions string) string {
		return fmt.Sprintf("%q", r.admin("POST", "/guardrails", fmt.Sprintf(`{"name":"words","checks":[%s],"actions":%s,"workspace_id":%q}`, check, actions, r.workspace()))["slug"])
	}
	denies := save(`{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}`, `{"deny":true}`)
	replaces := save(`{"id":"default.regexReplace","parameters":{"rule":"hunter[0-9]","redactText":"someone"}}`, `{}`)
	renames := save(`{"id":"default.regexReplace","parameters":{"rule":"kind-[a-z]+","redactText":"other"}}`, `{}`)
	const hello = `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}`
	for _, c := range []struct {
		guard     string
		has, lost []string
	}{
		{"", []string{"kind-good", "kind-bad", "hunter2"}, nil},
		{denies, []string{"kind-good"}, []string{"kind-bad", "hunter2"}},
		{replaces, []string{"kind-good", "kind-bad", "tells someone"}, []string{"hunter2"}},
		{renames, nil, []string{`"name":"other"`, `"uri":"other"`, `"uriTemplate":"other"`}}, // access was checked for the key alone
	} {
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), `{"defaults":{"input_guardrails":[],"output_guardrails":[`+c.guard+`]}}`)
		begun := r.call("POST", "/mcp/lists/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+hello+`}}`, "Accept", "application/json, text/event-stream")
		for _, method := range []string{"initialize", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			got := begun
			if method != "initialize" {
				got = r.call("POST", "/mcp/lists/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`, method), "Accept", "application/json, text/event-stream", "Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18")
			}
			if got.status != 200 {
				t.Errorf("%s by %s: %d %s", method, c.guard, got.status, got.body)
			}
			for _, s := range c.has {
				if method == "initialize" && strings.HasPrefix(s, "kind-") {
					continue
				}
				if !strings.Contains(got.body, s) {
					t.Errorf("%s by %s has no %s: %s", method, c.guard, s, got.body)
				}
			}
			for _, s := range c.lost {
				if strings.Contains(got.body, s) {
					t.Errorf("%s by %s has %s: %s", method, c.guard, s, got.body)
				}
			}
		}
	}
}

// describing is an MCP server with a secret word in a description of each kind.
func describing(w http.ResponseWriter, req *http.Request) {
	raw, _ := io.ReadAll(req.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(raw, &m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	entries := func(member, key, more string) string {
		return fmt.Sprintf(`{%q:[{"name":"a",%q:"kind-good","description":"good"%s},{"name":"b",%q:"kind-bad","description":"tells hunter2"%s}]}`, member, key, more, key, more)
	}
	result := map[string]string{
		"initialize":               `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"tells hunter2"}`,
		"tools/list":               strings.ReplaceAll(entries("tools", "title", `,"inputSchema":{"type":"object"}`), `"name":"`, `"name":"kind-`),
		"prompts/list":             strings.ReplaceAll(entries("prompts", "title", ""), `"name":"`, `"name":"kind-`),
		"resources/list":           entries("resources", "uri", ""),
		"resources/templates/list": entries("resourceTemplates", "uriTemplate", ""),
	}[m.Method]
	if result == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
