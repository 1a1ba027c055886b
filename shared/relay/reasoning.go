package relay

import "gateway/shared/chat"

// remember keeps the signed reasoning of an answer whose client cannot return it.
func (tg *target) remember(signed []chat.Signed) {
	if !tg.strict() {
		return
	}
	for _, s := range signed {
		if err := tg.memory.Put(tg.Ctx, tg.Who.Scope, s); err != nil {
			tg.Fail("remember reasoning", err)
		}
	}
}

// recall is given to the dialect that encodes the next turn.
func (tg *target) recall(toolCallID string) []chat.Part {
	parts, err := tg.memory.Get(tg.Ctx, tg.Who.Scope, toolCallID)
	if err != nil {
		tg.Fail("recall reasoning", err)
	}
	return parts
}
