package pricing

import "testing"

func TestModesAreReadInTheWordsOfProviders(t *testing.T) {
	t.Parallel()
	for tier, want := range map[string]string{
		"": "", "auto": "", "default": Standard, "standard": Standard, "standard_only": Standard, "ON_DEMAND": Standard, "ON_DEMAND_FLEX": Flex,
		"ON_DEMAND_PRIORITY": Priority, "priority": Priority, "fast": Priority, "flex": Flex, "batch": Batch, "scale": "scale", "ultrafast": "ultrafast",
		"PROVISIONED_THROUGHPUT": "", "anything": "",
	} {
		if got := ModeOf(tier); got != want {
			t.Errorf("%q is %q, want %q", tier, got, want)
		}
	}
}

// A mode that costs what its list says, but is missing in the list, is charged as a
// standard one and never counts as priced.
func TestAModeWithoutALineIsNotPriced(t *testing.T) {
	t.Parallel()
	var u Usage
	u.Set(Input, 10)
	for mode, covered := range map[string]bool{"": true, Priority: true, Flex: true, Fast: false, "ultrafast": false, "scale": false} {
		p, ok := Default().Price("openai", "gpt-4.1-mini", Options{Mode: mode})
		if !ok || p.Covers(u) != covered {
			t.Errorf("%q: covered %v", mode, p.Covers(u))
		}
	}
	if p, _ := Default().Price("anthropic", "claude-opus-4-6", Options{Mode: Fast}); !p.Covers(u) || p.Cost(u) != 10*30_000 {
		t.Errorf("fast costs %d", p.Cost(u))
	}
}

// Where Anthropic's models are to be served in one country, every token costs a tenth
// more.
func TestServingInOneCountryCostsMore(t *testing.T) {
	t.Parallel()
	var u Usage
	for _, c := range []Class{Input, CacheRead, CacheWrite5m, CacheWrite1h, Output, Reasoning} {
		u.Set(c, 100)
	}
	plain, _ := Default().Price("anthropic", "claude-sonnet-4-5", Options{})
	there, _ := Default().Price("anthropic", "claude-sonnet-4-5", Options{Region: "us"})
	if plain.Cost(u)*11 != there.Cost(u)*10 {
		t.Errorf("%d and %d", plain.Cost(u), there.Cost(u))
	}
}

func TestWhatIsWrittenForTwelveHoursHasNoPriceButItsOwn(t *testing.T) {
	t.Parallel()
	p, _ := Default().Price("openai", "gpt-5.6", Options{})
	var short, long Usage
	short.Set(CacheWrite30m, 100)
	long.Set(CacheWrite12h, 100)
	if !p.Covers(short) || p.Cost(short) != 100*5000 || p.Covers(long) || p.Cost(long) != 0 {
		t.Errorf("%v at %d, %v at %d", p.Covers(short), p.Cost(short), p.Covers(long), p.Cost(long))
	}
}
