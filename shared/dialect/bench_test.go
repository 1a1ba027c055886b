package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

const anthropicAnswer = `{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":96}}`

func BenchmarkOpenAIToAnthropic(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		request := golden.ChatOf(size)
		answer := fmt.Appendf(nil, anthropicAnswer, strings.Repeat("mocktoken the quick brown fox jumps. ", 16))
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			var up, down []byte
			var checked chat.Checked
			traits := &chat.Traits{Provider: "anthropic", DefaultMaxTokens: 8192}
			b.ReportAllocs()
			defer golden.ReportCPU(b)()
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				if err := (openai.Chat{}).Check(request, &checked); err != nil {
					b.Fatal(err)
				}
				r, err := openai.Chat{}.DecodeRequest(request)
				if err != nil {
					b.Fatal(err)
				}
				var loss chat.Loss
				if up, err = (anthropic.Messages{}).EncodeRequest(up[:0], r, traits, &loss); err != nil {
					b.Fatal(err)
				}
				a, err := anthropic.Messages{}.DecodeResponse(answer, traits)
				if err != nil {
					b.Fatal(err)
				}
				o := chat.Options{Strict: true, Request: r, Created: 1, ProviderName: "anthropic"}
				down = openai.Chat{}.EncodeResponse(down[:0], a, &o)
			}
		})
	}
}

func BenchmarkOpenAICheck(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		request := golden.ChatOf(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			var checked chat.Checked
			b.ReportAllocs()
			defer golden.ReportCPU(b)()
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				if err := (openai.Chat{}).Check(request, &checked); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// anthropicStream is a stream of n pieces, one element for each write.
func anthropicStream(n int) [][]byte {
	event := func(name, data string) []byte { return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data) }
	out := [][]byte{
		event("message_start", `{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`),
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	}
	for i := range n {
		out = append(out, event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" mocktoken%d"}}`, i%10)))
	}
	return append(out, event("content_block_stop", `{"type":"content_block_stop","index":0}`),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":100}}`),
		event("message_stop", `{"type":"message_stop"}`))
}

func openAIStream(n int) [][]byte {
	chunk := func(choices, usage string) []byte {
		return fmt.Appendf(nil, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"fp","choices":%s,"usage":%s}`+"\n\n", choices, usage)
	}
	out := [][]byte{chunk(`[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]`, "null")}
	for i := range n {
		out = append(out, chunk(fmt.Sprintf(`[{"index":0,"delta":{"content":" mocktoken%d"},"logprobs":null,"finish_reason":null}]`, i%10), "null"))
	}
	return append(out, chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, "null"),
		chunk("[]", `{"prompt_tokens":120,"completion_tokens":100,"total_tokens":220}`), []byte("data: [DONE]\n\n"))
}

func benchmarkStream(b *testing.B, provider chat.ResponseReader, client chat.ResponseWriter, pieces [][]byte) {
	o := chat.Options{Strict: true, IncludeUsage: true, ID: "gw", Model: "m", Created: 1, ProviderName: "acme"}
	var out []byte
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	for b.Loop() {
		dec, enc := provider.NewStreamDecoder(&chat.Traits{}), client.NewStreamEncoder(&o)
		var parser wire.SSEParser
		delta := func(d *chat.Delta) error {
			out = enc.Append(out, d)
			return nil
		}
		event := func(name string, data []byte) error { return dec.Event(name, data, delta) }
		for _, p := range pieces {
			out = out[:0]
			if err := parser.Feed(p, event); err != nil {
				b.Fatal(err)
			}
			_ = dec.Meter()
		}
		if err := dec.End(); err != nil {
			b.Fatal(err)
		}
		out = enc.Finish(out[:0])
	}
}

func BenchmarkStreamAnthropicToOpenAI(b *testing.B) {
	benchmarkStream(b, anthropic.Messages{}, openai.Chat{}, anthropicStream(100))
}

func BenchmarkStreamOpenAIToAnthropic(b *testing.B) {
	benchmarkStream(b, openai.Chat{}, anthropic.Messages{}, openAIStream(100))
}

func BenchmarkMeterResponse(b *testing.B) {
	body := fmt.Appendf(nil, `{"id":"chatcmpl-1","object":"chat.completion","created":1750000000,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"%s","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":96,"total_tokens":216,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_mock"}`, strings.Repeat("mocktoken the quick brown fox jumps. ", 16))
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	for b.Loop() {
		if m := (openai.Chat{}).MeterResponse(body); !m.Usage.IsReported() {
			b.Fatal("no usage")
		}
	}
}

func benchmarkFilter(b *testing.B, d chat.Passer, pieces [][]byte) {
	o := &chat.FilterOptions{}
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	for b.Loop() {
		f := d.NewStreamFilter(o)
		for _, p := range pieces {
			if _, err := f.Feed(p); err != nil {
				b.Fatal(err)
			}
		}
		f.End()
	}
}

func BenchmarkFilterOpenAI(b *testing.B) {
	benchmarkFilter(b, openai.Chat{}, openAIStream(100))
}

// geminiStream is a stream of n pieces, one element for each write.
func geminiStream(n int) [][]byte {
	chunk := func(text, finish string, made int) []byte {
		return fmt.Appendf(nil, `data: {"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":%d,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":120}]},"modelVersion":"gemini-2.5-flash","responseId":"r"}`+"\r\n\r\n", text, finish, made, 120+made)
	}
	var out [][]byte
	for i := range n {
		out = append(out, chunk(fmt.Sprintf(" mocktoken%d", i%10), "", i+1))
	}
	return append(out, chunk("", `,"finishReason":"STOP"`, n))
}

func BenchmarkFilterGemini(b *testing.B) {
	benchmarkFilter(b, gemini.Generate{}, geminiStream(100))
}

func BenchmarkFilterAnthropic(b *testing.B) {
	benchmarkFilter(b, anthropic.Messages{}, anthropicStream(100))
}

func BenchmarkResponsesToAnthropic(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the \\\"lazy\\\" dog.\\n", 7)
	request := fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","instructions":"%s","input":[{"role":"user","content":"%s"},{"role":"assistant","content":"ok"},{"role":"user","content":[{"type":"input_text","text":"%s"}]}],"max_output_tokens":256,"temperature":0.7,"stream":false,"user":"u-1"}`, text, text, text)
	answer := fmt.Appendf(nil, anthropicAnswer, strings.Repeat("mocktoken the quick brown fox jumps. ", 16))
	client := responses.Responses{}
	var up, down []byte
	var checked chat.Checked
	traits := &chat.Traits{Provider: "anthropic", DefaultMaxTokens: 8192}
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	b.SetBytes(int64(len(request)))
	for b.Loop() {
		if err := client.Check(request, &checked); err != nil {
			b.Fatal(err)
		}
		r, err := client.DecodeRequest(request)
		if err != nil {
			b.Fatal(err)
		}
		var loss chat.Loss
		if up, err = chat.Translate(up[:0], client, anthropic.Messages{}, r, traits, &loss); err != nil {
			b.Fatal(err)
		}
		a, err := anthropic.Messages{}.DecodeResponse(answer, traits)
		if err != nil {
			b.Fatal(err)
		}
		o := chat.Options{Strict: true, Request: r, Created: 1, ProviderName: "anthropic"}
		down = client.EncodeResponse(down[:0], a, &o)
	}
}

func BenchmarkStreamAnthropicToResponses(b *testing.B) {
	benchmarkStream(b, anthropic.Messages{}, responses.Responses{}, anthropicStream(100))
}

// responsesStream is a stream of n pieces, one element for each write.
func responsesStream(n int) [][]byte {
	seq := 0
	event := func(name, members string) []byte {
		seq++
		return fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, seq-1, members)
	}
	object := func(status, usage string) string {
		return `"response":{"id":"resp_1","object":"response","created_at":1750000000,"status":"` + status + `","error":null,"incomplete_details":null,"model":"gpt-5","output":[],"usage":` + usage + `}`
	}
	out := [][]byte{event("response.created", object("in_progress", "null")), event("response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)}
	for i := range n {
		out = append(out, event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":0,"content_index":0,"delta":" mocktoken%d","logprobs":[],"obfuscation":"aBcDeF"`, i%10)))
	}
	return append(out, event("response.completed", object("completed", `{"input_tokens":120,"output_tokens":100,"total_tokens":220}`)))
}

func BenchmarkStreamResponsesToOpenAI(b *testing.B) {
	benchmarkStream(b, responses.Responses{}, openai.Chat{}, responsesStream(100))
}

func BenchmarkFilterResponses(b *testing.B) {
	benchmarkFilter(b, responses.Responses{}, responsesStream(100))
}
