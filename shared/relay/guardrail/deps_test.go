package guardrail

import (
	"testing"

	"gateway/shared/relay/admission"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

// TestNoGuardrailsCostNothing checks that a target without guardrails needs no allocation.
func TestNoGuardrailsCostNothing(t *testing.T) {
	q := &admission.Request{Caller: admission.Caller{WS: &tenant.Effective{}, Org: &tenant.Organisation{}}}
	leaf, s := &route.Leaf{}, State{}
	if n := testing.AllocsPerRun(100, func() {
		s.ResetTarget()
		if HasGuardrails(leaf, q) || s.Outputs() || s.JudgesEnd() || s.Verdict.Status(200) != 200 {
			t.Fatal("it has guardrails")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	q.Org.InputGuardrails = []string{"pg-a"}
	if !HasGuardrails(leaf, q) {
		t.Error("the organization's are left out")
	}
	if q.Child = true; HasGuardrails(leaf, q) {
		t.Error("the gateway's own request has guardrails")
	}
}

func BenchmarkNoGuardrails(b *testing.B) {
	q := &admission.Request{Caller: admission.Caller{WS: &tenant.Effective{}, Org: &tenant.Organisation{}}}
	leaf := &route.Leaf{}
	for b.Loop() {
		if HasGuardrails(leaf, q) {
			b.Fatal("it has guardrails")
		}
	}
}
