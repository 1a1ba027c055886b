package route

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/usage"
)

const stickyConfig = `{"cb_config":{"failure_threshold":1,"cooldown_interval":30000},"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata._user","params.tier"]}},"targets":[{"provider":"@a"},{"provider":"@b"},{"provider":"@c","weight":2}]}`

// first gives the target of one request of a user, without "config.".
func first(t *testing.T, tree *Tree, ctx Context, user string) string {
	t.Helper()
	if user != "" {
		ctx.Metadata = map[string]string{"_user": user}
	}
	leaf, f := tree.Start(ctx).Next(Outcome{})
	if f != nil {
		t.Fatal(f)
	}
	return leaf.Path[len("config."):]
}

func TestOneUserHasOneTargetInEveryProcess(t *testing.T) {
	one, other := compile(t, stickyConfig, Strict), compile(t, stickyConfig, Strict)
	seen := map[string]int{}
	for i := range 3000 {
		user := fmt.Sprint("user-", i)
		got := first(t, one, Context{Random: func() uint32 { return 0 }}, user)
		if again := first(t, other, Context{Random: func() uint32 { return math.MaxUint32 }}, user); again != got {
			t.Fatalf("%s: %s, in another process %s", user, got, again)
		}
		seen[got]++
	}
	for target, share := range map[string]float64{"targets[0]": 0.25, "targets[1]": 0.25, "targets[2]": 0.5} {
		if got := float64(seen[target]) / 3000; math.Abs(got-share) > 0.04 {
			t.Errorf("%s has %.3f of the users, its weight is %.2f", target, got, share)
		}
	}
	if got := first(t, one, Context{Random: func() uint32 { return math.MaxUint32 }}, ""); got != "targets[2]" {
		t.Errorf("without the fields a request is drawn: %s", got)
	}
	off := compile(t, strings.Replace(stickyConfig, `"enabled":true`, `"enabled":false`, 1), Strict)
	if got := first(t, off, Context{Random: func() uint32 { return 0 }}, "ann"); got != "targets[0]" {
		t.Errorf("a rule that is off: %s", got)
	}
}

func TestStickinessUnderOpenBreakers(t *testing.T) {
	tree := compile(t, stickyConfig, Strict)
	now := time.Unix(1_800_000_000, 0)
	picks := NewPicks(func() time.Time { return now })
	home := map[string]string{}
	users := make([]string, 300)
	for i := range users {
		users[i] = fmt.Sprint("user-", i)
		home[users[i]] = first(t, tree, Context{Sticky: picks.Of("o", "w", "c")}, users[i])
	}
	down := openAt(func(p string) bool { return p == "config.targets[2]" })
	for _, user := range users {
		got := first(t, tree, Context{Sticky: picks.Of("o", "w", "c"), Breakers: down}, user)
		switch {
		case home[user] != "targets[2]" && got != home[user]:
			t.Errorf("%s moved from a healthy target: %s, was %s", user, got, home[user])
		case got == "targets[2]":
			t.Errorf("%s stays at an open target", user)
		case got != first(t, tree, Context{Breakers: down}, user):
			t.Errorf("%s: processes disagree on the stand-in", user)
		}
	}
	for _, user := range users {
		if got := first(t, tree, Context{Sticky: picks.Of("o", "w", "c")}, user); got != home[user] {
			t.Errorf("%s did not come home: %s", user, got)
		}
	}
}

func TestAPickIsStoredForItsTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	picks := NewPicks(func() time.Time { return now })
	before := compile(t, stickyConfig, Strict)
	// Another target outweighs all: by the hash alone nearly everyone would move.
	after := compile(t, strings.Replace(stickyConfig, `{"provider":"@a"}`, `{"provider":"@a","weight":100000}`, 1), Strict)
	gone := compile(t, strings.Replace(stickyConfig, `{"provider":"@b"}`, `{"provider":"@b","weight":0}`, 1), Strict)
	var user string
	for i := 0; ; i++ {
		user = fmt.Sprint("user-", i)
		if first(t, before, Context{}, user) == "targets[1]" && first(t, after, Context{}, user) == "targets[0]" {
			break
		}
	}
	ctx := Context{Sticky: picks.Of("o", "w", "c")}
	if got := first(t, before, ctx, user); got != "targets[1]" {
		t.Fatal(got)
	}
	w := after.Start(Context{Metadata: map[string]string{"_user": user}, Sticky: ctx.Sticky})
	leaf, _ := w.Next(Outcome{})
	if leaf.Path != "config.targets[1]" || w.AppendDraws(nil)[0].Sticky != usage.StickyReused {
		t.Errorf("%s %+v", leaf.Path, w.AppendDraws(nil))
	}
	if got := first(t, after, Context{Sticky: picks.Of("o", "other", "c")}, user); got != "targets[0]" {
		t.Error("another workspace sees the pick")
	}
	now = now.Add(DefaultStickyTTL - 1)
	if got := first(t, after, ctx, user); got != "targets[1]" {
		t.Error("forgotten before its time, or its time was drawn out: ", got)
	}
	now = now.Add(1)
	if got := first(t, after, ctx, user); got != "targets[0]" {
		t.Error("kept after its time: ", got)
	}
	first(t, before, Context{Sticky: picks.Of("o", "w", "moved")}, user)
	if got := first(t, gone, Context{Sticky: picks.Of("o", "w", "moved")}, user); got == "targets[1]" {
		t.Error("a target without weight is not kept")
	}
}

func TestPicksHaveABound(t *testing.T) {
	now := time.Unix(0, 0)
	picks := NewPicks(func() time.Time { return now })
	of := picks.Of("o", "w", "c")
	for i := range maxPicks + 1000 {
		of.Store(sha256.Sum256(fmt.Append(nil, i)), 1, time.Hour)
	}
	if len(picks.picks) > maxPicks {
		t.Errorf("%d picks", len(picks.picks))
	}
}

// TestRendezvousMovesOnlyWhatMust: when a target goes, the others keep their
// keys, whatever the weights are.
func TestRendezvousMovesOnlyWhatMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ws := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.1, 1, 2, 100}), 2, 8).Draw(t, "weights")
		var nodes []*node
		for i, w := range ws {
			nodes = append(nodes, &node{index: i, weight: w, id: identity("", fmt.Sprint("config.targets[", i, "]"))})
		}
		gone := rapid.IntRange(0, len(ws)-1).Draw(t, "gone")
		rest := slices.Delete(slices.Clone(nodes), gone, gone+1)
		if weights(rest) == 0 {
			return
		}
		for i := range 50 {
			key := StickyKey(sha256.Sum256(fmt.Append(nil, i)))
			before, _ := rendezvous(nodes, key)
			after, _ := rendezvous(rest, key)
			if before.index != gone && before != after {
				t.Fatalf("weights %v, %d goes: key %d moves from %d to %d", ws, gone, i, before.index, after.index)
			}
			if after.weight == 0 {
				t.Fatal("a target without weight was chosen")
			}
		}
	})
}

func TestStickyRuleInsideOtherStrategies(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"fallback"},"targets":[`+stickyConfig+`,{"strategy":{"mode":"loadbalance"},"targets":[`+stickyConfig+`]}]}`, Strict)
	ctx := Context{Metadata: map[string]string{"_user": "ann"}}
	var paths [2][]string
	for i := range paths {
		paths[i] = visit(tree.Start(ctx), Outcome{Status: 500})
	}
	if len(paths[0]) != 2 || !slices.Equal(paths[0], paths[1]) {
		t.Errorf("%v", paths)
	}
}
