package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

const claimTrace = "5b8efff798038103d269b633813fc60c"

// reported is a span with usage of gpt-4o-mini, or another span if it has no operation.
func reported(id, parent, operation string, input, output int) string {
	at := time.Now().Add(-time.Hour).Truncate(time.Hour).UnixNano()
	attrs := `{"key":"x","value":{"stringValue":"y"}}`
	if operation != "" {
		attrs = fmt.Sprintf(`{"key":"gen_ai.operation.name","value":{"stringValue":%q}},{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}},
			{"key":"gen_ai.usage.input_tokens","value":{"intValue":"%d"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"%d"}},{"key":"user.id","value":{"stringValue":"ada"}}`, operation, input, output)
	}
	return fmt.Sprintf(`{"traceId":%q,"spanId":%q,"parentSpanId":%q,"name":"s","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`, claimTrace, id, parent, at, at+int64(time.Second), attrs)
}

const (
	agentID, stepID, chatID, toolID, secondID = "00000000000000a1", "00000000000000a2", "00000000000000a3", "00000000000000a4", "00000000000000a5"
)

// books are what analytics and logs say about a workspace.
type books struct {
	requests, tokens int64
	cost             float64
	logs             int
}

func (in *installation) books(t *testing.T) (b books) {
	t.Helper()
	reader := report.New(in.archive, nil)
	f := report.Filter{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour)}
	for name, to := range map[string]any{"requests": &b.requests, "tokens": &b.tokens, "cost": &b.cost} {
		g, ok, err := reader.Graph(context.Background(), store.Scope{Org: admintest.Org, Workspace: in.One}, name, &f)
		raw, _ := json.Marshal(g.Summary)
		var sum struct{ Total json.Number }
		if !ok || err != nil || json.Unmarshal(raw, &sum) != nil || json.Unmarshal([]byte(sum.Total), to) != nil {
			t.Fatalf("%s: %s %v", name, raw, err)
		}
	}
	listed := in.Do("GET", "/logs?trace_id="+claimTrace, admintest.WorkspaceA, nil).OK()
	b.logs = int(listed.At("total").(float64))
	// The logs agree with the graphs.
	cost, counted := 0.0, int64(0)
	for i := range b.logs {
		cost += listed.At("data", fmt.Sprint(i), "cost").(float64)
		if listed.Text("data", fmt.Sprint(i), "endpoint") != usage.EndpointSpan {
			counted++
		}
	}
	if cost != b.cost || counted != b.requests {
		t.Errorf("logs have %d requests for %v, graphs %d for %v", counted, cost, b.requests, b.cost)
	}
	return b
}

// TestCallsOfSpansAreChargedOnce: requests, tokens and cost of analytics count each call
// once, in whatever requests its spans arrive.
func TestCallsOfSpansAreChargedOnce(t *testing.T) {
	agent, step, chat, tool, second := reported(agentID, "", "invoke_agent", 2000, 200), reported(stepID, agentID, "", 0, 0), reported(chatID, stepID, "chat", 1000, 100), reported(toolID, agentID, "", 0, 0), reported(secondID, agentID, "chat", 1000, 100)
	two := books{2, 2200, 0.042, 5}
	for name, c := range map[string]struct {
		sent [][]string
		want books
	}{
		"together":                {[][]string{{agent, step, chat, tool, second}}, two},
		"as they end":             {[][]string{{chat}, {step, second}, {tool, agent}}, two},
		"with the last one first": {[][]string{{agent}, {chat, step}, {second, tool}}, books{1, 2200, 0.042, 5}},
		"an agent alone":          {[][]string{{agent, tool}}, books{1, 2200, 0.042, 2}},
		"one call":                {[][]string{{step, agent, chat}}, books{1, 1100, 0.021, 3}},
		"tools":                   {[][]string{{tool, step}}, books{0, 0, 0, 2}},
	} {
		in := install(t)
		for range 2 { // sent again it changes nothing
			for _, spans := range c.sent {
				in.Do("POST", traces, admintest.WorkspaceA, traced(spans...)).OK()
			}
		}
		if got := in.books(t); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestTheGatewaysOwnLogCounts: a call that passed through the gateway is counted by its log,
// and not by the spans above it.
func TestTheGatewaysOwnLogCounts(t *testing.T) {
	in := install(t)
	own := made(admintest.Org, in.One, admintest.OneSlug, 0)
	own.Start = time.Now().Add(-time.Hour).Truncate(time.Hour).UTC()
	own.TraceID, own.SpanID, own.ParentSpanID = claimTrace, "00000000000000b1", chatID
	in.store(t, own)
	in.Do("POST", traces, admintest.WorkspaceA, traced(reported(agentID, "", "invoke_agent", 15, 0), reported(chatID, agentID, "chat", 15, 5), reported(secondID, agentID, "chat", 1000, 100))).OK()
	got := in.books(t)
	if want := (books{2, own.Usage.TotalTokens() + 1100, 1.2345678 + 0.021, 4}); got.requests != want.requests || got.tokens != want.tokens || got.logs != want.logs || got.cost < want.cost-1e-9 || got.cost > want.cost+1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	listed := in.Do("GET", "/logs?trace_id="+claimTrace+"&span_id="+chatID, admintest.WorkspaceA, nil).OK()
	if !strings.Contains(string(listed.Body), "counted with the span "+own.SpanID) {
		t.Errorf("%s", listed.Body)
	}
}
