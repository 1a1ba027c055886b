package chat

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gateway/shared/pricing"
)

// TestReplayAndCollectAreInverse: what is replayed and put together again is the
// same response.
func TestReplayAndCollectAreInverse(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringN(1, 1200, -1).Draw(t, "text")
		if !utf8.ValidString(s) {
			return "x"
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		r := &Response{ID: "i", Model: "m", Created: 5}
		r.Usage.Set(pricing.Input, 3)
		for i := range rapid.IntRange(1, 3).Draw(t, "choices") {
			c := Choice{Index: i, Stop: StopEnd, Native: "stop"}
			for range rapid.IntRange(0, 5).Draw(t, "parts") {
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0:
					c.Parts = append(c.Parts, Part{Kind: Text, Text: text.Draw(t, "s")})
				case 1:
					c.Parts = append(c.Parts, Part{Kind: Reasoned, Text: text.Draw(t, "s"), Signature: "sig"})
				case 2:
					c.Parts = append(c.Parts, Part{Kind: RedactedReasoned, Data: "data"})
				case 3:
					c.Parts = append(c.Parts, Part{Kind: Call, Call: &ToolCall{ID: "id", Name: "n", Arguments: `{"a":"é"}`}})
				case 4:
					c.Parts = append(c.Parts, Part{Kind: Foreign, Raw: []byte(`{"type":"x"}`)})
				case 5:
					c.Parts = append(c.Parts, Part{Kind: Text, Text: "t", Citations: []byte(`[{"a":1},{"b":2}]`)})
				}
			}
			r.Choices = append(r.Choices, c)
		}
		var c Collector
		if err := r.Replay(func(d *Delta) error { c.Add(d); return nil }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, c.Response(), cmpopts.EquateEmpty(), cmp.AllowUnexported(pricing.Usage{})); diff != "" {
			t.Fatal(diff)
		}
	})
}
