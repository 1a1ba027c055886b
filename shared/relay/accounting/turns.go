package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/relay/ownership"
)

// maxItems limits the items of a response with a recorded size.
const maxItems = 64

// NoteTurn stores the sizes of a response and of its items, which a later request may name by
// their ids, so that the request reserves that instead of the model's full context window. It does
// so while a budget is in force; m is as the provider reported it.
func NoteTurn(b *Bill, m chat.Meter) {
	if m.ID == "" || !m.Usage.Known() || m.Usage.Estimated || !b.Purse.Holds() && !b.Purse.Inherited() {
		return
	}
	tokens := max(m.Usage.TotalTokens(), m.ReportedTotal)
	if err := b.Target.Bookings().NoteTurn(m.ID, ownership.Turn{RequestedModel: b.Target.To.Model, Answered: m.Model, Tokens: tokens}); err != nil {
		b.Target.Req.Fail("note a turn", err)
	}
	for _, it := range m.Items[:min(len(m.Items), maxItems)] {
		amount := it.Tokens
		if amount < 0 {
			amount = tokens
		}
		if err := b.Target.Bookings().NoteTurn(it.ID, ownership.Turn{RequestedModel: b.Target.To.Model, Answered: m.Model, Tokens: amount}); err != nil {
			b.Target.Req.Fail("note an item", err)
			return
		}
	}
}

// seenTurn returns what NoteTurn has stored about an id, if the same model continues it.
func seenTurn(b *Bill, id string) (tokens int64, ok bool) {
	t, ok, err := b.Target.Bookings().Turn(id)
	if err != nil {
		b.Target.Req.Fail("read a turn", err)
		return 0, false
	}
	if !ok || !t.Of(b.ModelOf()) && !t.Of(b.Target.To.Model) {
		return 0, false
	}
	return t.Tokens, true
}
