package relay

import (
	"gateway/shared/fault"
	"gateway/shared/route"
)

// The guard stages stand in their places and are empty: see the package's doc for
// what each of them sees.

// guardInput is where the guardrails before a target judge what it is to be sent.
// The target is chosen, and the client's body is what its config made of it; what is
// put in To.Body goes in its place. None are known here: a config that asks for some
// is refused, so that nobody is served without the checks that were asked for.
func (rq *requests) guardInput(leaf *route.Leaf) error {
	if len(leaf.Input)+len(leaf.Output) == 0 {
		return nil
	}
	return fault.New(fault.UnsupportedOperation, "guardrails", "This installation has no guardrails: a config that asks for checks is not served without them")
}

// guardStream is where the guardrails behind a target begin to judge an answer that is
// a stream, before its first byte is read.
func (st *streams) guardStream(*route.Leaf, *answer) {}

// guardOutput is where the guardrails behind a target judge its answer: one that is
// whole, or passed through as it comes, or kept, or the gateway's own; of a stream what
// was held of it. What it refuses becomes the answer.
func (x *exchanges) guardOutput(_ *route.Leaf, a answer) answer { return a }
