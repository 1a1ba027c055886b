package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// carriedFromResponses says where a field of a responses request is in a chat
// request and in a messages request.
var carriedFromResponses = map[string][]string{
	"model": {"model"}, "input": {"messages", "system"}, "instructions": {"messages", "system"}, "max_output_tokens": {"max_completion_tokens", "max_tokens"},
	"temperature": {"temperature"}, "top_p": {"top_p"}, "top_logprobs": {"top_logprobs"}, "stream": {"stream"}, "user": {"user", "metadata"},
	"service_tier": {"service_tier"}, "parallel_tool_calls": {"parallel_tool_calls", "tool_choice"}, "tools": {"tools"}, "tool_choice": {"tool_choice"},
	"text": {"response_format", "verbosity", "output_config", "tools", "system"}, "reasoning": {"reasoning_effort", "thinking", "output_config"}, "thinking": {"thinking"},
	"include": {"logprobs"}, "prompt_cache_key": {"prompt_cache_key"}, "safety_identifier": {"safety_identifier"}, "prompt_cache_retention": {"prompt_cache_retention"},
	"verbosity": {"verbosity"}, "modalities": {"modalities"}, "audio": {"audio"}, "prediction": {"prediction"}, "web_search_options": {"web_search_options"},
}

// silentInResponses are fields that may be omitted without a word.
func silentInResponses(name string, raw json.RawMessage, r *chat.Request) bool {
	switch name {
	case "stream":
		return !r.Stream
	case "store", "background":
		return string(raw) == "false"
	case "truncation":
		return string(raw) == `"disabled"`
	case "user":
		return r.User == ""
	case "service_tier":
		return r.ServiceTier == ""
	case "tools":
		return len(r.Tools) == 0
	case "tool_choice", "parallel_tool_calls":
		return name == "parallel_tool_calls" && r.Parallel.Value || onlyForeign(r) || r.ToolChoice.Mode == chat.ToolsUnset || name == "parallel_tool_calls" && r.ToolChoice.Mode == chat.ToolsNone
	case "top_logprobs":
		return string(raw) == "0"
	case "include":
		return !strings.Contains(strings.ReplaceAll(string(raw), `"reasoning.encrypted_content"`, ""), `"`)
	case "stream_options":
		return true // its fields are reported one by one; false is no loss
	case "text":
		return r.Format.Kind == chat.FormatText
	case "reasoning":
		return !r.Reasoning.On() || r.Reasoning.Thinking == chat.ThinkingOff
	case "thinking":
		return r.Reasoning.Thinking < chat.ThinkingBudget
	}
	return false
}

func onlyForeign(r *chat.Request) bool {
	for i := range r.Tools {
		if r.Tools[i].ForeignType == "" {
			return false
		}
	}
	return true
}

// FuzzRequest decodes a responses request and encodes it for the other
// dialects: no panic, only faults below 500, strict JSON, and no field vanishes
// unreported.
func FuzzRequest(f *testing.F) {
	golden.Seeds(f, "responses-*", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, responses.Responses{}, body)
		if r == nil {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil {
			return
		}
		for _, provider := range []chat.TwoWayDialect{openai.Chat{}, anthropic.Messages{}} {
			var loss chat.Loss
			up, err := chat.Translate(nil, responses.Responses{}, provider, r, &chat.Traits{}, &loss)
			if golden.NotFault(t, err) {
				continue
			}
			if err := wire.CheckStrict(up, wire.MaxDepth+8); err != nil && !strings.Contains(err.Error(), "twice") {
				t.Fatalf("%v: %s", err, up)
			}
			golden.RequireNoLoss(t, body, up, &loss, carriedFromResponses, func(name string) bool { return silentInResponses(name, members[name], r) })
			o := &chat.Options{Request: r, ID: "i", Model: "m"}
			if out := (responses.Responses{}).EncodeResponse(nil, &chat.Response{}, o); !json.Valid(out) {
				t.Fatalf("not JSON: %s", out)
			}
			enc := responses.Responses{}.NewStreamEncoder(o)
			for _, e := range golden.Events(t, enc.Finish(nil)) {
				if !json.Valid([]byte(e.Data)) {
					t.Fatalf("not JSON: %q", e.Data)
				}
			}
		}
	})
}

// carriedToResponses says where a field of a chat or messages request is in a
// responses request.
var carriedToResponses = map[string][]string{
	"model": {"model"}, "messages": {"input"}, "system": {"input"}, "max_tokens": {"max_output_tokens"}, "max_completion_tokens": {"max_output_tokens"},
	"temperature": {"temperature"}, "top_p": {"top_p"}, "stream": {"stream"}, "user": {"user"}, "metadata": {"user", "metadata"}, "tools": {"tools"}, "functions": {"tools"},
	"service_tier": {"service_tier"}, "thinking": {"reasoning"}, "reasoning_effort": {"reasoning"}, "response_format": {"text"}, "verbosity": {"text"},
	"output_config": {"text", "reasoning"}, "tool_choice": {"tool_choice", "parallel_tool_calls"}, "function_call": {"tool_choice"}, "parallel_tool_calls": {"parallel_tool_calls"},
	"logprobs": {"include"}, "top_logprobs": {"top_logprobs"}, "store": {"store"}, "prompt_cache_key": {"prompt_cache_key"}, "prompt_cache_retention": {"prompt_cache_retention"},
	"safety_identifier": {"safety_identifier"},
}

// FuzzRequestOfOthers: chats and messages in, responses out.
func FuzzRequestOfOthers(f *testing.F) {
	golden.Seeds(f, "*-responses", "request.json")
	golden.Seeds(f, "*-openai", "request.json")
	golden.Seeds(f, "openai-*", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, client := range []chat.TwoWayDialect{openai.Chat{}, anthropic.Messages{}} {
			r := golden.Decoded(t, client, body)
			if r == nil {
				continue
			}
			var loss chat.Loss
			up, err := chat.Translate(nil, client, responses.Responses{}, r, &chat.Traits{}, &loss)
			if golden.NotFault(t, err) {
				continue
			}
			golden.RequireNoLoss(t, body, up, &loss, carriedToResponses, func(name string) bool {
				if client.Name() == "openai.chat" {
					return name == "logprobs" && !r.Logprobs.Value || name == "thinking" && r.Reasoning.Thinking < chat.ThinkingBudget || name == "response_format" && !r.Format.Set ||
						name != "response_format" && name != "parallel_tool_calls" && golden.SilentInChat(name, r) || name == "parallel_tool_calls" && onlyForeign(r)
				}
				return golden.SilentInMessages(name, r) || name == "tool_choice" && onlyForeign(r)
			})
			if _, err := (responses.Responses{}).DecodeRequest(up); err != nil {
				t.Fatalf("%v\n%s", err, up)
			}
		}
	})
}

// FuzzAnswer reads any bytes as a response of this dialect, whole and as
// a stream, and writes it for the other clients; and writes any response of the
// other providers for a client of this dialect.
func FuzzAnswer(f *testing.F) {
	golden.Seeds(f, "*", "upstream_response.json")
	golden.Seeds(f, "*", "upstream_response.sse")
	own := responses.Responses{}
	pairs := [][2]chat.TwoWayDialect{{own, openai.Chat{}}, {own, anthropic.Messages{}}, {openai.Chat{}, own}, {anthropic.Messages{}, own}}
	f.Fuzz(func(t *testing.T, body []byte) {
		own.MeterResponse(body)
		if f := own.DecodeError(500, nil, body); f == nil || f.Source != fault.SourceProvider {
			t.Fatal("an error that is not the provider's")
		}
		for _, pair := range pairs {
			from, to := pair[0], pair[1]
			o := &chat.Options{ID: "i", Model: "m", Origin: from.Name()}
			if r, err := from.DecodeResponse(body, &chat.Traits{}); err == nil {
				if out := to.EncodeResponse(nil, r, o); !json.Valid(out) {
					t.Fatalf("not JSON: %q", out)
				}
			} else if f := fault.From(err); f.Source != fault.SourceProvider {
				t.Fatalf("%v", f)
			}
			out, m, _ := golden.Stream(t, to, from, &chat.Traits{}, o, body, len(body)+1)
			for _, e := range golden.Events(t, out) {
				if e.Data != "[DONE]" && !json.Valid([]byte(e.Data)) {
					t.Fatalf("not JSON: %q", e.Data)
				}
			}
			if to == chat.TwoWayDialect(own) && m.Complete && !strings.Contains(string(body), `"tool`) {
				golden.CheckResponses(t, out)
			}
		}
		golden.FilterInPieces(t, own, chat.FilterOptions{}, body, 7)
	})
}
