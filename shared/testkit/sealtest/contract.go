// Package sealtest is the contract that a seal.Sealer passes over every
// seal.Wrapper.
package sealtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
)

// Harness gives wrappers of one kind.
type Harness struct {
	// Open gives a wrapper over the installation's master key. It is called twice, like by
	// two processes.
	Open func(t *testing.T) seal.Wrapper
	// Foreign gives a wrapper over another installation's master key.
	Foreign func(t *testing.T) seal.Wrapper
}

// Run runs the contract.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"a value opens as it was sealed":                   roundTrip,
		"another process opens it":                         otherProcess,
		"a moved value is refused":                         moved,
		"an altered value is refused":                      altered,
		"a value of another installation is refused":       foreign,
		"data keys are fetched once in five minutes":       cached,
		"data keys belong to an organisation and a table":  separate,
		"a service that is down is unavailable":            down,
		"one call serves all who wait":                     singleFlight,
		"a caller that leaves does not fail the others":    leaving,
		"many callers at once":                             crowd,
		"a key that does not belong to a place is refused": wrapping,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

var (
	bg    = context.Background()
	place = seal.Binding{Org: "org-1", Table: "control", PK: "ORG#org-1", SK: "PROVIDER#p", Version: 3}
)

// Counted counts calls of a wrapper and can make them fail.
type Counted struct {
	seal.Wrapper
	mu        sync.Mutex
	generated int
	unwrapped int
	broken    error
	hold      chan struct{} // when set, calls wait for it
}

func (c *Counted) enter(n *int) error {
	c.mu.Lock()
	*n++
	err, hold := c.broken, c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return err
}

// Generate counts and passes on.
func (c *Counted) Generate(ctx context.Context, kc seal.Context) (seal.DataKey, error) {
	if err := c.enter(&c.generated); err != nil {
		return seal.DataKey{}, err
	}
	return c.Wrapper.Generate(ctx, kc)
}

// Unwrap counts and passes on.
func (c *Counted) Unwrap(ctx context.Context, kc seal.Context, master seal.KeyID, wrapped []byte) ([]byte, error) {
	if err := c.enter(&c.unwrapped); err != nil {
		return nil, err
	}
	return c.Wrapper.Unwrap(ctx, kc, master, wrapped)
}

func (c *Counted) calls() (generated, unwrapped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generated, c.unwrapped
}

func (c *Counted) fail(err error) {
	c.mu.Lock()
	c.broken = err
	c.mu.Unlock()
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

func mustSeal(t *testing.T, s seal.Sealer, b seal.Binding, plain string) []byte {
	t.Helper()
	sealed, err := s.Seal(bg, b, []byte(plain))
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	return sealed
}

func opens(t *testing.T, s seal.Sealer, b seal.Binding, sealed []byte, want string) {
	t.Helper()
	if got, err := s.Open(bg, b, sealed); err != nil || string(got) != want {
		t.Errorf("open: %d bytes, %v", len(got), err)
	}
}

func wantRejected(t *testing.T, s seal.Sealer, b seal.Binding, sealed []byte, what string) {
	t.Helper()
	if got, err := s.Open(bg, b, sealed); !errors.Is(err, seal.ErrRefused) || got != nil {
		t.Errorf("%s: %d bytes, %v; want ErrRefused", what, len(got), err)
	}
}

func roundTrip(t *testing.T, h Harness) {
	s := seal.New(h.Open(t), nil)
	for _, n := range []int{0, 1, 15, 2048, 300_000} {
		plain := bytes.Repeat([]byte("canary"), n/6+1)[:n]
		original := bytes.Clone(plain)
		sealed, err := s.Seal(bg, place, plain)
		if err != nil || !bytes.Equal(plain, original) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n > 6 && bytes.Contains(sealed, []byte("canary")) || bytes.Contains(sealed, []byte("org-1")) {
			t.Errorf("%d bytes: the sealed value shows its text or its place", n)
		}
		got, err := s.Open(bg, place, sealed)
		if err != nil || !bytes.Equal(got, plain) || got == nil {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		again, err := s.Seal(bg, place, plain)
		if err != nil || bytes.Equal(again, sealed) {
			t.Errorf("%d bytes: sealed twice to the same", n)
		}
	}
	out, err := s.AppendSeal(bg, []byte("head"), place, []byte("x"))
	if err != nil || string(out[:4]) != "head" {
		t.Fatalf("append: %q, %v", out, err)
	}
	if back, err := s.AppendOpen(bg, []byte("head"), place, out[4:]); err != nil || string(back) != "headx" {
		t.Errorf("append: %q, %v", back, err)
	}
	for _, b := range []seal.Binding{{}, {Org: "o"}, {Table: "t"}} {
		if _, err := s.Seal(bg, b, nil); err == nil {
			t.Errorf("sealed for %+v", b)
		}
		if _, err := s.Open(bg, b, out[4:]); err == nil {
			t.Errorf("opened for %+v", b)
		}
	}
}

func otherProcess(t *testing.T, h Harness) {
	one, other := seal.New(h.Open(t), nil), seal.New(h.Open(t), nil)
	opens(t, other, place, mustSeal(t, one, place, "secret"), "secret")
}

func moved(t *testing.T, h Harness) {
	one, other := seal.New(h.Open(t), nil), seal.New(h.Open(t), nil)
	sealed := mustSeal(t, one, place, "secret")
	opens(t, one, place, sealed, "secret")
	for name, edit := range map[string]func(*seal.Binding){
		"organisation": func(b *seal.Binding) { b.Org = "org-2" },
		"table":        func(b *seal.Binding) { b.Table = "usage" },
		"partition":    func(b *seal.Binding) { b.PK = "ORG#org-1#WS#w" },
		"row":          func(b *seal.Binding) { b.SK = "PROVIDER#q" },
		"version":      func(b *seal.Binding) { b.Version = 4 },
		"fields glued": func(b *seal.Binding) { b.PK, b.SK = b.PK+"P", b.SK[1:] },
		"no row":       func(b *seal.Binding) { b.SK = "" },
		"no version":   func(b *seal.Binding) { b.Version = 0 },
	} {
		b := place
		edit(&b)
		wantRejected(t, one, b, sealed, name+", key in the cache")
		wantRejected(t, other, b, sealed, name+", key not in the cache")
	}
}

func altered(t *testing.T, h Harness) {
	s := seal.New(h.Open(t), nil)
	sealed := mustSeal(t, s, place, "secret")
	fresh := seal.New(h.Open(t), nil)
	for n := range sealed {
		wantRejected(t, s, place, sealed[:n], fmt.Sprintf("cut to %d bytes", n))
	}
	wantRejected(t, s, place, append(bytes.Clone(sealed), 0), "a byte more")
	for i := range sealed {
		spoilt := bytes.Clone(sealed)
		spoilt[i] ^= 1 << (i % 8)
		wantRejected(t, s, place, spoilt, fmt.Sprintf("byte %d changed", i))
		wantRejected(t, fresh, place, spoilt, fmt.Sprintf("byte %d changed, key not in the cache", i))
	}
}

func foreign(t *testing.T, h Harness) {
	sealed := mustSeal(t, seal.New(h.Foreign(t), nil), place, "secret")
	wantRejected(t, seal.New(h.Open(t), nil), place, sealed, "foreign master key")
}

func cached(t *testing.T, h Harness) {
	w, c := &Counted{Wrapper: h.Open(t)}, newClock()
	s := seal.New(w, c.Now)
	sealed := mustSeal(t, s, place, "1")
	for range 50 {
		sealed = mustSeal(t, s, place, "2")
		opens(t, s, place, sealed, "2")
	}
	if g, u := w.calls(); g != 1 || u != 0 {
		t.Errorf("%d generated, %d unwrapped; want 1, 0: what was sealed here is opened here", g, u)
	}
	c.advance(5*time.Minute - time.Second)
	mustSeal(t, s, place, "3")
	if g, _ := w.calls(); g != 1 {
		t.Errorf("%d generated within five minutes", g)
	}
	c.advance(time.Second)
	opens(t, s, place, sealed, "2")
	opens(t, s, place, sealed, "2")
	mustSeal(t, s, place, "4")
	if g, u := w.calls(); g != 2 || u != 1 {
		t.Errorf("%d generated, %d unwrapped after five minutes; want 2, 1", g, u)
	}
}

func separate(t *testing.T, h Harness) {
	w := &Counted{Wrapper: h.Open(t)}
	s := seal.New(w, nil)
	for i, b := range []seal.Binding{{Org: "a", Table: "control"}, {Org: "b", Table: "control"}, {Org: "a", Table: "usage"}} {
		mustSeal(t, s, b, "x")
		b.SK = "another row"
		mustSeal(t, s, b, "x")
		if g, _ := w.calls(); g != i+1 {
			t.Errorf("%d data keys for %d places", g, i+1)
		}
	}
}

func down(t *testing.T, h Harness) {
	w, c := &Counted{Wrapper: h.Open(t)}, newClock()
	s := seal.New(w, c.Now)
	sealed := mustSeal(t, s, place, "secret")
	w.fail(errors.New("connection refused by 10.0.0.1"))
	opens(t, s, place, sealed, "secret") // from the cache
	mustSeal(t, s, place, "more")
	c.advance(6 * time.Minute)
	_, sealErr := s.Seal(bg, place, []byte("x"))
	_, openErr := s.Open(bg, place, sealed)
	for what, err := range map[string]error{"seal": sealErr, "open": openErr} {
		f := fault.From(err)
		if f == nil || f.Status() != 503 || f.RetryAfter == 0 || errors.Is(err, seal.ErrRefused) {
			t.Errorf("%s: %v, want 503", what, err)
		}
	}
	w.fail(nil)
	opens(t, s, place, sealed, "secret")
	mustSeal(t, s, place, "more")
}

func singleFlight(t *testing.T, h Harness) {
	sealed := mustSeal(t, seal.New(h.Open(t), nil), place, "secret")
	w := &Counted{Wrapper: h.Open(t), hold: make(chan struct{})}
	s := seal.New(w, nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { opens(t, s, place, sealed, "secret") })
		wg.Go(func() {
			if _, err := s.Seal(bg, place, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for { // both calls have begun; the others find them or the cache
		if g, u := w.calls(); g > 0 && u > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(w.hold)
	wg.Wait()
	if g, u := w.calls(); g != 1 || u != 1 {
		t.Errorf("%d generated, %d unwrapped; want one each", g, u)
	}
}

func leaving(t *testing.T, h Harness) {
	w := &Counted{Wrapper: h.Open(t), hold: make(chan struct{})}
	s := seal.New(w, nil)
	ctx, cancel := context.WithCancel(bg)
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Seal(ctx, place, nil); left <- err }()
	for g := 0; g == 0; g, _ = w.calls() {
		time.Sleep(time.Millisecond)
	}
	go func() { _, err := s.Seal(bg, place, nil); stayed <- err }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	close(w.hold)
	if err := <-stayed; err != nil {
		t.Errorf("who stayed: %v", err)
	}
	if g, _ := w.calls(); g != 1 {
		t.Errorf("%d calls", g)
	}
}

func crowd(t *testing.T, h Harness) {
	c := newClock()
	s := seal.New(h.Open(t), c.Now)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			b := seal.Binding{Org: fmt.Sprint("org-", g%3), Table: "usage", PK: fmt.Sprint(g)}
			for i := range 100 {
				b.Version = int64(i)
				want := fmt.Sprint(g, "/", i)
				sealed, err := s.Seal(bg, b, []byte(want))
				if err != nil {
					t.Error(err)
					return
				}
				if i%25 == 0 {
					c.advance(2 * time.Minute)
				}
				opens(t, s, b, sealed, want)
			}
		})
	}
	wg.Wait()
}

func wrapping(t *testing.T, h Harness) {
	w := h.Open(t)
	c := seal.Context{Org: "org-1", Purpose: "control"}
	k, err := w.Generate(bg, c)
	if err != nil || len(k.Plain) != 32 || bytes.Contains(k.Wrapped, k.Plain) {
		t.Fatalf("%d bytes, %v", len(k.Plain), err)
	}
	if plain, err := w.Unwrap(bg, c, k.Master, k.Wrapped); err != nil || !bytes.Equal(plain, k.Plain) {
		t.Errorf("unwrap: %v", err)
	}
	unknown := k.Master
	unknown[0] ^= 1
	for what, call := range map[string]func() ([]byte, error){
		"other organisation": func() ([]byte, error) {
			return w.Unwrap(bg, seal.Context{Org: "org-2", Purpose: "control"}, k.Master, k.Wrapped)
		},
		"other purpose": func() ([]byte, error) {
			return w.Unwrap(bg, seal.Context{Org: "org-1", Purpose: "usage"}, k.Master, k.Wrapped)
		},
		"glued context": func() ([]byte, error) {
			return w.Unwrap(bg, seal.Context{Org: "org-1c", Purpose: "ontrol"}, k.Master, k.Wrapped)
		},
		"unknown master": func() ([]byte, error) { return w.Unwrap(bg, c, unknown, k.Wrapped) },
		"cut":            func() ([]byte, error) { return w.Unwrap(bg, c, k.Master, k.Wrapped[1:]) },
	} {
		if plain, err := call(); !errors.Is(err, seal.ErrRefused) || plain != nil {
			t.Errorf("%s: %v, want ErrRefused", what, err)
		}
	}
}
