package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/testkit/relaytest"
)

// longText has 325 tokens by the estimate.
var longText = strings.Repeat("thirteen char", 100)

// silentPlain and silentEvents are the responses, by the end of the path. Each text is in one
// piece.
var silentPlain = map[string]string{
	"/chat/completions": `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + longText + `"},"finish_reason":"stop"}]}`,
	"/messages":         `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"` + longText + `"}],"stop_reason":"end_turn","stop_sequence":null}`,
	"/responses":        `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + longText + `","annotations":[]}]}]}`,
	":generateContent":  `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + longText + `"}]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`,
	"/v2/chat":          `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"` + longText + `"}]},"finish_reason":"COMPLETE"}`,
}

var silentEvents = map[string][]string{
	"/chat/completions": {
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"` + longText + `"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`,
	},
	"/messages": {
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + longText + `"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}`, `{"type":"message_stop"}`,
	},
	"/responses": {
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + longText + `"}`,
		`{"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + longText + `","annotations":[]}]}]}}`,
	},
	":streamGenerateContent": {`{"candidates":[{"content":{"role":"model","parts":[{"text":"` + longText + `"}]},"index":0}],"modelVersion":"m","responseId":"r"}`, `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`},
	"/v2/chat": {
		`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[]}}}`, `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"` + longText + `"}}}}`, `{"type":"content-end","index":0}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`,
	},
}

// TestUnreportedUsageIsEstimatedByTheText requires that responses without usage cost what their
// text amounts to: native, translated and passed through, plain and streamed, whole and cut.
func TestUnreportedUsageIsEstimatedByTheText(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	chat := func(model string) string {
		return `{"model":"` + model + `","max_tokens":500,"messages":[{"role":"user","content":"Hello"}]`
	}
	contents := `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]`
	for _, c := range []struct{ path, provider, model, body, upstream string }{
		{"/chat/completions", "openai", "gpt-4o-mini", chat("gpt-4o-mini"), "/chat/completions"},
		{"/proxy/chat/completions", "openai", "gpt-4o-mini", chat("gpt-4o-mini"), "/chat/completions"},
		{"/messages", "openai", "gpt-4o-mini", chat("gpt-4o-mini"), "/chat/completions"},
		{"/messages", "anthropic", "claude-sonnet-4-5", chat("claude-sonnet-4-5"), "/messages"},
		{"/proxy/messages", "anthropic", "claude-sonnet-4-5", chat("claude-sonnet-4-5"), "/messages"},
		{"/chat/completions", "anthropic", "claude-sonnet-4-5", chat("claude-sonnet-4-5"), "/messages"},
		{"/responses", "anthropic", "claude-sonnet-4-5", `{"model":"claude-sonnet-4-5","max_output_tokens":500,"input":"Hello"`, "/messages"},
		{"/responses", "openai", "gpt-4o-mini", `{"model":"gpt-4o-mini","max_output_tokens":500,"input":"Hello"`, "/responses"},
		{"/proxy/responses", "openai", "gpt-4o-mini", `{"model":"gpt-4o-mini","max_output_tokens":500,"input":"Hello"`, "/responses"},
		{"/chat/completions", "google", "gemini-2.5-flash", chat("gemini-2.5-flash"), ":generateContent"},
		{"/v1beta/models/gemini-2.5-flash:generateContent", "google", "", contents, ":generateContent"},
		{"/proxy/v1beta/models/gemini-2.5-flash:generateContent", "google", "", contents, ":generateContent"},
		{"/chat/completions", "cohere", "command-r", chat("command-r"), "/v2/chat"},
		{"/v2/chat", "cohere", "command-r", chat("command-r"), "/v2/chat"},
		{"/proxy/v2/chat", "cohere", "command-r", chat("command-r"), "/v2/chat"},
	} {
		for _, streamed := range []bool{false, true} {
			for _, cut := range []bool{false, true} {
				path, body, r := c.path, c.body, relaytest.Reply{Status: 200, Body: silentPlain[c.upstream], Cut: cut}
				if streamed {
					r.Header = http.Header{"Content-Type": {"text/event-stream"}}
					r.Body = sse(silentEvents[strings.Replace(c.upstream, ":generate", ":streamGenerate", 1)]...)
					if strings.Contains(path, ":generateContent") {
						path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
					} else {
						body += `,"stream":true`
					}
				}
				if at := strings.Index(r.Body, longText) + len(longText); cut && streamed {
					r.Body = r.Body[:at+strings.Index(r.Body[at:], "\n\n")+2]
				} else if cut {
					r.Body = r.Body[:at]
				}
				name := fmt.Sprintf("%s of %s, cut %t", path, c.provider, cut)
				g.Script(r)
				got := g.Do("POST", "/v1"+path, body+"}", config(`{"provider":"`+c.provider+`","api_key":"k"}`)...)
				if !cut && got.Status != 200 {
					t.Errorf("%s: %d %s", name, got.Status, got.Body)
				}
				rec := g.Record()
				if out, in := rec.Usage.OutputTokens(), rec.Usage.N(pricing.Input); out != 325 || in < 2 || in > 30 || !rec.Usage.Estimated || rec.Cost == 0 {
					t.Errorf("%s: %d in, %d out, estimated %t, cost %d", name, in, out, rec.Usage.Estimated, rec.Cost)
				}
			}
		}
	}
}

// wholeAnswers and streamAnswers are a text and a call of two hosts.
var (
	wholeAnswers = map[string]string{
		"openai":    `{"id":"a1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8}}}`,
		"anthropic": `{"id":"a1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Grüße"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":8,"output_tokens":9}}`,
	}
	streamAnswers = map[string]string{
		"openai": ": a comment\n\n" + sse(
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Grü"},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"ße","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8}}}`,
			`[DONE]`),
		"anthropic": sse(
			`{"type":"message_start","message":{"id":"a1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_read_input_tokens":8,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`,
			`{"type":"message_stop"}`),
	}
)

// TestResponsesInTheOtherForm requires that a client gets the form that it asked for, although the
// host responds whole to a request for a stream, or the other way round, and its headers do not
// say so; and that the usage is recorded.
func TestResponsesInTheOtherForm(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	const message = `"max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`
	for name := range wholeAnswers {
		for _, client := range []struct{ path, tools, done, text, call string }{
			{chatPath, `"tools":[{"type":"function","function":{"name":"f"}}],`, "data: [DONE]\n\n", `"content":"`, `{\"a\":1}`},
			{messagesPath, `"tools":[{"name":"f","input_schema":{"type":"object"}}],`, "event: message_stop\n", `"text":"`, `"name":"f"`},
		} {
			for _, stream := range []bool{false, true} {
				where := fmt.Sprintf("%s to %s, stream %t", client.path, name, stream)
				body := streamAnswers[name]
				if stream {
					body = " \n" + wholeAnswers[name]
				}
				send := func(part string) relaytest.Response {
					g.Script(relaytest.Reply{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: part})
					return g.Do("POST", client.path, fmt.Sprintf(`{"model":"m","stream":%t,%s%s`, stream, client.tools, message), config(`{"provider":"`+name+`","api_key":"k"}`)...)
				}
				got := send(body)
				text := strings.NewReplacer(`\u00fc`, "ü", `\u00df`, "ß").Replace(got.Body)
				if got.Status != 200 || !strings.Contains(text, client.text+"Grüße") || !strings.Contains(strings.ReplaceAll(text, " ", ""), client.call) {
					t.Errorf("%s: %d %s", where, got.Status, got.Body)
				}
				if stream != strings.HasSuffix(got.Body, "\n\n") || stream != strings.Contains(got.Body, client.done) || stream == strings.HasPrefix(got.Body, "{") || stream != strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
					t.Errorf("%s: not in the client's form: %v %s", where, got.Header, got.Body)
				}
				if u := g.Record().Usage; u.Estimated || u.N(pricing.Input) != 12 || u.N(pricing.CacheRead) != 8 || u.N(pricing.Output) != 9 {
					t.Errorf("%s: %+v", where, u)
				}
				if got := send(body[:len(body)*2/3]); got.Status != 502 {
					t.Errorf("%s: a part of a response is %d %s", where, got.Status, got.Body)
				}
				if u := g.Record().Usage; u.OutputTokens() > 9 {
					t.Errorf("%s: a part of a response of 9 tokens is recorded with %d", where, u.OutputTokens())
				}
			}
		}
	}
}
