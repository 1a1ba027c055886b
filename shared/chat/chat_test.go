package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/fault"
)

func TestLossReportsOncePerPathAndRefusesWhenStrict(t *testing.T) {
	var l Loss
	if !l.Empty() || l.Header() != "" || l.Err() != nil || l.Paths() != nil {
		t.Fatal("an empty report says something")
	}
	l.Add("seed", "not accepted")
	l.Add("seed", "again")
	l.Add("messages[0].content[1]", "naïve\n")
	if got := l.Header(); got != "dropped=seed (not accepted), messages[0].content[1] (na??ve?)" {
		t.Errorf("header %q", got)
	}
	if l.Err() != nil {
		t.Error("a report that is not strict refuses")
	}
	l.Strict = true
	if err := l.Err(); !fault.Is(err, fault.TranslationLoss) || fault.From(err).Field != "seed" {
		t.Errorf("strict: %v", err)
	}
	answer := Loss{StrictResponse: true}
	answer.Add("seed", "x")
	if answer.Err() != nil {
		t.Error("a loss that the answer does not show refuses")
	}
	answer.AddResponse("logprobs", "x")
	if !fault.Is(answer.Err(), fault.TranslationLoss) {
		t.Error("a loss that the answer shows is not refused")
	}
	answer.Reset()
	if answer.Err() != nil || !answer.Empty() {
		t.Error("reset keeps something")
	}
}

func TestLossHeaderIsLimited(t *testing.T) {
	var l Loss
	for i := range 1000 {
		l.Add(strings.Repeat("x", i%50)+string(rune('a'+i%26)), "reason")
	}
	if n := len(l.Header()); n > maxHeader+40 {
		t.Errorf("%d bytes", n)
	}
}

// TestLegalNamesFitAndCanBeMappedBack: any names either collide (400) or map
// back one to one.
func TestLegalNamesFitAndCanBeMappedBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c./_é-]{1,80}`), 1, 6, rapid.ID[string]).Draw(t, "names")
		r := &Request{}
		for _, n := range names {
			r.Tools = append(r.Tools, Tool{Name: n})
		}
		if err := r.Rename(64); err != nil {
			if !fault.Is(err, fault.InvalidRequest) {
				t.Fatal(err)
			}
			return
		}
		o := Options{Request: r}
		for _, n := range names {
			legal := LegalName(n, 64)
			if !fits(legal, 64) {
				t.Fatalf("%q does not fit", legal)
			}
			if back := o.ToolName(legal); back != n {
				t.Fatalf("%q -> %q -> %q", n, legal, back)
			}
		}
	})
}

func TestSignedReasoningIsStoredWithTheFollowingCall(t *testing.T) {
	thought := Part{Kind: Reasoned, Text: "t", Signature: "s"}
	hidden := Part{Kind: RedactedReasoned, Data: "d"}
	unsigned := Part{Kind: Reasoned, Text: "u"}
	call := func(id string) Part { return Part{Kind: Call, Call: &ToolCall{ID: id}} }
	r := Response{Choices: []Choice{{Parts: []Part{unsigned, thought, hidden, {Kind: Text, Text: "x"}, call("a"), call("b"), thought, call("c"), thought}}}}
	got := r.Signed()
	if len(got) != 2 || got[0].ToolCallID != "a" || len(got[0].Parts) != 2 || got[1].ToolCallID != "c" || len(got[1].Parts) != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestStopReasonsHaveBothNames(t *testing.T) {
	for s := StopUnknown; s <= StopPause; s++ {
		if s.OpenAI() == "" || s.Anthropic() == "" {
			t.Errorf("stop %d has no name", s)
		}
	}
}

func TestDeltaContent(t *testing.T) {
	tests := []struct {
		d    Delta
		want bool
	}{
		{Delta{Kind: DeltaStart}, false}, {Delta{Kind: DeltaPing}, false}, {Delta{Kind: DeltaUsage}, false},
		{Delta{Kind: DeltaText, JSON: []byte(`""`)}, false}, {Delta{Kind: DeltaText, JSON: []byte(`"a\n"`)}, true},
		{Delta{Kind: DeltaToolStart}, true}, {Delta{Kind: DeltaStop}, true},
	}
	for _, tt := range tests {
		if got := tt.d.HasContent(); got != tt.want {
			t.Errorf("%+v: %v", tt.d, got)
		}
	}
	if got := tests[4].d.Text(); got != "a\n" {
		t.Errorf("text %q", got)
	}
}
