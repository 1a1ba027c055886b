package cohere_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// carriedToCohere says where a field of an OpenAI request is in a request to Cohere.
var carriedToCohere = map[string][]string{
	"model": {"model"}, "messages": {"messages"}, "max_tokens": {"max_tokens"}, "max_completion_tokens": {"max_tokens"},
	"temperature": {"temperature"}, "top_p": {"p"}, "top_k": {"k"}, "stop": {"stop_sequences"}, "stream": {"stream"}, "seed": {"seed"},
	"frequency_penalty": {"frequency_penalty"}, "presence_penalty": {"presence_penalty"}, "tools": {"tools"}, "functions": {"tools"},
	"tool_choice": {"tool_choice"}, "function_call": {"tool_choice"}, "response_format": {"response_format"}, "thinking": {"thinking"},
	"reasoning_effort": {"thinking"}, "documents": {"documents"}, "citation_options": {"citation_options"}, "safety_mode": {"safety_mode"},
	"strict_tools": {"strict_tools"}, "priority": {"priority"}, "k": {"k"}, "p": {"p"}, "logprobs": {"logprobs"},
}

// silentOnCohere are fields that may be omitted without a word.
func silentOnCohere(name string, r *chat.Request) bool {
	g := r.Reasoning
	switch name {
	case "tool_choice", "function_call":
		return len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsAuto || r.ToolChoice.Mode == chat.ToolsNone
	case "reasoning_effort":
		return g.Effort == "" || !g.On() && g.Thinking == chat.ThinkingUnset
	case "thinking":
		return g.Thinking == chat.ThinkingOff
	case "top_logprobs":
		return r.TopLogprobs.Value == 0
	case "documents":
		return true // an empty list is omitted
	}
	return golden.SilentInChat(name, r)
}

// FuzzRequest sends a chat to Cohere: no panic, strict JSON, no field vanishes
// unreported, and what was written reads back and writes the same.
func FuzzRequest(f *testing.F) {
	golden.Seeds(f, "openai-cohere", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, openai.Chat{}, body)
		if r == nil {
			return
		}
		for _, traits := range []chat.Traits{{}, {Thinking: chat.ThinksNever, Limits: chat.Limits{NoImages: true}, ClampTemperature: true}} {
			up := golden.EncodeFor(t, body, r, cohere.Chat{}, &traits, carriedToCohere, silentOnCohere, nil)
			if up == nil {
				continue
			}
			if !golden.Admitted(t, cohere.Chat{}, up) {
				t.Fatalf("its own check refuses\n%s", up)
			}
			again, err := cohere.Chat{}.DecodeRequest(up)
			if golden.NotFault(t, err) {
				continue // fields that are forwarded unchanged may be of any kind
			}
			_, err = openai.Chat{}.EncodeRequest(nil, again, &chat.Traits{}, &chat.Loss{})
			golden.NotFault(t, err)
		}
	})
}

// FuzzOwnRequest reads any bytes as a request of this dialect.
func FuzzOwnRequest(f *testing.F) {
	golden.Seeds(f, "openai-cohere", "upstream_request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, cohere.Chat{}, body)
		if r == nil {
			return
		}
		up, err := cohere.Chat{}.EncodeRequest(nil, r, &chat.Traits{}, &chat.Loss{})
		if !golden.NotFault(t, err) && !json.Valid(up) {
			t.Fatalf("not JSON: %q", up)
		}
	})
}

// FuzzResponse reads any bytes as a response and as an error, and writes what it
// read in both shapes.
func FuzzResponse(f *testing.F) {
	golden.Seeds(f, "*-cohere", "upstream_response.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		d := cohere.Chat{}
		r := golden.ReadAnswer(t, d, body, &chat.Traits{})
		if r == nil {
			return
		}
		o := &chat.Options{ID: "i", Model: "m"}
		own := d.EncodeResponse(nil, r, o)
		if !json.Valid(own) || !json.Valid(openai.Chat{}.EncodeResponse(nil, r, o)) {
			t.Fatalf("not JSON: %q", own)
		}
		again, err := d.DecodeResponse(own, &chat.Traits{})
		if err != nil {
			t.Fatalf("%v\n%s", err, own)
		}
		if got, want := again.Choices[0].Text(), r.Choices[0].Text(); got != want {
			t.Fatalf("text %q became %q", want, got)
		}
	})
}

// FuzzStream reads any bytes as a stream; what comes out is well formed in both shapes,
// and the filter forwards whole events only.
func FuzzStream(f *testing.F) {
	golden.Seeds(f, "*-cohere", "upstream_response.sse")
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, to := range []chat.TwoWayDialect{openai.Chat{}, cohere.Chat{}} {
			golden.WellFormed(t, to, ofCohere(in, to))
		}
		filter := cohere.Chat{}.NewStreamFilter(&chat.FilterOptions{})
		got, err := filter.Feed(append([]byte(nil), in...))
		if err != nil {
			return
		}
		if !strings.HasPrefix(string(in), string(got)) {
			t.Fatalf("changed: %q", got)
		}
		filter.End()
		filter.Meter()
	})
}

// ofCohere is a stream of Cohere as a client gets it.
func ofCohere(in []byte, client chat.TwoWayDialect) []byte {
	o := &chat.Options{ID: "i", Model: "m"}
	out, _ := golden.Reencode(cohere.Chat{}.NewStreamDecoder(&chat.Traits{}), client, o, new(wire.SSEParser), in)
	return out
}

// TestStreamPreservesItsText sends streams through the dialect's own encoder and
// reads them again: text and calls are the same.
func TestStreamPreservesItsText(t *testing.T) {
	for _, name := range []string{"stream-text", "stream-tools", "stream-thinking", "stream-tools-interleaved"} {
		in := golden.File(t, "openai-cohere/"+name, "upstream_response.sse")
		own := ofCohere(in, cohere.Chat{})
		first, again := ofCohere(in, openai.Chat{}), ofCohere(own, openai.Chat{})
		if streamText(t, first) != streamText(t, again) {
			t.Errorf("%s:\n%s\n%s", name, streamText(t, first), streamText(t, again))
		}
	}
}

// streamText joins what an OpenAI stream says.
func streamText(t *testing.T, stream []byte) string {
	t.Helper()
	text, calls, finish := "", map[int]string{}, ""
	for _, e := range golden.Events(t, stream) {
		if e.Data == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
			t.Fatal(err)
		}
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				calls[call.Index] += call.ID + call.Function.Name + call.Function.Arguments
			}
		}
	}
	if finish == "" {
		t.Fatalf("no end: %s", stream)
	}
	out, _ := json.Marshal([]any{text, calls, finish})
	return string(out)
}
