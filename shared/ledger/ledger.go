// Package ledger enforces limits: request and token rates in fixed windows, and budgets
// of money, tokens or requests that are reserved before a call and settled after it.
//
// A Subject is the owner of a limit: an API key, a workspace, a provider or an
// integration in a workspace, one bucket of a policy. It contains its limits (Rates,
// Budgets); its counters are rows of this package: one item in the rate table, one head
// in the spend table. A subject without limits costs no store operation.
//
// Rates (Admit) are one conditional update per limited subject. The window is a pure
// function of the unit and the time, its start is part of the row, and the next update of
// a row with an older window rolls it.
//
// Callers of a subject share its requests of a minute and of an hour when these are
// scarce; see fairSlots.
//
// Budgets (Reserve, Raise, Settle) are one conditional update per budgeted subject and
// step. In every spend row and for every kind of budget
//
//	available = limit - spent - sum(open)
//
// holds after every single write, whatever is lost or repeated: all changes of available
// and spent are additions, and the update that moves an open entry's money removes the
// entry. There is no reset job: the time of the next reset is part of the row, and the
// next update after it rolls the row. The configuration of the limits (the plan) is part
// of the row too; an update that finds another one migrates the row.
//
// An entry that is not settled within SettleAfter is settled at its bound by the next request
// that updates the head, and reported as unconfirmed; RepairAll visits all heads. The row
// stores a trace of it; see trace.go. A head with more than SplitAbove open entries
// splits into shards, rows that hold a part of the budget; see shard.go.
//
// Rates fail open when the store is unavailable or throttled (Hooks.FailedOpen), money fails closed.
// This package must not contain prices, HTTP, or resources and their loading.
package ledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Defaults of a Ledger's limits.
const (
	// SettleAfter is the time after which an open entry is settled at its bound.
	SettleAfter = 20 * time.Minute
	// SplitAbove is the number of open entries above which a row splits.
	SplitAbove = 128
	// settleTime limits the work that continues after a caller has disconnected.
	settleTime = 5 * time.Second
	// attempts limits the loops around conditional updates. Each iteration means that
	// another caller has changed the row meanwhile.
	attempts = 64
)

// Hooks are callbacks of the ledger. Each may be nil, must be safe for concurrent use,
// and runs on the caller's goroutine.
type Hooks struct {
	// FailedOpen counts a rate limit that was not enforced because the store was
	// unavailable.
	FailedOpen func(ctx context.Context, s *Subject, err error)
	// Alert is called when a budget crosses its threshold or is exhausted: once per
	// period. On an error the flag is cleared, so that the next settlement tries again.
	Alert func(ctx context.Context, a Alert) error
	// Unconfirmed is called for each entry that repair settles at its bound, before its
	// money moves, at least once; Entry identifies repeated calls. On an error the entry
	// stays open for the next repair. After the call no settlement of that entry has an
	// effect.
	Unconfirmed func(ctx context.Context, u Unconfirmed) error
	// Failed reports work that will be retried: a repair, an alert, a split.
	Failed func(ctx context.Context, what string, err error)
}

// Ledger enforces limits on the rate and spend tables. It is safe for
// concurrent use.
type Ledger struct {
	base   *base
	rates  *rates
	rows   *rows
	alarms alarms
}

// base has the common fields of rates and budgets.
type base struct {
	store store.Store
	clock func() time.Time
	hooks Hooks
	each  func(n int, f func(i int)) // each, inTurn, or a test's schedule
	turns bool                       // each is inTurn
}

// rates counts requests and tokens in windows.
type rates struct {
	*base
	rate store.Table
}

// rows are the rows of budgets: one per subject, or several that share its budget.
type rows struct {
	*base
	spend      store.Table
	splitAbove int
	spread     func(head store.Key, n int) int // the row that a new entry goes to
	shards     shardCounts
	splitting  sync.Map // head store.Key, while this process splits it
}

// alarms sends alerts of budgets that crossed a threshold or are exhausted.
type alarms struct{ *rows }

// New returns a ledger on the store's rate and spend tables. clock is time.Now except in
// tests.
func New(s store.Store, clock func() time.Time, h Hooks) *Ledger {
	b := &base{store: s, clock: clock, hooks: h, each: each}
	if m, ok := s.(interface{ Immediate() bool }); ok && m.Immediate() {
		b.each, b.turns = inTurn, true
	}
	r := &rows{base: b, spend: s.Table(store.Spend), splitAbove: SplitAbove, spread: func(_ store.Key, n int) int { return rand.IntN(n) }}
	return &Ledger{base: b, rates: &rates{b, s.Table(store.Rate)}, rows: r, alarms: alarms{r}}
}

func (b *base) failed(ctx context.Context, what string, err error) {
	if err != nil && b.hooks.Failed != nil {
		b.hooks.Failed(ctx, what, err)
	}
}

// each runs f for 0 to n-1 concurrently and waits for all.
func each(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { f(i) })
	}
	if n > 0 {
		f(0)
	}
	wg.Wait()
}

// inTurn runs f for 0 to n-1, for a store that updates rows in memory.
func inTurn(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// closed returns the fault for a budget when the store is unavailable.
func closed(err error) error {
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		return f
	}
	return fault.Unavailable(err)
}

// attrBucket is the value key of the bucket of a rate row. The store's key does not
// always contain it.
var attrBucket = store.At("bucket")

// RateState is a rate limit with the count of its current window.
type RateState struct {
	Limit    RateLimit
	Used     int64
	ResetsAt time.Time // the end of the window
}

// IsFull reports whether the window is full.
func (r RateState) IsFull() bool { return r.Used >= r.Limit.Value }

// RateStates returns the state of each of the subject's rate limits, in their order.
func (l *Ledger) RateStates(ctx context.Context, s *Subject) ([]RateState, error) {
	c := s.derive()
	if len(c.counts) == 0 {
		return nil, nil
	}
	row, _, err := l.rates.rate.Get(ctx, c.rate, true)
	if err != nil {
		return nil, closed(err)
	}
	out, _ := c.rates(row, l.rates.clock())
	return out, nil
}

// RateBucket is a bucket of a policy with a count in a current window.
type RateBucket struct {
	ValueKey string
	Rates    []RateState
	Place    string // position at which a list continues after it
}

// RateBuckets lists the counts of a policy's buckets; see rates.RateBuckets.
func (l *Ledger) RateBuckets(ctx context.Context, policy *Subject, after string, limit int) (list []RateBucket, next string, err error) {
	return l.rates.RateBuckets(ctx, policy, after, limit)
}

// RateBuckets lists the buckets of a rate policy, in the order of their rows. policy is
// the policy's subject without a Bucket; after is the next of the page before.
func (l *rates) RateBuckets(ctx context.Context, policy *Subject, after string, limit int) (list []RateBucket, next string, err error) {
	c := policy.derive()
	q := store.Query{Partition: c.rate.Partition(), After: after, Limit: limit}
	for row, err := range store.Rows(ctx, l.rate, q) {
		if err != nil {
			return nil, "", closed(err)
		}
		name := row.Item.String(attrBucket.Attr)
		rates, any := c.rates(row.Item, l.clock())
		if name == "" || !any {
			continue
		}
		list = append(list, RateBucket{name, rates, row.Key.SK()})
		if limit > 0 && len(list) == limit {
			return list, row.Key.SK(), nil
		}
	}
	return list, "", nil
}

// rates returns the limits with the row's counts; any reports whether it has some.
func (c *compiled) rates(row store.Item, now time.Time) (out []RateState, any bool) {
	for i := range c.counts {
		n := &c.counts[i]
		w := n.current(now.Unix(), row)
		state := RateState{Limit: n.RateLimit, ResetsAt: time.Unix(w+n.unit.length, 0).UTC()}
		if row.Int(n.id.Attr) == w {
			state.Used = row.Int(n.n.Attr)
		}
		any = any || state.Used > 0
		out = append(out, state)
	}
	return out, any
}
