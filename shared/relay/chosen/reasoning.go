package chosen

import "gateway/shared/chat"

// Remember keeps the signed reasoning of an answer whose client cannot return it.
func (tg *Target) Remember(signed []chat.Signed) {
	if !tg.Strict() {
		return
	}
	for _, s := range signed {
		if err := tg.Means.Memory.Put(tg.Req.Ctx, tg.Req.Who.Scope, s); err != nil {
			tg.Req.Fail("remember reasoning", err)
		}
	}
}

// Recall is given to the dialect that encodes the next turn.
func (tg *Target) Recall(toolCallID string) []chat.Part {
	parts, err := tg.Means.Memory.Get(tg.Req.Ctx, tg.Req.Who.Scope, toolCallID)
	if err != nil {
		tg.Req.Fail("recall reasoning", err)
	}
	return parts
}
