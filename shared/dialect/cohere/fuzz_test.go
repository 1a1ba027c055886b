package cohere_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// seeds adds the files that match pattern.
func seeds(f *testing.F, pattern string) {
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		f.Fatal("no seeds: " + pattern)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
}

// refused reports whether there is an error; it must be a refusal below 500 or
// the provider's.
func refused(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	if f := fault.From(err); f.Status() >= 500 && f.Source != fault.SourceProvider || f.Code == fault.InternalError {
		t.Fatalf("%d: %v", f.Status(), f)
	}
	return true
}

// carried says where a member of an OpenAI request is in a request to Cohere.
var carried = map[string][]string{
	"model": {"model"}, "messages": {"messages"}, "max_tokens": {"max_tokens"}, "max_completion_tokens": {"max_tokens"},
	"temperature": {"temperature"}, "top_p": {"p"}, "top_k": {"k"}, "stop": {"stop_sequences"}, "stream": {"stream"}, "seed": {"seed"},
	"frequency_penalty": {"frequency_penalty"}, "presence_penalty": {"presence_penalty"}, "tools": {"tools"}, "functions": {"tools"},
	"tool_choice": {"tool_choice"}, "function_call": {"tool_choice"}, "response_format": {"response_format"}, "thinking": {"thinking"},
	"reasoning_effort": {"thinking"}, "documents": {"documents"}, "citation_options": {"citation_options"}, "safety_mode": {"safety_mode"},
	"strict_tools": {"strict_tools"}, "priority": {"priority"}, "k": {"k"}, "p": {"p"},
}

// silent are members that may be left out without a word.
func silent(name string, r *chat.Request) bool {
	g := r.Reasoning
	switch name {
	case "stream":
		return !r.Stream
	case "stream_options", "n":
		return true // usage is always given; n above one is refused
	case "max_tokens":
		return r.MaxTokensField == "max_completion_tokens"
	case "stop":
		return len(r.Stop) == 0
	case "user":
		return r.User == ""
	case "service_tier":
		return r.ServiceTier == ""
	case "parallel_tool_calls":
		return r.Parallel.Value || len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsNone
	case "tool_choice", "function_call":
		return len(r.Tools) == 0 || r.ToolChoice.Mode == chat.ToolsAuto || r.ToolChoice.Mode == chat.ToolsNone
	case "tools", "functions":
		return len(r.Tools) == 0
	case "response_format":
		return r.Format.Kind == chat.FormatText
	case "reasoning_effort":
		return g.Effort == "" || !g.On() && g.Thinking == chat.ThinkingUnsaid
	case "thinking":
		return g.Thinking == chat.ThinkingOff
	case "documents":
		return true // an empty list is left out
	}
	return false
}

// FuzzRequest sends a chat to Cohere: no panic, strict JSON, no member vanishes
// unreported, and what was written reads back and writes the same.
func FuzzRequest(f *testing.F) {
	seeds(f, "../testdata/openai-cohere/*/request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		var checked chat.Checked
		if refused(t, openai.Chat{}.Check(body, &checked)) {
			return
		}
		r, err := openai.Chat{}.DecodeRequest(body)
		if refused(t, err) {
			return
		}
		for _, traits := range []chat.Traits{{}, {Thinking: chat.ThinksNever, Limits: chat.Limits{NoImages: true}, ClampTemperature: true}} {
			var loss chat.Loss
			up, err := cohere.Chat{}.EncodeRequest(nil, r, &traits, &loss)
			if refused(t, err) {
				continue
			}
			var in, out map[string]json.RawMessage
			if json.Unmarshal(body, &in) != nil {
				return
			}
			if err := json.Unmarshal(up, &out); err != nil {
				t.Fatalf("%v\n%s", err, up)
			}
			for name, raw := range in {
				if text := strings.TrimSpace(string(raw)); text != "null" && text != `"gateway-default"` && !silent(name, r) && !isIn(name, out, &loss) {
					t.Fatalf("%s vanished: %s\nupstream %s\nloss %s", name, raw, up, loss.Header())
				}
			}
			if refused(t, cohere.Chat{}.Check(up, &checked)) {
				t.Fatalf("its own check refuses\n%s", up)
			}
			again, err := cohere.Chat{}.DecodeRequest(up)
			if refused(t, err) {
				continue // members that are passed on as they came may be of any kind
			}
			_, err = openai.Chat{}.EncodeRequest(nil, again, &chat.Traits{}, &chat.Loss{})
			refused(t, err)
		}
	})
}

func isIn(name string, out map[string]json.RawMessage, loss *chat.Loss) bool {
	for _, place := range carried[name] {
		if out[place] != nil {
			return true
		}
	}
	for _, e := range loss.Entries {
		if e.Path == name || strings.HasPrefix(e.Path, name+".") || strings.HasPrefix(e.Path, name+"[") {
			return true
		}
	}
	return false
}

// FuzzOwnRequest reads any bytes as a request of this dialect.
func FuzzOwnRequest(f *testing.F) {
	seeds(f, "../testdata/openai-cohere/*/upstream_request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		var checked chat.Checked
		if refused(t, cohere.Chat{}.Check(body, &checked)) {
			return
		}
		r, err := cohere.Chat{}.DecodeRequest(body)
		if refused(t, err) {
			return
		}
		up, err := cohere.Chat{}.EncodeRequest(nil, r, &chat.Traits{}, &chat.Loss{})
		if !refused(t, err) && !json.Valid(up) {
			t.Fatalf("not JSON: %q", up)
		}
	})
}

// FuzzResponse reads any bytes as an answer and as an error, and writes what it
// read in both shapes.
func FuzzResponse(f *testing.F) {
	seeds(f, "../testdata/*-cohere/*/upstream_response.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		d := cohere.Chat{}
		d.MeterResponse(body)
		if f := d.DecodeError(500, nil, body); f == nil || f.Source != fault.SourceProvider {
			t.Fatal("an error that is not the provider's")
		}
		r, err := d.DecodeResponse(body, &chat.Traits{})
		if err != nil {
			if f := fault.From(err); f.Source != fault.SourceProvider {
				t.Fatalf("%v", f)
			}
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

// FuzzStream reads any bytes as a stream; what comes out is well formed in both
// shapes, and the filter passes on whole events only.
func FuzzStream(f *testing.F) {
	seeds(f, "../testdata/*-cohere/*/upstream_response.sse")
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, to := range []chat.Dialect{openai.Chat{}, cohere.Chat{}} {
			out := translate(in, to)
			var p wire.SSEParser
			check := func(_ string, data []byte) error {
				if string(data) != "[DONE]" && !json.Valid(data) {
					t.Fatalf("not JSON: %q", data)
				}
				return nil
			}
			_ = p.Feed(out, check)
			_ = p.End(check)
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

func translate(in []byte, to chat.Dialect) []byte {
	o := &chat.Options{ID: "i", Model: "m"}
	dec, enc := cohere.Chat{}.NewStreamDecoder(&chat.Traits{}), to.NewStreamEncoder(o)
	var parser wire.SSEParser
	var out []byte
	event := func(name string, data []byte) error {
		return dec.Event(name, data, func(d *chat.Delta) error {
			out = enc.Append(out, d)
			return nil
		})
	}
	err := parser.Feed(in, event)
	if err == nil {
		err = parser.End(event)
	}
	if err == nil {
		err = dec.End()
	}
	if err == nil {
		return enc.Finish(out)
	}
	return enc.Error(out, fault.From(err))
}

// TestStreamKeepsItsWords sends streams through the dialect's own encoder and
// reads them again: text and calls are the same.
func TestStreamKeepsItsWords(t *testing.T) {
	for _, name := range []string{"stream-text", "stream-tools", "stream-thinking", "stream-tools-interleaved"} {
		in, err := os.ReadFile("../testdata/openai-cohere/" + name + "/upstream_response.sse")
		if err != nil {
			t.Fatal(err)
		}
		first, again := translate(in, openai.Chat{}), translate(translate(in, cohere.Chat{}), openai.Chat{})
		if gather(t, first) != gather(t, again) {
			t.Errorf("%s:\n%s\n%s", name, gather(t, first), gather(t, again))
		}
	}
}

// gather joins what an OpenAI stream says.
func gather(t *testing.T, stream []byte) string {
	t.Helper()
	text, calls, finish := "", map[int]string{}, ""
	var p wire.SSEParser
	read := func(_ string, data []byte) error {
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
		if string(data) == "[DONE]" {
			return nil
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				calls[call.Index] += call.ID + call.Function.Name + call.Function.Arguments
			}
		}
		return nil
	}
	if err := p.Feed(stream, read); err != nil {
		t.Fatal(err)
	}
	if len(stream) == 0 || finish == "" {
		t.Fatalf("no end: %s", stream)
	}
	out, _ := json.Marshal([]any{text, calls, finish})
	return string(out)
}
