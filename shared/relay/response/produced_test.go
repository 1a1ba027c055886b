package response

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/upstream"
)

// arguments are those of a call of the tool f: with its name 1,309 bytes.
var arguments = `{"a":"` + text + `"}`

// quoted is a text within a JSON string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// produced is the output of a model, in one format: a complete response without usage, and the
// same as a stream, with all output in the events up to made.
type produced struct {
	d      chat.Provider
	plain  string
	events []string
	made   int
}

func chatProduced(message, delta string) produced {
	event := func(delta, finish string) string {
		return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	return produced{openai.Chat{}, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":"stop"}]}`,
		[]string{event(`{"role":"assistant"}`, "null"), event(delta, "null"), event("{}", `"stop"`), "[DONE]"}, 2}
}

func messagesProduced(block, start, delta string) produced {
	return produced{anthropic.Messages{}, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + block + `],"stop_reason":"end_turn","stop_sequence":null}`,
		[]string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null}}`,
			`{"type":"content_block_start","index":0,"content_block":` + start + `}`, `{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}`, `{"type":"message_stop"}`,
		}, 3}
}

func responsesProduced(item, empty string, deltas ...string) produced {
	whole := `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[` + item + `]}`
	events := []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":` + empty + `}`,
	}
	events = append(events, deltas...)
	made := len(events) - 1 // the last delta repeats the output
	return produced{responses.Responses{}, whole, append(events,
		`{"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":`+item+`}`,
		`{"type":"response.completed","sequence_number":9,"response":`+whole+`}`), made}
}

func geminiProduced(part string) produced {
	event := func(parts, finish string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + finish + `,"index":0}],"modelVersion":"m","responseId":"r"}`
	}
	return produced{gemini.Generate{}, event(part, `,"finishReason":"STOP"`), []string{event(part, ""), event("", `,"finishReason":"STOP"`)}, 1}
}

func cohereProduced(message string, events ...string) produced {
	all := append([]string{`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[]}}}`}, events...)
	return produced{cohere.Chat{}, `{"id":"c","message":{"role":"assistant",` + message + `},"finish_reason":"COMPLETE"}`,
		append(all, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`), len(all) - 1}
}

func converseProduced(block, start, delta string) produced {
	events := []string{`{"role":"assistant"}`, `{"contentBlockIndex":0,"start":` + start + `}`, `{"contentBlockIndex":0,"delta":` + delta + `}`, `{"contentBlockIndex":0}`, `{"stopReason":"end_turn"}`}
	return produced{converse.Converse{}, `{"output":{"message":{"role":"assistant","content":[` + block + `]}},"stopReason":"end_turn","metrics":{"latencyMs":1}}`, events, 3}
}

// everything is text, a call of a tool and reasoning, in each format of providers.
var everything = map[string]map[string]produced{
	"text": {
		"chat":     chatProduced(`"content":"`+text+`"`, `{"content":"`+text+`"}`),
		"messages": messagesProduced(`{"type":"text","text":"`+text+`"}`, `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+text+`"}`),
		"responses": responsesProduced(`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"`+text+`","annotations":[]}]}`,
			`{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}`,
			`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
			`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"`+text+`"}`,
			`{"type":"response.output_text.done","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"text":"`+text+`"}`),
		"gemini": geminiProduced(`{"text":"` + text + `"}`),
		"cohere": cohereProduced(`"content":[{"type":"text","text":"`+text+`"}]`, `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"`+text+`"}}}}`, `{"type":"content-end","index":0}`),
		"converse": converseProduced(`{"text":"`+text+`"}`, `{}`, `{"text":"`+text+`"}`),
	},
	"call": {
		"chat":     chatProduced(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"`+quoted(arguments)+`"}}]`, `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"`+quoted(arguments)+`"}}]}`),
		"messages": messagesProduced(`{"type":"tool_use","id":"t1","name":"f","input":`+arguments+`}`, `{"type":"tool_use","id":"t1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"`+quoted(arguments)+`"}`),
		"responses": responsesProduced(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","status":"completed","arguments":"`+quoted(arguments)+`"}`,
			`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","status":"in_progress","arguments":""}`,
			`{"type":"response.function_call_arguments.delta","sequence_number":2,"item_id":"fc_1","output_index":0,"delta":"`+quoted(arguments)+`"}`,
			`{"type":"response.function_call_arguments.done","sequence_number":3,"item_id":"fc_1","output_index":0,"name":"f","arguments":"`+quoted(arguments)+`"}`),
		"gemini": geminiProduced(`{"functionCall":{"name":"f","args":` + arguments + `}}`),
		"cohere": cohereProduced(`"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"`+quoted(arguments)+`"}}]`,
			`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t1","type":"function","function":{"name":"f","arguments":""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"`+quoted(arguments)+`"}}}}}`, `{"type":"tool-call-end","index":0}`),
		"converse": converseProduced(`{"toolUse":{"toolUseId":"t1","name":"f","input":`+arguments+`}}`, `{"toolUse":{"toolUseId":"t1","name":"f"}}`, `{"toolUse":{"input":"`+quoted(arguments)+`"}}`),
	},
	"reasoning": {
		"chat":           chatProduced(`"content":"","reasoning_content":"`+text+`"`, `{"reasoning_content":"`+text+`"}`),
		"chat reasoning": chatProduced(`"content":"","reasoning":"`+text+`"`, `{"reasoning":"`+text+`"}`),
		"messages":       messagesProduced(`{"type":"thinking","thinking":"`+text+`","signature":"s"}`, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"`+text+`"}`),
		"responses": responsesProduced(`{"type":"reasoning","id":"rs_1","status":"completed","summary":[{"type":"summary_text","text":"`+text+`"}]}`,
			`{"type":"reasoning","id":"rs_1","status":"in_progress","summary":[]}`,
			`{"type":"response.reasoning_summary_part.added","sequence_number":2,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"`+text+`"}`,
			`{"type":"response.reasoning_summary_text.done","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":0,"text":"`+text+`"}`),
		"responses text": responsesProduced(`{"type":"reasoning","id":"rs_1","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"`+text+`"}]}`,
			`{"type":"reasoning","id":"rs_1","status":"in_progress","summary":[],"content":[]}`,
			`{"type":"response.reasoning_text.delta","sequence_number":3,"item_id":"rs_1","output_index":0,"content_index":0,"delta":"`+text+`"}`,
			`{"type":"response.reasoning_text.done","sequence_number":4,"item_id":"rs_1","output_index":0,"content_index":0,"text":"`+text+`"}`),
		"gemini": geminiProduced(`{"text":"` + text + `","thought":true}`),
		"cohere": cohereProduced(`"content":[{"type":"thinking","thinking":"`+text+`"}]`, `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"`+text+`"}}}}`, `{"type":"content-end","index":0}`),
		"converse": converseProduced(`{"reasoningContent":{"reasoningText":{"text":"`+text+`","signature":"s"}}}`, `{}`, `{"reasoningContent":{"text":"`+text+`"}}`),
	},
}

// estimateOf is the estimate of everything of a kind.
func estimateOf(kind string) int64 {
	if kind == "call" {
		return int64(len("f")+len(arguments)+3) / 4
	}
	return int64(len(text)+3) / 4
}

// A buffered response without usage is charged for the part received, wherever it was truncated:
// text, tool calls and reasoning. No part is counted twice.
func TestAllThatWasProducedIsEstimated(t *testing.T) {
	t.Parallel()
	for kind, formats := range everything {
		for name, p := range formats {
			if b, ok := PartialConversation(p.d, &chat.Traits{}, []byte(p.plain)); !ok || b.Meter.OutputEstimate() != estimateOf(kind) {
				t.Errorf("%s of %s: %d tokens, want %d", kind, name, b.Meter.OutputEstimate(), estimateOf(kind))
			}
			if _, native := p.d.(chat.Passer); native { // metered as when its bytes are forwarded
				if m := p.d.(chat.Passer).MeterResponse([]byte(p.plain)); m.OutputEstimate() != estimateOf(kind) && m.OutputEstimate() != 0 {
					t.Errorf("%s of %s, passed on: %d tokens, want %d", kind, name, m.OutputEstimate(), estimateOf(kind))
				}
			}
			before, start := int64(0), strings.Index(p.plain, text)
			for cut := start; cut < len(p.plain); cut += 7 {
				b, _ := PartialConversation(p.d, &chat.Traits{}, []byte(p.plain[:cut]))
				got := b.Meter.OutputEstimate()
				// mend closes the brackets of arguments.
				if least := int64(min(cut-start, len(text))+3) / 4; got < least || got > least+3 || got < before-1 {
					t.Errorf("%s of %s, cut behind %d bytes of it: %d tokens, %d before", kind, name, cut-start, got, before)
					break
				}
				before = got
			}
		}
	}
}

// The same for streams: all output counts once it was received, and the end, which may repeat
// it, adds nothing. A translated stream is metered like a forwarded one.
func TestAllThatWasStreamedIsEstimated(t *testing.T) {
	t.Parallel()
	for kind, formats := range everything {
		for name, p := range formats {
			for _, until := range []int{p.made, len(p.events)} {
				got := map[string]int64{}
				if _, ok := p.d.(chat.Passer); ok {
					got["filter"] = filtered(upstream.Passer(p.d), p.events[:until])
				}
				got["decoder"] = decoded(p.d, p.events[:until])
				for by, n := range got {
					// A name in a separate event is a piece, too.
					if n < estimateOf(kind) || n > estimateOf(kind)+1 {
						t.Errorf("%s of %s by the %s, %d of %d events: %d tokens, want %d", kind, name, by, until, len(p.events), n, estimateOf(kind))
					}
				}
			}
		}
	}
}

// eventName returns the format's name of an event.
func eventName(d chat.Provider, i int, data string) string {
	if d.Name() == (converse.Converse{}).Name() {
		return []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"}[i]
	}
	var e struct{ Type string }
	_ = json.Unmarshal([]byte(data), &e)
	return e.Type
}

func filtered(p chat.Passer, events []string) int64 {
	f := p.NewStreamFilter(&chat.FilterOptions{})
	for i, data := range events {
		if framed, ok := p.(chat.Dialect); ok && framed.Name() == (converse.Converse{}).Name() {
			if _, err := f.Feed(frame(eventName(converse.Converse{}, i, data), data)); err != nil {
				return -1
			}
			continue
		}
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(data), &e)
		line := "data: " + data + "\n\n"
		if e.Type != "" {
			line = "event: " + e.Type + "\n" + line
		}
		if _, err := f.Feed([]byte(line)); err != nil {
			return -1
		}
	}
	m := f.Meter()
	return m.OutputEstimate()
}

// frame is an event of AWS's event stream.
func frame(name, data string) []byte {
	m := eventstream.Message{Payload: []byte(data)}
	m.Headers.Set(":message-type", eventstream.StringValue("event"))
	m.Headers.Set(":event-type", eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	var out bytes.Buffer
	_ = eventstream.NewEncoder().Encode(&out, m)
	return out.Bytes()
}

func decoded(d chat.Provider, events []string) int64 {
	s := d.NewStreamDecoder(&chat.Traits{})
	for i, data := range events {
		if err := s.Event(eventName(d, i, data), slices.Clone([]byte(data)), func(*chat.Delta) error { return nil }); err != nil {
			return -1
		}
	}
	m := s.Meter()
	return m.OutputEstimate()
}
