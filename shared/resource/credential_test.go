package resource

import (
	"context"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

func keyRow(org, hash, status string) store.Row {
	return store.Row{Key: store.Credential("KEY", hash), Item: store.Item{"org": org, "status": status}}
}

func statusOf(it store.Item) (string, error) { return it.String("status"), nil }

// status is the credential's status as a process sees it; "-" when it is unknown.
func (p process) status(t testing.TB, hash string) string {
	t.Helper()
	v, ok, err := LoadCredential(context.Background(), p.l, "KEY", hash, statusOf)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "-"
	}
	return v
}

func (p process) setKey(t testing.TB, hash, status string) {
	t.Helper()
	err := p.r.Change(context.Background(), scopeA, func(tx *Tx) error {
		if status == "" {
			tx.DeleteCredential(store.Credential("KEY", hash))
			return nil
		}
		return tx.PutCredential(keyRow("o1", hash, status))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRevokedOrChangedKeyIsRefusedEverywhereWithinTwoSeconds(t *testing.T) {
	for name, opts := range map[string][]Option{"checked": nil, "embedded": {Embedded()}} {
		t.Run(name, func(t *testing.T) {
			s, c := openStore(t), newTestClock()
			writer := newProcess(s, c, opts...)
			others := []process{newProcess(s, c), newProcess(s, c)}
			for _, next := range []string{"active", "archived", "active", "", "active"} {
				writer.setKey(t, "h1", next)
				want := next
				if want == "" {
					want = "-"
				}
				if got := writer.status(t, "h1"); got != want {
					t.Errorf("the writer sees %s at once, want %s", got, want)
				}
				c.advance(CheckAfter)
				for _, p := range others {
					if got := p.status(t, "h1"); got != want {
						t.Errorf("another process sees %s after %v, want %s", got, CheckAfter, want)
					}
				}
			}
		})
	}
}

func TestKnownKeyCostsOneCheckPerInterval(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	p.setKey(t, "h1", "active")
	p.status(t, "h1")
	before := p.s.reads.Load()
	for range 10 {
		p.status(t, "h1")
	}
	if n := p.s.reads.Load() - before; n != 0 {
		t.Errorf("%d reads within the interval", n)
	}
	c.advance(CheckAfter)
	for range 10 {
		p.status(t, "h1")
	}
	if n := p.s.reads.Load() - before; n != 1 {
		t.Errorf("%d reads for one check", n)
	}
}

func TestUnknownKeyIsReadOncePerInterval(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p, other := newProcess(s, c), newProcess(s, c)
	for range 10 {
		if got := p.status(t, "h1"); got != "-" {
			t.Fatal(got)
		}
	}
	if n := p.s.reads.Load(); n != 1 {
		t.Errorf("%d reads for an unknown key", n)
	}
	other.setKey(t, "h1", "active")
	c.advance(unknownFor)
	if got := p.status(t, "h1"); got != "active" {
		t.Errorf("a new key is %s after %v", got, unknownFor)
	}
}

func TestKnownKeyIsRefusedWhenTheCheckFails(t *testing.T) {
	s, c := openStore(t), newTestClock()
	p := newProcess(s, c)
	p.setKey(t, "h1", "active")
	p.status(t, "h1")
	c.advance(CheckAfter)
	p.s.fail.Store(true)
	_, _, err := LoadCredential(context.Background(), p.l, "KEY", "h1", statusOf)
	if f := fault.From(err); f == nil || f.Status() != 503 {
		t.Errorf("want 503, got %v", err)
	}
}

// A row that was read before the view that it would be cached under must not be cached.
func TestKeyThatChangesWhileItIsReadIsNotRemembered(t *testing.T) {
	s, c := openStore(t), newTestClock()
	writer, p := newProcess(s, c), newProcess(s, c)
	writer.setKey(t, "h1", "active")
	once := sync.Once{}
	decode := statusOf
	p.l.keys = tableThatRuns{p.l.keys, func() {
		once.Do(func() { writer.setKey(t, "h1", "archived") })
	}}
	got, _, err := LoadCredential(context.Background(), p.l, "KEY", "h1", decode)
	if err != nil || got != "archived" {
		t.Errorf("the first answer: %s %v", got, err)
	}
	if got := p.status(t, "h1"); got != "archived" {
		t.Errorf("a revoked key was kept as %s", got)
	}
}

// tableThatRuns calls after following each Get.
type tableThatRuns struct {
	store.Table
	after func()
}

func (t tableThatRuns) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	it, ok, err := t.Table.Get(ctx, k, consistent)
	t.after()
	return it, ok, err
}

func TestCredentialOfAnotherOrganisationIsNotOverwritten(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	put := func(org string) error {
		return r.Change(ctx, store.Scope{Org: org}, func(tx *Tx) error { return tx.PutCredential(keyRow(org, "h", "active")) })
	}
	if err := put("o1"); err != nil {
		t.Fatal(err)
	}
	if err := put("o1"); err != nil {
		t.Errorf("its own: %v", err)
	}
	if err := put("o2"); !fault.Is(err, fault.Conflict) {
		t.Errorf("another's: %v", err)
	}
	err := r.Change(ctx, scopeA, func(tx *Tx) error { return tx.CreateCredential(keyRow("o1", "h", "active")) })
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a second create: %v", err)
	}
}

func TestKeysAreReadWhileTheyChange(t *testing.T) {
	s := openStore(t)
	writer := New(s)
	reader := New(s, Embedded())
	l := NewLoader(reader)
	writer.OnChange(l.Invalidate)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := LoadCredential(context.Background(), l, "KEY", "h", statusOf); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 40 {
		want := []string{"active", "archived"}[i%2]
		err := writer.Change(context.Background(), scopeA, func(tx *Tx) error { return tx.PutCredential(keyRow("o1", "h", want)) })
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := LoadCredential(context.Background(), l, "KEY", "h", statusOf); got != want {
			t.Errorf("after the change to %s: %s", want, got)
		}
	}
	close(stop)
	wg.Wait()
}

func BenchmarkWarmCredential(b *testing.B) {
	c := newTestClock()
	p := newProcess(openStore(b), c)
	p.setKey(b, "h1", "active")
	ctx := context.Background()
	decode := func(it store.Item) (*time.Time, error) { return &time.Time{}, nil }
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := LoadCredential(ctx, p.l, "KEY", "h1", decode); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
