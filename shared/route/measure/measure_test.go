package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/usage"
)

// world is a Room with a fake clock, and targets with synthetic latencies.
type world struct {
	room *Workspace
	now  time.Time
	rnd  *rand.Rand
}

func newWorld(seed uint64) *world {
	w := &world{now: time.Unix(1_800_000_000, 0), rnd: rand.New(rand.NewPCG(seed, 1))}
	w.room = NewWorkspace(func() time.Time { return w.now })
	return w
}

var byLatency = Rule{By: usage.ByLatency, Explore: 0.01, Floor: 3}

func candidates(n int) []Candidate {
	list := make([]Candidate, n)
	for i := range list {
		list[i] = Candidate{Key: Key(i + 1), Index: i, Weight: 1}
	}
	return list
}

// request makes one request one second after the last, which takes as long as the target says.
func (w *world) request(rule Rule, list []Candidate, outcome func(int) (time.Duration, int)) (at int, d time.Duration, made usage.Measured) {
	w.now = w.now.Add(100 * time.Millisecond)
	at, made = w.room.Choose(1, rule, 0, list, w.rnd.Uint32, false)
	d, status := outcome(at)
	w.room.Begin(list[at].Key)
	w.now = w.now.Add(d)
	w.room.Observe(list[at].Key, 0, status, d)
	w.room.End(list[at].Key)
	return at, d, made
}

func p95(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*95/100]
}

// After 200 requests among 20 targets, the 95th percentile is within 10 % of that of the
// best target, whatever the form of their latencies.
func TestLatencyIsCloseToTheBestFixedChoice(t *testing.T) {
	shapes := map[string]func(rnd *rand.Rand, mean float64) float64{
		"steady":  func(_ *rand.Rand, mean float64) float64 { return mean },
		"uniform": func(rnd *rand.Rand, mean float64) float64 { return mean * (0.7 + 0.6*rnd.Float64()) },
		"lognormal": func(rnd *rand.Rand, mean float64) float64 {
			return mean * math.Exp(0.25*rnd.NormFloat64())
		},
		"tail": func(rnd *rand.Rand, mean float64) float64 {
			if rnd.IntN(100) == 0 {
				return 4 * mean
			}
			return mean * (0.9 + 0.2*rnd.Float64())
		},
	}
	means := map[string]func(i int) float64{
		"spread": func(i int) float64 { return 100 + 50*float64(i) },
		"close":  func(i int) float64 { return 100 + 8*float64(i) },
		"one":    func(i int) float64 { return 100 + 400*min(float64(i), 1) },
	}
	for shape, draw := range shapes {
		for spread, mean := range means {
			t.Run(shape+" "+spread, func(t *testing.T) {
				const targets, warm, measured, runs = 20, 200, 400, 20
				within := 0
				var worst float64
				for seed := range uint64(runs) {
					w := newWorld(seed)
					order := w.rnd.Perm(targets)
					outcome := func(at int) (time.Duration, int) {
						return time.Duration(draw(w.rnd, mean(order[at])) * float64(time.Millisecond)), 200
					}
					list := candidates(targets)
					for range warm {
						w.request(byLatency, list, outcome)
					}
					var got, best []time.Duration
					for range measured {
						_, d, _ := w.request(byLatency, list, outcome)
						got = append(got, d)
						d, _ = outcome(slices.Index(order, 0))
						best = append(best, d)
					}
					ratio := float64(p95(got)) / float64(p95(best))
					worst = max(worst, ratio)
					if ratio <= 1.1 {
						within++
					}
				}
				t.Logf("%d of %d within 10 %%, worst %.2f", within, runs, worst)
				if within < runs*9/10 {
					t.Errorf("only %d of %d runs came within 10 %%; the worst had %.2f times the best 95th percentile", within, runs, worst)
				}
			})
		}
	}
}

// A target that fails at once is fast, and is avoided all the same, by every strategy.
func TestATargetThatFailsAtOnceIsAvoided(t *testing.T) {
	for _, rule := range []Rule{byLatency, {By: usage.ByCost}, {By: usage.ByLoad}} {
		for _, status := range []int{0, 401, 403, 404, 429, 500, 503} {
			w := newWorld(7)
			list := candidates(3)
			for i := range list {
				list[i].Cost, list[i].Priced = 10, true
			}
			list[1].Cost = 1 // the cheapest
			failed := 0
			for range 300 {
				at, _, _ := w.request(rule, list, func(at int) (time.Duration, int) {
					if at == 1 {
						return time.Millisecond, status
					}
					return 50 * time.Millisecond, 200
				})
				if at == 1 {
					failed++
				}
			}
			// In 45 s it is tried at 0, 5, 15 and 35 s.
			if failed > 4 {
				t.Errorf("%s, status %d: %d of 300 requests went to the target that fails", rule.By, status, failed)
			}
			w.now = w.now.Add(maxAvoidance)
			back := false
			for range 300 {
				at, _, _ := w.request(rule, list, func(at int) (time.Duration, int) { return 10 * time.Millisecond, 200 })
				back = back || at == 1
			}
			if !back {
				t.Errorf("%s, status %d: a target that works again is never used", rule.By, status)
			}
		}
	}
}

// Only one request at a time tries a target that failed.
func TestOneRequestTriesAFailedTarget(t *testing.T) {
	w := newWorld(1)
	list := candidates(2)
	list[0].Cost, list[1].Cost, list[0].Priced, list[1].Priced = 1, 2, true, true
	w.room.Observe(list[0].Key, 0, 500, 0)
	w.now = w.now.Add(firstAvoidance + 1)
	tries := 0
	for range 10 {
		if at, _ := w.room.Choose(1, Rule{By: usage.ByCost}, 0, list, w.rnd.Uint32, false); at == 0 {
			tries++
		}
	}
	if tries != 1 {
		t.Errorf("%d requests tried it at once", tries)
	}
}

func TestCostTakesTheCheapestWithAPrice(t *testing.T) {
	w := newWorld(1)
	list := candidates(3)
	list[1].Cost, list[1].Priced = 7, true
	list[2].Cost, list[2].Priced = 6, true
	at, made := w.room.Choose(1, Rule{By: usage.ByCost}, 0, list, w.rnd.Uint32, false)
	if at != 2 || made.Reason != usage.ReasonBest || made.Figures[0].Value != -1 || made.Figures[2].Value != 6 {
		t.Errorf("%d %+v", at, made)
	}
	for i := range list {
		list[i].Priced = false
	}
	if _, made = w.room.Choose(1, Rule{By: usage.ByCost}, 0, list, w.rnd.Uint32, false); made.Reason != usage.ReasonUnknown {
		t.Errorf("%+v", made)
	}
}

func TestLeastBusyCountsRequestsInFlight(t *testing.T) {
	w := newWorld(1)
	list := candidates(3)
	rule := Rule{By: usage.ByLoad, InOrder: true}
	var got []int
	for range 6 {
		at, _ := w.room.Choose(1, rule, 0, list, w.rnd.Uint32, false)
		w.room.Begin(list[at].Key)
		got = append(got, at)
	}
	w.room.End(list[1].Key)
	at, made := w.room.Choose(1, rule, 0, list, w.rnd.Uint32, false)
	if !slices.Equal(got, []int{0, 1, 2, 0, 1, 2}) || at != 1 || made.Figures[0].InFlight != 2 {
		t.Errorf("%v, then %d %+v", got, at, made)
	}
}

func TestTiesAreBrokenByWeightOrOrder(t *testing.T) {
	w := newWorld(3)
	list := candidates(3)
	list[0].Weight, list[1].Weight = 3, 0
	seen := map[int]int{}
	for range 4000 {
		at, _ := w.room.Choose(1, Rule{By: usage.ByLoad}, 0, list, w.rnd.Uint32, false)
		seen[at]++
	}
	if seen[1] != 0 || seen[0] < 2800 || seen[0] > 3200 {
		t.Errorf("%v", seen)
	}
	if at, _ := w.room.Choose(1, Rule{By: usage.ByLoad, InOrder: true}, 0, list, w.rnd.Uint32, false); at != 0 {
		t.Errorf("%d", at)
	}
}

// The explore share is exact: no run of requests has more of them than it says.
func TestTheExploreShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		rule := Rule{By: usage.ByLatency, Floor: 1, Explore: rapid.Float64Range(0, 0.5).Draw(t, "share")}
		list := candidates(rapid.IntRange(2, 8).Draw(t, "targets"))
		explored, requests := 0, 0
		for range 500 {
			_, _, made := w.request(rule, list, func(at int) (time.Duration, int) { return time.Duration(at+1) * 10 * time.Millisecond, 200 })
			if made.Reason != usage.ReasonTooFew {
				requests++
			}
			if made.Reason == usage.ReasonExplore {
				explored++
			}
		}
		want := rule.Explore * float64(requests)
		if math.Abs(float64(explored)-want) > 2 {
			t.Fatalf("%d of %d explored, want %.1f", explored, requests, want)
		}
	})
}

// Whatever targets do, a target without weight is never chosen, counts of requests in
// flight return to zero, and the chosen target is named with its figure.
func TestChoicesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		list := candidates(rapid.IntRange(1, 40).Draw(t, "targets"))
		for i := range list {
			list[i].Weight = float64(rapid.IntRange(0, 2).Draw(t, "weight"))
			list[i].Cost, list[i].Priced = 5, rapid.Bool().Draw(t, "priced")
		}
		list[rapid.IntRange(0, len(list)-1).Draw(t, "one")].Weight = 1
		rule := Rule{By: rapid.SampledFrom([]string{usage.ByLatency, usage.ByCost, usage.ByLoad}).Draw(t, "by"), Explore: 0.1, Floor: rapid.IntRange(1, 3).Draw(t, "floor"), InOrder: rapid.Bool().Draw(t, "order")}
		for range 100 {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			at, made := w.room.Choose(1, rule, 0, list, w.rnd.Uint32, false)
			if list[at].Weight <= 0 {
				t.Fatalf("target %d has no weight", at)
			}
			if !slices.ContainsFunc(made.Figures, func(f usage.Figure) bool { return f.Index == made.Index }) || len(made.Figures) > maxFigures || made.Reason == "" {
				t.Fatalf("%+v", made)
			}
			k := list[at].Key
			w.room.Begin(k)
			w.room.Observe(k, 0, rapid.SampledFrom([]int{0, 200, 400, 429, 500}).Draw(t, "status"), time.Duration(w.rnd.Int64N(int64(time.Second))))
			w.room.End(k)
		}
		for k, of := range w.room.targets {
			if of.inFlight != 0 {
				t.Fatalf("target %d: %d in flight", k, of.inFlight)
			}
		}
	})
}

// Looking at a choice changes nothing.
func TestLookingNotesNothing(t *testing.T) {
	w := newWorld(1)
	list := candidates(2)
	w.room.Observe(list[0].Key, 0, 500, 0)
	w.now = w.now.Add(time.Minute)
	before := fmt.Sprint(*w.room.targets[list[0].Key], w.room.explore)
	w.room.Choose(1, byLatency, 0, list, w.rnd.Uint32, true)
	if after := fmt.Sprint(*w.room.targets[list[0].Key], w.room.explore); after != before {
		t.Errorf("%s, before %s", after, before)
	}
}

func TestRoomsAreBounded(t *testing.T) {
	w := newWorld(1)
	for i := range maxTargets + 10 {
		w.room.Begin(Key(i))
		if i%2 == 0 {
			w.room.End(Key(i))
		}
	}
	if n := len(w.room.targets); n > maxTargets {
		t.Errorf("%d targets", n)
	}
	b := NewBoard(time.Now)
	for i := range maxWorkspaces + 10 {
		b.Of("o", fmt.Sprint(i))
	}
	if n := len(b.workspaces); n > maxWorkspaces {
		t.Errorf("%d workspaces", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, by := range []string{usage.ByLatency, usage.ByCost, usage.ByLoad} {
		b.Run(by, func(b *testing.B) {
			w := newWorld(1)
			list := candidates(20)
			for i := range list {
				list[i].Cost, list[i].Priced = 5, true
			}
			rule := Rule{By: by, Explore: 0.02, Floor: 3}
			for range 200 {
				w.request(rule, list, func(at int) (time.Duration, int) { return time.Duration(at+1) * time.Millisecond, 200 })
			}
			b.ReportAllocs()
			for b.Loop() {
				w.room.Choose(1, rule, 0, list, w.rnd.Uint32, false)
			}
		})
	}
}
