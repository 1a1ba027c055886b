package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gateway/shared/fault"
)

// player is a caller in a simulated window: how many requests it sends, and in which part of
// the window.
type player struct {
	name     string
	wants    float64 // of the window
	from, to float64 // of it, 0 to 1
	requests int
	had      int
}

// poisson is how many events there are where mean are expected.
func poisson(random *rand.Rand, mean float64) int {
	n, left := 0, math.Exp(-mean)
	for p := random.Float64(); p > left; p *= random.Float64() {
		n++
	}
	return n
}

// draw makes callers of which the first ones want far more than there is, and the others
// about as much as their share, or less.
func draw(random *rand.Rand, limit int64) (players []*player) {
	n := 2 + random.IntN(11)
	greedy := 1 + random.IntN(max(n/3, 1))
	share := float64(limit) / float64(n)
	for i, name := range callersApart(n) {
		p := &player{name: name, to: 1}
		switch {
		case i < greedy:
			p.wants = float64(limit) * (1 + 2*random.Float64())
		case i%3 == 0: // in a burst at the beginning
			p.wants, p.to = share*(0.2+0.8*random.Float64()), 0.3
		default:
			p.wants = share * (0.1 + 0.9*random.Float64())
		}
		players = append(players, p)
	}
	return players
}

// Many windows of a scarce rate are simulated on a fake clock, with callers of all kinds on 1
// to 20 instances. The limit is never exceeded, and at least 95 percent of it is used. A caller
// that sends steadily, or early, is admitted up to its share, less a statistical tolerance: the
// square root of the share, and two.
//
//lane:property
func TestPlayedWindowsAreDividedFairly(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 11))
		limit := 60 + random.Int64N(900)
		unit := []Unit{PerMinute, PerHour}[random.IntN(2)]
		length := time.Duration(units[unit].length) * time.Second
		h := clockAt("2026-11-20T14:00:00Z")
		kind := []Kind{Workspace, Policy, Integration, Provider}[random.IntN(4)]
		instances := 1 + random.IntN(20)
		request := instancesOn(t, newMemory(), h, instances, kind, RateLimit{Requests, unit, limit})
		players := draw(random, limit)
		for window := range 4 { // the first one determines the callers
			total := playWindow(t, random, h, length, players, request)
			what := fmt.Sprintf("seed %d, window %d: %d of %d among %d callers on %d instances", seed, window, total, limit, len(players), instances)
			if int64(total) > limit {
				t.Fatalf("%s: more than the limit", what)
			}
			if window == 0 {
				continue
			}
			if float64(total) < 0.95*float64(limit) {
				t.Errorf("%s: less than 95 parts in a hundred", what)
			}
			share := float64(limit) / float64(len(players))
			for _, p := range players {
				due := math.Min(float64(p.requests), math.Floor(share))
				if short := due - float64(p.had); short > math.Sqrt(share)+2 {
					t.Errorf("%s: %s asked for %d, had %d, its share is %.0f", what, p.name, p.requests, p.had, share)
				}
			}
		}
	}
}

// playWindow plays a window from its beginning to its end, and gives how many requests
// were let through.
func playWindow(t *testing.T, random *rand.Rand, h *hands, length time.Duration, players []*player, request func(string) error) (total int) {
	t.Helper()
	const ticks = 300
	for _, p := range players {
		p.requests, p.had = 0, 0
	}
	for tick := range ticks {
		at := float64(tick) / ticks
		var queue []*player
		for _, p := range players {
			if at < p.from || at >= p.to {
				continue
			}
			for range poisson(random, p.wants/(p.to-p.from)/ticks) {
				queue = append(queue, p)
			}
		}
		random.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
		for _, p := range queue {
			p.requests++
			switch err := request(p.name); {
			case err == nil:
				p.had++
				total++
			case fault.From(err).RetryAfter <= 0:
				t.Fatalf("%v does not say when to try again", err)
			}
		}
		h.add(length / ticks)
	}
	return total
}
