package converse_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

func BenchmarkOpenAIToConverse(b *testing.B) {
	request := golden.ChatOf(1 << 10)
	answer := fmt.Appendf(nil, `{"output":{"message":{"role":"assistant","content":[{"text":"%s"}]}},"stopReason":"end_turn","usage":{"inputTokens":120,"outputTokens":96,"totalTokens":216},"metrics":{"latencyMs":5}}`, strings.Repeat("mocktoken the quick brown fox jumps. ", 16))
	traits := &chat.Traits{Provider: "bedrock", Family: "anthropic", DefaultMaxTokens: 64000, Schema: chat.SchemaNative}
	var up, down []byte
	var checked chat.Checked
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	for b.Loop() {
		if err := (openai.Chat{}).Check(request, &checked); err != nil {
			b.Fatal(err)
		}
		r, err := openai.Chat{}.DecodeRequest(request)
		if err != nil {
			b.Fatal(err)
		}
		var loss chat.Loss
		if up, err = (converse.Converse{}).EncodeRequest(up[:0], r, traits, &loss); err != nil {
			b.Fatal(err)
		}
		a, err := converse.Converse{}.DecodeResponse(answer, traits)
		if err != nil {
			b.Fatal(err)
		}
		down = openai.Chat{}.EncodeResponse(down[:0], a, &chat.Options{Strict: true, Request: r, Created: 1, ProviderName: "bedrock"})
	}
}

func BenchmarkConverseStreamToOpenAI(b *testing.B) {
	frame := func(name, data string) []byte { return wire.AppendEventStream(nil, name, []byte(data)) }
	pieces := [][]byte{frame("messageStart", `{"role":"assistant","p":"abcd"}`)}
	for i := range 100 {
		pieces = append(pieces, frame("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":" mocktoken%d"},"p":"abcdefghijkl"}`, i%10)))
	}
	pieces = append(pieces, frame("contentBlockStop", `{"contentBlockIndex":0,"p":"ab"}`), frame("messageStop", `{"stopReason":"end_turn","p":"a"}`),
		frame("metadata", `{"usage":{"inputTokens":120,"outputTokens":100,"totalTokens":220},"metrics":{"latencyMs":5},"p":"ab"}`))
	o := chat.Options{Strict: true, IncludeUsage: true, ID: "gw", Model: "m", Created: 1, ProviderName: "bedrock"}
	var out []byte
	b.ReportAllocs()
	defer golden.ReportCPU(b)()
	for b.Loop() {
		dec, enc := converse.Converse{}.NewStreamDecoder(&chat.Traits{}), openai.Chat{}.NewStreamEncoder(&o)
		parser := dec.(chat.Framed).Parser()
		out = out[:0]
		delta := func(d *chat.Delta) error {
			out = enc.Append(out, d)
			return nil
		}
		event := func(name string, data []byte) error { return dec.Event(name, data, delta) }
		for _, p := range pieces {
			if err := parser.Feed(p, event); err != nil {
				b.Fatal(err)
			}
		}
		if err := dec.End(); err != nil {
			b.Fatal(err)
		}
		out = enc.Finish(out)
	}
}
