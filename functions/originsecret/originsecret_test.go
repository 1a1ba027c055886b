package originsecret

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// world is an installation with a fake clock. It has a secret store, an edge with many parts
// that receive a change one after another, and processes, some of which are frozen for a long
// time.
type world struct {
	store.Store
	rnd        *rand.Rand
	now        time.Time
	secret     Secret
	configured string
	places     []string // what each part of the edge sends
	verifiers  []*originauth.Verifier
	trouble    float64 // how likely a call fails
	saves      int
}

var errDown = errors.New("down")

func (w *world) fails() error {
	if w.rnd.Float64() < w.trouble {
		return errDown
	}
	return nil
}

func (w *world) Load(context.Context) (Secret, error) { return w.secret, w.fails() }

func (w *world) Save(_ context.Context, s Secret) error {
	if err := w.fails(); err != nil {
		return err
	}
	w.secret = s
	w.saves++
	return w.fails() // written, but without a response
}

func (w *world) OriginValues(context.Context) ([]string, bool, error) {
	settled := !slices.ContainsFunc(w.places, func(v string) bool { return v != w.configured })
	return []string{w.configured, w.configured}, settled, w.fails()
}

func (w *world) Send(_ context.Context, v string) error {
	if err := w.fails(); err != nil {
		return err
	}
	w.configured = v
	return w.fails()
}

func (w *world) Table(name store.TableName) store.Table { return shaky{w.Store.Table(name), w} }

// shaky is a table with calls that fail like those of the world.
type shaky struct {
	store.Table
	w *world
}

func (s shaky) Get(ctx context.Context, key store.Key, consistent bool) (store.Item, bool, error) {
	if err := s.w.fails(); err != nil {
		return nil, false, err
	}
	return s.Table.Get(ctx, key, consistent)
}

func (s shaky) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := s.w.fails(); err != nil {
		return err
	}
	if err := s.Table.Put(ctx, row, conds...); err != nil {
		return err
	}
	return s.w.fails()
}

func newWorld(t *testing.T, seed uint64, trouble float64) *world {
	t.Helper()
	s, err := sqlite.Open(t.TempDir()+"/s.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &world{Store: s, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), secret: Secret{Current: "first"}, configured: "first", trouble: trouble}
	for range 8 {
		w.places = append(w.places, "first")
		// What a door reads fails as well, but for the cold start of one.
		w.verifiers = append(w.verifiers, originauth.New([]string{"first"}, func(ctx context.Context) (originauth.Ring, error) { return originauth.Load(ctx, w, false) }, func() time.Time { return w.now }))
	}
	return w
}

func (w *world) enters(d *originauth.Verifier, secret string) error {
	return d.Verify(context.Background(), http.Header{originauth.Header: {secret}})
}

// pass lets time pass; meanwhile each part of the edge may learn of its configuration, and
// some of the processes get requests.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Minute)
		if i := w.rnd.IntN(3 * len(w.places)); i < len(w.places) {
			w.places[i] = w.configured
		}
		for i, dr := range w.verifiers {
			if i%2 == 1 && w.rnd.IntN(400) != 0 { // frozen for hours
				continue
			}
			sent := w.places[w.rnd.IntN(len(w.places))]
			if err := w.enters(dr, sent); err != nil && (w.trouble == 0 || fault.From(err).Status() != 503) {
				t.Fatalf("%s: process %d refuses what the edge sends: %v (%+v)", w.now, i, err, w.secret)
			}
		}
	}
}

func (w *world) live(t *testing.T) int {
	t.Helper()
	r, err := originauth.Load(t.Context(), w.Store, true)
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Live)
}

// TestNoRequestIsRefusedWhileSecretsChange rotates again and again, hour by hour. Every
// process must accept whatever a part of the edge still sends; at most two secrets are
// accepted, and older ones are rejected in the end.
func TestNoRequestIsRefusedWhileSecretsChange(t *testing.T) {
	t.Parallel()
	for seed, trouble := range []float64{0, 0, 0.1, 0.3} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, uint64(seed), trouble)
			r := &Rotation{Vault: w, Edge: w, Store: w, Now: func() time.Time { return w.now }}
			former := []string{}
			for hour := range 24 * 8 {
				before := w.secret.Current
				run := r.Run
				if hour%48 == 20 {
					run = r.Begin
				}
				if err := run(t.Context()); err != nil && trouble == 0 {
					t.Fatal(err)
				}
				if w.secret.Current != before {
					former = append(former, before)
				}
				if n := w.live(t); n > 2 {
					t.Fatalf("%d secrets are let in", n)
				}
				w.pass(t, time.Hour)
			}
			w.trouble = 0
			for range 12 {
				if err := r.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.pass(t, 2*time.Hour)
			}
			if len(former) < 2 || w.secret.Next != "" || w.secret.Previous != "" || w.live(t) != 1 {
				t.Fatalf("%d rotations, %+v", len(former), w.secret)
			}
			for i, d := range w.verifiers {
				for _, s := range former {
					w.now = w.now.Add(time.Minute)
					if w.enters(d, s) == nil {
						t.Errorf("process %d still takes the former secret %s", i, s)
					}
				}
				if err := w.enters(d, w.secret.Current); err != nil {
					t.Error(err)
				}
			}
			if again := slices.Compact(slices.Sorted(slices.Values(former))); len(again) != len(former) {
				t.Errorf("a secret came back: %v", former)
			}
		})
	}
}

func TestRotationIsAutomatic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9, 0)
	r := &Rotation{Vault: w, Edge: w, Store: w, Now: func() time.Time { return w.now }}
	days := func(n int) {
		t.Helper()
		for range n * 4 {
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.pass(t, 6*time.Hour)
		}
	}
	days(89)
	if w.secret.Current != "first" || w.secret.Next != "" {
		t.Fatalf("rotated too early: %+v", w.secret)
	}
	if w.saves != 1 {
		t.Errorf("%d writes while nothing was due", w.saves)
	}
	days(4)
	if w.secret.Current == "first" || w.secret.Previous != "" || len(w.secret.Current) < 40 {
		t.Fatalf("not rotated: %+v", w.secret)
	}
	w.configured = "something else" // by hand
	days(1)
	if w.configured != w.secret.Current {
		t.Error("the edge was not corrected")
	}
}

func TestASecretThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 0)
	w.secret = Secret{}
	err := (&Rotation{Vault: w, Edge: w, Store: w}).Run(t.Context())
	if err == nil || w.saves > 0 {
		t.Errorf("%v, %d writes", err, w.saves)
	}
}
