package ledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// hands is a clock that a test moves.
type hands struct{ ms atomic.Int64 }

func clockAt(s string) *hands {
	h := &hands{}
	h.ms.Store(at(s).UnixMilli())
	return h
}

func (h *hands) now() time.Time      { return time.UnixMilli(h.ms.Load()).UTC() }
func (h *hands) add(d time.Duration) { h.ms.Add(d.Milliseconds()) }
func (h *hands) set(s string)        { h.ms.Store(at(s).UnixMilli()) }
func (h *hands) plus(d time.Duration) func() time.Time {
	return func() time.Time { return h.now().Add(d) }
}

var tenant = store.Scope{Org: "acme", Workspace: "w1"}

func rated(kind Kind, id string, rates ...RateLimit) *Subject {
	return &Subject{Scope: tenant, Kind: kind, ID: id, Label: id + "-label", Rates: rates}
}

func admitted(t *testing.T, l *Ledger, subjects ...*Subject) bool {
	t.Helper()
	_, err := l.rates.Admit(context.Background(), "", subjects)
	if err != nil && !fault.Is(err, fault.RateLimited) {
		t.Fatal(err)
	}
	return err == nil
}

func TestNoLimitsCostNothing(t *testing.T) {
	m := newMemory()
	l := New(m, time.Now, Hooks{})
	s := []*Subject{rated(Key, "k"), nil, rated(Workspace, "w")}
	if n := testing.AllocsPerRun(100, func() {
		a, err := l.rates.Admit(context.Background(), "", s)
		r, err2 := l.Reserve(context.Background(), "r", s, Bound{Cost: 5, Tokens: 5})
		if err != nil || err2 != nil || a.ReserveTokens(context.Background(), 5) != nil || r.Raise(context.Background(), Bound{}) != nil || r.Settle(context.Background(), 1, 1) != nil {
			t.Fatal("refused")
		}
		a.SettleTokens(context.Background(), 5)
		a.Return(context.Background())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if m.ops.Load() != 0 {
		t.Errorf("%d store operations", m.ops.Load())
	}
}

func TestOneSubjectCostsOneOperation(t *testing.T) {
	m, h := newMemory(), clockAt("2026-11-20T14:00:00Z")
	l := New(m, h.now, Hooks{})
	s := rated(Key, "k", RateLimit{Requests, PerMinute, 10}, RateLimit{Requests, PerDay, 100})
	admitted(t, l, s)
	before := m.ops.Load()
	admitted(t, l, s)
	if n := m.ops.Load() - before; n != 1 {
		t.Errorf("%d operations for a second request in the window", n)
	}
	h.add(time.Minute)
	before = m.ops.Load()
	admitted(t, l, s)
	if n := m.ops.Load() - before; n != 2 {
		t.Errorf("%d operations for the first request of a window", n)
	}
}

func TestWindowsFillAndRoll(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00.250Z")
	l := New(newMemory(), h.now, Hooks{})
	s := rated(Key, "build-bot", RateLimit{Requests, PerMinute, 2}, RateLimit{Requests, PerHour, 3})
	for range 2 {
		if !admitted(t, l, s) {
			t.Fatal("refused below the limit")
		}
	}
	_, err := l.rates.Admit(context.Background(), "", []*Subject{s})
	f := fault.From(err)
	if f.Code != fault.RateLimited || f.RetryAfter != time.Minute || !strings.Contains(f.Message, `API key "build-bot-label"`) || !strings.Contains(f.Message, "2 requests per minute (rpm)") {
		t.Errorf("fault %v, retry after %s", f, f.RetryAfter)
	}
	h.set("2026-11-20T14:01:00Z")
	if !admitted(t, l, s) || admitted(t, l, s) {
		t.Error("a new minute leaves one of the hour's three")
	}
	_, err = l.rates.Admit(context.Background(), "", []*Subject{s})
	if f := fault.From(err); f.RetryAfter != 59*time.Minute || !strings.Contains(f.Message, "3 requests per hour") {
		t.Errorf("fault %v, retry after %s", f, f.RetryAfter)
	}
	h.set("2026-11-20T15:00:00Z")
	if !admitted(t, l, s) {
		t.Error("refused in a new hour")
	}
	if admitted(t, l, rated(Key, "zero", RateLimit{Requests, PerMinute, 0})) {
		t.Error("a limit of 0 lets through")
	}
}

func TestLoweredAndNewLimitsCountAtOnce(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	l := New(newMemory(), h.now, Hooks{})
	for range 5 {
		admitted(t, l, rated(Key, "k", RateLimit{Requests, PerMinute, 10}))
	}
	if admitted(t, l, rated(Key, "k", RateLimit{Requests, PerMinute, 5})) {
		t.Error("a lowered limit lets a sixth through")
	}
	two := rated(Key, "k", RateLimit{Requests, PerMinute, 10}, RateLimit{Requests, PerDay, 1})
	if !admitted(t, l, two) || admitted(t, l, two) {
		t.Error("a limit that is added counts from then on")
	}
}

func TestARefusalGivesTheOthersBack(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	l := New(newMemory(), h.now, Hooks{})
	per := func(n int64) RateLimit { return RateLimit{Requests, PerMinute, n} }
	key, workspace, policy := rated(Key, "k", per(3)), rated(Workspace, "w", per(1)), rated(Policy, "p", per(1))
	if !admitted(t, l, policy, workspace, key) {
		t.Fatal("refused")
	}
	for range 5 {
		_, err := l.rates.Admit(context.Background(), "", []*Subject{policy, key, workspace})
		if f := fault.From(err); !strings.Contains(f.Message, `workspace "w-label"`) {
			t.Fatalf("the first in the documented order is the workspace: %v", err)
		}
	}
	for i := range 3 {
		if fits := i < 2; admitted(t, l, key) != fits {
			t.Errorf("request %d: refused ones were charged to the key", i)
		}
	}
}

func TestCallersAdmitExactlyTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		l := New(s, h.now, Hooks{FailedOpen: func(_ context.Context, _ *Subject, err error) { t.Error(err) }})
		per := func(n int64) RateLimit { return RateLimit{Requests, PerHour, n} }
		subject := rated(Key, "hundred", per(100))
		for range 2 {
			if n := admittedOf(l, 200, subject); n != 100 {
				t.Errorf("%d of 200 admitted on a limit of 100", n)
			}
			h.add(time.Hour)
		}
		// With two subjects, what one rejects is not lost for the other.
		loose, tight := rated(Key, "loose", per(100)), rated(Workspace, "tight", per(30))
		if n := admittedOf(l, 80, loose, tight); n != 30 {
			t.Errorf("%d of 80 admitted on limits of 100 and 30", n)
		}
		if n := admittedOf(l, 100, loose); n != 70 {
			t.Errorf("%d more admitted on a limit of 100 that has given 30", n)
		}
	})
}

func admittedOf(l *Ledger, callers int, subjects ...*Subject) int64 {
	var n atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if _, err := l.rates.Admit(context.Background(), "", subjects); err == nil {
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return n.Load()
}

func TestAClockAheadDoesNotFillAWindowTwice(t *testing.T) {
	m, h := newMemory(), clockAt("2026-11-20T14:00:30Z")
	right, ahead := New(m, h.now, Hooks{}), New(m, h.plus(5*time.Minute), Hooks{})
	s := rated(Key, "k", RateLimit{Requests, PerMinute, 2})
	want := []bool{true, true, true, false, false} // one in the old window, two in that of the clock ahead
	for i, l := range []*Ledger{right, ahead, right, ahead, right} {
		if admitted(t, l, s) != want[i] {
			t.Errorf("request %d: admitted is not %t", i, want[i])
		}
	}
	_, err := right.rates.Admit(context.Background(), "", []*Subject{s})
	if f := fault.From(err); f.RetryAfter != 5*time.Minute+30*time.Second {
		t.Errorf("retry after %s", f.RetryAfter)
	}
	// A row from a clock that is wrong by a year does not block until then.
	s = rated(Key, "k2", RateLimit{Requests, PerMinute, 1})
	far := New(m, h.plus(365*24*time.Hour), Hooks{})
	if !admitted(t, far, s) || !admitted(t, right, s) {
		t.Error("a row from next year blocks")
	}
}

func TestTokenRatesReserveAndSettle(t *testing.T) {
	h, ctx := clockAt("2026-11-20T14:00:00Z"), context.Background()
	l := New(newMemory(), h.now, Hooks{})
	s := rated(Key, "k", RateLimit{Tokens, PerMinute, 1000})
	take := func(bound int64) (*Admission, error) {
		a, err := l.rates.Admit(ctx, "", []*Subject{s})
		if err != nil {
			t.Fatal(err)
		}
		return a, a.ReserveTokens(ctx, bound)
	}
	a, err := take(600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(401); !fault.Is(err, fault.RateLimited) {
		t.Errorf("601 + 401 of 1000: %v", err)
	}
	a.SettleTokens(ctx, 100)
	a.SettleTokens(ctx, 900) // the second does nothing
	b, err := take(900)
	if err != nil {
		t.Fatalf("100 + 900 of 1000: %v", err)
	}
	b.Return(ctx)
	// A bound above the entire limit passes while anything is left, and takes the remainder.
	c, err := take(5000)
	if err != nil {
		t.Fatalf("an oversized bound with 900 left: %v", err)
	}
	if _, err := take(5000); !fault.Is(err, fault.RateLimited) {
		t.Errorf("an oversized bound with nothing left: %v", err)
	}
	c.SettleTokens(ctx, 50)
	if _, err := take(850); err != nil {
		t.Errorf("150 + 850 of 1000: %v", err)
	}
	h.add(time.Minute)
	c.SettleTokens(ctx, 5)
	if _, err := take(1000); err != nil {
		t.Errorf("a new window: %v", err)
	}
}

func TestTokensOfAnOldWindowStayThere(t *testing.T) {
	h, ctx := clockAt("2026-11-20T14:00:59Z"), context.Background()
	l := New(newMemory(), h.now, Hooks{})
	s := rated(Key, "k", RateLimit{Tokens, PerMinute, 100}, RateLimit{Tokens, PerHour, 1000})
	a, _ := l.rates.Admit(ctx, "", []*Subject{s})
	if err := a.ReserveTokens(ctx, 100); err != nil {
		t.Fatal(err)
	}
	h.add(time.Second)
	b, _ := l.rates.Admit(ctx, "", []*Subject{s})
	if err := b.ReserveTokens(ctx, 60); err != nil {
		t.Fatal(err)
	}
	a.SettleTokens(ctx, 10) // the minute is over, the hour is not
	c, _ := l.rates.Admit(ctx, "", []*Subject{s})
	if err := c.ReserveTokens(ctx, 41); !fault.Is(err, fault.RateLimited) {
		t.Errorf("60 + 41 of 100 in the minute: %v", err)
	}
	item, _, _ := l.rates.rate.Get(ctx, s.derive().rate, true)
	if n := item.Int("rph_tokens_n"); n != 70 {
		t.Errorf("the hour has %d tokens, want 10 + 60", n)
	}
}

func TestAThrottledStoreAdmitsAndReportsIt(t *testing.T) {
	m := newMemory()
	m.before = func(context.Context, operation) fate { return fate{drop: store.ErrThrottled} }
	var open atomic.Int64
	l := New(m, time.Now, Hooks{FailedOpen: func(_ context.Context, s *Subject, err error) {
		if s.ID == "k" && errors.Is(err, store.ErrThrottled) {
			open.Add(1)
		}
	}})
	s := rated(Key, "k", RateLimit{Requests, PerMinute, 1})
	for range 3 {
		a, err := l.rates.Admit(context.Background(), "", []*Subject{s})
		if err != nil {
			t.Fatal(err)
		}
		a.Return(context.Background())
	}
	if open.Load() != 3 {
		t.Errorf("reported %d times", open.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.rates.Admit(ctx, "", []*Subject{s}); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("a caller that is gone: %v", err)
	}
}

func TestSubjectsDoNotShareCounters(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	l := New(newMemory(), h.now, Hooks{})
	one := RateLimit{Requests, PerMinute, 1}
	for _, s := range []*Subject{
		rated(Key, "a", one), rated(Workspace, "a", one), rated(Key, "a#b", one), rated(Key, "a%23b", one),
		{Scope: store.Scope{Org: "acme"}, Kind: Key, ID: "a", Rates: []RateLimit{one}},
		{Scope: store.Scope{Org: "other", Workspace: "w1"}, Kind: Key, ID: "a", Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Bucket: "metadata._user:a", Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Bucket: "metadata._user:a#0", Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Bucket: strings.Repeat("x", 5000), Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Bucket: strings.Repeat("x", 5001), Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Bucket: "-", Rates: []RateLimit{one}},
		{Scope: tenant, Kind: Policy, ID: "p", Rates: []RateLimit{one}},
	} {
		if !admitted(t, l, s) {
			t.Errorf("%s %s %.20s shares its counter", s.Kind, s.ID, s.Bucket)
		}
	}
}
