package rotation

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// The choice: never a rejected, resting or tried credential while another can be used, a spare
// one only without others, and one that rests only as a first choice.
func TestPickPrefersUsableCredentials(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const now = 1000
		n := rapid.IntRange(1, 10).Draw(t, "n")
		list, states := make([]Entry, n), make([]state, n)
		tried := Set(0)
		usable, spare, resting := Set(0), Set(0), Set(0)
		for i := range list {
			list[i].Weight = rapid.IntRange(0, 5).Draw(t, "weight")
			states[i].rejected = rapid.SampledFrom([]int64{0, 0, 7}).Draw(t, "refused")
			states[i].rests = rapid.SampledFrom([]int64{0, now - 1, now + 1, now + 50}).Draw(t, "rests")
			if rapid.IntRange(0, 3).Draw(t, "tried") == 0 {
				tried = tried.Add(i)
			}
			switch {
			case tried.Has(i) || states[i].rejected != 0:
			case states[i].rests > now:
				resting = resting.Add(i)
			case list[i].Weight > 0:
				usable = usable.Add(i)
			default:
				spare = spare.Add(i)
			}
		}
		at, ok := pick(list, states, tried, now, rapid.Uint32().Draw(t, "number"))
		switch {
		case usable != 0:
			if !ok || !usable.Has(at) {
				t.Fatalf("picked %d, %t of %b", at, ok, usable)
			}
		case spare != 0:
			if !ok || !spare.Has(at) {
				t.Fatalf("picked %d, %t of the spare ones %b", at, ok, spare)
			}
		case resting != 0 && tried == 0:
			if !ok || !resting.Has(at) {
				t.Fatalf("picked %d, %t of the resting ones %b", at, ok, resting)
			}
			for i := range list {
				if resting.Has(i) && states[i].rests < states[at].rests {
					t.Fatalf("picked %d, but %d rests for a shorter time", at, i)
				}
			}
		case ok:
			t.Fatalf("picked %d of none", at)
		}
	})
}

// Over all numbers each credential gets exactly the share of its weight.
func TestPickFollowsWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 100), 1, 10).Draw(t, "weights")
		list, states, sum := make([]Entry, len(weights)), make([]state, len(weights)), 0
		for i, w := range weights {
			list[i].Weight, sum = w, sum+w
		}
		if sum == 0 {
			return
		}
		const draws = 1 << 14
		got := make([]int, len(list))
		for i := range uint64(draws) {
			at, ok := pick(list, states, 0, 0, uint32(i<<32/draws))
			if !ok {
				t.Fatal("nothing picked")
			}
			got[at]++
		}
		for i, w := range weights {
			if want := float64(draws) * float64(w) / float64(sum); math.Abs(float64(got[i])-want) > 2 {
				t.Fatalf("weight %d of %d: %d of %d, want %.0f", w, sum, got[i], draws, want)
			}
		}
	})
}

// clock is a clock of a test and a store, with processes over it.
func clock(t *testing.T) (now *atomic.Int64, board func() *Board, table store.Table) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now, table = new(atomic.Int64), s.Table(store.Usage)
	now.Store(time.Now().UnixMilli())
	return now, func() *Board {
		return NewBoard(func() time.Time { return time.UnixMilli(now.Load()) }, table, func(where string, err error) { t.Errorf("%s: %v", where, err) })
	}, table
}

var (
	scope = store.Scope{Org: "o", Workspace: "w"}
	two   = []Entry{{ID: "a", Label: "a", Weight: 1}, {ID: "b", Label: "b", Weight: 1}}
)

// picked are the credentials that a process would use.
func picked(r *Ring) (s Set) {
	for i := range uint32(16) {
		if at, ok := r.Pick(two, 0, i<<28); ok {
			s = s.Add(at)
		}
	}
	return s
}

func TestARefusedCredentialIsLeftOutEverywhereUntilTested(t *testing.T) {
	t.Parallel()
	now, process, table := clock(t)
	ctx, one, other := context.Background(), process(), process()
	foreign := store.Scope{Org: "o", Workspace: "other"}
	if got := picked(other.Of(ctx, scope, "i")); got != 0b11 {
		t.Fatalf("at first %b", got)
	}
	one.Of(ctx, scope, "i").MarkRejected(ctx, "a")
	if got := picked(one.Of(ctx, scope, "i")); got != 0b10 {
		t.Errorf("after the refusal %b", got)
	}
	for range 3 {
		now.Add(int64(24 * time.Hour / time.Millisecond))
		for name, want := range map[string]struct {
			r    *Ring
			want Set
		}{
			"this process": {one.Of(ctx, scope, "i"), 0b10}, "another process": {other.Of(ctx, scope, "i"), 0b10}, "a new process": {process().Of(ctx, scope, "i"), 0b10},
			"another integration": {one.Of(ctx, scope, "j"), 0b11}, "another workspace": {one.Of(ctx, foreign, "i"), 0b11},
		} {
			if got := picked(want.r); got != want.want {
				t.Errorf("%s: %b", name, got)
			}
		}
	}
	now.Add(1000)
	if err := Tested(ctx, table, scope, "i", "a", false, time.UnixMilli(now.Load())); err != nil {
		t.Fatal(err)
	}
	now.Add(1001)
	for i, b := range []*Board{one, other} {
		if got := picked(b.Of(ctx, scope, "i")); got != 0b11 {
			t.Errorf("process %d after the test: %b", i, got)
		}
	}
	// All rejected: none is left.
	for _, id := range []string{"a", "b"} {
		one.Of(ctx, scope, "i").MarkRejected(ctx, id)
	}
	if _, ok := one.Of(ctx, scope, "i").Pick(two, 0, 0); ok {
		t.Error("a refused credential is used")
	}
}

func TestALimitedCredentialRests(t *testing.T) {
	t.Parallel()
	now, process, _ := clock(t)
	ctx := context.Background()
	r := process().Of(ctx, scope, "i")
	rest := func() time.Duration {
		var d time.Duration
		for picked(r) == 0b10 {
			d += 100 * time.Millisecond
			now.Add(100)
			if d > 2*MostRest {
				t.Fatal("it rests for ever")
			}
		}
		return d
	}
	var got []string
	for _, named := range []time.Duration{0, 0, 0, 7 * time.Second, time.Hour, 0} {
		r.Limit("a", named)
		got = append(got, rest().String())
	}
	r.Succeed("a")
	r.Limit("a", 0)
	got = append(got, rest().String())
	if s := fmt.Sprint(got); s != "[1s 2s 4s 7s 10m0s 32s 1s]" {
		t.Errorf("rests %s", s)
	}
	// While all rest, the one with the shortest rest is called, once.
	r.Limit("a", 5*time.Second)
	r.Limit("b", 2*time.Second)
	if at, ok := r.Pick(two, 0, 0); !ok || at != 1 {
		t.Errorf("%d, %t", at, ok)
	}
	if _, ok := r.Pick(two, Set(0).Add(1), 0); ok {
		t.Error("a resting credential is called as a second one")
	}
}
