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
func (c *call) keepMade(answer []byte, id string) error {
	if c.rt.Client == nil {
		return c.keep(answer)
	}
	if id == "" || !c.sameDialect() {
		return nil
	}
	if c.rt.Operation == provider.ResponsesCreate || c.rt.Operation == provider.Chat && c.storesChat() {
		return c.keepIDs(id)
	}
	return nil
}

var bookingKeys = wire.NewKeySet("object", "id", "status", "usage", "model", "endpoint")

// ended are the states in which a batch makes no more usage.
var ended = map[string]bool{"completed": true, "expired": true, "cancelled": true, "failed": true}

// settleBatch books the usage of a finished batch with the request that first
// sees it. The rows of a batch run at the provider, long after it was created,
// so its cost comes to no request of their own.
func (c *call) settleBatch(answer []byte) {
	if c.rt.Operation != provider.BatchesGet && c.rt.Operation != provider.BatchesOutput || c.to.saved == nil || c.errorDialect() == nil {
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
		if c.to.jobs != nil {
			c.jobUsage(id)
		} else {
			c.rowsUsage(id, answer)
		}
		return
	}
	u, ok := batchUsage(w.Spans[3].Of(answer))
	if !ok || !c.claimBooking(id) {
		return
	}
	if w.Spans[4].Present(answer) {
		if model, err := wire.ScanString(w.Spans[4].Of(answer), "model"); err == nil {
			c.to.model, c.rec.Model = model, model
		}
	}
	c.wanted.Mode = "batch"
	c.charge(u)
	c.spend()
}

// claimBooking tells whether this request is the first to see the end of what a
// provider did in its own time: a batch, a run or a response in the background.
func (c *call) claimBooking(id string) bool {
	until := c.start.Add(ownedFor)
	err := c.owners.table.Put(c.base, store.Row{Key: c.bookingKey(id), Item: store.Item{"request": c.ulid}, Expires: until}, store.IfAbsent())
	if _, taken := store.AsCondition(err); taken {
		return false
	}
	if err != nil {
		c.fail("claim booking", err)
	}
	return err == nil
}

// bookingKey is the row that claims such a thing for the books. What is made
// with a credential of the caller's own is claimed in the caller's workspace.
func (c *call) bookingKey(id string) store.Key {
	if c.to.saved == nil {
		return c.who.Scope.Partition("BATCH", c.to.target.Provider.ID).Key(id)
	}
	return c.who.Scope.Organisation().Partition("BATCH", c.to.saved.integrationID).Key(id)
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
func (c *call) spend() {
	own, its := c.budgeted()
	bound := ledger.Bound{Cost: c.rec.Cost, Tokens: c.rec.Usage.TotalTokens(), Priced: c.rec.Priced || c.org.Settings.Unpriced == "allow"}
	for _, subjects := range [...][]*ledger.Subject{own, its} {
		if len(subjects) == 0 {
			continue
		}
		r, err := c.Ledger.Reserve(c.base, c.ulid, subjects, bound)
		if err != nil {
			c.fail("budget of a finished batch", err)
			continue
		}
		if err := r.Settle(c.base, c.rec.Cost, c.rec.Usage.TotalTokens()); err != nil {
			c.fail("settle", err)
		}
		c.rec.SettleSubjects = append(c.rec.SettleSubjects, r.Entries()...)
	}
}
