package originauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
	"gateway/shared/store/sqlite"
)

// tables are what a door reads from, as a test wants them.
type tables struct {
	mu    sync.Mutex
	ring  originauth.Ring
	err   error
	reads int
	hang  bool
}

func (b *tables) read(ctx context.Context) (originauth.Ring, error) {
	b.mu.Lock()
	b.reads++
	ring, err, hang := b.ring, b.err, b.hang
	b.mu.Unlock()
	if hang {
		<-ctx.Done()
		return originauth.Ring{}, ctx.Err()
	}
	return ring, err
}

func (b *tables) set(ring originauth.Ring, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring, b.err = ring, err
}

// status is what a request with the secret is answered with; 200: let in.
func status(d *originauth.Verifier, secret string) int {
	err := d.Verify(context.Background(), http.Header{originauth.Header: {secret}})
	if err == nil {
		return 200
	}
	return fault.From(err).Status()
}

func expect(t *testing.T, d *originauth.Verifier, when string, want map[string]int) {
	t.Helper()
	for secret, code := range want {
		if got := status(d, secret); got != code {
			t.Errorf("%s: %s is answered with %d, want %d", when, secret, got, code)
		}
	}
}

func TestARotationNeedsNoRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tables{}
		d := originauth.New([]string{"a", ""}, b.read, nil)
		expect(t, d, "at first", map[string]int{"a": 200, "b": 403, "c": 403})
		ring := originauth.Ring{}.WithSecrets("a", "b")
		b.set(ring, nil)
		time.Sleep(originauth.Longest)
		expect(t, d, "announced", map[string]int{"a": 200, "b": 200, "c": 403})
		ring = ring.WithSecrets("b")
		b.set(ring, nil)
		time.Sleep(originauth.Longest)
		expect(t, d, "retired, though deployed with it", map[string]int{"a": 403, "b": 200, "c": 403})
		b.set(ring.WithSecrets("b", "c").WithSecrets("c"), nil)
		time.Sleep(originauth.Longest)
		expect(t, d, "once more", map[string]int{"a": 403, "b": 403, "c": 200})
		fresh := originauth.New([]string{"new installation"}, b.read, nil)
		expect(t, fresh, "made anew beside old tables", map[string]int{"new installation": 200, "a": 403})
	})
}

// A secret that was just rotated in is accepted immediately: a process that was frozen may be
// the last to receive it.
func TestAnUnknownSecretIsLookedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tables{}
		d := originauth.New([]string{"a"}, b.read, nil)
		expect(t, d, "at first", map[string]int{"a": 200})
		b.set(originauth.Ring{}.WithSecrets("a", "b"), nil)
		time.Sleep(11 * time.Second) // the read data is still fresh
		expect(t, d, "just rotated in", map[string]int{"b": 200})
	})
}

func TestGuessesCostFewReadings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tables{}
		d := originauth.New([]string{"a"}, b.read, nil)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				if got := status(d, fmt.Sprint("guess", i)); got != 403 {
					t.Errorf("%d", got)
				}
			})
		}
		wg.Wait()
		for range 100 {
			time.Sleep(time.Second)
			expect(t, d, "guessing", map[string]int{"x": 403, "a": 200})
		}
		if b.reads > 11 {
			t.Errorf("%d readings in 100 seconds of guesses", b.reads)
		}
		reads := b.reads
		for range 3600 { // an hour of good requests
			time.Sleep(time.Second)
			expect(t, d, "working", map[string]int{"a": 200})
		}
		if n := b.reads - reads; n > 12 {
			t.Errorf("%d readings in an hour", n)
		}
	})
}

func TestTablesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		b := &tables{ring: originauth.Ring{}.WithSecrets("b", "c"), err: down}
		cold := originauth.New([]string{"a"}, b.read, nil)
		expect(t, cold, "cold and down", map[string]int{"a": 200, "b": 503, "guess": 503})
		b.set(b.ring, nil)
		time.Sleep(11 * time.Second)
		expect(t, cold, "up again", map[string]int{"b": 200, "c": 200, "guess": 403})
		b.set(b.ring, down)
		time.Sleep(24 * time.Hour)
		expect(t, cold, "down for a day", map[string]int{"b": 200, "c": 200, "rotated in since, maybe": 503})
		b.mu.Lock()
		b.hang = true
		b.mu.Unlock()
		time.Sleep(time.Hour)
		begun := time.Now()
		expect(t, cold, "hanging", map[string]int{"b": 200})
		if waited := time.Since(begun); waited > 2*time.Second {
			t.Errorf("a request waited %s for the tables", waited)
		}
	})
}

// One request waits for tables that hang; concurrent ones use the cached data.
func TestOthersDoNotWaitForAReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tables{ring: originauth.Ring{}.WithSecrets("a")}
		d := originauth.New([]string{"a"}, b.read, nil)
		expect(t, d, "at first", map[string]int{"a": 200})
		b.hang = true
		time.Sleep(time.Hour)
		begun := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		waited := 0
		for range 50 {
			wg.Go(func() {
				expect(t, d, "hanging", map[string]int{"a": 200})
				if time.Since(begun) > 0 {
					mu.Lock()
					waited++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if waited != 1 {
			t.Errorf("%d of 50 requests waited", waited)
		}
	})
}

func TestEveryEntryPointRequiresTheSecret(t *testing.T) {
	t.Parallel()
	if got := status(originauth.ForStore(nil, nil), ""); got != 200 {
		t.Errorf("%d", got)
	}
}

func TestRingIsReloadedFromTheTables(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.TempDir()+"/s.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := originauth.ForStore([]string{"s0"}, s)
	expect(t, d, "no ring", map[string]int{"s0": 200, "s1": 403})
	var ring originauth.Ring
	for i := range 200 {
		ring = ring.WithSecrets(fmt.Sprint("s", i), fmt.Sprint("s", i+1))
		if err := ring.Save(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got, err := originauth.Load(t.Context(), s, i%2 == 0)
		if err != nil || !got.Equal(ring) {
			t.Fatalf("%v, %v", got, err)
		}
		if len(got.Live) != 2 || len(got.Retired) != min(i, 50) {
			t.Fatalf("%d live, %d retired after %d", len(got.Live), len(got.Retired), i)
		}
	}
	expect(t, originauth.ForStore([]string{"s199"}, s), "rotated", map[string]int{"s199": 200, "s200": 200, "s198": 403})
	expect(t, originauth.ForStore([]string{"s190"}, s), "deployed with one that is retired", map[string]int{"s190": 403, "s200": 200})
}

func BenchmarkEnter(b *testing.B) {
	d := originauth.New([]string{"current-secret", "previous-secret"}, (&tables{}).read, nil)
	h := http.Header{originauth.Header: {"current-secret"}}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Verify(b.Context(), h); err != nil {
			b.Fatal(err)
		}
	}
}
