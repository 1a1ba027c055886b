package relay

import (
	"gateway/shared/chat"
)

// effective makes the body that the target's config makes of the client's, and
// goes by it from here on: whether the answer is a stream, whether usage is told
// in it, and what it may cost.
func (tg *target) effective() error {
	tg.demands = tg.own
	if len(tg.in) == 0 || tg.to.leaf.Plain() {
		tg.byResponses(tg.in)
		return tg.withinBounds(tg.checked.Excess)
	}
	body, err := tg.to.leaf.Apply(nil, tg.in)
	if err != nil {
		return err
	}
	tg.to.body = body
	if tg.rt.Shape != Unified {
		return nil
	}
	tg.byResponses(body)
	if tg.rt.Client != nil {
		// What a config makes of a body keeps to the same bounds.
		checked := chat.Checked{ByTarget: true}
		if err := tg.rt.Client.Check(body, &checked); err != nil {
			return err
		}
		if err := tg.withinBounds(checked.Excess); err != nil {
			return err
		}
	}
	if err := bodyKeys.Walk(body, &tg.edited); err != nil {
		return err
	}
	tg.demands = tg.demandsOf(body, &tg.edited, tg.rt.Demand)
	return nil
}
