package ownership

import (
	"context"
	"crypto/rand"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/wire"
)

var batchKeys = wire.NewKeySet("object", "id", "status", "usage", "model", "endpoint", "request_counts")

// ended are the final states of a batch, with no further usage.
var ended = map[string]bool{"completed": true, "expired": true, "cancelled": true, "failed": true}

// Ended is a finished batch, as reported by its provider.
type Ended struct {
	ID           string
	ReportsUsage bool // it reports usage: otherwise its rows do
	Usage        pricing.Usage
	Known        bool  // Usage could be read
	Rows         int64 // rows that Usage sums; 0: unknown
	Model        string
}

// EndedBatch reads the response to a read of a batch; ok is false if it has not ended.
func EndedBatch(answer []byte) (b Ended, ok bool) {
	var w wire.Walk
	if batchKeys.Walk(answer, &w) != nil || !w.Spans[1].Present(answer) {
		return b, false
	}
	status, _ := wire.ScanString(w.Spans[2].Of(answer), "status")
	id, err := wire.ScanString(w.Spans[1].Of(answer), "id")
	if !ended[status] || err != nil || len(id) > MaxID {
		return b, false
	}
	b.ID = id
	if b.ReportsUsage = w.Spans[3].Present(answer); b.ReportsUsage {
		b.Usage, b.Known = batchUsage(w.Spans[3].Of(answer))
	}
	if counts := w.Spans[6]; counts.Present(answer) && wire.KindOf(counts.Of(answer)) == wire.KindObject {
		d := wire.NewDecoder(counts.Of(answer))
		for k := range d.Object {
			if string(k) == "completed" && d.Kind() == wire.KindNumber {
				b.Rows = d.Int()
			}
		}
	}
	if w.Spans[4].Present(answer) {
		if model, err := wire.ScanString(w.Spans[4].Of(answer), "model"); err == nil {
			b.Model = model
		}
	}
	return b, true
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

func claimKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("BATCH", place).Key(id)
}

// Claim reports whether a request is the first to see the end of a provider's background work: a
// batch, a run or a background response. Such work is identified by a scope, and by the provider
// or integration that did it.
func (o *Owners) Claim(ctx context.Context, sc store.Scope, place, id, request string) (first bool, err error) {
	by := rand.Text()
	row := store.Row{Key: claimKey(sc, place, id), Item: store.Item{"request": request, "by": by}, Expires: o.Now().Add(ownedFor)}
	err = o.Table.Put(ctx, row, store.IfAbsent())
	if there, taken := store.AsCondition(err); taken {
		// A repeated write of this very claim fails as well.
		return there.Current.String("by") == by, nil
	}
	return err == nil, err
}

// ClaimAt is Claim for work that is known at several places: the claim at the first place
// decides. An error at a later place does not change it.
func (o *Owners) ClaimAt(ctx context.Context, sc store.Scope, places []string, id, request string) (first bool, err error) {
	for i, place := range places {
		if first, err = o.Claim(ctx, sc, place, id, request); i == 0 && err != nil || err == nil && !first {
			return false, err
		}
	}
	return true, err
}

// Claimed reports whether the usage of such work was charged.
func (o *Owners) Claimed(ctx context.Context, sc store.Scope, place, id string) (bool, error) {
	_, there, err := o.Table.Get(ctx, claimKey(sc, place, id), true)
	return there, err
}

func heldKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("HELD", place).Key(id)
}

// StoreReservations stores the reservations for a provider's background work, at each of the places
// where that is known. The request that claims the work settles them.
func (o *Owners) StoreReservations(ctx context.Context, sc store.Scope, places []string, id string, held []byte) error {
	for _, place := range places {
		row := store.Row{Key: heldKey(sc, place, id), Item: store.Item{"held": held}, Expires: o.Now().Add(ownedFor)}
		if err := o.Table.Put(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// LoadReservations returns what StoreReservations has stored, from the first of the places that has
// it; nil if none has.
func (o *Owners) LoadReservations(ctx context.Context, sc store.Scope, places []string, id string) ([]byte, error) {
	for _, place := range places {
		item, there, err := o.Table.Get(ctx, heldKey(sc, place, id), true)
		if err != nil {
			return nil, err
		}
		if held, ok := item["held"].([]byte); there && ok {
			return held, nil
		}
	}
	return nil, nil
}
