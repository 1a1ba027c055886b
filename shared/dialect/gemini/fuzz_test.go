package gemini_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// toGemini says where a field of an OpenAI request is in a Gemini request;
// fields that are not here must be reported. model is in the address, stream in
// the method.
var toGemini = map[string][]string{
	"messages": {"contents", "systemInstruction"}, "tools": {"tools"}, "functions": {"tools"}, "tool_choice": {"toolConfig"}, "function_call": {"toolConfig"},
	"service_tier": {"serviceTier"}, "safety_settings": {"safetySettings"}, "safetySettings": {"safetySettings"}, "cached_content": {"cachedContent"}, "cachedContent": {"cachedContent"},
	"labels": {"labels"}, "store": {"store"},
}

// inConfig says where a field is in generationConfig.
var inConfig = map[string]string{
	"temperature": "temperature", "top_p": "topP", "top_k": "topK", "n": "candidateCount", "max_tokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
	"stop": "stopSequences", "presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "seed": "seed", "logprobs": "responseLogprobs", "top_logprobs": "logprobs",
	"response_format": "responseMimeType", "thinking": "thinkingConfig", "reasoning_effort": "thinkingConfig", "modalities": "responseModalities",
	"image_config": "imageConfig", "imageConfig": "imageConfig", "speech_config": "speechConfig", "speechConfig": "speechConfig", "media_resolution": "mediaResolution", "mediaResolution": "mediaResolution",
}

// quiet are fields that may be omitted without a word.
func quiet(name string, r *chat.Request) bool {
	switch name {
	case "model", "stream", "stream_options", "max_tokens", "max_completion_tokens":
		return name == "model" || name == "stream" || name == "stream_options" || r.MaxTokensField != name
	case "n":
		return r.N.Value <= 1
	case "stop":
		return len(r.Stop) == 0
	case "user":
		return r.User == ""
	case "service_tier":
		return r.ServiceTier == "" || r.ServiceTier == "auto"
	case "logprobs":
		return !r.Logprobs.Value
	case "top_logprobs":
		return r.TopLogprobs.Value == 0
	case "parallel_tool_calls":
		return r.Parallel.Value || len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsNone
	case "tool_choice", "function_call":
		return len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsNone
	case "tools", "functions":
		return len(r.Tools) == 0
	case "response_format":
		return r.Format.Kind == chat.FormatText
	case "reasoning_effort", "thinking":
		return !r.Reasoning.On()
	}
	return false
}

// FuzzRequest decodes a chat request and encodes it for every generation
// of Gemini: no panic, only faults below 500, strict JSON, no field vanishes
// unreported, and what was written can be read again.
func FuzzRequest(f *testing.F) {
	golden.Seeds(f, "openai-gemini", "request.json")
	golden.Seeds(f, "openai-anthropic", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := golden.Decoded(t, openai.Chat{}, body)
		if r == nil {
			return
		}
		for _, traits := range []chat.Traits{
			{Provider: "google"}, {Provider: "google", Thinking: chat.ThinksAdaptively, SignedCalls: true, Efforts: "low high"},
			{Provider: "vertex-ai", Thinking: chat.ThinksNever, Schema: chat.SchemaSubset},
		} {
			up := golden.EncodeFor(t, body, r, gemini.Generate{}, &traits, geminiPlaces, quiet, flattened)
			if up == nil {
				continue
			}
			again, err := gemini.Generate{}.DecodeRequest(up)
			if golden.NotFault(t, err) {
				t.Fatalf("%v\n%s", err, up)
			}
			for _, other := range []chat.TwoWayDialect{openai.Chat{}, anthropic.Messages{}} {
				out, err := other.EncodeRequest(nil, again, &chat.Traits{}, &chat.Loss{})
				if !golden.NotFault(t, err) && !json.Valid(out) {
					t.Fatalf("%s", out)
				}
			}
		}
	})
}

var geminiPlaces = func() map[string][]string {
	all := map[string][]string{}
	for name, places := range toGemini {
		all[name] = places
	}
	for name, place := range inConfig {
		all[name] = []string{"generationConfig." + place}
	}
	return all
}()

// flattened has the fields of generationConfig beside the others.
func flattened(t *testing.T, up []byte) []byte {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal(up, &out); err != nil {
		t.Fatalf("%v: %s", err, up)
	}
	var config map[string]json.RawMessage
	_ = json.Unmarshal(out["generationConfig"], &config)
	for name, raw := range config {
		out["generationConfig."+name] = raw
	}
	raw, _ := json.Marshal(out)
	return raw
}

// FuzzAnswer reads any bytes as a response and as a stream, for both kinds
// of client: what comes out is well formed whatever went in.
func FuzzAnswer(f *testing.F) {
	golden.Seeds(f, "openai-gemini", "upstream_response.json")
	golden.Seeds(f, "openai-gemini", "upstream_response.sse")
	f.Fuzz(func(t *testing.T, body []byte) {
		d := gemini.Generate{}
		for _, client := range []chat.TwoWayDialect{openai.Chat{}, anthropic.Messages{}, d} {
			for _, strict := range []bool{true, false} {
				o := &chat.Options{ID: "i", Model: "m", Strict: strict}
				if r := golden.ReadAnswer(t, d, body, &chat.Traits{}); r != nil && !json.Valid(client.EncodeResponse(nil, r, o)) {
					t.Fatalf("not JSON: %q", client.EncodeResponse(nil, r, o))
				}
				out, _ := golden.Reencode(d.NewStreamDecoder(&chat.Traits{}), client, o, new(wire.SSEParser), body)
				golden.WellFormed(t, client, out)
			}
		}
	})
}

// FuzzFilter: the size of the pieces does not matter.
func FuzzFilter(f *testing.F) {
	golden.Seeds(f, "openai-gemini", "upstream_response.sse")
	f.Fuzz(func(t *testing.T, in []byte) {
		golden.FilterInPieces(t, gemini.Generate{}, chat.FilterOptions{}, in, 7)
	})
}

// TestPrefixIsStable: a conversation that continues is sent with the same bytes up to
// what is new.
func TestPrefixIsStable(t *testing.T) {
	head := `{"model":"gemini-3-pro","max_tokens":2000,"tools":[{"type":"function","function":{"name":"f.g","parameters":{"zeta":1,"type":"object","alpha":{"b":1,"a":2}}}},{"type":"function","function":{"name":"now"}}],"messages":[`
	turns := []string{
		`{"role":"system","content":"Be brief."},{"role":"user","content":"a"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f.g","arguments":"{ \"x\" : 1 }"}}]},{"role":"tool","tool_call_id":"call_1","content":"1"}`,
		`{"role":"assistant","content":"So it is."},{"role":"user","content":"b"}`,
		`{"role":"assistant","content":"c"},{"role":"user","content":"d"}`,
	}
	for _, traits := range []chat.Traits{{Provider: "google", SignedCalls: true}, {Provider: "google", Schema: chat.SchemaSubset}} {
		before := ""
		for i := range turns {
			up := string(golden.Encode(t, openai.Chat{}, gemini.Generate{}, head+strings.Join(turns[:i+1], ",")+`]}`, traits, nil))
			if !strings.HasPrefix(up, strings.TrimSuffix(before, "]}")) {
				t.Fatalf("turn %d changed what was sent before:\n%s\n%s", i, before, up)
			}
			before = up
		}
	}
}

// TestSchemaBounds: a schema that grows without end once its references are put in place
// is rejected.
func TestSchemaBounds(t *testing.T) {
	var defs []string
	for i := range 30 {
		defs = append(defs, fmt.Sprintf(`"D%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/D%d"},"b":{"$ref":"#/$defs/D%d"}}}`, i, i+1, i+1))
	}
	schema := `{"type":"object","$defs":{` + strings.Join(defs, ",") + `,"D30":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/D0"}}}`
	r, err := openai.Chat{}.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	up, err := gemini.Generate{}.EncodeRequest(nil, r, &chat.Traits{Schema: chat.SchemaSubset}, &chat.Loss{})
	if !fault.Is(err, fault.InvalidRequest) || fault.From(err).Field != "tools[0].function.parameters" {
		t.Errorf("%v, %d bytes", err, len(up))
	}
}
