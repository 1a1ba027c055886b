package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/chat"
)

// A response to a lenient client says all that it was made of.
func TestBlocksReadBack(t *testing.T) {
	want := &chat.Response{ID: "x", Model: "m", Created: 7, Choices: []chat.Choice{{
		Stop: chat.StopToolCalls, Native: "tool_calls",
		Parts: []chat.Part{
			{Kind: chat.Reasoned, Text: "Let me see", Signature: "c2ln"},
			{Kind: chat.RedactedReasoned, Data: "ZGF0YQ=="},
			{Kind: chat.Text, Text: "Grüße"},
			{Kind: chat.Call, Call: &chat.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}},
		},
	}}}
	body := Chat{}.EncodeResponse(nil, want, &chat.Options{})
	got, err := Chat{}.DecodeResponse(body, &chat.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	type part struct {
		Kind                  chat.PartKind
		Text, Signature, Data string
		Call                  *chat.ToolCall
	}
	parts := func(r *chat.Response) (out []part) {
		for _, p := range r.Choices[0].Parts {
			out = append(out, part{p.Kind, p.Text, p.Signature, p.Data, p.Call})
		}
		return out
	}
	if diff := cmp.Diff(parts(want), parts(got)); diff != "" {
		t.Errorf("%s\n%s", diff, body)
	}
}

// Blocks of another form are omitted; the response counts.
func TestBlocksOfAnotherForm(t *testing.T) {
	for _, blocks := range []string{`[1]`, `[{"type":1}]`, `{}`, `null`, `"x"`, `[]`} {
		r, err := Chat{}.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"kept","content_blocks":`+blocks+`},"finish_reason":"stop"}]}`), &chat.Traits{})
		if err != nil || len(r.Choices) != 1 || r.Choices[0].Text() != "kept" {
			t.Errorf("%s: %+v %v", blocks, r, err)
		}
	}
}
