package observe

import (
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"gateway/shared/usage"
)

// Calls of MCP servers and agents are spans by the names of their protocols, and none of
// them is taken for a request of a model.
func TestCallsAreNamedByTheirProtocol(t *testing.T) {
	call := func(change func(r *usage.Record)) usage.Record {
		r := record()
		r.ID, r.Endpoint, r.Provider, r.ProviderSlug, r.RequestModel, r.Model, r.FinishReason = "01L", "mcp", "mcp", "files", "search", "search", ""
		r.Call = &usage.Call{Protocol: "mcp", Server: "s1", Method: "tools/call", Name: "search", Auth: "api_key", Scope: "mcp.invoke", Decision: usage.CallAllowed, Version: "2026-07-28"}
		r.Guards = nil
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		change func(r *usage.Record)
		failed string
		want   map[string]any
		none   []string
	}{
		"tools/call search": {func(*usage.Record) {}, "", map[string]any{"mcp.method.name": "tools/call", "gen_ai.tool.name": "search", "gen_ai.operation.name": "execute_tool",
			"mcp.protocol.version": "2026-07-28", "gateway.server.slug": "files", "gateway.server.id": "s1", "gateway.decision": "allowed", "gateway.auth.scope": "mcp.invoke", "gateway.workspace.id": "w"},
			[]string{"gen_ai.request.model", "gen_ai.provider.name", "gen_ai.usage.input_tokens", "gateway.cost", "gateway.cost_usd", "mcp.session.id", "error.type"}},
		"tools/call broken": {func(r *usage.Record) { r.Call.Name, r.Call.Failed = "broken", true }, "tool_error", map[string]any{"error.type": "tool_error"}, []string{"rpc.response.status_code"}},
		"tools/call nowhere": {func(r *usage.Record) { r.Call.Name, r.Call.Code = "nowhere", -32602 }, "-32602",
			map[string]any{"error.type": "-32602", "rpc.response.status_code": "-32602"}, nil},
		"tools/list":                  {func(r *usage.Record) { r.Call.Method, r.Call.Name = "tools/list", "" }, "", map[string]any{"mcp.method.name": "tools/list"}, []string{"gen_ai.tool.name", "gen_ai.operation.name"}},
		"prompts/get greet":           {func(r *usage.Record) { r.Call.Method, r.Call.Name = "prompts/get", "greet" }, "", map[string]any{"gen_ai.prompt.name": "greet"}, []string{"gen_ai.tool.name"}},
		"resources/read":              {func(r *usage.Record) { r.Call.Method, r.Call.Name = "resources/read", "file:///a" }, "", map[string]any{"mcp.resource.uri": "file:///a"}, nil},
		"SendMessage helper":          {func(r *usage.Record) { agent(r, "SendMessage") }, "", map[string]any{"a2a.method.name": "SendMessage", "a2a.protocol.version": "1.0", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}, []string{"mcp.method.name", "gen_ai.tool.name"}},
		"SendStreamingMessage helper": {func(r *usage.Record) { agent(r, "message/stream") }, "", map[string]any{"a2a.method.name": "SendStreamingMessage", "gen_ai.operation.name": "invoke_agent"}, nil},
		"GetTask helper": {func(r *usage.Record) { agent(r, "GetTask"); r.ClientStatus = 502 }, "502",
			map[string]any{"a2a.method.name": "GetTask", "error.type": "502"}, []string{"gen_ai.operation.name"}},
	} {
		for _, optIn := range []string{"", Newest} {
			c1 := newCollector(t)
			e := exporter(c1, Destination{OptIn: optIn})
			e.Export(t.Context(), []usage.Record{call(c.change)})
			spans := c1.spans(t)
			if len(spans) != 1 || spans[0].Name != name || spans[0].Kind != tracepb.Span_SPAN_KIND_SERVER || spans[0].Status.Message != c.failed || string(spans[0].ParentSpanId) == "" {
				t.Fatalf("%s: %v", name, spans)
			}
			got := values(spans[0].Attributes)
			for k, v := range c.want {
				if got[k] != v {
					t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
				}
			}
			for _, k := range c.none {
				if v, there := got[k]; there {
					t.Errorf("%s: %s is %v", name, k, v)
				}
			}
			histogram := "mcp.server.operation.duration"
			if _, is := got["a2a.method.name"]; is {
				histogram = "gateway.a2a.operation.duration"
			}
			m := c1.metrics(t)
			if len(m) != 1 || m[histogram] == nil || m[histogram].GetHistogram().DataPoints[0].Sum == nil || *m[histogram].GetHistogram().DataPoints[0].Sum != 2 {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func agent(r *usage.Record, method string) {
	r.Endpoint, r.Provider, r.ProviderSlug = "agent", "a2a", "helper"
	*r.Call = usage.Call{Protocol: "a2a", Server: "s2", Method: method, Auth: "api_key", Decision: usage.CallAllowed, Version: "1.0"}
}
