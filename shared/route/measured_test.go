package route

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/route/measure"
	"gateway/shared/usage"
)

// figures are measures under a clock that the test moves.
type figures struct {
	now time.Time
	*Measures
}

func newFigures() *figures {
	f := &figures{now: time.Unix(1_800_000_000, 0)}
	f.Measures = &Measures{Workspace: measure.NewWorkspace(func() time.Time { return f.now }), Model: "m"}
	return f
}

// request takes one request through the tree; response is what a provider does.
func (f *figures) request(t testing.TB, tree *Tree, ctx Context, answer func(slug string) (int, time.Duration)) (slugs []string, w *Traversal) {
	t.Helper()
	ctx.Measures = f.Measures
	w = tree.Start(ctx)
	o := Outcome{}
	for {
		leaf, fault := w.Next(o)
		if fault != nil {
			t.Fatal(fault)
		}
		if leaf == nil {
			w.Settle(o.Status)
			return slugs, w
		}
		slugs = append(slugs, leaf.Slug)
		status, latency := answer(leaf.Slug)
		f.now = f.now.Add(latency)
		o = Outcome{Status: status, Latency: latency, Pending: status < 300}
	}
}

func speeds(ms map[string]int) func(string) (int, time.Duration) {
	return func(slug string) (int, time.Duration) { return 200, time.Duration(ms[slug]) * time.Millisecond }
}

// The strategies work alone, below fallback and conditional, and over strategies.
func TestStrategiesThatCompareFigures(t *testing.T) {
	abc := `"targets":[{"provider":"@a"},{"provider":"@b"},{"provider":"@c"}]`
	latency := speeds(map[string]int{"a": 300, "b": 20, "c": 200, "last": 900})
	cost := map[string]pricing.NanoDollars{"a": 9, "b": 8, "c": 2}
	for name, c := range map[string]struct{ config, want string }{
		"latency":              {`{"strategy":{"mode":"latency"},` + abc + `}`, "b"},
		"cost":                 {`{"strategy":{"mode":"cost"},` + abc + `}`, "c"},
		"least_busy":           {`{"strategy":{"mode":"least_busy","tie_break":"order"},` + abc + `}`, "a"},
		"below fallback":       {`{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"latency"},` + abc + `},{"provider":"@last"}]}`, "b"},
		"below conditional":    {`{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.x":"1"},"then":"f"}],"default":"s"},"targets":[{"name":"f","provider":"@last"},{"name":"s","strategy":{"mode":"cost"},` + abc + `}]}`, "c"},
		"over fallback":        {`{"strategy":{"mode":"latency"},"targets":[{"provider":"@a"},{"strategy":{"mode":"fallback"},"targets":[{"provider":"@b"},{"provider":"@last"}]}]}`, "b"},
		"weight 0 is left out": {`{"strategy":{"mode":"latency"},"targets":[{"provider":"@a"},{"provider":"@b","weight":0},{"provider":"@c"}]}`, "c"},
	} {
		f := newFigures()
		f.Cost = func(l *Leaf) (pricing.NanoDollars, bool) { p, ok := cost[l.Slug]; return p, ok }
		tree := compile(t, c.config, Strict)
		if !tree.Measured() {
			t.Errorf("%s: Measured is false", name)
		}
		seen := map[string]int{}
		for i := range 220 {
			slugs, w := f.request(t, tree, Context{}, latency)
			if i >= 20 {
				seen[strings.Join(slugs, ">")]++
			}
			if m := w.Measured(nil); len(m) != 1 || len(m[0].Figures) == 0 || m[0].Reason == "" {
				t.Fatalf("%s: %+v", name, m)
			}
		}
		if seen[c.want] < 190 {
			t.Errorf("%s: %v, want %s", name, seen, c.want)
		}
	}
}

// A target that fails is followed by the fallback above, and then avoided.
func TestAFailingTargetIsAvoidedBelowFallback(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"latency"},"targets":[{"provider":"@a"},{"provider":"@b"}]},{"provider":"@last"}]}`, Strict)
	f := newFigures()
	var tried []string
	for range 100 {
		slugs, _ := f.request(t, tree, Context{}, func(slug string) (int, time.Duration) {
			if slug == "a" {
				return 503, time.Millisecond
			}
			return 200, 50 * time.Millisecond
		})
		tried = append(tried, slugs...)
	}
	a := 0
	for _, s := range tried {
		if s == "a" {
			a++
		}
	}
	if a == 0 || a > 2 {
		t.Errorf("the failing target was tried %d times", a)
	}
}

// A rejection of the gateway says nothing of a target, and nothing stays in flight.
func TestRefusalsAreNoFigures(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"least_busy"},"targets":[{"provider":"@a"},{"provider":"@b"}]}`, Strict)
	f := newFigures()
	for i := range 50 {
		w := tree.Start(Context{Measures: f.Measures})
		if _, fault := w.Next(Outcome{}); fault != nil {
			t.Fatal(fault)
		}
		switch i % 3 {
		case 0:
			w.Next(Outcome{Status: 429, Rejected: true})
		case 1:
			w.End()
		case 2: // the request ends without an outcome
			w.Settle(200)
		}
		m := w.Measured(nil)[0]
		for _, fig := range m.Figures {
			if fig.InFlight != 0 || fig.Avoided {
				t.Fatalf("request %d: %+v", i, m)
			}
		}
	}
	// A response that is coming is in flight until it is settled.
	w := tree.Start(Context{Measures: f.Measures})
	w.Next(Outcome{})
	w.Next(Outcome{Status: 200, Pending: true})
	busy := func() (n int) {
		again := tree.Start(Context{Measures: &Measures{Workspace: f.Workspace, DryRun: true}})
		again.Next(Outcome{})
		for _, fig := range again.Measured(nil)[0].Figures {
			n += fig.InFlight
		}
		return n
	}
	f.Model = ""
	w = tree.Start(Context{Measures: f.Measures})
	w.Next(Outcome{})
	w.Next(Outcome{Status: 200, Pending: true})
	if n := busy(); n != 1 {
		t.Errorf("%d in flight while a stream is read", n)
	}
	w.Settle(502)
	if n := busy(); n != 0 {
		t.Errorf("%d in flight after its end", n)
	}
	again := tree.Start(Context{Measures: f.Measures})
	again.Next(Outcome{})
	if !slices.ContainsFunc(again.Measured(nil)[0].Figures, func(fig usage.Figure) bool { return fig.Avoided }) {
		t.Error("a stream that broke off is no failure")
	}
}

// A session stays at its target while it works, although another one is better.
func TestStickySessionsRetainTheirTarget(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"latency","explore":0,"min_observations":1,"sticky":{"enabled":true,"hash_fields":["metadata._user"],"ttl":60}},"targets":[{"provider":"@a"},{"provider":"@b"}]}`, Strict)
	f := newFigures()
	picks := NewPicks(func() time.Time { return f.now }).Of("o", "w", "c")
	ctx := func(user string) Context { return Context{Sticky: picks, Metadata: map[string]string{"_user": user}} }
	latency := map[string]int{"a": 10, "b": 100}
	answer := func(slug string) (int, time.Duration) { return speeds(latency)(slug) }
	for i := range 10 {
		f.request(t, tree, ctx(fmt.Sprint("warm", i)), answer)
	}
	slugs, _ := f.request(t, tree, ctx("ann"), answer)
	latency["a"] = 2000
	for i := range 30 {
		f.request(t, tree, ctx(fmt.Sprint("others", i)), answer)
		f.now = f.now.Add(-time.Duration(latency["a"]) * time.Millisecond) // they run side by side
	}
	again, w := f.request(t, tree, ctx("ann"), answer)
	if slugs[0] != "a" || again[0] != "a" || w.Measured(nil)[0].Reason != usage.ReasonSticky {
		t.Errorf("first %v, then %v: %+v", slugs, again, w.Measured(nil))
	}
	if other, _ := f.request(t, tree, ctx("bob"), answer); other[0] != "b" {
		t.Errorf("another session went to %v", other)
	}
	f.Workspace.Observe(measureKey(w, w.at), 0, 500, 0)
	if moved, _ := f.request(t, tree, ctx("ann"), answer); moved[0] != "b" {
		t.Errorf("a session stays at a target that fails: %v", moved)
	}
}

// Without figures, as in other callers, a walk still chooses.
func TestChoiceWithoutFigures(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"cost"},"targets":[{"provider":"@a","weight":0},{"provider":"@b"}]}`, Strict)
	if got := visit(tree.Start(Context{}), status(200)...); !slices.Equal(got, []string{"[1]"}) {
		t.Error(got)
	}
	none := compile(t, `{"strategy":{"mode":"latency"},"targets":[{"provider":"@a","weight":0}]}`, Strict)
	if got := visit(none.Start(Context{}), status(200)...); !strings.Contains(got[0], "check the weights") {
		t.Error(got)
	}
}

// cpu is the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMeasured compares a choice among 20 targets with one by weight. On a busy machine
// cpu-ns/op is the figure that counts: the elapsed time includes waits for a processor.
func BenchmarkMeasured(b *testing.B) {
	list := strings.TrimSuffix(strings.Repeat(`{"provider":"@a","override_params":{"model":"m%d"}},`, 20), ",")
	n := make([]any, 20)
	for i := range n {
		n[i] = i
	}
	list = fmt.Sprintf(list, n...)
	for _, mode := range []string{"loadbalance", "latency", "cost", "least_busy"} {
		b.Run(mode, func(b *testing.B) {
			tree := compile(b, `{"strategy":{"mode":"`+mode+`"},"targets":[`+list+`]}`, Strict)
			room, now := measure.NewWorkspace(time.Now), time.Now()
			var used pricing.Usage
			used.Set(pricing.Input, 100)
			used.Set(pricing.Output, 100)
			m := &Measures{Workspace: room, Used: used, At: now, Find: func(*Leaf) (pricing.Price, bool) {
				return pricing.Default().Price("openai", "gpt-4o", pricing.Options{})
			}}
			var w Traversal
			b.ReportAllocs()
			before := cpu(b)
			defer func() { b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				tree.StartIn(&w, Context{Measures: m, Random: func() uint32 { return 1 << 30 }})
				w.Next(Outcome{})
				w.Next(Outcome{Status: 200, Latency: 1000, Pending: true})
				w.Settle(200)
			}
		})
	}
}
