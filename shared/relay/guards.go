package relay

import (
	"gateway/shared/fault"
	"gateway/shared/route"
)

// guardInput is where the guardrails before a target judge what it is to be sent.
// None are known here: a config that asks for some is refused, so that nobody is
// served without the checks that were asked for.
func (rq *requests) guardInput(leaf *route.Leaf) error {
	if len(leaf.Input)+len(leaf.Output) == 0 {
		return nil
	}
	return fault.New(fault.UnsupportedOperation, "guardrails", "This installation has no guardrails: a config that asks for checks is not served without them")
}

// guardOutput is where the guardrails behind a target judge its answer: see
// guardInput.
func (x *exchanges) guardOutput(_ *route.Leaf, a answer) answer { return a }
