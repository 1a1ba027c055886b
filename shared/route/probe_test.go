package route

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/usage"
)

const guardedFallback = `{"cb_config":{"failure_threshold":2,"cooldown_interval":30000},"strategy":{"mode":"fallback"}` + three + `}`

func TestWalksRecordTheirOutcomes(t *testing.T) {
	tree := compile(t, guardedFallback, Strict)
	c, now := clocked()
	for range 2 {
		if got := visit(tree.Start(Context{Breakers: c}), status(500, 200)...); !slices.Equal(got, []string{"[0]", "[1]"}) {
			t.Fatal(got)
		}
	}
	w := tree.Start(Context{Breakers: c})
	if got := visit(w, status(200)...); !slices.Equal(got, []string{"[1]"}) {
		t.Errorf("after two failures the target is left out: %v", got)
	}
	if diff := cmp.Diff([]usage.Skip{{Path: "config.targets[0]", Reason: usage.SkipOpen}}, w.Skips(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]usage.Breaker{{Path: "config.targets[0]", Open: true}, {Path: "config.targets[1]"}}, w.Breakers(nil)); diff != "" {
		t.Error(diff)
	}
	*now = now.Add(testCooldown)
	probing := tree.Start(Context{Breakers: c})
	leaf, _ := probing.Next(Outcome{})
	if leaf.Path != "config.targets[0]" {
		t.Fatalf("the probe goes to %s", leaf.Path)
	}
	meanwhile := tree.Start(Context{Breakers: c})
	if got := visit(meanwhile, status(200)...); !slices.Equal(got, []string{"[1]"}) {
		t.Errorf("while it is probed others leave it out: %v", got)
	}
	if s := meanwhile.Skips(nil); len(s) != 1 || s[0].Reason != usage.SkipProbe {
		t.Errorf("%+v", s)
	}
	if leaf, _ := probing.Next(Outcome{Status: 200}); leaf != nil {
		t.Fatal("the probe served")
	}
	if b := probing.Breakers(nil); len(b) != 1 || !b[0].Probe {
		t.Errorf("%+v", b)
	}
	if got := visit(tree.Start(Context{Breakers: c}), status(200)...); !slices.Equal(got, []string{"[0]"}) {
		t.Errorf("a good probe closes it: %v", got)
	}
}

func TestUnusedProbesAreReturned(t *testing.T) {
	tree := compile(t, guardedFallback, Strict)
	open := func() (*ConfigCircuits, *time.Time) {
		c, now := clocked()
		for range 2 {
			c.Record("config.targets[0]", &Breaker{Threshold: 2, Cooldown: testCooldown}, 500, false)
		}
		*now = now.Add(testCooldown)
		return c, now
	}
	for name, end := range map[string]func(*Traversal){
		"refused":   func(w *Traversal) { _, _ = w.Next(Outcome{Status: 403, Rejected: true}) },
		"abandoned": func(w *Traversal) { w.End() },
	} {
		c, _ := open()
		w := tree.Start(Context{Breakers: c})
		if _, f := w.Next(Outcome{}); f != nil || c.State("config.targets[0]") != Probing {
			t.Fatal("no probe was claimed")
		}
		end(w)
		if c.State("config.targets[0]") != HalfOpen {
			t.Errorf("%s: the probe stays claimed", name)
		}
	}
	// A router error below a claimed node gives its probe back.
	broken := compile(t, `{"cb_config":{"failure_threshold":2,"cooldown_interval":30000},"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":0}]},{"provider":"@b"}]}`, Strict)
	c, _ := open()
	if got := visit(broken.Start(Context{Breakers: c}), status(200)...); len(got) != 1 || c.State("config.targets[0]") != HalfOpen {
		t.Errorf("%v, %v", got, c.State("config.targets[0]"))
	}
}

func TestAStrategysOwnBreakerCountsItsFinalAnswer(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"fallback","cb_config":{"failure_threshold":1,"cooldown_interval":30000}},"targets":[{"strategy":{"mode":"fallback"}`+three+`},{"provider":"@d"}]}`, Strict)
	c, _ := clocked()
	visit(tree.Start(Context{Breakers: c}), status(500, 200)...)
	if c.State("config.targets[0].targets[0]") != Open || c.State("config.targets[0]") != Closed {
		t.Error("the child failed, the strategy served")
	}
	visit(tree.Start(Context{Breakers: c}), status(500, 500, 200)...)
	if c.State("config.targets[0]") != Open {
		t.Error("the strategy's last answer was a failure")
	}
}

func TestOneProbeAmongManyRequests(t *testing.T) {
	tree := compile(t, guardedFallback, Strict)
	c, now := clocked()
	for range 2 {
		c.Record("config.targets[0]", &Breaker{Threshold: 2, Cooldown: testCooldown}, 500, false)
	}
	*now = now.Add(testCooldown)
	var mu sync.Mutex
	tried := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			leaf, _ := tree.Start(Context{Breakers: c}).Next(Outcome{})
			mu.Lock()
			tried[leaf.Path]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if tried["config.targets[0]"] != 1 || tried["config.targets[1]"] != 49 {
		t.Errorf("%v", tried)
	}
}

// TestWalksUnderAnyBreakers: for any states, a walk ends, tries no target twice, skips open
// targets unless all are open, and leaves no probe claimed.
func TestWalksUnderAnyBreakers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "targets")
		mode := rapid.SampledFrom([]string{"single", "fallback", "loadbalance"}).Draw(t, "mode")
		list := ""
		for range n {
			list += `,{"provider":"@a"}`
		}
		cfg, details := Parse([]byte(`{"cb_config":{"failure_threshold":1,"cooldown_interval":30000},"strategy":{"mode":"`+mode+`"},"targets":[`+list[1:]+`]}`), Strict)
		if len(details) > 0 {
			t.Fatal(details)
		}
		tree, _ := cfg.Compile()
		c, now := clocked()
		states := make([]State, n)
		usableOnes := 0
		b := &Breaker{Threshold: 1, Cooldown: testCooldown}
		for i := range n {
			states[i] = rapid.SampledFrom([]State{Closed, Open, HalfOpen, Probing}).Draw(t, "state")
			path := fmt.Sprintf("config.targets[%d]", i)
			if states[i] == HalfOpen || states[i] == Probing {
				c.Record(path, b, 500, false)
			}
			if states[i] == Closed || states[i] == HalfOpen {
				usableOnes++
			}
		}
		*now = now.Add(testCooldown)
		for i := range n {
			path := fmt.Sprintf("config.targets[%d]", i)
			switch states[i] {
			case Open:
				c.Record(path, b, 500, false)
			case Probing:
				c.Claim(path, b)
			}
		}
		w := tree.Start(Context{Breakers: c, Random: func() uint32 { return rapid.Uint32Max(math.MaxUint32).Draw(t, "random") }})
		seen := map[string]bool{}
		outcome := Outcome{}
		for {
			leaf, f := w.Next(outcome)
			if f != nil {
				t.Fatal(f)
			}
			if leaf == nil {
				break
			}
			if seen[leaf.Path] {
				t.Fatalf("%s twice", leaf.Path)
			}
			seen[leaf.Path] = true
			var i int
			_, _ = fmt.Sscanf(leaf.Path, "config.targets[%d]", &i)
			if usableOnes > 0 && states[i] != Closed && states[i] != HalfOpen {
				t.Fatalf("%s is left out, states %v", leaf.Path, states)
			}
			outcome = Outcome{Status: rapid.SampledFrom([]int{200, 404, 500}).Draw(t, "status"), Rejected: rapid.Bool().Draw(t, "refused")}
		}
		if len(seen) == 0 {
			t.Fatal("no target was tried")
		}
		for i := range n {
			path := fmt.Sprintf("config.targets[%d]", i)
			if states[i] == HalfOpen && seen[path] && c.State(path) == Probing {
				t.Fatalf("the probe of %s is left claimed", path)
			}
		}
	})
}

func TestConditionsAreRecorded(t *testing.T) {
	tree := compile(t, fullExample, Strict)
	for plan, want := range map[string]usage.Match{"pro": {Path: "config", Condition: 0, Index: 0}, "free": {Path: "config", Condition: -1, Index: 1}} {
		w := tree.Start(Context{Metadata: map[string]string{"plan": plan}})
		if _, f := w.Next(Outcome{}); f != nil {
			t.Fatal(f)
		}
		if diff := cmp.Diff([]usage.Match{want}, w.Matches(nil)); diff != "" {
			t.Errorf("%s: %s", plan, diff)
		}
	}
}

func TestAFinalAnswerEndsTheWalk(t *testing.T) {
	w := compile(t, `{"strategy":{"mode":"fallback"}`+three+`}`, Strict).Start(Context{})
	_, _ = w.Next(Outcome{})
	if leaf, _ := w.Next(Outcome{Status: 500, Final: true}); leaf != nil {
		t.Errorf("%s is tried though an answer has begun", leaf.Path)
	}
}
