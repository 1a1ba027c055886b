package anthropic_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// carried says where a field of an OpenAI request is in an Anthropic request;
// several places are alternatives. Members that are not here must be reported.
var carried = map[string][]string{
	"model": {"model"}, "messages": {"messages", "system"}, "max_tokens": {"max_tokens"}, "max_completion_tokens": {"max_tokens"},
	"temperature": {"temperature"}, "top_p": {"top_p"}, "top_k": {"top_k"}, "stop": {"stop_sequences"}, "stream": {"stream"},
	"user": {"metadata"}, "tools": {"tools"}, "functions": {"tools"}, "service_tier": {"service_tier"}, "thinking": {"thinking"},
	"reasoning_effort": {"thinking", "output_config"}, "response_format": {"output_config", "tools", "system"},
	"tool_choice": {"tool_choice"}, "function_call": {"tool_choice"}, "parallel_tool_calls": {"tool_choice"},
}

// FuzzRequest decodes a chat request and encodes it for the other dialect: no
// panic, only faults below 500, strict JSON, and no field vanishes unreported.
func FuzzRequest(f *testing.F) {
	golden.Seeds(f, "openai-anthropic", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, openai.Chat{}, body)
		if r == nil {
			return
		}
		for _, traits := range []chat.Traits{{}, {Schema: chat.SchemaNative, Thinking: chat.ThinksAdaptively, Sampling: chat.SamplingNone}} {
			up := golden.EncodeFor(t, body, r, anthropic.Messages{}, &traits, carried, golden.SilentInChat, nil)
			if up == nil {
				continue
			}
			// What was written can be read again, and written the same way.
			again, err := anthropic.Messages{}.DecodeRequest(up)
			if err != nil {
				t.Fatalf("%v\n%s", err, up)
			}
			if _, err := (openai.Chat{}).EncodeRequest(nil, again, &chat.Traits{}, &chat.Loss{}); fault.From(err) != nil && fault.From(err).Status() >= 500 {
				t.Fatal(err)
			}
		}
	})
}

// FuzzMessagesRequest is FuzzRequest the other way.
func FuzzMessagesRequest(f *testing.F) {
	golden.Seeds(f, "anthropic-openai", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, anthropic.Messages{}, body)
		if r == nil {
			return
		}
		var loss chat.Loss
		up, err := openai.Chat{}.EncodeRequest(nil, r, &chat.Traits{}, &loss)
		if golden.NotFault(t, err) {
			return
		}
		golden.RequireNoLoss(t, body, up, &loss, carriedBack, func(name string) bool { return golden.SilentInMessages(name, r) })
	})
}

// carriedBack says where a field of a messages request is in a chat request.
var carriedBack = map[string][]string{
	"model": {"model"}, "messages": {"messages"}, "system": {"messages"}, "max_tokens": {"max_completion_tokens", "max_tokens"},
	"stop_sequences": {"stop"}, "stream": {"stream"}, "temperature": {"temperature"}, "top_p": {"top_p"}, "tools": {"tools"},
	"tool_choice": {"tool_choice", "parallel_tool_calls"}, "metadata": {"user"}, "service_tier": {"service_tier"},
	"output_config": {"response_format", "reasoning_effort"},
}

// FuzzCompletionRequest: text completions in, messages out.
func FuzzCompletionRequest(f *testing.F) {
	golden.Seeds(f, "completions-*", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, openai.Completions{}, body)
		if r == nil {
			return
		}
		up, err := anthropic.Messages{}.EncodeRequest(nil, r, &chat.Traits{}, &chat.Loss{})
		if !golden.NotFault(t, err) && !json.Valid(up) {
			t.Fatalf("not JSON: %q", up)
		}
	})
}

// FuzzResponse reads any bytes as a response of both dialects and writes it in
// the other.
func FuzzResponse(f *testing.F) {
	golden.Seeds(f, "*", "upstream_response.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		o := &chat.Options{ID: "i", Model: "m"}
		for from, to := range map[chat.TwoWayDialect]chat.TwoWayDialect{openai.Chat{}: anthropic.Messages{}, anthropic.Messages{}: openai.Chat{}} {
			r := golden.ReadAnswer(t, from, body, &chat.Traits{})
			if r == nil {
				continue
			}
			if out := to.EncodeResponse(nil, r, o); !json.Valid(out) {
				t.Fatalf("not JSON: %q", out)
			}
		}
	})
}

// FuzzStream reads any bytes as a stream of both dialects; what comes out is
// well formed whatever went in.
func FuzzStream(f *testing.F) {
	golden.Seeds(f, "*", "upstream_response.sse")
	f.Fuzz(func(t *testing.T, in []byte) {
		for from, to := range map[chat.TwoWayDialect]chat.TwoWayDialect{openai.Chat{}: anthropic.Messages{}, anthropic.Messages{}: openai.Chat{}} {
			out, _ := golden.Reencode(from.NewStreamDecoder(&chat.Traits{}), to, &chat.Options{ID: "i", Model: "m"}, new(wire.SSEParser), in)
			golden.WellFormed(t, to, out)
		}
	})
}

// FuzzFilter: the size of the pieces does not matter, and a stream without
// injected usage comes out as it went in, up to its end or an error.
func FuzzFilter(f *testing.F) {
	for _, path := range golden.Cases("*") {
		if raw := golden.Read(path)["upstream_response.sse"]; raw != nil {
			f.Add(raw, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		for _, d := range []chat.TwoWayDialect{openai.Chat{}, anthropic.Messages{}} {
			for _, o := range []chat.FilterOptions{{}, {UsageAdded: true}, {UsageAdded: true, IncludeUsage: true, Strict: true}} {
				whole, m := golden.FilterInPieces(t, d, o, in, int(size)%37+1)
				if o == (chat.FilterOptions{}) && m.Err == nil && m.Complete && !bytes.HasPrefix(whole, in[:min(len(in), len(bytes.TrimRight(whole, "\r\n")))]) && !bytes.HasSuffix(whole, []byte("data: [DONE]\n\n")) {
					t.Fatalf("changed:\n%q\n%q", in, whole)
				}
			}
		}
	})
}
