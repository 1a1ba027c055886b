package plan

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// counted is a store's table that counts and can fail.
type counted struct {
	store.Table
	reads, writes atomic.Int64
	down          atomic.Bool
}

var errDown = errors.New("the store does not answer")

func (c *counted) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	c.reads.Add(1)
	if c.down.Load() {
		return nil, false, errDown
	}
	return c.Table.Get(ctx, k, consistent)
}

func (c *counted) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	c.writes.Add(1)
	if c.down.Load() {
		return nil, nil, errDown
	}
	return c.Table.Update(ctx, u)
}

// processes are n processes over one store, under one clock.
func processes(t *testing.T, n int) (all []*Breakers, table *counted, now *atomic.Int64) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	table, now = &counted{Table: s.Table(store.Rate)}, new(atomic.Int64)
	now.Store(time.Now().UnixMilli())
	for range n {
		all = append(all, NewBreakers(func() time.Time { return time.UnixMilli(now.Load()) }, table, func(where string, err error) {
			if !errors.Is(err, errDown) {
				t.Errorf("%s: %v", where, err)
			}
		}))
	}
	return all, table, now
}

var (
	breakersKey  = route.ConfigKey{Org: "o", Workspace: "w", Config: "c", Version: 3}
	breakersPath = "config.targets[0]"
	fiveFailures = &route.Breaker{Threshold: 5, Cooldown: 30 * time.Second}
)

func TestProcessesOpenABreakerTogether(t *testing.T) {
	all, _, now := processes(t, 5)
	for _, p := range all {
		s := p.Of(t.Context(), breakersKey)
		s.Record(breakersPath, fiveFailures, 500, false)
		s.Publish(nil)
	}
	now.Add(1000)
	for i, p := range all {
		if got := p.Of(t.Context(), breakersKey).State(breakersPath); got != route.Open {
			t.Errorf("process %d: %v", i, got)
		}
		if got := p.Of(t.Context(), route.ConfigKey{Org: "o", Workspace: "other", Config: "c", Version: 3}).State(breakersPath); got != route.Closed {
			t.Errorf("another workspace sees it: %v", got)
		}
	}
	now.Add(30_000)
	probes := 0
	for _, p := range all {
		if p.Of(t.Context(), breakersKey).Claim(breakersPath, fiveFailures) {
			probes++
		}
	}
	if probes != 1 {
		t.Errorf("%d processes probe at once", probes)
	}
	// An unfinished probe expires after a cooldown.
	now.Add(30_001)
	s := all[3].Of(t.Context(), breakersKey)
	if !s.Claim(breakersPath, fiveFailures) {
		t.Error("the probe is claimed for ever")
	}
	s.Release(breakersPath)
	now.Add(1000)
	s = all[2].Of(t.Context(), breakersKey)
	if !s.Claim(breakersPath, fiveFailures) {
		t.Error("a probe that was given back is not free")
	}
	s.Record(breakersPath, fiveFailures, 200, true)
	s.Publish(nil)
	now.Add(1000)
	for i, p := range all {
		if got := p.Of(t.Context(), breakersKey).State(breakersPath); got != route.Closed {
			t.Errorf("process %d: %v", i, got)
		}
	}
}

func TestOldFailuresOfOthersDoNotCount(t *testing.T) {
	all, _, now := processes(t, 2)
	record := func(p *Breakers, n int) {
		s := p.Of(t.Context(), breakersKey)
		for range n {
			s.Record(breakersPath, fiveFailures, 500, false)
		}
		s.Publish(nil)
	}
	record(all[0], 4)
	now.Add(31_000)
	record(all[1], 4)
	if got := all[1].Of(t.Context(), breakersKey).State(breakersPath); got != route.Closed {
		t.Error("four failures of long ago and four of now opened it")
	}
	record(all[0], 1)
	if got := all[0].Of(t.Context(), breakersKey).State(breakersPath); got != route.Open {
		t.Error("the fifth failure of now did not open it")
	}
}

func TestHealthyTargetsCostNoWrites(t *testing.T) {
	all, table, now := processes(t, 1)
	rate := &route.Breaker{ByRate: true, Percentage: 50, Minimum: 10, Cooldown: 30 * time.Second}
	for range 100 {
		s := all[0].Of(t.Context(), breakersKey)
		s.Record(breakersPath, rate, 200, false)
		s.Publish(nil)
		now.Add(100)
	}
	if w := table.writes.Load(); w != 0 {
		t.Errorf("%d writes", w)
	}
	if n := table.reads.Load(); n > 11 {
		t.Errorf("%d reads in ten seconds", n)
	}
}

func TestBreakersWithoutTheirStore(t *testing.T) {
	all, table, now := processes(t, 1)
	table.down.Store(true)
	s := all[0].Of(t.Context(), breakersKey)
	for range 5 {
		s.Record(breakersPath, fiveFailures, 500, false)
	}
	s.Publish(nil)
	now.Add(1500)
	if s = all[0].Of(t.Context(), breakersKey); s.State(breakersPath) != route.Open {
		t.Error("the process forgets what it saw itself")
	}
	now.Add(30_000)
	s = all[0].Of(t.Context(), breakersKey)
	if !s.Claim(breakersPath, fiveFailures) || s.Claim(breakersPath, fiveFailures) {
		t.Error("one probe in this process")
	}
	s.Record(breakersPath, fiveFailures, 200, true)
	if s.State(breakersPath) != route.Closed {
		t.Error("a good probe closes it")
	}
}

func TestWhatTheStoreRefusedIsToldLater(t *testing.T) {
	all, table, now := processes(t, 2)
	s := all[0].Of(t.Context(), breakersKey)
	refuse := func() {
		table.down.Store(true)
		s.Publish(nil)
		table.down.Store(false)
	}
	state := func(p *Breakers) route.State {
		now.Add(1000)
		return p.Of(t.Context(), breakersKey).State(breakersPath)
	}
	for range 4 {
		s.Record(breakersPath, fiveFailures, 500, false)
	}
	refuse()
	if state(all[0]) != route.Closed || !s.HasPending() {
		t.Fatal("four failures are to be told")
	}
	s.Record(breakersPath, fiveFailures, 500, false)
	refuse()
	if state(all[0]) != route.Open || state(all[1]) != route.Closed {
		t.Fatal("the process that opened it forgot it, or the other knows by magic")
	}
	s.Publish(nil)
	if state(all[1]) != route.Open || s.HasPending() {
		t.Error("the opening was never told")
	}
	now.Add(30_000)
	s = all[0].Of(t.Context(), breakersKey)
	if !s.Claim(breakersPath, fiveFailures) {
		t.Fatal("no probe")
	}
	s.Record(breakersPath, fiveFailures, 200, true)
	refuse()
	if state(all[0]) != route.Closed {
		t.Error("a closing that nobody was told of is lost")
	}
	s.Publish(nil)
	if state(all[1]) != route.Closed {
		t.Error("the closing was never told")
	}
}

func TestManyRequestsTellEverything(t *testing.T) {
	all, table, _ := processes(t, 1)
	never := &route.Breaker{Threshold: 1_000_000, Cooldown: time.Hour}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				s := all[0].Of(t.Context(), breakersKey)
				s.Record(breakersPath, never, 500, false)
				s.Publish(nil)
			}
		})
	}
	wg.Wait()
	s := all[0].Of(t.Context(), breakersKey)
	it, _, err := table.Get(t.Context(), s.row, true)
	if got := read(it)[breakersPath]; err != nil || got.Failures != 400 {
		t.Errorf("%+v, %v", got, err)
	}
}
