package accounting

import (
	"encoding/json"
	"time"

	"gateway/shared/chat"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/ownership"
)

// How long budgets hold a reservation for a provider's background work if no request reads its
// end. Afterwards it is charged at its bound.
const (
	// HoldResponse is for responses, interactions and runs: longer than the gateway polls
	// for their end (batch.AwaitedFor).
	HoldResponse = 25 * time.Hour
	// HoldBatch is for batches: a window of 24 hours, and time to read the result.
	HoldBatch = 72 * time.Hour
)

// HoldUntilBooked holds this request's reservation for the work that its provider does under an
// id, until a request claims the end of that work or the time is over.
func (b *Bill) HoldUntilBooked(id string, d time.Duration) {
	if id == "" || len(id) > ownership.MaxID || !b.Purse.Holds() {
		return
	}
	held, err := b.Purse.Hold(b.Target.Req.Base, b.Target.Req.Start.Add(d))
	if err != nil {
		b.Target.Req.Fail("hold a reservation", err) // repair charges it at its bound, earlier
	}
	if len(held) == 0 {
		return
	}
	raw, err := json.Marshal(held)
	if err == nil {
		err = b.Target.Bookings().Hold(id, raw)
	}
	if err != nil {
		b.Target.Req.Fail("store a held reservation", err)
	}
}

// Claim reports whether this request is the first to see the end of a provider's background
// work. The first one settles the reservation held for it.
func (b *Bill) Claim(id string) bool {
	first, _ := claim(b, id)
	return first
}

// ClaimedByOther claims the charge as well, and reports whether another request certainly was
// the first.
func (b *Bill) ClaimedByOther(id string) bool {
	first, err := claim(b, id)
	return !first && err == nil
}

// claim reads the reservation before it claims: if the read fails, a later request charges the
// work.
func claim(b *Bill, id string) (first bool, err error) {
	raw, err := b.Target.Bookings().Held(id)
	var held []ledger.Held
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &held)
	}
	if err != nil {
		b.Target.Req.Fail("read a held reservation", err)
		return false, err
	}
	if first, err = b.Target.Bookings().Claim(id); first {
		b.Purse.Inherit(held)
	}
	return first, err
}

// UsedLater returns the usage of a background response, unless another request has charged it.
func (b *Bill) UsedLater(m chat.Meter) (u pricing.Usage) {
	if !m.Usage.Known() || m.ID == "" || len(m.ID) > ownership.MaxID || !b.Claim(m.ID) {
		return u
	}
	return m.Usage
}
