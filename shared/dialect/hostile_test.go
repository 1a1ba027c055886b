package dialect_test

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
)

// TestHostileBodiesCostNoMoreThanTheirSize translates bodies that are made of
// very many small things. Anything that is not linear in them would run into the
// test's own time limit.
func TestHostileBodiesCostNoMoreThanTheirSize(t *testing.T) {
	const n = 20_000
	list := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	hi := `{"role":"user","content":"x"}`
	requests := map[string]string{
		"parts":    `{"role":"user","content":[` + list(`{"type":"text","text":"a"}`) + `]}`,
		"blank":    `{"role":"user","content":[` + list(`{"type":"text","text":" ","cache_control":{"type":"ephemeral"}}`) + `]},` + hi,
		"unknown":  `{"role":"user","content":[` + list(`{"type":"text","text":"a","b":1}`) + `]}`,
		"foreign":  hi + `,{"role":"assistant","content":[` + list(`{"type":"what"}`) + `]},` + hi,
		"messages": list(hi),
		"calls":    hi + `,{"role":"assistant","tool_calls":[` + list(`{"id":"a","type":"function","function":{"name":"f.g","arguments":"{}"}}`) + `]},` + hi,
		"results":  hi + `,` + list(`{"role":"tool","tool_call_id":"a","content":"b"}`),
		"members":  `{"role":"user","content":"x",` + list(`"k":1`) + `}`,
	}
	for name, messages := range requests {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"model":"m","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + messages + `]}`)
			r, err := openai.Chat{}.DecodeRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			r.LoadReasoning = func(string) []chat.Part { return nil }
			var loss chat.Loss
			up, err := anthropic.Messages{}.EncodeRequest(nil, r, &chat.Traits{}, &loss)
			if err != nil {
				t.Fatal(err)
			}
			back, err := anthropic.Messages{}.DecodeRequest(up)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (openai.Chat{}).EncodeRequest(nil, back, &chat.Traits{}, &chat.Loss{}); err != nil {
				t.Fatal(err)
			}
			if len(loss.Header()) > 4096 {
				t.Errorf("a header of %d bytes", len(loss.Header()))
			}
		})
	}
	answer := []byte(`{"id":"i","choices":[{"index":0,"message":{"role":"assistant","content":[` + list(`{"type":"text","text":"a"}`) + `],"tool_calls":[` + list(`{"id":"a","function":{"name":"f","arguments":"{}"}}`) + `]},"finish_reason":"stop"}]}`)
	r, err := openai.Chat{}.DecodeResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = anthropic.Messages{}.EncodeResponse(nil, r, &chat.Options{})
	_ = openai.Chat{}.EncodeResponse(nil, r, &chat.Options{})
	chunk := `data: {"id":"c","choices":[` + list(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"a"}}]}}`) + `]}` + "\n\n"
	golden.Stream(t, anthropic.Messages{}, openai.Chat{}, &chat.Traits{}, &chat.Options{}, []byte(chunk), len(chunk))
}
