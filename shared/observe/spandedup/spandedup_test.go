package spandedup

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

var sc = store.Scope{Org: "o", Workspace: "w"}

func tokens(in, out int64) (u pricing.Usage) {
	u.Set(pricing.Input, in)
	u.Set(pricing.Output, out)
	return u
}

// claim is a span that reports usage, from and to a number of seconds.
func claim(id, parent byte, from, to int64, u pricing.Usage) Span {
	return Span{ID: ID{id}, Parent: ID{parent}, Claims: true, Usage: &u, Priced: true, Start: from * 1000, End: to * 1000}
}

func link(id, parent byte) Span { return Span{ID: ID{id}, Parent: ID{parent}} }

func answered(s Span, response uint64) Span { s.Response = response; return s }

func logged(s Span) Span { s.Logged = true; return s }

// scenarios are traces, with what they must be charged for and how many calls they have.
var scenarios = map[string]struct {
	spans []Span
	want  pricing.Usage
	calls int
}{
	"one call":                             {[]Span{claim(1, 0, 0, 9, tokens(10, 2))}, tokens(10, 2), 1},
	"a parent that repeats it":             {[]Span{claim(1, 0, 0, 9, tokens(10, 2)), claim(2, 1, 1, 8, tokens(10, 2))}, tokens(10, 2), 1},
	"with a span between":                  {[]Span{claim(1, 0, 0, 9, tokens(10, 2)), link(2, 1), claim(3, 2, 2, 7, tokens(10, 2))}, tokens(10, 2), 1},
	"two instrumentations":                 {[]Span{link(1, 0), claim(2, 1, 1, 8, tokens(10, 2)), link(3, 2), claim(4, 3, 3, 6, tokens(10, 2))}, tokens(10, 2), 1},
	"an agent with two calls":              {[]Span{claim(1, 0, 0, 9, tokens(30, 5)), claim(2, 1, 1, 3, tokens(10, 2)), claim(3, 1, 4, 8, tokens(20, 3))}, tokens(30, 5), 2},
	"an agent with two steps":              {[]Span{claim(1, 0, 0, 9, tokens(20, 4)), link(2, 1), claim(3, 2, 1, 3, tokens(10, 2)), link(4, 1), claim(5, 4, 4, 8, tokens(10, 2))}, tokens(20, 4), 2},
	"an agent without calls":               {[]Span{claim(1, 0, 0, 9, tokens(30, 5)), link(2, 1)}, tokens(30, 5), 1},
	"siblings with one response":           {[]Span{link(1, 0), answered(claim(2, 1, 1, 8, tokens(10, 2)), 7), answered(claim(3, 1, 2, 7, tokens(10, 2)), 7)}, tokens(10, 2), 1},
	"siblings with two responses":          {[]Span{link(1, 0), answered(claim(2, 1, 1, 8, tokens(10, 2)), 7), answered(claim(3, 1, 2, 7, tokens(10, 2)), 8)}, tokens(20, 4), 2},
	"one response at another time":         {[]Span{link(1, 0), answered(claim(2, 1, 1, 2, tokens(10, 2)), 7), answered(claim(3, 1, 4, 7, tokens(10, 2)), 7)}, tokens(20, 4), 2},
	"calls at the same time":               {[]Span{link(1, 0), claim(2, 1, 1, 8, tokens(10, 2)), claim(3, 1, 2, 7, tokens(10, 2))}, tokens(20, 4), 2},
	"the first instrumentation knows less": {[]Span{claim(1, 0, 0, 9, tokens(10, 0)), claim(2, 1, 1, 8, tokens(10, 2))}, tokens(10, 2), 1},
}

// permute calls f with every order of 0 to n-1.
func permute(n int, f func([]int)) {
	order := make([]int, 0, n)
	var next func(used int)
	next = func(used int) {
		if len(order) == n {
			f(order)
			return
		}
		for i := range n {
			if used&(1<<i) == 0 {
				order = append(order, i)
				next(used | 1<<i)
				order = order[:len(order)-1]
			}
		}
	}
	next(0)
}

// TestEachCallIsChargedOnce sends the spans of each trace together and one by one, in every
// order, through what a row remembers of them. The charge is always the same; the number of
// calls is, if no span arrives before those below it.
func TestEachCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range scenarios {
		permute(len(c.spans), func(order []int) {
			for _, size := range []int{1, 2, len(order)} {
				known, err := decode(nil)
				if err != nil {
					t.Fatal(err)
				}
				got, calls := pricing.Usage{}, 0
				for from := 0; from < len(order); from += size {
					var batch []Span
					for _, i := range order[from:min(from+size, len(order))] {
						batch = append(batch, c.spans[i])
					}
					first := known.decide(batch)
					if known, err = decode(known.encode()); err != nil {
						t.Fatal(err)
					}
					again := known.decide(batch)
					for i, v := range first {
						if v.Counts != again[i].Counts || v.Counts && !equal(v.Usage, again[i].Usage) || v.With != again[i].With {
							t.Fatalf("%s %v: %+v, repeated %+v", name, order, v, again[i])
						}
						if v.Counts {
							got, calls = got.Sum(*v.Usage), calls+1
						} else if used(v.Usage) || batch[i].Claims && v.With == (ID{}) {
							t.Fatalf("%s %v: %+v", name, order, v)
						}
					}
				}
				if !equal(&got, &c.want) || size == len(order) && calls != c.calls {
					t.Errorf("%s %v by %d: %d calls with %d and %d tokens, want %d with %d and %d", name, order, size, calls, got.InputTokens(), got.OutputTokens(), c.calls, c.want.InputTokens(), c.want.OutputTokens())
				}
			}
		})
	}
}

// TestTheGatewaysLogCounts: spans above a call that the gateway has logged are not counted.
func TestTheGatewaysLogCounts(t *testing.T) {
	t.Parallel()
	known, _ := decode(nil)
	out := known.decide([]Span{logged(claim(9, 3, 3, 6, tokens(0, 0))), claim(1, 0, 0, 9, tokens(10, 2)), link(2, 1), claim(3, 2, 2, 7, tokens(10, 2)), claim(4, 1, 7, 8, tokens(1, 1))})
	for i, counts := range []bool{true, false, false, false, true} {
		if out[i].Counts != counts {
			t.Errorf("span %d: %+v", i, out[i])
		}
	}
	if out[3].With != (ID{9}) {
		t.Errorf("%+v", out[3])
	}
}

// TestParentsInACircleEnd: ids of faulty senders end no walk.
func TestParentsInACircleEnd(t *testing.T) {
	t.Parallel()
	known, _ := decode(nil)
	known.decide([]Span{claim(1, 2, 0, 9, tokens(1, 1)), claim(2, 1, 0, 9, tokens(1, 1)), claim(3, 3, 0, 9, tokens(1, 1)), link(4, 5), link(5, 4), claim(6, 4, 0, 9, tokens(1, 1))})
}

func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	usage := tokens(1<<40, 1<<40)
	known, _ := decode(nil)
	for n := range 3 * MaxSpans / 100 {
		var batch []Span
		for i := range 100 {
			id := ID{byte(n), byte(n >> 8), byte(i), 1}
			batch = append(batch, Span{ID: id, Parent: ID{1}, Claims: i == 0, Usage: &usage, Start: 1 << 60, End: 1 << 61})
		}
		known.decide(batch)
		b := known.encode()
		var err error
		if known, err = decode(b); err != nil || len(known.nodes) > MaxSpans || len(b) > store.MaxItemBytes/2 {
			t.Fatalf("%d spans in %d bytes, %v", len(known.nodes), len(b), err)
		}
	}
	claims := 0
	for _, n := range known.nodes {
		if n.Claims {
			claims++
		}
	}
	if claims != 3*MaxSpans/100 {
		t.Errorf("%d claims are left", claims)
	}
}

func FuzzDecode(f *testing.F) {
	known, _ := decode(nil)
	known.decide(scenarios["an agent with two calls"].spans)
	f.Add(known.encode())
	f.Fuzz(func(_ *testing.T, b []byte) {
		if known, err := decode(b); err == nil {
			known.decide(scenarios["an agent with two steps"].spans)
			known.encode()
		}
	})
}

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestRequestsAtTheSameTime: many requests report parts of one trace at once; each call is
// charged once.
func TestRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	traces := New(open(t), time.Now, nil)
	var mu sync.Mutex
	total, calls := pricing.Usage{}, 0
	var wg sync.WaitGroup
	for n := range byte(8) {
		wg.Go(func() {
			var r Request
			r.Add("t", claim(10+n, 1, 1, 8, tokens(10, 2)))
			r.Add("other", claim(1, 0, 1, 8, tokens(1, 1)))
			r.Add("t", link(1, 0))
			out, err := traces.Decide(context.Background(), sc, &r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(out) != 3 || !out[1].Counts {
				t.Errorf("%+v, %v", out, err)
				return
			}
			if out[0].Counts {
				total, calls = total.Sum(*out[0].Usage), calls+1
			}
		})
	}
	wg.Wait()
	var r Request
	r.Add("t", claim(2, 0, 0, 9, tokens(80, 16)))
	if out, err := traces.Decide(context.Background(), sc, &r); err != nil || calls != 8 || total.InputTokens() != 80 || total.OutputTokens() != 16 || !out[0].Counts {
		t.Errorf("%d calls, %d tokens, %+v, %v", calls, total.TotalTokens(), out, err)
	}
}

// TestRowsExpire: a trace whose row has expired begins again, also while the row is still
// stored, and another workspace has rows of its own.
func TestRowsExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t)
	traces := New(s, func() time.Time { return now }, nil)
	decide := func(sc store.Scope, span Span) Verdict {
		t.Helper()
		var r Request
		r.Add("t", span)
		out, err := traces.Decide(context.Background(), sc, &r)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	child, parent := claim(2, 1, 1, 8, tokens(10, 2)), claim(1, 0, 0, 9, tokens(10, 2))
	now = time.Now().Add(-2 * Remembered)
	decide(sc, child)
	now = time.Now()
	if v := decide(sc, parent); !v.Counts {
		t.Errorf("%+v", v)
	}
	if v := decide(sc, child); v.Counts {
		t.Errorf("%+v", v)
	}
	if v := decide(store.Scope{Org: "o", Workspace: "other"}, child); !v.Counts {
		t.Errorf("%+v", v)
	}
}

// TestLoggedCallsAreLookedUp: the gateway's logs are asked for once, for the traces that
// have claims.
func TestLoggedCallsAreLookedUp(t *testing.T) {
	t.Parallel()
	looked := ""
	traces := New(open(t), time.Now, func(_ context.Context, of store.Scope, list []string, from, to time.Time) (map[string][]Span, error) {
		looked += fmt.Sprint(of.Workspace, list, from.Unix(), to.Unix())
		return map[string][]Span{"t": {logged(claim(9, 1, 1, 2, tokens(0, 0)))}}, nil
	})
	var r Request
	r.Add("links", link(1, 0))
	r.Add("t", claim(1, 0, 1, 8, tokens(10, 2)))
	r.Add("u", claim(1, 0, 0, 9, tokens(10, 2)))
	out, err := traces.Decide(context.Background(), sc, &r)
	if err != nil || out[1].Counts || !out[2].Counts || looked != "w[t u] 0 9" {
		t.Errorf("%+v, %v, %s", out, err, looked)
	}
}
