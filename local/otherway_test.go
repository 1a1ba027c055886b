package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// What two hosts answer whole and as a stream: a text and a call.
var (
	wholeAnswers = map[string]string{
		"openai":    `{"id":"a1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8}}}`,
		"anthropic": `{"id":"a1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Grüße"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":8,"output_tokens":9}}`,
	}
	streamAnswers = map[string]string{
		"openai": ": a comment\n\n" + sseOf("",
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Grü"},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"ße","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8}}}`,
			`[DONE]`),
		"anthropic": sseOf("event: x\n",
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

func sseOf(head string, data ...string) string {
	var b strings.Builder
	for _, d := range data {
		kind := head
		if _, rest, ok := strings.Cut(d, `{"type":"`); ok && head != "" {
			kind = "event: " + rest[:strings.IndexByte(rest, '"')] + "\n"
		}
		b.WriteString(kind + "data: " + d + "\n\n")
	}
	return b.String()
}

// TestResponsesInTheOtherForm: hosts answer whole when a stream was asked for, or the
// other way round, and their headers do not say so. The client gets what it asked for, and
// the books have what was used.
func TestResponsesInTheOtherForm(t *testing.T) {
	t.Parallel()
	r := start(t)
	cut := false
	for name := range wholeAnswers {
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			answer := streamAnswers[name]
			if strings.Contains(string(body), `"stream":true`) {
				answer = " \n" + wholeAnswers[name]
			}
			if cut {
				answer = answer[:len(answer)*2/3]
			}
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, answer)
		}))
		defer host.Close()
		r.save("odd-"+name, fmt.Sprintf(`"ai_provider_id":%q,"key":"sk-odd","configurations":{"custom_host":"%s/v1"}`, name, host.URL))
	}
	const message = `"max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`
	clients := []struct{ path, tools, done, text, call string }{
		{"/chat/completions", `"tools":[{"type":"function","function":{"name":"f"}}],`, "data: [DONE]\n\n", `"content":"`, `{\"a\":1}`},
		{"/messages", `"tools":[{"name":"f","input_schema":{"type":"object"}}],`, "event: message_stop\n", `"text":"`, `"name":"f"`},
	}
	calls := 0
	for name := range wholeAnswers {
		for _, client := range clients {
			for _, stream := range []bool{false, true} {
				send := func() reply {
					calls++
					return r.call("POST", client.path, fmt.Sprintf(`{"model":"@odd-%s/m","stream":%t,%s%s`, name, stream, client.tools, message))
				}
				where := fmt.Sprintf("%s to %s, stream %t", client.path, name, stream)
				got := send()
				text := strings.ReplaceAll(got.body, `\u00fc`, "ü")
				text = strings.ReplaceAll(text, `\u00df`, "ß")
				if got.status != 200 || !strings.Contains(text, client.text+"Grüße") || !strings.Contains(strings.ReplaceAll(text, " ", ""), client.call) {
					t.Errorf("%s: %d %s", where, got.status, got.body)
				}
				if stream != strings.HasSuffix(got.body, "\n\n") || stream != strings.Contains(got.body, client.done) || stream == strings.HasPrefix(got.body, "{") {
					t.Errorf("%s: not in the client's way: %s", where, got.body)
				}
				if kind := got.header.Get("Content-Type"); stream != strings.HasPrefix(kind, "text/event-stream") {
					t.Errorf("%s: it says it is %s", where, kind)
				}
				cut = true
				if got := send(); got.status != 502 {
					t.Errorf("%s: a part of an answer is %d %s", where, got.status, got.body)
				}
				cut = false
			}
		}
	}
	exact := 0
	for _, rec := range r.records(calls) {
		u := &rec.Usage
		if u.Estimated || !u.IsReported() { // only a part of it came
			if made := u.OutputTokens(); made > 9 {
				t.Errorf("a part of an answer of 9 tokens is booked with %d", made)
			}
			continue
		}
		exact++
		if u.N(pricing.Input) != 12 || u.N(pricing.CacheRead) != 8 || u.N(pricing.Output) != 9 {
			t.Errorf("the books have %+v", u)
		}
	}
	if exact != calls/2 {
		t.Errorf("%d of %d answers are booked by their usage", exact, calls)
	}
}
