package ledger

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
)

// More plays than the property has in a usual run, and one play again:
//
//	GOGC=800 go test ./shared/ledger -run '^TestPlays$' -plays 1000000 [-brief] [-play SEED] -timeout 0
//
// Brief plays have up to three processes with up to two requests each. One costs a fifth of the
// time, so that a run of many millions fits into an hour.
var (
	plays = flag.Uint64("plays", 1000, "number of plays of TestPlays")
	first = flag.Uint64("play", 1, "seed of the first play")
	brief = flag.Bool("brief", false, "play with few processes and requests")
)

// setting is what a play is made of. Everything of a play follows from it.
type setting struct {
	seed                              uint64
	actors, requests, faults, splitAt int
	change                            bool
	late                              bool // see world
}

func settingOf(seed uint64) setting {
	r := rand.New(rand.NewPCG(seed, 0))
	return setting{seed, 1 + r.IntN(6), 1 + r.IntN(8), []int{0, 5, 30}[r.IntN(3)], []int{1, 3, SplitAbove}[r.IntN(3)], r.IntN(3) > 0, false}
}

func (s setting) String() string {
	return fmt.Sprintf("seed %d: %d processes, %d requests each, %d%% faults, split above %d, changing limits %t, late charges %t",
		s.seed, s.actors, s.requests, s.faults, s.splitAt, s.change, s.late)
}

func TestPlays(t *testing.T) {
	var next atomic.Uint64
	next.Store(*first)
	last := *first + *plays
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			c := newCrew(t)
			for {
				seed := next.Add(1) - 1
				if seed >= last || t.Failed() {
					return
				}
				s := settingOf(seed)
				s.late = seed%2 == 0
				if *brief {
					s.actors, s.requests = 1+s.actors%3, 1+s.requests%2
				}
				if _, err := s.play(t, c); err != nil {
					t.Errorf("%v: %v", s, err)
				}
			}
		})
	}
}

// Short simulations in which a process could not distinguish an entry that repair had settled
// from one that was never written: by its clock, which was slow, the entry was not due
// (51408934, charged twice), or it checked when the entry would have been due (55107846,
// charged too little).
func TestBriefPlaysThatOnceFailed(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	for _, seed := range []uint64{51408934, 55107846} {
		s := settingOf(seed)
		s.late, s.actors, s.requests = true, 1+s.actors%3, 1+s.requests%2
		if _, err := s.play(t, c); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

// Simulations that once ended with inconsistent accounts: budgets that were reset twice
// concurrently (394), two repaired entries of one request that were mistaken for one (19233),
// and entries that a request left behind because the responses of writing and releasing them
// were lost. In 422798 the test was wrong: a charge without an entry met a limit that was set
// after the request began.
func TestPlaysThatOnceFailed(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	for _, seed := range []uint64{394, 19233, 422798, 1026206, 1053852, 1057376} {
		if _, err := settingOf(seed).play(t, c); err != nil {
			t.Errorf("%v: %v", settingOf(seed), err)
		}
	}
}

// A failure can be looked into only when it comes again. Coroutines and goroutines
// play the same.
//
//lane:property
func TestTheSameSeedIsTheSamePlay(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	for seed := range uint64(60) {
		s := settingOf(seed)
		one, err := s.play(t, c)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		two, err := s.play(t, nil)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		if a, b := one.story.story(), two.story.story(); a != b {
			t.Fatalf("%v: two plays differ:\n%s\n---\n%s", s, a, b)
		}
	}
}
