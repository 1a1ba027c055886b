package observe

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

func TestContentIsExportedOnRequest(t *testing.T) {
	t.Parallel()
	bodies := usage.Bodies{
		Request:  []byte(`{"model":"m","max_tokens":9,"temperature":0.5,"stop":["a"],"messages":[{"role":"user","content":"what"}]}`),
		Response: []byte(`{"id":"r1","choices":[{"message":{"content":"that"},"finish_reason":"stop"}]}`),
	}
	for _, requested := range []bool{true, false} {
		c := newCollector(t)
		e := exporter(c, Destination{Content: requested})
		e.Bodies = func(context.Context, *usage.Record) (usage.Bodies, bool) { return bodies, true }
		e.Export(t.Context(), []usage.Record{record()})
		got := values(c.spans(t)[0].Attributes)
		if _, present := got[attrInputMessages]; present != requested {
			t.Errorf("asked for: %v, told: %v", requested, present)
		}
		if requested {
			holds(t, got, map[string]any{
				attrMaxTokens: int64(9), attrTemperature: 0.5, attrResponseID: "r1",
				attrInputMessages:  `[{"role":"user","parts":[{"type":"text","content":"what"}]}]`,
				attrOutputMessages: `[{"role":"assistant","parts":[{"type":"text","content":"that"}],"finish_reason":"stop"}]`,
			})
		}
		if !requested && strings.Contains(string(slices.Concat(c.bodies...)), "what") {
			t.Error("content is told that nobody asked for")
		}
	}
}

func TestContentOfEveryDialect(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ request, response, in, out string }{
		"messages with tools": {
			`{"system":"be kind","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}]}`,
			`{"id":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"}],"stop_reason":"end_turn"}`,
			`[{"role":"assistant","parts":[{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}]},{"role":"user","parts":[{"type":"tool_call_response","id":"t","response":"ok"}]}]`,
			`[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"yes"}],"finish_reason":"stop"}]`,
		},
		"responses": {
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},{"type":"function_call_output","call_id":"c","output":"1"}]}`,
			`{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`,
			`[{"role":"user","parts":[{"type":"text","content":"hi"},{"type":"blob","modality":"image","mime_type":"image/png","content":""}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"1"}]}]`,
			`[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}},{"type":"text","content":"x"}],"finish_reason":"tool_call"}]`,
		},
		"stream of a chat": {
			`{"messages":[{"role":"tool","tool_call_id":"t","content":"1"}]}`,
			"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\",\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
			`[{"role":"tool","parts":[{"type":"tool_call_response","id":"t","response":"1"}]}]`,
			`[{"role":"assistant","parts":[{"type":"text","content":"ab"},{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}],"finish_reason":"tool_call"}]`,
		},
		"stream of messages": {
			`{"messages":[]}`,
			"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"yo\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n",
			"",
			`[{"role":"assistant","parts":[{"type":"text","content":"yo"}],"finish_reason":"length"}]`,
		},
		"stream of responses": {
			`{"input":"hi"}`,
			"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\"}]}]}}\n\n",
			`[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`,
			`[{"role":"assistant","parts":[{"type":"text","content":"x"}],"finish_reason":"stop"}]`,
		},
		"nothing known": {"\xff", "data: {\"choices\":[{\"index\":-1},{\"index\":1e9},7]}\n", "", ""},
	} {
		c := ReadContent(&usage.Bodies{Request: []byte(of.request), Response: []byte(of.response)}, false)
		got := map[string]string{}
		for _, a := range c.texts {
			got[a.Key] = a.Value.(string)
		}
		if got[attrInputMessages] != of.in {
			t.Errorf("%s: asked\n%s, want\n%s", name, got[attrInputMessages], of.in)
		}
		if got[attrOutputMessages] != of.out {
			t.Errorf("%s: answered\n%s, want\n%s", name, got[attrOutputMessages], of.out)
		}
	}
}

func FuzzContent(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`), []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3}]}}]}\n"))
	f.Add([]byte(`{"input":[1,null,{"type":"reasoning","summary":[{}]}],"tools":[1]}`), []byte(`{"output":[{"type":"message","content":7}],"choices":[null]}`))
	f.Fuzz(func(t *testing.T, request, response []byte) {
		for _, a := range ReadContent(&usage.Bodies{Request: request, Response: response}, false).texts {
			if !json.Valid([]byte(a.Value.(string))) {
				t.Errorf("%s is not valid JSON: %s", a.Key, a.Value)
			}
		}
	})
}

// exported are the attributes of a record's span, and the span.
func exported(t *testing.T, r usage.Record, bodies *usage.Bodies) (map[string]any, *tracepb.Span) {
	t.Helper()
	c := newCollector(t)
	e := exporter(c, Destination{Content: bodies != nil, Signals: []string{Traces}})
	e.Bodies = func(context.Context, *usage.Record) (usage.Bodies, bool) { return *bodies, true }
	r.Guards = nil
	e.Export(t.Context(), []usage.Record{r})
	all := c.spans(t)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return values(all[0].Attributes), all[0]
}

// TestTruncatedStreamsAreErrors: a stream that broke off or that the client left is an
// error, and its finish reason is not invented.
func TestTruncatedStreamsAreErrors(t *testing.T) {
	t.Parallel()
	part := usage.Bodies{Response: []byte("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")}
	for name, c := range map[string]struct {
		change     func(*usage.Record)
		kind, text string
	}{
		"broke off":        {func(r *usage.Record) { r.ClientStatus, r.ErrorMessage = 502, "The provider closed the stream" }, "502", "The provider closed the stream"},
		"client left":      {func(r *usage.Record) { r.ClientGone = true }, clientGone, clientGone},
		"provider's error": {func(r *usage.Record) { r.ClientStatus, r.ErrorMessage = 429, "Rate limit reached" }, "429", "Rate limit reached"},
	} {
		r := record()
		r.FinishReason = ""
		c.change(&r)
		got, span := exported(t, r, &part)
		if got[attrErrorType] != c.kind || span.Status.Code != tracepb.Status_STATUS_CODE_ERROR || span.Status.Message != c.text || got[attrFinishReasons] != nil {
			t.Errorf("%s: %v %v", name, got[attrErrorType], span.Status)
		}
		if messages := got[attrOutputMessages]; messages != `[{"role":"assistant","parts":[{"type":"text","content":"a"}],"finish_reason":"error"}]` {
			t.Errorf("%s: %v", name, messages)
		}
	}
}

// TestFinishReasonsAreThoseOfTheConventions: a status is no finish reason.
func TestFinishReasonsAreThoseOfTheConventions(t *testing.T) {
	t.Parallel()
	for theirs, ours := range map[string]string{
		"stop": "stop", "end_turn": "stop", "STOP": "stop", "completed": "stop", "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "incomplete": "length",
		"tool_calls": "tool_call", "tool_use": "tool_call", "content_filter": "content_filter", "refusal": "content_filter", "SAFETY": "content_filter", "failed": "error",
	} {
		r := record()
		r.FinishReason = theirs
		if got, _ := exported(t, r, nil); !strings.Contains(got[attrFinishReasons].(string), `"`+ours+`"`) {
			t.Errorf("%s: %v, want %s", theirs, got[attrFinishReasons], ours)
		}
	}
	r := record()
	r.FinishReason = "completed"
	if got, _ := exported(t, r, &usage.Bodies{Response: []byte(`{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`)}); !strings.Contains(got[attrFinishReasons].(string), `"tool_call"`) {
		t.Errorf("%v", got[attrFinishReasons])
	}
	if got, _ := exported(t, r, &usage.Bodies{Response: []byte(`{"id":"r","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`)}); !strings.Contains(got[attrFinishReasons].(string), `"content_filter"`) {
		t.Errorf("%v", got[attrFinishReasons])
	}
}

// TestToolDefinitionsAreThoseOfTheConventions reads the tools of each client's format.
func TestToolDefinitionsAreThoseOfTheConventions(t *testing.T) {
	t.Parallel()
	const want = `[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`
	for name, c := range map[string]struct{ tools, want string }{
		"chat":          {`[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}]`, want},
		"messages":      {`[{"name":"f","description":"d","input_schema":{"type":"object"}}]`, want},
		"responses":     {`[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`, want},
		"gemini":        {`[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"object"}}]}]`, want},
		"of a provider": {`[{"type":"web_search_20250305","name":"web_search"},{"type":"code_interpreter","container":{}},{"type":"mcp","server_label":"docs"}]`, `[{"type":"web_search_20250305","name":"web_search"},{"type":"code_interpreter","name":"code_interpreter"},{"type":"mcp","name":"docs"}]`},
		"nothing":       {`[7,{},"x",{"type":"function"}]`, ""},
	} {
		got := ""
		for _, a := range ReadContent(&usage.Bodies{Request: []byte(`{"tools":` + c.tools + `}`)}, false).texts {
			if a.Key == attrTools {
				got = a.Value.(string)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWhoAndWhatOfARequest: user, session, cost, output type and model of the response.
func TestWhoAndWhatOfARequest(t *testing.T) {
	t.Parallel()
	r := record()
	r.Agent.Session, r.EndUser, r.Metadata = "", "ada", map[string]string{"session_id": "s"}
	r.Usage.Estimated = true
	got, span := exported(t, r, &usage.Bodies{Request: []byte(`{"response_format":{"type":"json_schema"}}`)})
	holds(t, got, map[string]any{attrUser: "ada", attrConversation: "s", attrUsageCost: 0.000001234, attrEstimated: true, attrOutputType: "json"})
	if span.Name != "chat gpt-4o" {
		t.Error(span.Name)
	}
	refused := record()
	refused.ClientStatus, refused.Usage = 401, pricing.Usage{}
	if got, _ := exported(t, refused, nil); got[attrResponseModel] != nil || got[attrFirstChunk] != nil {
		t.Errorf("%v answered nothing", got[attrResponseModel])
	}
	picture := record()
	picture.Endpoint = "imageGenerate"
	if got, _ := exported(t, picture, nil); got[attrOutputType] != "image" {
		t.Errorf("%v", got[attrOutputType])
	}
	c := newCollector(t)
	exporter(c, Destination{}).Export(t.Context(), []usage.Record{record()})
	for i, path := range c.paths {
		if !strings.Contains(string(c.bodies[i]), schemaOfToday) {
			t.Errorf("%s has no schema URL", path)
		}
	}
}
