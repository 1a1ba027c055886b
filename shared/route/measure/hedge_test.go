package measure

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The share of later latencies that exceed a percentile is the rest.
func TestPercentileIsExceededByTheRest(t *testing.T) {
	t.Parallel()
	for _, p := range []float64{50, 90, 95} {
		w := newWorld(5)
		exceeded, requests := 0, 0
		for range 4000 {
			elapsed := time.Duration((0.5 + w.rnd.ExpFloat64()) * float64(100*time.Millisecond))
			if limit, ok := w.room.Percentile(1, 2, p, false); ok {
				requests++
				if elapsed > limit {
					exceeded++
				}
			}
			w.room.Observe(1, 2, 200, elapsed)
		}
		if got, want := 100*float64(exceeded)/float64(requests), 100-p; requests != 3990 || got < want-2.5 || got > want+2.5 {
			t.Errorf("%.1f %% of %d exceed the percentile %.0f", got, requests, p)
		}
	}
	w := newWorld(5)
	w.room.Percentile(1, 0, 95, false)
	for range 10 {
		w.room.Observe(1, 0, 503, time.Second) // failures are no latencies
	}
	if _, ok := w.room.Percentile(1, 0, 95, false); ok {
		t.Error("a percentile of nothing is known")
	}
}

// A call that was canceled counts only if it was slower than the mean.
func TestACancelledCallIsALatencyOnlyIfItIsLong(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	w.room.Exceeded(1, 0, time.Hour) // nothing is known of it
	for range 20 {
		w.room.Observe(1, 0, 200, 100*time.Millisecond)
	}
	mean := w.room.targets[1].classes[0].mean
	if w.room.Exceeded(1, 0, 50*time.Millisecond); w.room.targets[1].classes[0].mean != mean {
		t.Error("a short one changed the mean")
	}
	if w.room.Exceeded(1, 0, time.Second); w.room.targets[1].classes[0].mean <= mean {
		t.Error("a long one did not raise the mean")
	}
}

// The extra cost of a key never exceeds its share of the other cost by more than one request, with
// any number of attempts in progress, and what was pending is always returned.
func TestExtraCostIsCapped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(1)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		price := rapid.Int64Range(0, 1000).Draw(t, "price")
		type attempt struct{ pending float64 }
		var open []attempt
		var used, unused float64
		begun := 0
		for range 300 {
			pending, ok := w.room.AllowsHedge("k", share)
			if ok {
				begun++
			}
			open = append(open, attempt{pending})
			if len(open) < rnd.IntN(6) {
				continue
			}
			at := rnd.IntN(len(open))
			w.room.RecordCost("k", price, price, open[at].pending)
			used += float64(price + 1)
			if open[at].pending > 0 {
				unused += float64(price + 1)
			}
			open = append(open[:at], open[at+1:]...)
			if unused > share*used+1e-6 {
				t.Fatalf("%.0f of %.0f at a share of %.3f", unused, used, share)
			}
		}
		for _, a := range open {
			w.room.RecordCost("k", price, price, a.pending)
		}
		if e := w.room.extra["k"]; e.pending > 1e-6 {
			t.Fatalf("%f is pending", e.pending)
		}
		if share > 0.1 && begun == 0 {
			t.Fatal("none was allowed")
		}
	})
	w := newWorld(1)
	if _, ok := w.room.AllowsHedge("new", 1); ok {
		t.Error("a key without requests has extra cost left")
	}
}
