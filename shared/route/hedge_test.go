package route

import (
	"fmt"
	"testing"
	"time"

	"gateway/shared/route/measure"
)

// hedgedTree compiles a config whose strategy has a hedge after 10 ms.
func hedgedTree(t *testing.T, mode, more, targets string) *Tree {
	t.Helper()
	c, details := Parse(fmt.Appendf(nil, `{"strategy":{"mode":%q,"hedge":{"enabled":true,"after_ms":10,"max_extra_cost":1}%s},"targets":[%s]}`, mode, more, targets), Strict)
	if len(details) > 0 {
		t.Fatal(details)
	}
	tree, details := c.Compile()
	if len(details) > 0 {
		t.Fatal(details)
	}
	return tree
}

// fourLeaves has targets on three providers, the last one nested.
const fourLeaves = `{"name":"a","provider":"@a"},{"name":"b","provider":"@b"},{"name":"c","strategy":{"mode":"fallback"},"targets":[{"provider":"@c"},{"provider":"@d"}]}`

func TestHedgeNamesAnotherTarget(t *testing.T) {
	t.Parallel()
	conditions := `,"conditions":[{"query":{"metadata.x":{"$eq":"1"}},"then":"a"}],"default":"b"`
	for _, c := range []struct {
		mode, more string
		metadata   map[string]string
		failing    []string // slugs
		fall       int      // targets that fail first
		want       string
	}{
		{ModeFallback, "", nil, nil, 0, "b"}, {ModeFallback, "", nil, nil, 1, "c"}, {ModeFallback, "", nil, nil, 2, ""},
		{ModeFallback, "", nil, []string{"b"}, 0, "c"}, {ModeFallback, "", nil, []string{"b", "c"}, 0, ""},
		{ModeFallback, `,"on_status_codes":[200]`, nil, nil, 0, ""}, {ModeFallback, `,"on_status_codes":[500]`, nil, nil, 0, "b"},
		{ModeConditional, conditions, map[string]string{"x": "1"}, nil, 0, "b"}, {ModeConditional, conditions, nil, nil, 0, ""},
		{ModeLoadbalance, "", nil, nil, 0, "b"}, {ModeLoadbalance, "", nil, []string{"b"}, 0, "c"},
		{ModeLeastBusy, `,"tie_break":"order"`, nil, nil, 0, "b"},
	} {
		room := measure.NewWorkspace(time.Now)
		tree := hedgedTree(t, c.mode, c.more, fourLeaves)
		w := tree.Start(Context{Metadata: c.metadata, Measures: &Measures{Workspace: room, KeyID: "k"}})
		if _, f := w.Next(Outcome{}); f != nil {
			t.Fatal(f)
		}
		for range c.fall {
			if _, f := w.Next(Outcome{Status: 500}); f != nil {
				t.Fatal(f)
			}
		}
		for _, l := range tree.Leaves() {
			for _, slug := range c.failing {
				if l.Slug == slug {
					room.Observe(l.measured(), 0, 500, 0)
				}
			}
		}
		got := ""
		if h := HedgeOf(w); h != nil {
			if got = h.Leaf.Slug; h.After != 10*time.Millisecond {
				t.Errorf("after %s", h.After)
			}
		}
		if got != c.want {
			t.Errorf("%s%s, %d failed, failing %v: %q, want %q", c.mode, c.more, c.fall, c.failing, got, c.want)
		}
	}
}

// A walk continues at the second attempt, and every request in flight is ended.
func TestWalkContinuesAtTheSecondAttempt(t *testing.T) {
	t.Parallel()
	room := measure.NewWorkspace(time.Now)
	room.RecordCost("k", 1, 0, 0)
	tree := hedgedTree(t, ModeFallback, "", fourLeaves)
	breakers := &recorded{}
	walk := func() (*Traversal, *Hedge) {
		w := tree.Start(Context{Breakers: breakers, Measures: &Measures{Workspace: room, KeyID: "k"}})
		if _, f := w.Next(Outcome{}); f != nil {
			t.Fatal(f)
		}
		room.RecordCost("k", 1, 0, 0)
		return w, HedgeOf(w)
	}
	busy := func(want string) {
		t.Helper()
		got := ""
		for _, l := range tree.Leaves() {
			list := []measure.Candidate{{Key: l.measured(), Weight: 1}}
			_, made := room.Choose(1, measure.Rule{By: ModeLeastBusy}, 0, list, func() uint32 { return 0 }, true)
			got += fmt.Sprint(made.Figures[0].InFlight)
		}
		if got != want {
			t.Errorf("in flight %s, want %s", got, want)
		}
	}
	w, h := walk()
	if !h.Begin() {
		t.Fatal("it is not allowed")
	}
	busy("1100")
	HedgeWon(w, h, 0, time.Second)
	busy("0100")
	if leaf, f := w.Next(Outcome{Status: 200, Pending: true}); leaf != nil || f != nil {
		t.Errorf("%v, %v follows", leaf, f)
	}
	busy("0100")
	w.Settle(200)
	busy("0000")
	// Both fail: the fallback continues after the second one.
	w, h = walk()
	if !h.Begin() {
		t.Fatal("it is not allowed")
	}
	h.EndUnused(500, 0)
	HedgeFailed(w, h)
	leaf, _ := w.Next(Outcome{Status: 503})
	if leaf == nil || leaf.Slug != "c" {
		t.Errorf("%+v follows", leaf)
	}
	w.End()
	busy("0000")
}

// recorded are breakers that are always closed.
type recorded struct{ list []string }

func (*recorded) AllClosed() bool             { return true }
func (*recorded) State(string) State          { return Closed }
func (*recorded) Claim(string, *Breaker) bool { return false }
func (*recorded) Release(string)              {}
func (r *recorded) Record(path string, _ *Breaker, s int, _ bool) {
	r.list = append(r.list, fmt.Sprint(path, s))
}

func TestParseHedge(t *testing.T) {
	t.Parallel()
	two := `"targets":[{"provider":"@a"},{"provider":"@b"}]`
	for hedge, want := range map[string]string{
		`{"enabled":true,"after_ms":1}`:                                      "",
		`{"enabled":true,"after_percentile":95,"after_ms":200}`:              "",
		`{"enabled":false}`:                                                  "",
		`{"enabled":true}`:                                                   "strategy.hedge",
		`{"enabled":true,"after_ms":0}`:                                      "strategy.hedge.after_ms",
		`{"enabled":true,"after_ms":600001}`:                                 "strategy.hedge.after_ms",
		`{"enabled":true,"after_percentile":49}`:                             "strategy.hedge.after_percentile",
		`{"enabled":true,"after_percentile":99.5}`:                           "strategy.hedge.after_percentile",
		`{"enabled":true,"after_ms":9,"max_extra_cost":1.1}`:                 "strategy.hedge.max_extra_cost",
		`{"enabled":"yes","after_ms":9}`:                                     "strategy.hedge.enabled",
		`{"enabled":true,"after_ms":9,"stored_responses":true,"other":true}`: "strategy.hedge.other",
		`[]`: "strategy.hedge",
	} {
		_, details := Parse([]byte(`{"strategy":{"mode":"fallback","hedge":`+hedge+`},`+two+`}`), Strict)
		got := ""
		if len(details) > 0 {
			got = details[0].Field
		}
		if got != want {
			t.Errorf("%s: %v", hedge, details)
		}
	}
	for _, c := range []string{`{"strategy":{"mode":"single","hedge":{"enabled":true,"after_ms":1}},` + two + `}`, `{"strategy":{"mode":"fallback","hedge":{"enabled":true,"after_ms":1}},"targets":[{"provider":"@a"}]}`} {
		if _, details := Parse([]byte(c), Strict); len(details) == 0 {
			t.Errorf("%s is accepted", c)
		}
	}
}
