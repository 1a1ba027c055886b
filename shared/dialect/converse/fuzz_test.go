package converse_test

import (
	"encoding/json"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// carriedByConverse says where a field of a chat request is in one of Converse;
// several places are alternatives. Members that are not here must be reported.
var carriedByConverse = map[string][]string{
	"messages": {"messages", "system"}, "max_tokens": {"inferenceConfig"}, "max_completion_tokens": {"inferenceConfig"},
	"temperature": {"inferenceConfig"}, "top_p": {"inferenceConfig"}, "stop": {"inferenceConfig"}, "top_k": {"additionalModelRequestFields"},
	"frequency_penalty": {"additionalModelRequestFields"}, "presence_penalty": {"additionalModelRequestFields"}, "seed": {"additionalModelRequestFields"},
	"logit_bias": {"additionalModelRequestFields"}, "user": {"additionalModelRequestFields"}, "thinking": {"additionalModelRequestFields"},
	"reasoning_effort": {"additionalModelRequestFields"}, "anthropic_beta": {"additionalModelRequestFields"}, "anthropic_version": {"additionalModelRequestFields"},
	"tools": {"toolConfig", "additionalModelRequestFields"}, "functions": {"toolConfig"}, "tool_choice": {"toolConfig", "additionalModelRequestFields"},
	"function_call": {"toolConfig"}, "parallel_tool_calls": {"additionalModelRequestFields"}, "service_tier": {"serviceTier"},
	"response_format": {"outputConfig", "toolConfig", "system"}, "guardrailConfig": {"guardrailConfig"}, "guardrail_config": {"guardrailConfig"},
	"performanceConfig": {"performanceConfig"}, "performance_config": {"performanceConfig"}, "requestMetadata": {"requestMetadata"}, "metadata": {"requestMetadata"},
	"additionalModelRequestFields": {"additionalModelRequestFields"}, "additional_model_request_fields": {"additionalModelRequestFields"},
	"additionalModelResponseFieldPaths": {"additionalModelResponseFieldPaths"}, "additional_model_response_field_paths": {"additionalModelResponseFieldPaths"},
}

// silentOnConverse are fields that may be omitted without a word.
func silentOnConverse(name string, r *chat.Request) bool {
	switch name {
	case "model", "stream": // they are in the address
		return true
	case "additionalModelRequestFields", "additional_model_request_fields", "anthropic_beta":
		return true // may hold nothing
	case "reasoning_effort":
		// minimal is little thinking here, not none.
		return r.Reasoning.Effort == "" || r.Reasoning.Effort == "none" || r.Reasoning.Thinking != chat.ThinkingUnset
	case "tool_choice", "function_call":
		return r.ToolChoice.Mode == chat.ToolsNone || golden.SilentInChat(name, r) // no tool is offered then
	case "thinking":
		return r.Reasoning.Thinking < chat.ThinkingBudget
	}
	return golden.SilentInChat(name, r)
}

// FuzzRequest decodes a chat request and encodes it for Converse, for
// models of several makers: no panic, only faults below 500, JSON, no field
// vanishes unreported, and what was written can be read and written again.
func FuzzRequest(f *testing.F) {
	golden.Seeds(f, "openai-converse", "request.json")
	golden.Seeds(f, "openai-anthropic", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, openai.Chat{}, body)
		if r == nil {
			return
		}
		for _, traits := range []chat.Traits{
			{Family: "anthropic", Schema: chat.SchemaNative}, {Family: "anthropic", Thinking: chat.ThinksAdaptively, Sampling: chat.SamplingNone},
			{Family: "amazon", Thinking: chat.ThinksAdaptively}, {Family: "cohere", Thinking: chat.ThinksNever, NoCacheControl: true, NoStrictTools: true}, {Thinking: chat.ThinksNever, Schema: chat.SchemaNone},
		} {
			up := golden.EncodeFor(t, body, r, converse.Converse{}, &traits, carriedByConverse, silentOnConverse, nil)
			if up == nil {
				continue
			}
			turnsAlternate(t, up)
			again, err := converse.Converse{}.DecodeRequest(up)
			if err != nil {
				t.Fatalf("%v\n%s", err, up)
			}
			if _, err := (anthropic.Messages{}).EncodeRequest(nil, again, &chat.Traits{}, &chat.Loss{}); err != nil && fault.From(err).Status() >= 500 {
				t.Fatal(err)
			}
		}
	})
}

// turnsAlternate wants what the provider wants of a conversation.
func turnsAlternate(t *testing.T, up []byte) {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string
			Content []map[string]json.RawMessage
		}
		ToolConfig json.RawMessage
	}
	if err := json.Unmarshal(up, &body); err != nil {
		t.Fatalf("%v\n%s", err, up)
	}
	for i, m := range body.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
			t.Fatalf("message %d is of %s with %d blocks\n%s", i, m.Role, len(m.Content), up)
		}
		for _, b := range m.Content {
			if len(b) != 1 || (b["toolUse"] != nil || b["toolResult"] != nil) && body.ToolConfig == nil {
				t.Fatalf("a bad block in message %d\n%s", i, up)
			}
		}
	}
}

// FuzzStream reads any bytes as events of a stream; what comes out is
// well formed whatever went in, in both clients' shapes and in its own.
func FuzzStream(f *testing.F) {
	golden.Seeds(f, "*-converse", "upstream_response.sse")
	f.Fuzz(func(t *testing.T, in []byte) {
		o := &chat.Options{ID: "i", Model: "m"}
		own, _ := golden.Reencode(converse.Converse{}.NewStreamDecoder(&chat.Traits{Family: "anthropic"}), converse.Converse{}, o, new(wire.SSEParser), in)
		var names int
		parser := new(wire.EventStreamParser)
		if err := parser.Feed(own, func(_ string, data []byte) error {
			names++
			if !json.Valid(data) {
				t.Fatalf("not JSON: %q", data)
			}
			return nil
		}); err != nil || names == 0 {
			t.Fatalf("%v: %q", err, own)
		}
		for _, client := range []chat.Client{openai.Chat{}, anthropic.Messages{}} {
			out, _ := golden.Reencode(converse.Converse{}.NewStreamDecoder(&chat.Traits{}), client, o, new(wire.SSEParser), in)
			golden.WellFormed(t, client, out)
		}
		// Bytes as they come on the wire.
		dec := converse.Converse{}.NewStreamDecoder(&chat.Traits{})
		golden.Reencode(dec, openai.Chat{}, o, dec.(chat.Framed).Parser(), in)
	})
}

// FuzzResponse reads any bytes as a response, and as an error.
func FuzzResponse(f *testing.F) {
	golden.Seeds(f, "*-converse", "upstream_response.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		d := converse.Converse{}
		traits := &chat.Traits{Family: "anthropic"}
		r := golden.ReadAnswer(t, d, body, traits)
		if r == nil {
			return
		}
		o := &chat.Options{ID: "i", Model: "m"}
		for _, client := range []chat.ResponseWriter{openai.Chat{}, anthropic.Messages{}, d} {
			if out := client.EncodeResponse(nil, r, o); !json.Valid(out) {
				t.Fatalf("not JSON: %q", out)
			}
		}
		// Its own shape holds what was read.
		again, err := d.DecodeResponse(d.EncodeResponse(nil, r, o), traits)
		if err == nil && again.Choices[0].Text() != r.Choices[0].Text() && len(r.Choices[0].Parts) > 0 && r.Choices[0].Parts[len(r.Choices[0].Parts)-1].Kind != chat.Refusal {
			t.Fatalf("%q became %q", r.Choices[0].Text(), again.Choices[0].Text())
		}
	})
}
