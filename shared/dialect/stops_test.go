package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"gateway/shared/chat"
)

// ending is what a stop reason means, whatever a provider calls it.
type ending string

// endings are what clients read for each; Responses clients read a status and
// the reason of an incomplete response.
var endings = map[ending]map[string]string{
	"stop":     {"openai": `"finish_reason":"stop"`, "completions": `"finish_reason":"stop"`, "anthropic": `"stop_reason":"end_turn"`, "responses": `"status":"completed"`},
	"sequence": {"openai": `"finish_reason":"stop"`, "completions": `"finish_reason":"stop"`, "anthropic": `"stop_reason":"stop_sequence"`, "responses": `"status":"completed"`},
	"length":   {"openai": `"finish_reason":"length"`, "completions": `"finish_reason":"length"`, "anthropic": `"stop_reason":"max_tokens"`, "responses": `"reason":"max_output_tokens"`},
	"context":  {"openai": `"finish_reason":"length"`, "completions": `"finish_reason":"length"`, "anthropic": `"stop_reason":"model_context_window_exceeded"`, "responses": `"reason":"max_output_tokens"`},
	"filter":   {"openai": `"finish_reason":"content_filter"`, "completions": `"finish_reason":"content_filter"`, "anthropic": `"stop_reason":"refusal"`, "responses": `"reason":"content_filter"`},
	"pause":    {"openai": `"finish_reason":"stop"`, "completions": `"finish_reason":"stop"`, "anthropic": `"stop_reason":"pause_turn"`, "responses": `"reason":"pause_turn"`},
	"calls":    {"openai": `"finish_reason":"tool_calls"`, "anthropic": `"stop_reason":"tool_use"`, "responses": `"status":"completed"`},
	"failure":  {"openai": "", "completions": "", "anthropic": "", "responses": ""},
}

// stops are all stop reasons of all providers that are known by name, and one that is
// unknown.
var stops = map[string]map[string]ending{
	"anthropic": {
		"end_turn": "stop", "stop_sequence": "sequence", "max_tokens": "length", "model_context_window_exceeded": "context",
		"tool_use": "calls", "refusal": "filter", "pause_turn": "pause", "of_tomorrow": "stop",
	},
	"gemini": {
		"STOP": "stop", "MAX_TOKENS": "length",
		"SAFETY": "filter", "RECITATION": "filter", "BLOCKLIST": "filter", "PROHIBITED_CONTENT": "filter", "SPII": "filter",
		"LANGUAGE": "filter", "IMAGE_SAFETY": "filter", "IMAGE_PROHIBITED_CONTENT": "filter", "IMAGE_RECITATION": "filter", "MODEL_ARMOR": "filter",
		"NO_IMAGE": "stop", "IMAGE_OTHER": "stop", "OTHER": "stop", "OF_TOMORROW": "stop",
		"MALFORMED_FUNCTION_CALL": "failure", "UNEXPECTED_TOOL_CALL": "failure", "TOO_MANY_TOOL_CALLS": "failure", "MISSING_THOUGHT_SIGNATURE": "failure",
	},
	"converse": {
		"end_turn": "stop", "stop_sequence": "sequence", "max_tokens": "length", "model_context_window_exceeded": "context", "tool_use": "calls",
		"guardrail_intervened": "filter", "content_filtered": "filter", "malformed_model_output": "failure", "malformed_tool_use": "failure", "of_tomorrow": "stop",
	},
	"cohere": {
		"COMPLETE": "stop", "STOP_SEQUENCE": "sequence", "MAX_TOKENS": "length", "TOOL_CALL": "calls", "ERROR": "failure", "TIMEOUT": "failure",
		"ERROR_TOXIC": "filter", "OF_TOMORROW": "stop",
	},
	"openai": {
		"stop": "stop", "length": "length", "tool_calls": "calls", "content_filter": "filter", "of_tomorrow": "stop",
		"sensitive": "filter", "network_error": "failure", "model_context_window_exceeded": "length", "insufficient_system_resource": "failure",
		"error": "failure", "abort": "failure", "eos": "stop", "end_turn": "stop", "tool_use": "calls", "model_length": "length", "refusal": "filter",
	},
}

// TestStopReasons compares each stop reason of each provider with what each client must
// read, whole and streamed: something that is not a success never looks like one.
func TestStopReasons(t *testing.T) {
	for provider, words := range stops {
		for word, end := range words {
			for client, want := range endings[end] {
				if client == provider {
					continue // forwarded as it is
				}
				t.Run(client+"-"+provider+"/"+word, func(t *testing.T) {
					s := &script{text: "Hi", stop: word}
					if end == "calls" {
						s.calls = []string{`{"a":1}`}
					}
					for _, strict := range []bool{true, false} {
						o := &chat.Options{Strict: strict, ID: "gw-1", Model: "m", Created: 1}
						whole, streamed := play(t, client, provider, s, 0, chat.Traits{}, o)
						checkEnding(t, "whole", whole, want)
						checkEnding(t, "streamed", streamed, want)
						if !strict && client == "openai" && end == "stop" && strings.Contains(strings.ToLower(word), "other") {
							for _, a := range []answered{whole, streamed} {
								if !bytes.Contains(a.plain, []byte(`"native_finish_reason":"`+word+`"`)) {
									t.Errorf("the provider's own word is lost: %s", a.plain)
								}
							}
						}
					}
				})
			}
		}
	}
}

// checkEnding wants one way of ending in a response, and no other.
func checkEnding(t *testing.T, how string, a answered, want string) {
	t.Helper()
	if want == "" {
		if a.failed == nil || a.failed.Status() < 500 {
			t.Errorf("%s: not a failure of the provider but %v: %s", how, a.failed, a.plain)
		}
		for _, bad := range []string{`"finish_reason":"`, `"stop_reason":"`, `"status":"completed"`, "[DONE]", "message_stop"} {
			if bytes.Contains(a.plain, []byte(bad)) && !(bad == `"status":"completed"` && bytes.Contains(a.plain, []byte(`"status":"failed"`))) {
				t.Errorf("%s: a failure reads as a success (%s): %s", how, bad, a.plain)
			}
		}
		return
	}
	if a.failed != nil {
		t.Errorf("%s: %v", how, a.failed)
	}
	if !bytes.Contains(a.plain, []byte(want)) {
		t.Errorf("%s: no %s in %s", how, want, a.plain)
	}
	if strings.Contains(want, `"reason"`) && !bytes.Contains(a.plain, []byte(`"status":"incomplete"`)) {
		t.Errorf("%s: not incomplete: %s", how, a.plain)
	}
}
