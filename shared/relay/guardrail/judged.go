package guardrail

import (
	"context"

	"gateway/shared/guard/chain"
	"gateway/shared/relay/admission"
	"gateway/shared/route"
)

// Judged records which input guardrails have judged a request. The zero value states that none
// has.
type Judged struct {
	any    bool
	by     chain.Hooks
	target *route.Leaf   // the current target, whose guardrails have not judged it yet; nil: they have
	missed []*route.Leaf // earlier targets whose guardrails never did
}

// Begin starts the next target.
func (j *Judged) Begin(target *route.Leaf) {
	if j.target != nil {
		j.missed = append(j.missed, j.target)
	}
	j.target = target
}

// complete ends the judgment by the guardrails of the current target.
func (j *Judged) complete(by chain.Hooks) {
	if j.any, j.target = true, nil; j.by == nil {
		j.by = by
	} else {
		j.by = append(j.by[:len(j.by):len(j.by)], by...)
	}
}

// Elsewhere records that no guardrail has to judge the request, or that they did before.
func (j *Judged) Elsewhere() { j.complete(nil) }

// All reports whether the guardrails of all targets that were tried have judged the request.
func (j *Judged) All() bool { return j.any && j.target == nil && len(j.missed) == 0 }

// Missed returns the targets whose guardrails have not judged the request. none is set if those
// of no target have.
func (j *Judged) Missed() (targets []*route.Leaf, none bool) {
	if j.target != nil {
		targets = append(targets, j.target)
	}
	return append(targets, j.missed...), !j.any
}

// Withholds reports whether an input guardrail of one of the targets, or of every request of the
// workspace, can deny or change the request and has not judged it. One that cannot be read does.
func (m *Deps) Withholds(ctx context.Context, q *admission.Request, of *Judged, targets []*route.Leaf) bool {
	if len(targets) == 0 {
		targets = []*route.Leaf{{}}
	}
	for _, leaf := range targets {
		if !HasGuardrails(leaf, q) {
			continue
		}
		found, err := m.gather(ctx, &q.Caller, leaf, q.Route.Endpoint)
		if err != nil {
			return true
		}
		if _, in := found.in.SplitAsync(q.Route.Endpoint); in.Without(of.by).Decide() {
			return true
		}
	}
	return false
}
