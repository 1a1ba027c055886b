package relay

import (
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// keepMade notes what a unified answer made: a response, and a chat that is to be
// kept, by its id, other things by what the answer says.
func (o *ownerWall) keepMade(answer []byte, id string) error {
	if o.rt.Client == nil {
		return o.keep(answer)
	}
	if id == "" || !o.sameDialect() {
		return nil
	}
	if o.rt.Operation == provider.ResponsesCreate || o.rt.Operation == provider.Chat && o.storesChat() {
		return o.keepIDs(id)
	}
	return nil
}

var bookingKeys = wire.NewKeySet("object", "id", "status", "usage", "model", "endpoint")

// ended are the states in which a batch makes no more usage.
var ended = map[string]bool{"completed": true, "expired": true, "cancelled": true, "failed": true}

// settleBatch books the usage of a finished batch with the request that first
// sees it. The rows of a batch run at the provider, long after it was created,
// so its cost comes to no request of their own.
func (s *sender) settleBatch(answer []byte) {
	if s.rt.Operation != provider.BatchesGet && s.rt.Operation != provider.BatchesOutput || s.to.saved == nil || s.errorDialect() == nil {
		return
	}
	var w wire.Walk
	if bookingKeys.Walk(answer, &w) != nil || !w.Spans[1].Present(answer) {
		return
	}
	status, _ := wire.ScanString(w.Spans[2].Of(answer), "status")
	id, err := wire.ScanString(w.Spans[1].Of(answer), "id")
	if !ended[status] || err != nil || len(id) > maxID {
		return
	}
	if !w.Spans[3].Present(answer) {
		if s.to.jobs != nil {
			s.jobUsage(id)
		} else {
			s.rowsUsage(id, answer)
		}
		return
	}
	u, ok := batchUsage(w.Spans[3].Of(answer))
	if !ok || !s.claimBooking(id) {
		return
	}
	if w.Spans[4].Present(answer) {
		if model, err := wire.ScanString(w.Spans[4].Of(answer), "model"); err == nil {
			s.to.model, s.rec.Model = model, model
		}
	}
	s.wanted.Mode = "batch"
	s.charge(u)
	s.spend()
}

// claimBooking tells whether this request is the first to see the end of what a
// provider did in its own time: a batch, a run or a response in the background.
func (o *ownerWall) claimBooking(id string) bool {
	until := o.start.Add(ownedFor)
	err := o.owners.table.Put(o.base, store.Row{Key: o.bookingKey(id), Item: store.Item{"request": o.ulid}, Expires: until}, store.IfAbsent())
	if _, taken := store.AsCondition(err); taken {
		return false
	}
	if err != nil {
		o.fail("claim booking", err)
	}
	return err == nil
}

// bookingKey is the row that claims such a thing for the books. What is made
// with a credential of the caller's own is claimed in the caller's workspace.
func (o *ownerWall) bookingKey(id string) store.Key {
	if o.to.saved == nil {
		return o.who.Scope.Partition("BATCH", o.to.target.Provider.ID).Key(id)
	}
	return o.who.Scope.Organisation().Partition("BATCH", o.to.saved.integrationID).Key(id)
}

// batchUsage reads {input_tokens, input_tokens_details:{cached_tokens},
// output_tokens, output_tokens_details:{reasoning_tokens}}.
func batchUsage(raw []byte) (u pricing.Usage, ok bool) {
	var in, cached, out, reasoning int64
	d := wire.NewDecoder(raw)
	count := func(into *int64, inner string) {
		for k := range d.Object {
			if string(k) == inner && d.Kind() == wire.KindNumber {
				*into = d.Int()
			}
		}
	}
	for k := range d.Object {
		key := string(k)
		switch kind := d.Kind(); {
		case key == "input_tokens" && kind == wire.KindNumber:
			in = d.Int()
		case key == "output_tokens" && kind == wire.KindNumber:
			out = d.Int()
		case key == "input_tokens_details" && kind == wire.KindObject:
			count(&cached, "cached_tokens")
		case key == "output_tokens_details" && kind == wire.KindObject:
			count(&reasoning, "reasoning_tokens")
		}
	}
	if d.Err() != nil || in < 0 || out < 0 || cached < 0 || cached > in || reasoning < 0 || reasoning > out || in+out == 0 {
		return u, false
	}
	u.Set(pricing.Input, in-cached)
	u.Set(pricing.CacheRead, cached)
	u.Set(pricing.Output, out-reasoning)
	u.Set(pricing.Reasoning, reasoning)
	return u, true
}

// spend takes the cost of the request from the budgets though none was reserved:
// the money is gone already. What an exhausted budget refuses stands in the
// record alone.
func (bk *books) spend() {
	own, its := bk.budgeted()
	bound := ledger.Bound{Cost: bk.rec.Cost, Tokens: bk.rec.Usage.TotalTokens(), Priced: bk.rec.Priced || bk.org.Settings.Unpriced == "allow"}
	for _, subjects := range [...][]*ledger.Subject{own, its} {
		if len(subjects) == 0 {
			continue
		}
		r, err := bk.Ledger.Reserve(bk.base, bk.ulid, subjects, bound)
		if err != nil {
			bk.fail("budget of a finished batch", err)
			continue
		}
		if err := r.Settle(bk.base, bk.rec.Cost, bk.rec.Usage.TotalTokens()); err != nil {
			bk.fail("settle", err)
		}
		bk.rec.SettleSubjects = append(bk.rec.SettleSubjects, r.Entries()...)
	}
}
