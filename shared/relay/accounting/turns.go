package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/relay/ownership"
)

// NoteTurn stores the size of a response that a later request may continue by its id, so that
// the request reserves that instead of the model's full context window. It does so while a
// budget is in force; m is as the provider reported it.
func NoteTurn(b *Bill, m chat.Meter) {
	if m.ID == "" || !m.Usage.Known() || m.Usage.Estimated || !b.Purse.Holds() && !b.Purse.Inherited() {
		return
	}
	tokens := max(m.Usage.TotalTokens(), m.ReportedTotal)
	if err := b.Target.Bookings().NoteTurn(m.ID, ownership.Turn{RequestedModel: b.Target.To.Model, Answered: m.Model, Tokens: tokens}); err != nil {
		b.Target.Req.Fail("note a turn", err)
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
