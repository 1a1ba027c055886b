package pricing

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// Boundaries of periods: a day given as until is included, a time is not; hours may pass
// midnight; all is in UTC, whatever the zone of the request.
func TestPeriodsIncludeTheirTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		period, at string
		want       bool
	}{
		{"2026-12-01..2026-12-31", "2026-11-30T23:59:59Z", false},
		{"2026-12-01..2026-12-31", "2026-12-01T00:00:00Z", true},
		{"2026-12-01..2026-12-31", "2026-12-31T23:59:59Z", true},
		{"2026-12-01..2026-12-31", "2027-01-01T00:00:00Z", false},
		{"2026-12-01..2026-12-31", "2027-01-01T00:30:00+02:00", true},
		{"..2026-08-16T16:00", "2026-08-16T15:59:59Z", true},
		{"..2026-08-16T16:00", "2026-08-16T16:00:00Z", false},
		{"2026-08-16T16:00..", "2026-08-16T16:00:00Z", true},
		{"01:00-04:00+06:00-10:00", "2026-11-29T00:59:59Z", false},
		{"01:00-04:00+06:00-10:00", "2026-11-29T01:00:00Z", true},
		{"01:00-04:00+06:00-10:00", "2026-11-29T04:00:00Z", false},
		{"01:00-04:00+06:00-10:00", "2026-11-29T09:59:59Z", true},
		{"16:30-00:30", "2026-11-29T00:29:00Z", true},
		{"16:30-00:30", "2026-11-29T00:30:00Z", false},
		{"16:30-24:00", "2026-11-29T23:59:00Z", true},
		{"mon-fri", "2026-11-29T12:00:00Z", false}, // a Sunday
		{"mon-fri", "2026-11-30T12:00:00Z", true},
		{"mon-fri,01:00-04:00", "2026-11-30T05:00:00Z", false},
	} {
		p, err := parsePeriod(c.period + "]")
		if err != nil || p.includes(at(c.at)) != c.want {
			t.Errorf("%s at %s: %t, %v", c.period, c.at, !c.want, err)
		}
	}
	p, _ := parsePeriod("..2099-01-01]")
	if p.includes(time.Time{}) {
		t.Error("a limited price applies without a time")
	}
	for _, bad := range []string{"", "]", "2026-13-01..]", "2026-12-02..2026-12-01]", "25:00-26:00]", "01:00]", "01:00-01:00]", "sun-sat]", "2026-01-01"} {
		if _, err := parsePeriod(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A request is priced by its time, and a context tier begins behind its boundary.
func TestPricesOfTheListGoByTimeAndContext(t *testing.T) {
	t.Parallel()
	var used Usage
	used.Set(Input, 1_000_000)
	for _, c := range []struct {
		provider, model, at string
		context             int64
		mode                string
		dollars             string
	}{
		{"mistral-ai", "mistral-medium-latest", "2026-06-15T23:59:59Z", 0, "", "0.4"},
		{"mistral-ai", "mistral-medium-latest", "2026-06-16T00:00:00Z", 0, "", "1.5"},
		{"mistral-ai", "mistral-medium-latest", "", 0, "", "1.5"},
		{"openai", "gpt-5.6-sol", "2026-08-20T23:59:59Z", 0, "", "5"},
		{"openai", "gpt-5.6-sol", "2026-08-20T23:59:59Z", 300_000, "", "10"},
		{"openai", "gpt-5.6-sol", "2026-08-21T00:00:00Z", 0, "", "4"},
		{"openai", "gpt-5.6-sol", "2026-08-21T00:00:00Z", 300_000, "", "8"},
		{"openai", "gpt-5.6-sol", "2026-08-20T23:59:59Z", 0, "batch", "2.5"},
		{"openai", "gpt-5.6", "2026-08-21T00:00:00Z", 0, "batch", "2"},
		{"google", "gemini-3.6-flash", "2026-12-31T23:59:59Z", 0, "", "0.75"},
		{"google", "gemini-3.7-flash", "2027-01-01T00:00:00Z", 0, "", "1.5"},
		{"google", "gemini-3.7-flash", "2026-12-01T00:00:00Z", 0, Batch, "0.375"},
		{"vertex-ai", "gemini-3.7-flash", "2026-12-01T00:00:00Z", 0, Priority, "1.35"},
		{"vertex-ai", "gemini-3.7-flash", "2027-01-01T00:00:00Z", 0, Priority, "2.7"},
		{"deepseek", "deepseek-v4-pro", "2026-11-30T01:00:00Z", 0, "", "1.32"},  // Monday, peak
		{"deepseek", "deepseek-v4-pro", "2026-11-30T04:00:00Z", 0, "", "0.66"},  // off-peak
		{"deepseek", "deepseek-v4-pro", "2026-11-29T02:00:00Z", 0, "", "0.66"},  // Sunday
		{"deepseek", "deepseek-v4-pro", "2026-08-10T02:00:00Z", 0, "", "0.435"}, // before there were hours
		{"deepseek", "deepseek-flash", "2026-11-30T09:59:59Z", 0, "", "0.3"},
		{"google", "gemini-3-pro-preview", "2026-11-30T00:00:00Z", 200_000, "", "2"},
		{"google", "gemini-3-pro-preview", "2026-11-30T00:00:00Z", 200_001, "", "4"},
	} {
		o := Options{ContextTokens: c.context, Mode: c.mode}
		if c.at != "" {
			o.At = at(c.at)
		}
		p, ok := Default().Price(c.provider, c.model, o)
		if got := string(p.Cost(used).USD()); !ok || got != c.dollars {
			t.Errorf("%s/%s at %s, %d tokens %s: %s, want %s (%s)", c.provider, c.model, c.at, c.context, c.mode, got, c.dollars, p.Line())
		}
	}
}

// Prices of an organization carry their validity, alone or in a list.
func TestOwnPricesCarryTheirValidity(t *testing.T) {
	t.Parallel()
	price := func(cents, more string) string {
		return `{"pay_as_you_go":{"request_token":{"price":` + cents + `}}` + more + `}`
	}
	o, bad := ParseOverrides([]byte(`{"openai/one":`+price("1", `,"from":"2026-12-01","until":"2026-12-31"`)+`,"openai/list":[`+
		price("1", ``)+`,`+price("2", `,"from":"2026-12-01"`)+`,`+price("3", `,"hours":"16:30-00:30","days":"mon-fri"`)+`,`+price("4", `,"above_tokens":200000`)+`]}`), nil)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	var used Usage
	used.Set(Input, 1)
	for _, c := range []struct {
		model, at string
		context   int64
		want      string
	}{
		{"one", "2026-11-30T23:00:00Z", 0, ""},
		{"one", "2026-12-31T23:00:00Z", 0, "0.01"},
		{"one", "2027-01-01T00:00:00Z", 0, ""},
		{"list", "2026-11-30T12:00:00Z", 0, "0.01"},
		{"list", "2026-12-01T12:00:00Z", 0, "0.02"},
		{"list", "2026-12-01T17:00:00Z", 0, "0.03"},
		{"list", "2026-12-05T17:00:00Z", 0, "0.02"}, // a Saturday
		{"list", "2026-12-05T17:00:00Z", 200_000, "0.02"},
		{"list", "2026-12-05T17:00:00Z", 200_001, "0.04"},
	} {
		p, ok := o.Price(Default(), "openai", c.model, Options{At: at(c.at), ContextTokens: c.context})
		got := ""
		if ok {
			got = string(p.Cost(used).USD())
		}
		if got != c.want {
			t.Errorf("%s at %s, %d tokens: %q, want %q", c.model, c.at, c.context, got, c.want)
		}
	}
	for raw, field := range map[string]string{
		price("1", `,"from":"soon"`):                                 "p.from",
		price("1", `,"from":5`):                                      "p.from",
		price("1", `,"from":"2026-12-02","until":"2026-12-01"`):      "p.until",
		price("1", `,"until":"2026-02-30"`):                          "p.until",
		price("1", `,"hours":"1-2"`):                                 "p.hours",
		price("1", `,"days":"weekends"`):                             "p.days",
		price("1", `,"above_tokens":0`):                              "p.above_tokens",
		price("1", `,"above_tokens":1.5`):                            "p.above_tokens",
		price("1", `,"valid":"x"`):                                   "p.valid",
		`[` + price("1", ``) + `,` + price("1", `,"from":"x"`) + `]`: "p[1].from",
		`[]`:                         "p",
		`[[` + price("1", ``) + `]]`: "p[0]",
	} {
		if _, bad := ParseCustom([]byte(raw), "p"); len(bad) != 1 || bad[0].Field != field || bad[0].Message == "" {
			t.Errorf("%s: %v, want %s", raw, bad, field)
		}
	}
}

// At every time a list of prices without gaps has exactly one price, whatever the order.
func TestListsOfPricesHaveNoGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.SliceOfNDistinct(rapid.IntRange(1, 27), 1, 5, rapid.ID[int]).Draw(t, "days")
		list := `{"pay_as_you_go":{"request_token":{"price":1}}}`
		for _, d := range days {
			list += fmt.Sprintf(`,{"pay_as_you_go":{"request_token":{"price":%d}},"from":"2026-12-%02d"}`, 100+d, d)
		}
		c, bad := ParseCustom([]byte("["+list+"]"), "p")
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		day := rapid.IntRange(1, 28).Draw(t, "day")
		want := 1
		for _, d := range days {
			if d <= day && 100+d > want {
				want = 100 + d
			}
		}
		var u Usage
		u.Set(Input, 1)
		o := Options{At: time.Date(2026, 12, day, 12, 0, 0, 0, time.UTC)}
		if got := c.Price(o).Cost(u); got != NanoDollars(want)*Dollar/100 || !c.Applies(o) {
			t.Fatalf("day %d of %v: %d", day, days, got)
		}
	})
}
