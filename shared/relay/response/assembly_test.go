package response

import (
	"bytes"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// maxGathered is how long a response may be that is put together here, in bytes.
const maxGathered = 1 << 16

// gathered assembles a stream and returns the response in the dialect; ok is false if it cannot
// be cached.
func gathered(t *testing.T, d chat.TwoWayDialect, stream string, chunk int) (string, bool) {
	t.Helper()
	s := Pass(d.NewStreamFilter(&chat.FilterOptions{}))
	s.StartAssembly(maxGathered, false, false, d.NewStreamDecoder(&chat.Traits{}))
	for in := []byte(stream); len(in) > 0; {
		n := min(chunk, len(in))
		_, _ = s.Feed(bytes.Clone(in[:n])) // the forwarded bytes are ignored
		in = in[n:]
	}
	r := s.Assembled()
	if r == nil {
		return "", false
	}
	return string(d.EncodeResponse(nil, r, &chat.Options{Strict: true, ID: "x", Model: "m"})), true
}

const (
	openaiStream = `data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"Grü"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"ße"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

`
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
)

func TestStreamsArePutTogether(t *testing.T) {
	for name, c := range map[string]struct {
		dialect chat.TwoWayDialect
		stream  string
		end     string
		terms   []string
	}{
		"openai":    {openai.Chat{}, openaiStream, `"finish_reason":"stop"`, []string{`"content":"Grüße"`, `"finish_reason":"stop"`, `"total_tokens":5`, `"id":"c1"`, `"created":7`}},
		"anthropic": {anthropic.Messages{}, anthropicStream, "event: message_stop", []string{`"text":"Grüße"`, `"stop_reason":"end_turn"`, `"output_tokens":2`, `"input_tokens":3`, `"id":"m1"`}},
	} {
		whole, ok := gathered(t, c.dialect, c.stream, 1<<20)
		if !ok {
			t.Fatalf("%s cannot be kept", name)
		}
		for _, term := range c.terms {
			if !strings.Contains(whole, term) {
				t.Errorf("%s: no %s in %s", name, term, whole)
			}
		}
		for chunk := 1; chunk < 40; chunk += 3 {
			if got, ok := gathered(t, c.dialect, c.stream, chunk); !ok || got != whole {
				t.Errorf("%s in pieces of %d: %s %v", name, chunk, got, ok)
			}
		}
		// A stream that is truncated before the end of its response is not cached.
		for cut := 0; cut < strings.Index(c.stream, c.end); cut += 7 {
			if got, ok := gathered(t, c.dialect, c.stream[:cut], 64); ok {
				t.Fatalf("%s, cut at %d, gave %s", name, cut, got)
			}
		}
	}
}

func TestStreamsThatCannotBeKept(t *testing.T) {
	for name, stream := range map[string]string{
		"logprobs": strings.Replace(openaiStream, `"delta":{"content":"Grü"},`, `"delta":{"content":"Grü"},"logprobs":{"content":[{"token":"Grü","logprob":-0.1,"bytes":null,"top_logprobs":[]}]},`, 1),
		"too long": strings.Replace(openaiStream, "Grü", strings.Repeat("Grü", maxGathered/4), 1),
		"an error": strings.Replace(openaiStream, `data: [DONE]`, `data: {"error":{"message":"overloaded","type":"server_error"}}`, 1),
		"no JSON":  strings.Replace(openaiStream, `data: [DONE]`, `data: {`, 1),
	} {
		if got, ok := gathered(t, openai.Chat{}, stream, 512); ok {
			t.Errorf("%s: %.200s", name, got)
		}
	}
}

// If a hidden tool returns the response, other text is not part of it.
func TestTextBesideAHiddenToolIsNotKept(t *testing.T) {
	text := func(s string, answer bool) *chat.Delta {
		return &chat.Delta{Kind: chat.DeltaText, Response: answer, JSON: wire.AppendJSONString(nil, s)}
	}
	g := &gathering{hidden: true, most: maxGathered}
	g.add(text("Let me see", false))
	g.add(text(`{"a":1}`, true))
	r := g.into.Response()
	if len(r.Choices) != 1 || r.Choices[0].Text() != `{"a":1}` {
		t.Errorf("%+v", r)
	}
	beside := Stream{over: &translation{gather: &gathering{hidden: true, most: maxGathered}}}
	beside.over.gather.add(text("I will not", false))
	if r := beside.Assembled(); r != nil {
		t.Errorf("only what stands beside is kept: %+v", r)
	}
}
