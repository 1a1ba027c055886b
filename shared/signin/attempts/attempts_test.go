package attempts

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestProcessesShareOneLimit(t *testing.T) {
	t.Parallel()
	s, now := open(t), time.Unix(1_900_000_000, 0)
	b := Limit{Name: "x", Most: 23, Take: 5, Each: time.Minute}
	processes := []*Counter{{Store: s}, {Store: s}, {Store: s}}
	var through atomic.Int64
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			switch err := processes[i%3].Count(context.Background(), b, "192.0.2.1", now); {
			case err == nil:
				through.Add(1)
			case !fault.Is(err, fault.RateLimited) || fault.From(err).RetryAfter <= 0 || fault.From(err).RetryAfter > time.Minute:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if n := through.Load(); n != b.Most {
		t.Errorf("%d of %d", n, b.Most)
	}
	if err := processes[0].Count(context.Background(), b, "192.0.2.2", now); err != nil {
		t.Errorf("another address: %v", err)
	}
	if err := processes[0].Count(context.Background(), Limit{Name: "y", Most: 1, Take: 1, Each: time.Minute}, "192.0.2.1", now); err != nil {
		t.Errorf("another thing: %v", err)
	}
	if err := processes[1].Count(context.Background(), b, "192.0.2.1", now.Add(time.Minute)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

// writes counts what is written.
type writes struct {
	store.Store
	n atomic.Int64
}

func (w *writes) Table(name store.TableName) store.Table { return table{w.Store.Table(name), w} }

type table struct {
	store.Table
	of *writes
}

func (t table) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	t.of.n.Add(1)
	return t.Table.Update(ctx, u)
}

func TestMostAttemptsWriteNothing(t *testing.T) {
	t.Parallel()
	w := &writes{Store: open(t)}
	c, b, now := &Counter{Store: w}, Limit{Name: "x", Most: 100, Take: 10, Each: time.Minute}, time.Unix(1_900_000_000, 0)
	for range 500 {
		_ = c.Count(context.Background(), b, "a", now)
	}
	if n := w.n.Load(); n != 11 {
		t.Errorf("%d writes for 500 attempts", n)
	}
}

func TestCachesAreLimited(t *testing.T) {
	t.Parallel()
	c, now := &Counter{}, time.Unix(1_900_000_000, 0)
	for i := range maxHeld + 10 {
		c.of(strconv.Itoa(i), now.Add(time.Minute), now)
	}
	if len(c.reservations) > maxHeld {
		t.Error(len(c.reservations))
	}
}

func TestFromMapsIPv6AddressesToTheirNetwork(t *testing.T) {
	t.Parallel()
	for a, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "x": "x", "": ""} {
		if got := From(a); got != want {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
}
