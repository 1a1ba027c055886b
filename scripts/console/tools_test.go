package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// toolServer is an MCP server with one tool, whose result is markup.
func toolServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments map[string]any
			}
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			http.Error(w, "POST alone is served", http.StatusMethodNotAllowed)
			return
		}
		answer := func(result object) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object{"jsonrpc": "2.0", "id": m.ID, "result": result})
		}
		switch {
		case m.Method == "initialize":
			answer(object{"protocolVersion": "2025-11-25", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "weather", "version": "1"}})
		case m.Method == "tools/list":
			answer(object{"tools": []object{{"name": "forecast", "description": hostileName, "inputSchema": object{"type": "object", "properties": object{"city": object{"type": "string", "default": "Oslo"}}, "required": []string{"city"}}}}})
		case m.Method == "tools/call":
			answer(object{"content": []object{{"type": "text", "text": hostileName + fmt.Sprint(" ", m.Params.Name, " of ", m.Params.Arguments["city"])}}})
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			http.Error(w, "unknown method", http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// registerTools makes an MCP server of the workspace and returns its slug.
func registerTools(t *testing.T, base string) string {
	t.Helper()
	made := must(t, base, adminKey, "POST", "/mcp-integrations", object{"name": "Weather", "url": toolServer(t), "transport": "http", "auth_type": "none"})
	must(t, base, adminKey, "PUT", "/mcp-integrations/"+made["id"].(string)+"/workspaces", object{"workspaces": []object{{"id": "default", "enabled": true}}})
	server := must(t, base, adminKey, "POST", "/mcp-servers", object{"name": "Weather", "workspace_id": "default", "mcp_integration_id": made["id"]})
	must(t, base, adminKey, "POST", "/mcp-servers/"+server["id"].(string)+"/test?workspace_id=default", nil)
	return server["slug"].(string)
}

// deny sends a request that a guardrail denies.
func deny(t *testing.T, base, content string) {
	t.Helper()
	slug := must(t, base, adminKey, "GET", "/guardrails?workspace_id=default", nil)["data"].([]any)[0].(object)["slug"]
	body, _ := json.Marshal(object{"model": "gpt-4o-mini", "messages": []object{{"role": "user", "content": content}}})
	config, _ := json.Marshal(object{"provider": "@mock", "input_guardrails": []any{slug}})
	r, _ := http.NewRequest("POST", base+"/v1/chat/completions", strings.NewReader(string(body)))
	r.Header.Set("x-gateway-api-key", workspaceKey)
	r.Header.Set("x-gateway-config", string(config))
	r.Header.Set("content-type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != 446 {
		t.Fatal("the guardrail did not deny the request: ", got.Status)
	}
}
