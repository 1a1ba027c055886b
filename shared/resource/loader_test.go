package resource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// watchedStore counts reads and can make them fail.
type watchedStore struct {
	store.Store
	reads atomic.Int64
	fail  atomic.Bool
	hold  atomic.Pointer[chan struct{}] // reads of the generation wait for it
}

type watchedTable struct {
	store.Table
	s *watchedStore
}

func (s *watchedStore) Table(n store.TableName) store.Table {
	return watchedTable{s.Store.Table(n), s}
}

func (s *watchedStore) read() error {
	s.reads.Add(1)
	if s.fail.Load() {
		return store.ErrThrottled
	}
	return nil
}

func (t watchedTable) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	if err := t.s.read(); err != nil {
		return nil, false, err
	}
	it, ok, err := t.Table.Get(ctx, k, consistent)
	if ch := t.s.hold.Load(); ch != nil && k == generationKey("o1") {
		select {
		case <-*ch:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return it, ok, err
}

func (t watchedTable) GetMany(ctx context.Context, ks []store.Key) (map[store.Key]store.Item, error) {
	if err := t.s.read(); err != nil {
		return nil, err
	}
	return t.Table.GetMany(ctx, ks)
}

func (t watchedTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := t.s.read(); err != nil {
		return store.Page{}, err
	}
	return t.Table.Query(ctx, q)
}

// testClock is a clock that tests move.
type testClock struct{ ns atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.ns.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *testClock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *testClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// process is one of several processes over one store.
type process struct {
	s *watchedStore
	r *Resources
	l *Loader
}

func newProcess(s store.Store, c *testClock, opts ...Option) process {
	w := &watchedStore{Store: s}
	r := New(w, append(opts, Clock(c.now))...)
	return process{w, r, NewLoader(r)}
}

func nameOf(rec Record) (string, error) { return rec.Name, nil }

func (p process) load(t testing.TB, id string) string {
	t.Helper()
	v, err := p.l.Fresh(context.Background(), "o1")
	if err != nil {
		t.Fatal(err)
	}
	name, ok, err := Load(context.Background(), v, scopeA, widget, id, nameOf)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "-"
	}
	return name
}

func rename(r *Resources, id, name string) error {
	return edit(r, scopeA, id, func(tx *Tx, rec *Record) error { rec.Name = name; return tx.Update(rec) })
}

func TestChangeIsSeenByEveryProcessWithinTwoSeconds(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p1, p2 := newProcess(s, c), newProcess(s, c)
	create(t, p1.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	if p1.load(t, "a") != "one" || p2.load(t, "a") != "one" || p2.load(t, "new") != "-" {
		t.Fatal("first load")
	}
	if err := rename(p1.r, "a", "two"); err != nil {
		t.Fatal(err)
	}
	create(t, p1.r, Record{Scope: scopeA, Slug: "new", Name: "new"})
	if got := p1.load(t, "a"); got != "two" {
		t.Errorf("the writer's own process sees %s right after the change", got)
	}
	c.advance(CheckAfter)
	if got := p2.load(t, "a"); got != "two" {
		t.Errorf("the other process sees %s after %v", got, CheckAfter)
	}
	if got := p2.load(t, "new"); got != "new" {
		t.Errorf("an id that was absent is still so: %s", got)
	}
}

func TestWarmReadsCostOneCheckPerInterval(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	p.load(t, "absent")
	before := p.s.reads.Load()
	for range 10 {
		p.load(t, "a")
		p.load(t, "absent")
	}
	if n := p.s.reads.Load() - before; n != 0 {
		t.Errorf("%d reads within the interval", n)
	}
	c.advance(CheckAfter)
	for range 10 {
		p.load(t, "a")
	}
	if n := p.s.reads.Load() - before; n != 1 {
		t.Errorf("%d reads for one check", n)
	}
}

func TestEmbeddedStoreIsNotReadWhenWarm(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c, Embedded())
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	before := p.s.reads.Load()
	for range 10 {
		c.advance(time.Hour)
		p.load(t, "a")
	}
	if n := p.s.reads.Load() - before; n != 0 {
		t.Errorf("%d reads of a warm embedded store", n)
	}
	if err := rename(p.r, "a", "two"); err != nil {
		t.Fatal(err)
	}
	if got := p.load(t, "a"); got != "two" {
		t.Errorf("after the change: %s", got)
	}
}

func TestStaleCopyIsRefusedWhenTheCheckFails(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	p.s.fail.Store(true)
	if got := p.load(t, "a"); got != "one" {
		t.Errorf("a fresh copy was not used: %s", got)
	}
	c.advance(CheckAfter)
	before := p.s.reads.Load()
	_, err := p.l.Fresh(context.Background(), "o1")
	if f := fault.From(err); f == nil || f.Status() != 503 {
		t.Errorf("want 503, got %v", err)
	}
	if n := p.s.reads.Load() - before; n != 2 {
		t.Errorf("%d tries, want 2", n)
	}
	p.s.fail.Store(false)
	p.load(t, "a")
}

func TestClockThatIsSetBackForcesACheck(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	before := p.s.reads.Load()
	c.advance(-10 * time.Minute)
	p.load(t, "a")
	if p.s.reads.Load() == before {
		t.Error("a copy from the future was trusted")
	}
}

func TestOneCheckServesAllWhoWait(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	c.advance(CheckAfter)
	gate := make(chan struct{})
	p.s.hold.Store(&gate)
	before := p.s.reads.Load()
	// The leader aborts its wait; the others must not get its error.
	leader, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.l.Fresh(leader, "o1") })
	for p.s.reads.Load() == before {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 8 {
		wg.Go(func() {
			if _, err := p.l.Fresh(context.Background(), "o1"); err != nil {
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := p.s.reads.Load() - before; n != 1 {
		t.Errorf("%d reads for 9 callers", n)
	}
}

func TestCheckThatBeganBeforeAnOwnChangeDoesNotHideIt(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	p.load(t, "a")
	c.advance(CheckAfter)
	gate := make(chan struct{})
	p.s.hold.Store(&gate)
	before := p.s.reads.Load()
	done := make(chan struct{})
	go func() { // has read the old generation, and hangs
		defer close(done)
		_, _ = p.l.Fresh(context.Background(), "o1")
	}()
	for p.s.reads.Load() == before {
		time.Sleep(time.Millisecond)
	}
	if err := rename(newProcess(s, c).r, "a", "two"); err != nil {
		t.Fatal(err)
	}
	p.l.Invalidate("o1")
	p.s.hold.Store(nil)
	close(gate)
	if got := p.load(t, "a"); got != "two" {
		t.Errorf("after the change: %s", got)
	}
	<-done
}

func TestLoadedValueIsSharedAndErrorsOfTheStoreAreNot(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	ctx := context.Background()
	v, err := p.l.Fresh(ctx, "o1")
	if err != nil {
		t.Fatal(err)
	}
	p.s.fail.Store(true)
	if _, _, err := Load(ctx, v, scopeA, widget, "a", nameOf); fault.From(err).Status() != 503 {
		t.Errorf("a failed read: %v", err)
	}
	p.s.fail.Store(false)
	var decoded atomic.Int64
	decode := func(rec Record) (*Record, error) { decoded.Add(1); return &rec, nil }
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if rec, ok, err := Load(ctx, v, scopeA, widget, "a", decode); err != nil || !ok || rec.Name != "one" {
				t.Errorf("load: %v %v", ok, err)
			}
		})
	}
	wg.Wait()
	if decoded.Load() != 1 {
		t.Errorf("decoded %d times", decoded.Load())
	}
	bad := errors.New("bad body")
	for range 2 {
		if _, ok, err := Load(ctx, v, scopeA, widget, "a", func(Record) (int, error) { decoded.Add(1); return 0, bad }); ok || !errors.Is(err, bad) {
			t.Errorf("decode error: %v %v", ok, err)
		}
	}
	if decoded.Load() != 2 {
		t.Errorf("a body that cannot be decoded is decoded at each request")
	}
	if _, _, err := Load(ctx, v, store.Scope{Org: "o2"}, widget, "a", nameOf); err == nil {
		t.Error("a view gave another organization's record")
	}
}

func TestAllRecordsAndVersionsAreLoadedOnce(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	ctx := context.Background()
	var first Record
	for i := range 3 {
		first = create(t, p.r, Record{Scope: scopeA, Name: fmt.Sprint(i)})
	}
	v, err := p.l.Fresh(ctx, "o1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		all, err := LoadAll(ctx, v, scopeA, widget, nameOf)
		if err != nil || fmt.Sprint(all) != "[2 1 0]" {
			t.Errorf("all: %v %v", all, err)
		}
		none, err := LoadAll(ctx, v, scopeB, widget, nameOf)
		if err != nil || len(none) != 0 {
			t.Errorf("none: %v %v", none, err)
		}
		name, ok, err := LoadVersion(ctx, v, scopeA, widget, first.ID, 1, nameOf)
		if err != nil || !ok || name != "2" {
			t.Errorf("version: %q %v %v", name, ok, err)
		}
	}
	before := p.s.reads.Load()
	_, _ = LoadAll(ctx, v, scopeA, widget, nameOf)
	if p.s.reads.Load() != before {
		t.Error("a warm list was read again")
	}
}

func TestAbsentIDsDoNotGrowTheViewWithoutLimit(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	ctx := context.Background()
	create(t, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	v, err := p.l.Fresh(ctx, "o1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxAbsent + 10 {
		if _, ok, err := Load(ctx, v, scopeA, widget, fmt.Sprint("x", i), nameOf); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := v.values.size(); n > maxAbsent {
		t.Errorf("%d values are remembered", n)
	}
}

func BenchmarkWarmLoad(b *testing.B) {
	c := newTestClock()
	p := newProcess(openStore(b), c)
	create(b, p.r, Record{Scope: scopeA, Slug: "a", Name: "one"})
	decode := func(rec Record) (*Record, error) { return &rec, nil }
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		v, err := p.l.Fresh(ctx, "o1")
		if err != nil {
			b.Fatal(err)
		}
		if _, ok, _ := Load(ctx, v, scopeA, widget, "a", decode); !ok {
			b.Fatal("lost")
		}
	}
}
