package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsOfCallsStayReadable(t *testing.T) {
	t.Parallel()
	for _, guards := range [][]Guard{nil, {{Hook: "h", Phase: GuardBefore, Verdict: true}}, {{Hook: "h", Phase: GuardAfter, Feedback: &GuardFeedback{1, 0.5, "{}"}}}} {
		r := sample()
		r.Metadata, r.Guards = nil, guards
		r.Call = &Call{Protocol: "mcp", Server: "s", Method: "tools/call", Name: "n", Auth: "Bearer", Decision: CallAllowed, Refreshed: true, Code: -32602}
		b := r.AppendEvent(nil)
		got, err := DecodeEvent(b)
		if d := cmp.Diff(r, got, compareUsage); d != "" || err != nil || b[1] != 6 {
			t.Errorf("version %d: %v %s", b[1], err, d)
		}
	}
}
