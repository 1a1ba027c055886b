package route

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// threeLevels is a config of three levels with n targets in each strategy of the
// lowest one, with breakers, a sticky rule and conditions.
func threeLevels(n int) string {
	list := strings.TrimSuffix(strings.Repeat(`{"provider":"@a"},`, n), ",")
	return `{"retry":{"attempts":2},"cb_config":{"failure_threshold":5,"cooldown_interval":30000},"strategy":{"mode":"conditional","conditions":[` +
		`{"query":{"metadata.plan":{"$eq":"free"}},"then":"free"},{"query":{"metadata.plan":{"$in":["pro","team"]}},"then":"pro"}],"default":"free"},"targets":[` +
		`{"name":"free","provider":"@f"},` +
		`{"name":"pro","strategy":{"mode":"fallback"},"targets":[` +
		`{"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata._user"]}},"targets":[` + list + `]},` +
		`{"strategy":{"mode":"loadbalance"},"targets":[` + list + `]}]}]}`
}

// BenchmarkThreeLevels is what a request pays to be routed: a condition, a
// fallback and two weighted choices, the first of which fails.
func BenchmarkThreeLevels(b *testing.B) {
	for _, n := range []int{2, 50} {
		b.Run(fmt.Sprint("targets=", n), func(b *testing.B) {
			tree := compile(b, threeLevels(n), Strict)
			circuits := NewCircuits(time.Now).Of(ConfigKey{Config: "c"})
			picks := NewPicks(time.Now).Of("o", "w", "c")
			ctx := Context{Metadata: map[string]string{"plan": "pro", "_user": "ann"}, Random: func() uint32 { return 1 << 30 }, Breakers: circuits, Sticky: picks}
			b.ReportAllocs()
			for b.Loop() {
				w := tree.Start(ctx)
				outcome := Outcome{Status: 429}
				for {
					leaf, f := w.Next(outcome)
					if f != nil {
						b.Fatal(f)
					}
					if leaf == nil {
						break
					}
				}
			}
		})
	}
}

func TestRoutingAllocatesTheSameForEveryConfig(t *testing.T) {
	allocs := func(n int) float64 {
		tree := compile(t, threeLevels(n), Strict)
		circuits := NewCircuits(time.Now).Of(ConfigKey{Config: "c"})
		ctx := Context{Metadata: map[string]string{"plan": "pro", "_user": "ann"}, Breakers: circuits, Sticky: NewPicks(time.Now).Of("o", "w", "c")}
		return testing.AllocsPerRun(100, func() {
			w := tree.Start(ctx)
			for {
				if leaf, _ := w.Next(Outcome{Status: 429}); leaf == nil {
					return
				}
			}
		})
	}
	if small, large := allocs(2), allocs(50); large > small {
		t.Errorf("%v allocations with 2 targets, %v with 50", small, large)
	}
}
