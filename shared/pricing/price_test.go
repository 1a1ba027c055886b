package pricing

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawPrice(t *rapid.T, most int64) Price {
	var p Price
	p.has = rapid.Uint64Range(0, 1<<NumClasses-1).Draw(t, "declared")
	for c := range NumClasses {
		if p.has&(1<<c) != 0 {
			p.rate[c] = rapid.Int64Range(0, most).Draw(t, c.String())
		}
	}
	p.byMinute = rapid.Bool().Draw(t, "byMinute")
	if p.byMinute {
		p.minute = rapid.Int64Range(0, most).Draw(t, "minute")
	}
	fill(&p.rate, p.has)
	return p
}

func drawUsage(t *rapid.T, most int64) Usage {
	var u Usage
	for c := range NumClasses {
		if rapid.Bool().Draw(t, "has "+c.String()) {
			u.Set(c, rapid.Int64Range(-1, most).Draw(t, c.String()))
		}
	}
	return u
}

// The cost is the exact sum over the classes, rounded half up once, for any
// counts and prices; beyond what an int64 holds it saturates.
func TestCostIsTheExactSum(t *testing.T) {
	for _, most := range []int64{1 << 20, 1 << 45, math.MaxInt64} {
		rapid.Check(t, func(t *rapid.T) {
			p, u := drawPrice(t, most), drawUsage(t, most)
			sum := new(big.Int)
			minutes := p.byMinute && u.N(Seconds) > 0
			add := func(n, rate, times int64) {
				x := new(big.Int).Mul(big.NewInt(n), big.NewInt(rate))
				sum.Add(sum, x.Mul(x, big.NewInt(times)))
			}
			for c := range NumClasses {
				if minutes && (c == Seconds || c == AudioIn || c == AudioOut || c == AudioCacheRead) {
					continue
				}
				if c == Pixels { // priced by the megapixel, rounded up to a femto-dollar
					x := new(big.Int).Mul(big.NewInt(max(0, u.N(c))), big.NewInt(p.rate[Megapixels]))
					x.Add(x, big.NewInt(pixelsPerMegapixel-1)).Div(x, big.NewInt(pixelsPerMegapixel))
					sum.Add(sum, x.Mul(x, big.NewInt(60)))
					continue
				}
				add(max(0, u.N(c)), p.rate[c], 60)
			}
			if minutes {
				add(u.N(Seconds), p.minute, 1)
			}
			sum.Add(sum, big.NewInt(30*femto)).Div(sum, big.NewInt(60*femto))
			want := int64(math.MaxInt64)
			if sum.IsInt64() {
				want = sum.Int64()
			}
			if got := p.Cost(u); int64(got) != want {
				t.Fatalf("%d, want %d", got, want)
			}
		})
	}
}

// The largest costs by the minute that are no more than an int64 holds, and the
// least that is.
func TestCostByTheMinuteIsExactUpToTheLargest(t *testing.T) {
	p := Price{byMinute: true, minute: 60 * femto}
	for _, c := range []struct{ seconds, want int64 }{
		{1<<58 + 1, 1<<58 + 1}, {math.MaxInt64 - 1, math.MaxInt64 - 1}, {math.MaxInt64, math.MaxInt64},
	} {
		var u Usage
		u.Set(Seconds, c.seconds)
		if got := p.Cost(u); int64(got) != c.want {
			t.Errorf("%d seconds at a nano-dollar each: %d, want %d", c.seconds, got, c.want)
		}
	}
	p.minute++
	var u Usage
	u.Set(Seconds, math.MaxInt64)
	if got := p.Cost(u); got != math.MaxInt64 {
		t.Errorf("%d, want it to saturate", got)
	}
}

// everyModel gives the providers and models of the list.
func everyModel(yield func(provider, model string) bool) {
	for provider := range Default().index().providers {
		for _, model := range Default().Models(provider) {
			if !yield(provider, model) {
				return
			}
		}
	}
}

// Tokens that come from the cache never cost more than the same tokens read
// anew, for every model of the list but the ones whose list price says so.
func TestACacheHitNeverRaisesTheCost(t *testing.T) {
	exceptions := []string{"openrouter/nvidia/nemotron-3-super-120b-a12b"}
	for provider, model := range everyModel {
		for _, mode := range []string{"standard", "batch", "flex", "priority"} {
			for _, size := range []int64{0, 1_000_000} {
				p, ok := Default().Price(provider, model, Options{Mode: mode, ContextTokens: size})
				if !ok || p.has&(1<<Input) == 0 || slices.Contains(exceptions, provider+"/"+model) {
					continue
				}
				var cold, warm Usage
				cold.Set(Input, 1_000_000)
				warm.Set(Input, 400_000)
				warm.Set(CacheRead, 600_000)
				if p.Cost(warm) > p.Cost(cold) {
					t.Errorf("%s/%s %s: a cache hit costs %d instead of %d", provider, model, mode, p.Cost(warm), p.Cost(cold))
				}
			}
		}
	}
}

// Whatever classes the tokens turn out to be, they cost no more than the bound.
func TestBoundIsNeverExceeded(t *testing.T) {
	in := []Class{Input, CacheRead, CacheWrite5m, CacheWrite1h, AudioIn, AudioCacheRead, ImageIn, ImageCacheRead}
	out := []Class{Output, Reasoning, AudioOut, ImageOut, VideoOut}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPrice(t, 1e13)
		var u Usage
		u.Set(Requests, 1)
		for range 6 {
			u.Add(rapid.SampledFrom(in).Draw(t, "in"), rapid.Int64Range(0, 1e6).Draw(t, "n"))
			u.Add(rapid.SampledFrom(out).Draw(t, "out"), rapid.Int64Range(0, 1e6).Draw(t, "m"))
		}
		if cost, bound := p.Cost(u), p.Bound(u.InputTokens(), u.OutputTokens()); cost > bound {
			t.Fatalf("cost %d over bound %d", cost, bound)
		}
	})
}

func TestBoundTakesTheDearestClass(t *testing.T) {
	p := lookup(t, "openai", "gpt-4o-audio-preview", Options{})
	if got, want := p.Bound(1000, 1000), NanoDollars(100_000_000+200_000_000); got != want {
		t.Errorf("audio: %d, want %d", got, want)
	}
	p = lookup(t, "anthropic", "claude-sonnet-4-5", Options{})
	if got, want := p.Bound(1_000_000, 0), 6*Dollar; got != want {
		t.Errorf("cache write of an hour: %d, want %d", got, want)
	}
}

func TestUndeclaredClassesFollowTheirRelatives(t *testing.T) {
	p := lookup(t, "x-ai", "grok-4", Options{}) // declares neither cache nor reasoning
	var u Usage
	u.Set(CacheRead, 1_000_000)
	u.Set(Reasoning, 1_000_000)
	if got := p.Cost(u); got != 18*Dollar {
		t.Errorf("%d", got)
	}
}

func TestUsagePlusAddsClassByClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawUsage(t, 1e6), drawUsage(t, 1e6)
		sum := a.Sum(b)
		for c := range NumClasses {
			_, inA := a.Get(c)
			_, inB := b.Get(c)
			if n, ok := sum.Get(c); ok != (inA || inB) || n != a.N(c)+b.N(c) {
				t.Fatalf("%s: %d %v", c, n, ok)
			}
		}
	})
}

func TestDecimalsAreExactOrRoundedHalfUp(t *testing.T) {
	for _, c := range []struct {
		text  string
		scale int
		want  int64
		exact bool
	}{
		{"0", 9, 0, true}, {"2.5", 9, 2_500_000_000, true}, {"0.00025", 13, 2_500_000_000, true}, {"1e-05", 13, 100_000_000, true},
		{"3.25E-7", 13, 3_250_000, true}, {"0.00000208333333333333", 13, 20_833_333, false}, {"0.5", 0, 1, false}, {"0.49", 0, 0, false},
		{"9223372036854775807", 0, math.MaxInt64, true}, {"1e3", 0, 1000, true}, {"0.05", 0, 0, false}, {"5e-9", 8, 1, false}, {"100000000000000000000e-20", 0, 1, true},
		{"0e99", 0, 0, true},
	} {
		n, exact, err := parseDecimal(c.text, c.scale)
		if err != nil || n != c.want || exact != c.exact {
			t.Errorf("%q: %d %v %v, want %d %v", c.text, n, exact, err, c.want, c.exact)
		}
	}
	for _, bad := range []string{"", ".", "-1", "+1", "1.2.3", "1e", "1e+", "1e99999", "x", "1x", "9223372036854775808", "1e40", "NaN", "Inf"} {
		if n, _, err := parseDecimal(bad, 0); err == nil {
			t.Errorf("%q reads as %d", bad, n)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"1", "0.5", "1e-5", "12345678901234567890123", "1E+3", ".",
		"2000000000000.0000007", "2000000000000.0000004", "20000000000000000007e-7", "2000000000000.00000005", "9223372036854.7758075"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, exact, err := parseDecimal(s, 6)
		if err != nil {
			return
		}
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%q was read as %d", s, n)
		}
		r.Mul(r, big.NewRat(1e6, 1))
		if r.IsInt() != exact && exact {
			t.Fatalf("%q is not exact", s)
		}
		d := new(big.Rat).Sub(r, new(big.Rat).SetInt64(n))
		if d.Abs(d).Cmp(big.NewRat(1, 2)) > 0 {
			t.Fatalf("%q reads as %d", s, n)
		}
	})
}
