package guardrail

import (
	"context"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/relay/admission"
	"gateway/shared/route"
)

// found are the hooks of a target that apply to a caller's requests of a kind.
type found struct {
	in, out   chain.Hooks
	outBeside chain.Hooks // asynchronous output hooks
}

// gather finds the hooks of a target.
func (m *Means) gather(ctx context.Context, who *admission.Caller, leaf *route.Leaf, kind string) (of found, err error) {
	made := m.ofLeaf(leaf)
	input, output := who.WS.Guardrails(who.Org)
	if of.in, err = m.hooks(ctx, who, made.input, input); err != nil {
		return of, err
	}
	out, err := m.hooks(ctx, who, made.output, output)
	if err != nil {
		return of, err
	}
	of.outBeside, of.out = out.Apart(kind)
	return of, nil
}

// by returns the hooks that judge streams in a given mode.
func (of *found) by(when guard.When) (out chain.Hooks) {
	for _, h := range of.out {
		if h.Streams() == when {
			out = append(out, h)
		}
	}
	return out
}

// onTheWay reports whether a hook judges a stream before it has ended.
func (of *found) onTheWay() bool {
	for _, h := range of.out {
		if h.Streams() != guard.StreamAfter {
			return true
		}
	}
	return false
}

// atTheEnd reports whether a hook judges a stream once it has ended.
func (of *found) atTheEnd() bool { return len(of.by(guard.StreamAfter)) > 0 || len(of.outBeside) > 0 }
