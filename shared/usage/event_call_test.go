package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsOfCallsStayReadable(t *testing.T) {
	t.Parallel()
	for n, guards := range [][]Guard{nil, {{Hook: "h", Phase: GuardBefore, Verdict: true}}, {{Hook: "h", Phase: GuardAfter, Feedback: &GuardFeedback{1, 0.5, "{}"}}}} {
		r := sample()
		r.Metadata, r.Guards = nil, guards
		r.Call = &Call{Protocol: "mcp", Server: "s", Method: "tools/call", Name: "n", Auth: "Bearer", Decision: CallAllowed, Refreshed: true, Code: -32602, Version: "2025-11-25", Failed: true}
		if n == 1 {
			r.Call.Virtual = "v"
		}
		if n > 0 {
			r.Call.Gateway = "1.0.0"
		}
		if n == 2 {
			r.Call.Scope = "mcp:read mcp:write"
		}
		b := r.AppendEvent(nil)
		got, err := DecodeEvent(b)
		if d := cmp.Diff(r, got, compareUsage); d != "" || err != nil || b[1] != 6 {
			t.Errorf("version %d: %v %s", b[1], err, d)
		}
		if n > 0 {
			continue
		}
		// Calls reported before the version was added.
		text := string(r.Call.append(nil))
		within := cursor{rest: text[:len(text)-len("2025-11-25")-2]}
		old := Record{}
		within.call(&old)
		want := *r.Call
		if want.Version, want.Failed = "", false; within.bad || *old.Call != want {
			t.Errorf("%+v", old.Call)
		}
	}
}
