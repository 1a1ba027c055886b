package ledger

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Charge records an expense without a reservation: it does not check the budget, which
// may exceed its limit and then rejects the next request. Models without a price are
// charged their tokens. The Reservation is settled, or can be settled again after an
// error; it is nil if no subject has a budget.
func (l *Ledger) Charge(ctx context.Context, requestID string, subjects []*Subject, used Used) (*Reservation, error) {
	r := l.reservation(requestID, subjects)
	return r, r.Settle(ctx, used.Cost, used.Tokens)
}

// Held is an entry of a reservation that outlives its request; see Hold.
type Held struct {
	PK                     string `json:"pk"` // key of the entry's row
	SK                     string `json:"sk"`
	ID                     string `json:"id"`
	Cost, Tokens, Requests int64  // already charged, to add to the usage of the work; negative if repair has charged it
}

// Hold retains the reservation after its request has ended, for work that continues at a
// provider: until SettleHeld is called with the returned entries. Repair settles entries
// at their bound if they are not settled by the given time, instead of after SettleAfter. before
// is the usage of the request itself. The reservation must not be used any more; settling
// it does nothing.
//
// Every subject gets an entry, even if the bound takes nothing from its budgets. On an
// error the entries are returned as well: those that could not be held are repaired
// earlier, and then SettleHeld does not charge them again.
func (r *Reservation) Hold(ctx context.Context, until time.Time, before Used) ([]Held, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled || r.held {
		return nil, nil
	}
	r.held = true
	late := detach(ctx)
	defer late.end()
	errs := make([]error, len(r.parts))
	r.l.base.each(len(r.parts), func(i int) { errs[i] = r.l.hold(late, r.parts[i], r.request, until) })
	used := before.amounts()
	used[slotRequests] = 1
	var held []Held
	for i, p := range r.parts {
		if p.id != "" {
			held = append(held, Held{p.key.PK(), p.key.SK(), p.id, used[slotCost] - p.charged[slotCost], used[slotTokens] - p.charged[slotTokens], used[slotRequests] - p.charged[slotRequests]})
		}
		if errs[i] != nil {
			errs[i] = closed(errs[i])
		}
	}
	return held, errors.Join(errs...)
}

// hold gives the part's entry a later due time. Its turn is that of an additional entry,
// since the request has its own record by the time repair reports the entry.
func (l *Ledger) hold(ctx context.Context, p *part, request string, until time.Time) error {
	if p.id == "" {
		if err := l.open(ctx, p, request, Bound{Priced: true}, true); err != nil {
			return err
		}
	}
	for range attempts {
		e := p.entry
		e.due, e.turn = until.Unix(), max(e.turn, 1)
		path, value := store.In(attrOpen, p.id), e.encode()
		_, _, err := l.rows.spend.Update(ctx, store.Update{
			Key: p.key,
			Set: []store.Assign{{Path: path, Value: value}},
			If:  []store.Cond{store.IfEqual(path, p.value)},
		})
		if err == nil {
			p.entry, p.value = e, value
			return nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			return err
		}
		stored, open := failed.Current.Map(attrOpen)[p.id].([]byte)
		if !open || repairing(stored) || bytes.Equal(stored, value) {
			return nil // repair was faster and charges the bound, or it is written
		}
		known, err := decodeEntry(stored) // as an earlier raise without a response left it
		if err != nil {
			return err
		}
		p.entry, p.value = known, stored
	}
	return store.ErrContended
}

// SettleHeld settles entries of Hold at the final usage of the work, in addition to that
// of its request. It returns the settlements for the record, also on an error, after
// which SettleEntry can repeat them. Entries that were settled before are not charged
// again.
func (l *Ledger) SettleHeld(ctx context.Context, held []Held, used Used) ([]usage.Settle, error) {
	late := detach(ctx)
	defer late.end()
	final, errs := make([]usage.Settle, len(held)), make([]error, len(held))
	l.base.each(len(held), func(i int) {
		h := &held[i]
		a := amounts{h.Cost + max(int64(used.Cost), 0), h.Tokens + max(used.Tokens, 0), h.Requests}
		final[i] = settlement(store.RawKey(h.PK, h.SK), h.ID, atLeast(a, amounts{}))
		errs[i] = l.SettleEntry(late, final[i])
	})
	return final, errors.Join(errs...)
}

// CheckExhausted returns the fault of a subject's exhausted budget, for work that
// reserves only later, such as a session; nil if there is none.
func (l *Ledger) CheckExhausted(ctx context.Context, s *Subject) error {
	states, err := l.State(ctx, s)
	if err != nil {
		return err
	}
	for i := range states {
		if b := &states[i]; b.Status == Exhausted && b.Limit.OnExceeded != Audit {
			f := fault.Newf(fault.BudgetExhausted, "", "The %s budget of %s is exhausted: limit %s, used %s", b.Limit.Type, s.name(), b.Limit.Type.words(b.Limit.CreditLimit+b.Raised), b.Limit.Type.words(b.Usage))
			f.Limit = s.exhausted(b.Limit.Type, states)
			f.Limit.Needed = 1
			return f
		}
	}
	return nil
}

// ExhaustionCache caches whether budgets are exhausted, for frequent checks by waiting
// sessions. Concurrent checks share one read. The cache is per process.
type ExhaustionCache struct {
	ledger *Ledger
	most   time.Duration
	mu     sync.Mutex
	known  map[exhaustionKey]*exhaustionResult
}

// exhaustionKey is a subject with a revision of its limits.
type exhaustionKey struct {
	head     store.Key
	revision int64
}

// exhaustionResult is a result, which is available once done is closed.
type exhaustionResult struct {
	checkedAt time.Time
	done      chan struct{}
	exhausted bool
	err       error
}

// ExhaustionCache returns a cache with results of at most the given age.
func (l *Ledger) ExhaustionCache(most time.Duration) *ExhaustionCache {
	return &ExhaustionCache{ledger: l, most: most, known: map[exhaustionKey]*exhaustionResult{}}
}

// maxCached is the number of results above which outdated ones are evicted.
const maxCached = 4096

// Exhausted reports whether a budget of a subject is exhausted. A result's age counts
// from its request. An error is only returned to the callers that waited for it. ctx is
// that of the first caller, and must not end with its request.
func (w *ExhaustionCache) Exhausted(ctx context.Context, s *Subject) (bool, error) {
	key := exhaustionKey{s.derive().head, s.Revision}
	now := w.ledger.base.clock()
	w.mu.Lock()
	a := w.known[key]
	if a != nil && now.Sub(a.checkedAt) < w.most && !now.Before(a.checkedAt) {
		w.mu.Unlock()
		<-a.done
		return a.exhausted, a.err
	}
	a = &exhaustionResult{checkedAt: now, done: make(chan struct{})}
	if len(w.known) >= maxCached {
		for k, old := range w.known {
			if now.Sub(old.checkedAt) >= w.most {
				delete(w.known, k)
			}
		}
	}
	w.known[key] = a
	w.mu.Unlock()
	defer close(a.done)
	states, err := w.ledger.State(ctx, s)
	for i := range states {
		a.exhausted = a.exhausted || states[i].Status == Exhausted && states[i].Limit.OnExceeded != Audit
	}
	if a.err = err; err != nil {
		w.mu.Lock()
		if w.known[key] == a {
			delete(w.known, key)
		}
		w.mu.Unlock()
	}
	return a.exhausted, a.err
}
