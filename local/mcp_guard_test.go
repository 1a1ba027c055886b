package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/usage"
)

// mcpCells are the rows of what guardrails judge in calls of tools: what a call says, and
// what comes back, in both eras of the protocol.
func mcpCells(t *testing.T) (out string) {
	t.Helper()
	r := start(t)
	up, server := mcpServer(t, stateless)
	for name, content := range map[string][]sdk.Content{
		"text":          {&sdk.TextContent{Text: "my hunter2"}},
		"several parts": {&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "hunter2"}},
		"resource":      {&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "hunter2"}}},
		"image":         {&sdk.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n\xff\xfehunter2"), MIMEType: "image/png"}},
		"empty":         {},
	} {
		sdk.AddTool(server, &sdk.Tool{Name: strings.ReplaceAll(name, " ", "-")}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: content}, nil, nil
		})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "structured"}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, textArgs, error) {
		return nil, textArgs{"hunter2"}, nil
	})
	r.registerMCP("judged", up.URL, "")
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}],"actions":{"deny":true},"workspace_id":`+fmt.Sprintf("%q", r.workspace())+`}`)
	n := 0
	cell := func(side, era, content, tool, text string) {
		got, err := r.connectMCP("judged", era, nil).CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}})
		if err != nil {
			t.Errorf("%s, %s, %s: %v", content, side, era, err)
			return
		}
		n++
		outcome := "shown: nothing to see"
		if got.IsError {
			outcome = "denied"
		}
		if seen := content != "image" && content != "empty"; seen != got.IsError {
			t.Errorf("MCP, %s, %s, %s: %+v", content, side, era, got)
		}
		out += fmt.Sprintf("%-25s %-15s %-7s %-13s %s\n", "mcp", content, side, era, outcome)
	}
	for _, era := range []string{stateless, sessions} {
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"input_guardrails":[%q],"output_guardrails":[]}}`, words["id"]))
		cell("before", era, "tool arguments", "tool0", "hunter2")
		cell("before", era, "empty", "tool0", "")
		r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"input_guardrails":[],"output_guardrails":[%q]}}`, words["id"]))
		for _, content := range []string{"text", "several parts", "resource", "structured", "image", "empty"} {
			cell("behind", era, content, strings.ReplaceAll(content, " ", "-"), "a")
		}
	}
	eventually(t, func() error {
		judged := 0
		for _, rec := range archived(t, r.g) {
			if rec.Call != nil && rec.Call.Method == "tools/call" && len(rec.Guards) == 1 && rec.Guards[0].Denied == (rec.Call.Decision != usage.CallAllowed) {
				judged++
			}
		}
		if judged != n {
			return fmt.Errorf("%d of %d calls of tools were judged", judged, n)
		}
		return nil
	})
	return out
}

// TestDocumentsOfMCPServers: a document that cannot be read is withheld while a guardrail
// denies, and a picture is not.
func TestDocumentsOfMCPServers(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, server := mcpServer(t, stateless)
	for name, content := range map[string]sdk.Content{
		"document": &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.pdf", MIMEType: "application/pdf", Blob: []byte("%PDF-1.7\n\xff\xfe")}},
		"picture":  &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.png", MIMEType: "image/png", Blob: []byte("\x89PNG\r\n\x1a\n\xff\xfe")}},
	} {
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{content}}, nil, nil
		})
	}
	r.registerMCP("documents", up.URL, "")
	words := r.admin("POST", "/guardrails", `{"name":"words","checks":[{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}],"actions":{"deny":true},"workspace_id":`+fmt.Sprintf("%q", r.workspace())+`}`)
	r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"input_guardrails":[],"output_guardrails":[%q]}}`, words["id"]))
	for name, denied := range map[string]bool{"document": true, "picture": false} {
		got, err := r.connectMCP("documents", stateless, nil).CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"text": "a"}})
		if err != nil || got.IsError != denied {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
