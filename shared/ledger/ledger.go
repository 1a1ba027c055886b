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
	// Due is the time after which an open entry is settled at its bound.
	Due = 20 * time.Minute
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
