package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// TestPrefixIsStableBetweenTurns: a conversation that continues is sent with the same
// bytes up to what is new, so that the provider's prompt cache is read.
func TestPrefixIsStableBetweenTurns(t *testing.T) {
	head := `{"model":"claude-sonnet-4-5","max_tokens":2000,"tools":[{"type":"function","function":{"name":"f.g","parameters":{"zeta":1,"type":"object","alpha":{"b":1,"a":2}}},"cache_control":{"type":"ephemeral"}},{"type":"function","function":{"name":"now"}}],"user":"u","messages":[`
	turns := []string{
		`{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f.g","arguments":"{ \"x\" : 1 }"}},{"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]},{"role":"tool","tool_call_id":"call_1","content":"1"},{"role":"tool","tool_call_id":"call_2","content":"2"}`,
		`{"role":"assistant","content":"So it is."},{"role":"user","content":"b"}`,
		`{"role":"assistant","content":"c"},{"role":"user","content":"d"}`,
	}
	var before []byte
	for i := range turns {
		body := head + strings.Join(turns[:i+1], ",") + `]}`
		up := golden.Encode(t, openai.Chat{}, anthropic.Messages{}, body, chat.Traits{}, nil)
		if again := golden.Encode(t, openai.Chat{}, anthropic.Messages{}, body, chat.Traits{}, nil); !bytes.Equal(up, again) {
			t.Fatalf("turn %d is not the same twice", i)
		}
		prefix := bytes.TrimSuffix(before, []byte("]}"))
		if !bytes.HasPrefix(up, prefix) {
			t.Fatalf("turn %d changed what was sent before:\n%s\n%s", i, prefix, up)
		}
		before = up
	}
}

// TestThinkingLoop plays three turns of a tool loop with a provider that signs
// its reasoning: it must get each block back unchanged and in its place, from
// clients that return blocks and from those that cannot.
func TestThinkingLoop(t *testing.T) {
	answer := func(turn int) string {
		return fmt.Sprintf(`{"id":"m%[1]d","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"thought \"%[1]d\"","signature":"sig-%[1]d"},{"type":"redacted_thinking","data":"enc-%[1]d"},{"type":"text","text":"text %[1]d"},{"type":"tool_use","id":"toolu_%[1]d","name":"now","input":{"turn":%[1]d}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`, turn)
	}
	for _, strict := range []bool{true, false} {
		t.Run(fmt.Sprintf("strict=%v", strict), func(t *testing.T) {
			memory := map[string][]chat.Part{}
			messages := []string{`{"role":"user","content":"go"}`}
			for turn := range 4 {
				body := `{"model":"claude","max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":2000},"tools":[{"type":"function","function":{"name":"now"}}],"messages":[` + strings.Join(messages, ",") + `]}`
				var recall func(string) []chat.Part
				if strict {
					recall = func(id string) []chat.Part { return memory[id] }
				}
				up := golden.Encode(t, openai.Chat{}, anthropic.Messages{}, body, chat.Traits{}, recall)
				checkThoughts(t, up, turn)
				r, err := anthropic.Messages{}.DecodeResponse([]byte(answer(turn)), &chat.Traits{})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range r.Signed() {
					// Kept as JSON in the store.
					raw, _ := json.Marshal(s.Parts)
					var parts []chat.Part
					if err := json.Unmarshal(raw, &parts); err != nil {
						t.Fatal(err)
					}
					memory[s.ToolCallID] = parts
				}
				out := openai.Chat{}.EncodeResponse(nil, r, &chat.Options{Strict: strict})
				var c struct {
					Choices []struct{ Message json.RawMessage }
				}
				if err := json.Unmarshal(out, &c); err != nil {
					t.Fatal(err)
				}
				messages = append(messages, string(c.Choices[0].Message), fmt.Sprintf(`{"role":"tool","tool_call_id":"toolu_%d","content":"ok"}`, turn))
			}
		})
	}
}

// checkThoughts wants the thoughts of each earlier turn in front of its call.
func checkThoughts(t *testing.T, up []byte, turns int) {
	t.Helper()
	var body struct {
		Thinking json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(up, &body); err != nil {
		t.Fatal(err)
	}
	if body.Thinking == nil {
		t.Fatalf("thinking was dropped: %s", up)
	}
	turn := 0
	for _, m := range body.Messages {
		if m.Role != "assistant" {
			continue
		}
		want := fmt.Sprintf(`[{"type":"thinking","thinking":"thought \"%[1]d\"","signature":"sig-%[1]d"},{"type":"redacted_thinking","data":"enc-%[1]d"},{"type":"text","text":"text %[1]d"},{"type":"tool_use","id":"toolu_%[1]d","name":"now","input":{"turn":%[1]d}}]`, turn)
		if string(m.Content) != want {
			t.Errorf("turn %d:\n got %s\nwant %s", turn, m.Content, want)
		}
		turn++
	}
	if turn != turns {
		t.Errorf("%d turns, want %d", turn, turns)
	}
}

// TestInterleavedCallsSurvive deals the pieces of several calls and texts out in
// any order that a host may choose: each call arrives whole, blocks never overlap.
func TestInterleavedCallsSurvive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type call struct {
			id, args string
			sent     int
			began    bool
		}
		calls := make([]*call, rapid.IntRange(1, 5).Draw(rt, "calls"))
		for i := range calls {
			calls[i] = &call{id: fmt.Sprintf("call_%d", i), args: rapid.SampledFrom([]string{"", "{}", `{"a":1}`, `{"city":"Rome \"x\"","n":[1,2]}`}).Draw(rt, "args")}
		}
		text := ""
		var stream []byte
		chunk := func(delta string) {
			stream = fmt.Appendf(stream, `data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`+"\n\n", delta)
		}
		next := 0
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			i := rapid.IntRange(-1, len(calls)-1).Draw(rt, "who")
			switch {
			case i < 0:
				piece := rapid.SampledFrom([]string{"x", "é", "a\nb"}).Draw(rt, "text")
				text += piece
				chunk(`{"content":` + string(wire.AppendJSONString(nil, piece)) + `}`)
			case i > next:
			case !calls[i].began:
				calls[i].began = true
				next++
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"%s","type":"function","function":{"name":"f","arguments":""}}]}`, i, calls[i].id))
			case calls[i].sent < len(calls[i].args):
				n := rapid.IntRange(1, len(calls[i].args)-calls[i].sent).Draw(rt, "n")
				piece := calls[i].args[calls[i].sent : calls[i].sent+n]
				calls[i].sent += n
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, wire.AppendJSONString(nil, piece)))
			}
		}
		for i, c := range calls[:next] {
			if c.sent < len(c.args) {
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, wire.AppendJSONString(nil, c.args[c.sent:])))
			}
		}
		stream = append(stream, `data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"...)
		out, m, _ := golden.Stream(t, anthropic.Messages{}, openai.Chat{}, &chat.Traits{}, &chat.Options{ID: "i", Model: "m"}, stream, len(stream))
		if m.Err != nil || !m.Complete {
			rt.Fatalf("meter %+v", m)
		}
		golden.CheckStream(t, (anthropic.Messages{}).Name(), out, false)
		gotText, got := gather(t, out)
		if gotText != text || len(got) != next {
			rt.Fatalf("text %q of %q, %d calls of %d\n%s", gotText, text, len(got), next, out)
		}
		for _, c := range calls[:next] {
			want := c.args
			if want == "" {
				want = "{}"
			}
			if got[c.id] != want {
				rt.Fatalf("%s: %q, want %q\n%s", c.id, got[c.id], want, out)
			}
		}
	})
}

// gather joins text and arguments of a stream for a messages client.
func gather(t *testing.T, stream []byte) (text string, args map[string]string) {
	t.Helper()
	args = map[string]string{}
	id := ""
	for _, e := range golden.Events(t, stream) {
		var ev struct {
			ContentBlock struct{ ID string } `json:"content_block"`
			Delta        struct {
				Text        string
				PartialJSON string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			t.Fatal(err)
		}
		if ev.ContentBlock.ID != "" {
			id = ev.ContentBlock.ID
			args[id] = ""
		}
		text += ev.Delta.Text
		if ev.Delta.PartialJSON != "" {
			args[id] += ev.Delta.PartialJSON
		}
	}
	return text, args
}
