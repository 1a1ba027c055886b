package route

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/usage"
)

func compile(t testing.TB, raw string, mode Mode) *Tree {
	t.Helper()
	tree, details := mustParse(t, raw, mode).Compile()
	if len(details) > 0 {
		t.Fatalf("%s: %v", raw, details)
	}
	return tree
}

// visit walks with the given outcomes and gives the paths that were tried,
// without "config."; a fault ends it with its message.
func visit(w *Traversal, outcomes ...Outcome) []string {
	var paths []string
	next := Outcome{}
	for i := 0; ; i++ {
		leaf, f := w.Next(next)
		switch {
		case f != nil:
			return append(paths, "fault: "+f.Message)
		case leaf == nil:
			return paths
		}
		paths = append(paths, strings.ReplaceAll(strings.TrimPrefix(leaf.Path, "config."), "targets", ""))
		next = outcomes[min(i, len(outcomes)-1)]
	}
}

func status(codes ...int) []Outcome {
	var list []Outcome
	for _, c := range codes {
		list = append(list, Outcome{Status: c})
	}
	return list
}

const three = `,"targets":[{"provider":"@a"},{"provider":"@b"},{"provider":"@c"}]`

func TestStrategies(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		outcomes  []Outcome
		want      []string
	}{
		{"flat config", `{"provider":"@a"}`, status(500), []string{"config"}},
		{"single", `{"strategy":{"mode":"single"}` + three + `}`, status(500), []string{"[0]"}},
		{"targets alone", `{"targets":[{"provider":"@a"}]}`, status(500), []string{"[0]"}},
		{"fallback stops at success", `{"strategy":{"mode":"fallback"}` + three + `}`, status(500, 200), []string{"[0]", "[1]"}},
		{"fallback stops at 246", `{"strategy":{"mode":"fallback"}` + three + `}`, status(246), []string{"[0]"}},
		{"fallback passes 446, 408, 412 and 404", `{"strategy":{"mode":"fallback"}` + three + `}`, status(446, 408, 412), []string{"[0]", "[1]", "[2]"}},
		{"fallback ends with the last answer", `{"strategy":{"mode":"fallback"}` + three + `}`, status(500), []string{"[0]", "[1]", "[2]"}},
		{"listed status only", `{"strategy":{"mode":"fallback","on_status_codes":[429]}` + three + `}`, status(429, 500), []string{"[0]", "[1]"}},
		{"listed success", `{"strategy":{"mode":"fallback","on_status_codes":[246]}` + three + `}`, status(246, 200), []string{"[0]", "[1]"}},
		{"empty list never falls back", `{"strategy":{"mode":"fallback","on_status_codes":[]}` + three + `}`, status(500), []string{"[0]"}},
		{"an exception stops", `{"strategy":{"mode":"fallback","on_status_codes":[500]}` + three + `}`, []Outcome{{Status: 500, Exception: true}}, []string{"[0]"}},
		{"an exception stops the parents too", `{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"fallback"}` + three + `},{"provider":"@d"}]}`, []Outcome{{Status: 500, Exception: true}}, []string{"[0].[0]"}},
		{"loadbalance has one try", `{"strategy":{"mode":"loadbalance"}` + three + `}`, status(500), []string{"[0]"}},
		{"fallback of loadbalance", `{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"loadbalance"}` + three + `},{"provider":"@d"}]}`, status(500), []string{"[0].[0]", "[1]"}},
		{"fallback of fallbacks", `{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"fallback"}` + three + `},{"strategy":{"mode":"fallback"}` + three + `}]}`, status(500), []string{"[0].[0]", "[0].[1]", "[0].[2]", "[1].[0]", "[1].[1]", "[1].[2]"}},
		{"a parent judges only the child's last answer", `{"strategy":{"mode":"fallback","on_status_codes":[500]},"targets":[{"strategy":{"mode":"fallback"}` + three + `},{"provider":"@d"}]}`, status(500, 500, 400), []string{"[0].[0]", "[0].[1]", "[0].[2]"}},
		{"loadbalance of fallback", `{"strategy":{"mode":"loadbalance"},"targets":[{"strategy":{"mode":"fallback"}` + three + `},{"provider":"@d"}]}`, status(500), []string{"[0].[0]", "[0].[1]", "[0].[2]"}},
		{"no weight at all", `{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":0},{"provider":"@b","weight":0}]}`, status(200), []string{"fault: No provider selected, please check the weights"}},
		{"conditional default", condition(`{"metadata.x":1}`), status(200), []string{"[0]"}},
		{"no match and no default", `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.x":1},"then":"a"}]},"targets":[{"name":"a","provider":"@a"}]}`, status(200), []string{"fault: Query router did not resolve to any valid target"}},
		{"unknown name", `{"strategy":{"mode":"conditional","conditions":[{"query":{},"then":"b"}]},"targets":[{"name":"a","provider":"@a"}]}`, status(200), []string{"fault: Invalid target name found in the query router: b"}},
		{"unknown default", `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.x":1},"then":"a"}],"default":"z"},"targets":[{"name":"a","provider":"@a"}]}`, status(200), []string{"fault: Invalid target name found in the query router: z"}},
		{"a router error ends the request under a fallback", `{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.x":1},"then":"a"}]},"targets":[{"name":"a","provider":"@a"}]},{"provider":"@d"}]}`, status(200), []string{"fault: Query router did not resolve to any valid target"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := compile(t, c.raw, Lenient).Start(Context{})
			if diff := cmp.Diff(c.want, visit(w, c.outcomes...)); diff != "" {
				t.Error(diff)
			}
			if leaf, f := w.Next(Outcome{Status: 500}); leaf != nil || f != nil {
				t.Error("a walk that ended must stay ended")
			}
		})
	}
}

func TestLoadbalanceDrawsByWeight(t *testing.T) {
	tree := compile(t, `{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":5},{"provider":"@b","weight":3},{"provider":"@z","weight":0},{"provider":"@c"}]}`, Strict)
	// Shares of 9: 5/9, 3/9, 0, 1/9.
	for _, c := range []struct {
		share    float64
		selected int
	}{{0, 0}, {5.0/9 - 1e-9, 0}, {5.0/9 + 1e-9, 1}, {8.0/9 - 1e-9, 1}, {8.0/9 + 1e-9, 3}, {1 - 1e-9, 3}} {
		number := uint32(c.share * (1 << 32))
		w := tree.Start(Context{Random: func() uint32 { return number }})
		leaf, _ := w.Next(Outcome{})
		if want := fmt.Sprintf("config.targets[%d]", c.selected); leaf.Path != want {
			t.Errorf("at %v: %s, want %s", c.share, leaf.Path, want)
		}
		if diff := cmp.Diff([]usage.Draw{{Path: "config", Number: number, Index: c.selected}}, w.AppendDraws(nil)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWeightsAreFollowed draws evenly over the entire range and counts.
func TestWeightsAreFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ws := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.1, 1, 2.5, 3, 100, 1e6}), 1, 8).Draw(t, "weights")
		var nodes []*node
		total := 0.0
		for i, w := range ws {
			nodes = append(nodes, &node{index: i, weight: w})
			total += w
		}
		if total == 0 {
			return
		}
		const draws = 2000
		count := make([]int, len(ws))
		for i := range draws {
			count[pick(nodes, total, uint32((uint64(i)<<32)/draws))]++
		}
		for i, w := range ws {
			if want := w / total * draws; math.Abs(float64(count[i])-want) > 1.5 {
				t.Fatalf("weights %v: target %d was drawn %d times, want %.1f", ws, i, count[i], want)
			}
		}
	})
}

// randomNode draws a config tree of single, loadbalance and fallback nodes.
func randomNode(t *rapid.T, depth int) map[string]any {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		return map[string]any{"provider": "@a", "weight": rapid.IntRange(0, 3).Draw(t, "weight")}
	}
	var children []any
	for range rapid.IntRange(1, 4).Draw(t, "children") {
		children = append(children, randomNode(t, depth-1))
	}
	return map[string]any{"strategy": map[string]any{"mode": rapid.SampledFrom([]string{"single", "loadbalance", "fallback"}).Draw(t, "mode")}, "targets": children}
}

// TestEveryWalkEnds: whatever the tree, the draws and the responses are, a walk
// tries each leaf at most once, in the order of the config, and stops at the
// first success.
func TestEveryWalkEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(randomNode(t, 4))
		if err != nil {
			t.Fatal(err)
		}
		cfg, details := Parse(raw, Lenient)
		if len(details) > 0 {
			t.Fatal(details)
		}
		tree, _ := cfg.Compile()
		open := rapid.Uint64().Draw(t, "open")
		w := tree.Start(Context{Random: func() uint32 { return rapid.Uint32().Draw(t, "random") }, Breakers: openAt(func(path string) bool { return open>>(len(path)%64)&1 == 1 })})
		last := -1
		var outcome Outcome
		for {
			leaf, f := w.Next(outcome)
			if f != nil || leaf == nil {
				return
			}
			at := slices.Index(tree.Leaves(), leaf)
			if at <= last {
				t.Fatalf("%s: leaf %d after %d", raw, at, last)
			}
			if outcome.Status == 200 {
				t.Fatalf("%s: a target after a success", raw)
			}
			last = at
			outcome = Outcome{Status: rapid.SampledFrom([]int{200, 500, 429}).Draw(t, "status")}
		}
	})
}

func TestOpenBreakersAreLeftOut(t *testing.T) {
	const cb = `"cb_config":{"failure_threshold":1,"cooldown_interval":30000}`
	for _, c := range []struct {
		name, raw string
		open      []string
		want      []string
	}{
		{"fallback skips", `{` + cb + `,"strategy":{"mode":"fallback"}` + three + `}`, []string{"config.targets[0]"}, []string{"[1]", "[2]"}},
		{"loadbalance skips", `{` + cb + `,"strategy":{"mode":"loadbalance"}` + three + `}`, []string{"config.targets[0]", "config.targets[1]"}, []string{"[2]"}},
		{"single skips", `{` + cb + `,"strategy":{"mode":"single"}` + three + `}`, []string{"config.targets[0]"}, []string{"[1]"}},
		{"inside strategy", `{"strategy":{"mode":"single",` + cb + `}` + three + `}`, []string{"config.targets[0]"}, []string{"[1]"}},
		{"all open: bypassed", `{` + cb + `,"strategy":{"mode":"fallback"}` + three + `}`, []string{"config.targets[0]", "config.targets[1]", "config.targets[2]"}, []string{"[0]", "[1]", "[2]"}},
		{"no setting, no breaker", `{"strategy":{"mode":"single"}` + three + `}`, []string{"config.targets[0]"}, []string{"[0]"}},
		{"of one target", `{"strategy":{"mode":"single"},"targets":[{"provider":"@a",` + cb + `},{"provider":"@b"}]}`, []string{"config.targets[0]"}, []string{"[1]"}},
		{"not under conditions", strings.Replace(condition(`{"metadata.x":1}`), `{`, `{`+cb+`,`, 1), []string{"config.targets[0]"}, []string{"[0]"}},
		{"healthy ones without weight", `{` + cb + `,"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a"},{"provider":"@b","weight":0}]}`, []string{"config.targets[0]"}, []string{"[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := compile(t, c.raw, Lenient).Start(Context{Breakers: openAt(func(path string) bool { return slices.Contains(c.open, path) })})
			if diff := cmp.Diff(c.want, visit(w, Outcome{Status: 500})); diff != "" {
				t.Error(diff)
			}
			for _, b := range w.Breakers(nil) {
				if b.Open != slices.Contains(c.open, b.Path) {
					t.Errorf("recorded %+v", b)
				}
			}
		})
	}
}

func TestQueries(t *testing.T) {
	params := map[string]string{"model": `"gpt-4o"`, "n": `3`, "on": `true`, "null": `null`, "list": `[1]`, "text": `"12abc"`}
	ctx := Context{
		Metadata: map[string]string{"plan": "pro", "n": "5", "empty": ""}, Path: "/v1/chat/completions",
		Params: func(name string) (json.RawMessage, bool) { v, ok := params[name]; return json.RawMessage(v), ok },
	}
	for _, c := range []struct {
		query string
		want  bool
	}{
		{`{}`, true},
		{`{"metadata.plan":"pro"}`, true}, {`{"metadata.plan":"Pro"}`, false},
		{`{"metadata.n":5}`, false}, {`{"metadata.n":"5"}`, true}, {`{"params.n":3.0}`, true}, {`{"params.n":"3"}`, false},
		{`{"params.on":true}`, true}, {`{"params.on":"true"}`, false}, {`{"params.null":null}`, true}, {`{"metadata.empty":""}`, true},
		{`{"url.pathname":"/v1/chat/completions"}`, true}, {`{"url.pathname":{"$regex":"completions$"}}`, true},
		{`{"metadata.plan":{"$eq":"pro"}}`, true}, {`{"metadata.plan":{"$ne":"free"}}`, true}, {`{"metadata.plan":{"$ne":"pro"}}`, false},
		{`{"params.n":{"$ne":"3"}}`, true},
		{`{"params.n":{"$gt":2}}`, true}, {`{"params.n":{"$gt":3}}`, false}, {`{"params.n":{"$gte":3,"$lt":4}}`, true}, {`{"params.n":{"$gte":3,"$lt":3}}`, false}, {`{"params.n":{"$lte":2.9}}`, false},
		{`{"metadata.n":{"$gt":"4.5"}}`, true}, {`{"params.text":{"$gt":11}}`, true}, {`{"metadata.plan":{"$gt":1}}`, false}, {`{"metadata.plan":{"$lte":1}}`, false}, {`{"params.on":{"$gte":0}}`, false},
		{`{"metadata.plan":{"$in":["free","pro"]}}`, true}, {`{"params.n":{"$in":["3"]}}`, false}, {`{"params.n":{"$in":[3,null]}}`, true}, {`{"metadata.plan":{"$nin":["free"]}}`, true}, {`{"metadata.plan":{"$in":"pro"}}`, false}, {`{"metadata.plan":{"$nin":"free"}}`, false},
		{`{"metadata.plan":{"$regex":"^p"}}`, true}, {`{"metadata.plan":{"$regex":"R"}}`, false}, {`{"metadata.plan":{"$regex":"("}}`, false}, {`{"params.n":{"$regex":"3"}}`, false},
		{`{"metadata.plan":{"$regex":"^p","$eq":"free"}}`, false},
		{`{"metadata.none":"x"}`, false}, {`{"metadata.none":{"$ne":"x"}}`, false}, {`{"metadata.none":{"$nin":["x"]}}`, false}, {`{"metadata.none":null}`, false},
		{`{"params.list":{"$ne":1}}`, false}, {`{"params.none":{"$lt":1}}`, false},
		{`{"metadata.plan":"pro","params.n":3}`, true}, {`{"metadata.plan":"pro","params.n":4}`, false},
		{`{"$and":[{"metadata.plan":"pro"},{"params.n":3}]}`, true}, {`{"$and":[{"metadata.plan":"pro"},{"params.n":4}]}`, false}, {`{"$and":[]}`, true},
		{`{"$or":[{"metadata.plan":"free"},{"params.n":3}]}`, true}, {`{"$or":[{"metadata.plan":"free"}]}`, false}, {`{"$or":[]}`, false},
		{`{"$or":[{"metadata.plan":"pro"}],"params.n":4}`, false}, {`{"params.n":4,"$or":[{"metadata.plan":"pro"}]}`, false},
		{`{"$or":[{"$and":[{"metadata.plan":"pro"},{"$or":[{"params.n":1},{"params.n":3}]}]}]}`, true},
		{`{"metadata.plan":{"$like":"pro"}}`, false}, {`{"metadata.plan":{"$eq":"pro","$like":"x"}}`, false}, {`{"metadata.plan":[]}`, false}, {`{"metadata.plan":{}}`, true},
		{`{"metadata.a.b":1}`, false}, {`{"headers.x":1}`, false}, {`{"$nor":[]}`, false},
	} {
		raw := `{"strategy":{"mode":"conditional","conditions":[{"query":` + c.query + `,"then":"yes"}],"default":"no"},"targets":[{"name":"yes","provider":"@a"},{"name":"no","provider":"@b"}]}`
		w := compile(t, raw, Lenient).Start(ctx)
		leaf, f := w.Next(Outcome{})
		if f != nil || (leaf.Name == "yes") != c.want {
			t.Errorf("%s: got %v %v, want %v", c.query, leaf, f, c.want)
		}
	}
	two := compile(t, `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.plan":"pro"},"then":"b"},{"query":{"params.n":3},"then":"a"}],"default":"a"},"targets":[{"name":"a","provider":"@a"},{"name":"b","provider":"@b"}]}`, Strict)
	w := two.Start(ctx)
	if leaf, _ := w.Next(Outcome{}); leaf.Name != "b" {
		t.Errorf("the first condition that holds wins: %s", leaf.Name)
	}
}

func TestFloatPrefix(t *testing.T) {
	for s, want := range map[string]float64{"12": 12, " -3.5e2x": -350, ".5": 0.5, "5.": 5, "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "1e999": math.Inf(1)} {
		if got := floatPrefix(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
	for _, s := range []string{"", "x1", "e5", "--1", "."} {
		if got := floatPrefix(s); !math.IsNaN(got) {
			t.Errorf("%q: %v, want NaN", s, got)
		}
	}
}
