package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans is a collector that keeps the spans it is sent.
type spans struct {
	*httptest.Server
	mu       sync.Mutex
	received []*tracepb.Span
	keys     []string
}

func newSpans(t *testing.T) *spans {
	s := &spans{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys = append(s.keys, r.Header.Get("x-collector-key"))
		var d tracepb.TracesData
		if r.URL.Path == "/v1/traces" && proto.Unmarshal(raw, &d) == nil {
			s.received = append(s.received, d.ResourceSpans[0].ScopeSpans[0].Spans...)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// of are the attributes of the spans of a trace, as text.
func (s *spans) of(trace string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.received {
		if fmt.Sprintf("%x", sp.TraceId) == trace {
			out = append(out, fmt.Sprint(sp.Name, " ", sp.Attributes))
		}
	}
	return out
}

func TestRequestsAreExportedToTelemetryDestinations(t *testing.T) {
	t.Parallel()
	r := start(t)
	plain, full, mute := newSpans(t), newSpans(t), newSpans(t)
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"plain","endpoint":%q,"headers":"x-collector-key=secret%%2Ckey"}`, plain.URL))
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"full","endpoint":%q,"include_content":true,"semconv_stability_opt_in":"gen_ai_latest_experimental"}`, full.URL))
	ws := r.admin("POST", "/admin/workspaces", `{"name":"another"}`)["id"]
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"mute","endpoint":%q,"workspace_id":%q}`, mute.URL, ws))

	const trace = "0af7651916cd43dd8448eb211c80319c"
	r.call("POST", "/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a word nobody says"}]}`, "x-gateway-provider", "@mock", "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	eventually(t, func() error {
		if a, b := len(plain.of(trace)), len(full.of(trace)); a != 1 || b != 1 {
			return fmt.Errorf("%d and %d spans came", a, b)
		}
		return nil
	})
	if got := plain.of(trace)[0]; !strings.Contains(got, "gen_ai.system") || strings.Contains(got, "a word nobody says") || !strings.HasPrefix(got, "chat gpt-4o-mini") || !strings.Contains(got, "server.address") || !strings.Contains(got, "server.port") {
		t.Errorf("without content: %s", got)
	}
	if got := full.of(trace)[0]; strings.Contains(got, "gen_ai.system\"") || !strings.Contains(got, "a word nobody says") || !strings.Contains(got, "gen_ai.output.messages") {
		t.Errorf("with content: %s", got)
	}
	plain.mu.Lock()
	if plain.keys[0] != "secret,key" {
		t.Errorf("headers: %q", plain.keys)
	}
	plain.mu.Unlock()
	const clientTrace = "0af7651916cd43dd8448eb211c80319d"
	s := r.speak("model=@mock/gpt-realtime", "traceparent", "00-"+clientTrace+"-b7ad6b7169203331-01")
	s.turn("Hello")
	s.leave()
	eventually(t, func() error {
		if n := len(plain.of(clientTrace)); n != 2 {
			return fmt.Errorf("%d spans came", n)
		}
		return nil
	})
	for _, got := range plain.of(clientTrace) { // the session and its response
		if !strings.Contains(got, "server.address") {
			t.Errorf("without its server: %s", got)
		}
	}
	if len(mute.of(trace)) != 0 {
		t.Error("the destination of another workspace was told")
	}
}

// A tool's call stands in the trace that its message names, below the client's span, and
// its server is called below the gateway's.
func TestToolCallsAreInTheirTraces(t *testing.T) {
	t.Parallel()
	r := start(t)
	collector := newSpans(t)
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"told","endpoint":%q}`, collector.URL))
	var mu sync.Mutex
	var headers, within []string
	for _, speaks := range []string{stateless, sessions} {
		up, s := mcpServer(t, speaks)
		sdk.AddTool(s, &sdk.Tool{Name: "fails"}, func(_ context.Context, q *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			headers, within = append(headers, q.Extra.Header.Get("Traceparent")), append(within, fmt.Sprint(q.Params.Meta["traceparent"]))
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, nil, nil
		})
		r.registerMCP("traced-"+speaks, up.URL, "")
	}
	const trace, span = "1af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, c := range []struct{ client, server string }{{stateless, stateless}, {stateless, sessions}, {sessions, stateless}, {sessions, sessions}} {
		client := r.connectMCP("traced-"+c.server, c.client, nil)
		got, err := client.CallTool(context.Background(), &sdk.CallToolParams{Name: "fails", Arguments: textArgs{"x"}, Meta: sdk.Meta{"traceparent": "00-" + trace + "-" + span + "-01"}})
		if err != nil || !got.IsError {
			t.Fatal(c, got, err)
		}
	}
	eventually(t, func() error {
		if n := len(collector.of(trace)); n != 4 {
			return fmt.Errorf("%d spans came", n)
		}
		return nil
	})
	collector.mu.Lock()
	defer collector.mu.Unlock()
	var ids []string
	for _, sp := range collector.received {
		if fmt.Sprintf("%x", sp.TraceId) != trace {
			continue
		}
		if sp.Name != "tools/call fails" || fmt.Sprintf("%x", sp.ParentSpanId) != span || sp.Status.Message != "tool_error" {
			t.Errorf("%s below %x: %v", sp.Name, sp.ParentSpanId, sp.Status)
		}
		ids = append(ids, fmt.Sprintf("00-%s-%x-01", trace, sp.SpanId))
	}
	slices.Sort(ids)
	mu.Lock()
	defer mu.Unlock()
	for _, sent := range [][]string{headers, within} {
		if slices.Sort(sent); !slices.Equal(sent, ids) {
			t.Errorf("servers were told %v, want %v", sent, ids)
		}
	}
}

// A call of an agent stands in the trace that its client names: its span, in every version
// and binding, answered at once or streamed, below the client's, and the agent is called
// below the gateway's. What went wrong there is told too.
func TestAgentCallsAreInTheirTraces(t *testing.T) {
	t.Parallel()
	r := start(t)
	collector := newSpans(t)
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"told","endpoint":%q}`, collector.URL))
	const trace, span = "2af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	from := []string{"traceparent", "00-" + trace + "-" + span + "-01"}
	below := map[string]string{} // what each agent was told, by the name of the call's span
	calls := 0
	for _, old := range []bool{true, false} {
		up, slug := newAgent(t, old, ""), fmt.Sprintf("traced-%t", old)
		r.registerAgent(slug, up.URL, "")
		send, stream := "SendMessage", "SendStreamingMessage"
		if old {
			send, stream = "message/send", "message/stream"
		}
		for method, name := range map[string]string{send: "SendMessage", stream: "SendStreamingMessage"} {
			got := r.call("POST", "/agent/"+slug, rpcBody(method, agentMessage(old, "a word nobody says")), append(versionOf(old), from...)...)
			if got.status != 200 || !strings.Contains(got.body, "heard a word") {
				t.Fatalf("%s: %d %s", method, got.status, got.body)
			}
			calls++
			below[up.last().header.Get("Traceparent")] = slug + " " + name
		}
	}
	eventually(t, func() error {
		if n := len(collector.of(trace)); n != calls {
			return fmt.Errorf("%d spans came of %d", n, calls)
		}
		return nil
	})
	collector.mu.Lock()
	defer collector.mu.Unlock()
	for _, sp := range collector.received {
		if fmt.Sprintf("%x", sp.TraceId) != trace {
			continue
		}
		sent := fmt.Sprintf("00-%s-%x-01", trace, sp.SpanId)
		called, ok := below[sent]
		delete(below, sent)
		text := fmt.Sprint(sp.Attributes)
		slug, method, _ := strings.Cut(called, " ")
		if !ok || fmt.Sprintf("%x", sp.ParentSpanId) != span || sp.Name != method+" "+slug || !strings.Contains(text, "invoke_agent") || !strings.Contains(text, slug) || !strings.Contains(text, "a2a.method.name") || strings.Contains(text, "nobody says") {
			t.Errorf("%s below %x: %s", sp.Name, sp.ParentSpanId, text)
		}
	}
	if len(below) > 0 {
		t.Errorf("agents were told of spans that never came: %v", below)
	}
}

// A call of an agent that cannot be reached has a span as well, which says so.
func TestFailedAgentCallsAreExportedAsFailed(t *testing.T) {
	t.Parallel()
	r := start(t)
	collector := newSpans(t)
	r.admin("POST", "/telemetry-destinations", fmt.Sprintf(`{"name":"told","endpoint":%q}`, collector.URL))
	up := newAgent(t, false, "")
	r.registerAgent("lost", up.URL, "")
	up.Close()
	const trace = "3af7651916cd43dd8448eb211c80319c"
	got := r.call("POST", "/agent/lost", rpcBody("SendMessage", agentMessage(false, "x")), append(versionOf(false), "traceparent", "00-"+trace+"-b7ad6b7169203331-01")...)
	eventually(t, func() error {
		if n := len(collector.of(trace)); n != 1 {
			return fmt.Errorf("%d spans came of a call that answered %d", n, got.status)
		}
		return nil
	})
	collector.mu.Lock()
	defer collector.mu.Unlock()
	for _, sp := range collector.received {
		if fmt.Sprintf("%x", sp.TraceId) == trace && (sp.Status == nil || sp.Status.Code != tracepb.Status_STATUS_CODE_ERROR) {
			t.Errorf("the span of a call that answered %d %s has the status %v", got.status, got.body, sp.Status)
		}
	}
}
