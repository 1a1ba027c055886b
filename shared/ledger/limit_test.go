package ledger

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/fault"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const dollar = 1_000_000_000

func lines(details []fault.Detail) string {
	var b strings.Builder
	for _, d := range details {
		b.WriteString(d.Field + ": " + d.Message + "\n")
	}
	return b.String()
}

func TestUsageLimitsAreReadExactly(t *testing.T) {
	for _, c := range []struct {
		place LimitKind
		in    string
		want  []UsageLimit
	}{
		{OnKey, `null`, nil},
		{OnWorkspace, `[]`, nil},
		{OnKey, `{"credit_limit":1}`, []UsageLimit{{Type: Cost, CreditLimit: dollar, Untyped: true}}},
		{OnKey, `{"credit_limit":0.05,"alert_threshold":0.02}`, []UsageLimit{{Type: Cost, CreditLimit: dollar / 20, AlertThreshold: dollar / 50, Untyped: true}}},
		{OnProvider, `{"credit_limit":0.000000001}`, []UsageLimit{{Type: Cost, CreditLimit: 1, Untyped: true}}},
		{OnIntegration, `[{"credit_limit":5e-1,"alert_threshold":1e-9}]`, []UsageLimit{{Type: Cost, CreditLimit: dollar / 2, AlertThreshold: 1, Untyped: true}}},
		{OnPolicy, `{"type":"cost","credit_limit":0.01}`, []UsageLimit{{Type: Cost, CreditLimit: dollar / 100}}},
		{InToken, `[{"credit_limit":0.3}]`, []UsageLimit{{Type: Cost, CreditLimit: 3 * dollar / 10, Untyped: true}}},
		{OnKey, `{"type":"cost","credit_limit":10.000000001,"alert_threshold":7.5,"periodic_reset":null,"periodic_reset_days":null,"next_usage_reset_at":null}`,
			[]UsageLimit{{Type: Cost, CreditLimit: 10*dollar + 1, AlertThreshold: 7.5 * dollar}}},
		{OnKey, `{"credit_limit":1e3,"periodic_reset":"monthly"}`, []UsageLimit{{Type: Cost, CreditLimit: 1000 * dollar, Cadence: Monthly, Untyped: true}}},
		{OnKey, `{"credit_limit":0.1e2,"periodic_reset":"weekly","next_usage_reset_at":"2030-05-06T17:30:00+02:00"}`,
			[]UsageLimit{{Type: Cost, CreditLimit: 10 * dollar, Cadence: Weekly, NextReset: at("2030-05-06"), NextSent: "2030-05-06T17:30:00+02:00", Untyped: true}}},
		{OnProvider, `{"type":"tokens","credit_limit":100,"alert_threshold":99,"periodic_reset_days":365,"next_usage_reset_at":"2030-05-06"}`,
			[]UsageLimit{{Type: Tokens, CreditLimit: 100, AlertThreshold: 99, Cadence: Days, Days: 365, NextReset: at("2030-05-06"), NextSent: "2030-05-06"}}},
		{OnWorkspace, `[{"credit_limit":5},{"type":"tokens","credit_limit":100000}]`,
			[]UsageLimit{{Type: Cost, CreditLimit: 5 * dollar, Untyped: true}, {Type: Tokens, CreditLimit: 100000}}},
		{OnPolicy, `{"type":"requests","credit_limit":1}`, []UsageLimit{{Type: Requests, CreditLimit: 1}}},
	} {
		got, details := c.place.UsageLimits([]byte(c.in), "usage_limits")
		if len(details) > 0 || !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s%s", c.in, lines(details), cmp.Diff(c.want, got))
		}
	}
}

func TestRateLimitsAreReadExactly(t *testing.T) {
	for _, c := range []struct {
		place LimitKind
		in    string
		want  []RateLimit
	}{
		{OnKey, `null`, nil},
		{OnKey, `[]`, nil},
		{OnKey, `[{"type":"requests","unit":"rps","value":0},{"type":"tokens","unit":"rpw","value":1000000}]`,
			[]RateLimit{{Requests, PerSecond, 0}, {Tokens, PerWeek, 1000000}}},
		{OnProvider, `{"type":"requests","unit":"rpm","value":5}`, []RateLimit{{Requests, PerMinute, 5}}},
		{OnPolicy, `[{"type":"requests","unit":"rpd","value":1}]`, []RateLimit{{Requests, PerDay, 1}}},
	} {
		got, details := c.place.RateLimits([]byte(c.in), "rate_limits")
		if len(details) > 0 || !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s%s", c.in, lines(details), cmp.Diff(c.want, got))
		}
	}
}

// Every rejection with its path and words; `go test -update` rewrites the file.
func TestRefusalsNameEveryField(t *testing.T) {
	places := []struct {
		name  string
		place LimitKind
	}{{"key", OnKey}, {"provider", OnProvider}, {"integration", OnIntegration}, {"workspace", OnWorkspace}, {"policy", OnPolicy}}
	usage := []string{
		`5`, `"x"`, `[]`, `[1]`, `{}`, `[{}]`, `[{"credit_limit":1},{"credit_limit":2}]`, `[{"credit_limit":1},{"type":"tokens","credit_limit":100},{"type":"requests","credit_limit":2}]`,
		`{"credit_limit":"10"}`, `{"credit_limit":null}`, `{"credit_limit":0}`, `{"credit_limit":-1}`, `{"credit_limit":1e30}`, `{"credit_limit":1.0000000001}`,
		`{"type":"tokens","credit_limit":99}`, `{"type":"tokens","credit_limit":100.5}`, `{"type":"requests","credit_limit":1}`, `{"type":"money","credit_limit":1}`, `{"type":null,"credit_limit":1}`,
		`{"credit_limit":10,"alert_threshold":10}`, `{"credit_limit":10,"alert_threshold":0}`, `{"credit_limit":10,"alert_threshold":"80%"}`,
		`{"credit_limit":10,"periodic_reset":"daily"}`, `{"credit_limit":10,"periodic_reset":"days"}`, `{"credit_limit":10,"periodic_reset":"weekly","periodic_reset_days":7}`,
		`{"credit_limit":10,"periodic_reset_days":0}`, `{"credit_limit":10,"periodic_reset_days":366}`, `{"credit_limit":10,"periodic_reset_days":1.5}`, `{"credit_limit":10,"periodic_reset_days":"7"}`,
		`{"credit_limit":10,"next_usage_reset_at":"tomorrow"}`, `{"credit_limit":10,"next_usage_reset_at":5}`,
		`{"credit_limit":10,"current_usage":1,"status":"active","limit":3}`,
		`{"type":"x","credit_limit":[],"alert_threshold":{},"periodic_reset":1,"periodic_reset_days":[],"next_usage_reset_at":"","y":1}`,
	}
	rate := []string{
		`{}`, `[{}]`, `[[]]`, `7`, `{"type":"requests","unit":"rpm","value":5}`, `[{"type":"requests","unit":"rps","value":1}]`,
		`[{"type":"cost","unit":"tpm","value":"5","burst":1}]`, `[{"type":"requests","unit":"rpm","value":-1}]`, `[{"type":"requests","unit":"rpm","value":1.5}]`, `[{"type":"requests","unit":"rpm","value":1e16}]`,
		`[{"type":"requests","unit":"rpm","value":0}]`, `[{"type":null,"unit":null,"value":null}]`,
		`[{"type":"requests","unit":"rpm","value":1},{"type":"requests","unit":"rpm","value":2}]`,
	}
	var out bytes.Buffer
	for _, p := range places {
		for _, in := range usage {
			got, details := p.place.UsageLimits([]byte(in), "usage_limits")
			if len(details) > 0 && got != nil {
				t.Errorf("%s: limits and errors at once for %s", p.name, in)
			}
			if len(details) > 0 {
				out.WriteString("# " + p.name + " usage_limits " + in + "\n" + lines(details))
			}
		}
		for _, in := range rate {
			if _, details := p.place.RateLimits([]byte(in), "rate_limits"); len(details) > 0 {
				out.WriteString("# " + p.name + " rate_limits " + in + "\n" + lines(details))
			}
		}
	}
	golden(t, "refusals.txt", out.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-update rewrites it):\n%s", file, diff)
	}
}

func TestFlatFormsReadTheirOwnFields(t *testing.T) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(`{"name":"x","type":"requests","credit_limit":5,"conditions":[]}`), &fields); err != nil {
		t.Fatal(err)
	}
	u, details := OnPolicy.UsageLimitOf(fields, "")
	if len(details) > 0 || u != (UsageLimit{Type: Requests, CreditLimit: 5}) {
		t.Errorf("%+v %s", u, lines(details))
	}
	_, details = OnPolicy.RateLimitOf(fields, "")
	if got := lines(details); got != "unit: is required\nvalue: is required\n" {
		t.Errorf("got %q", got)
	}
}

func TestStoredFormRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		day := rapid.Custom(func(t *rapid.T) time.Time {
			return at("2026-01-01").Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "ms")) * time.Millisecond)
		})
		u := UsageLimit{
			Type:           rapid.SampledFrom([]Measure{Cost, Tokens, Requests}).Draw(t, "type"),
			CreditLimit:    rapid.Int64Range(1, math.MaxInt64).Draw(t, "limit"),
			AlertThreshold: rapid.Int64Range(0, math.MaxInt64).Draw(t, "threshold"),
			Cadence:        rapid.SampledFrom([]Cadence{Never, Weekly, Monthly, Days}).Draw(t, "cadence"),
			SetAt:          day.Draw(t, "set"),
		}
		if u.Cadence == Days {
			u.Days = rapid.IntRange(1, 365).Draw(t, "days")
		}
		if u.Cadence != Never {
			u.NextReset, u.ResetAt = midnight(day.Draw(t, "next")), day.Draw(t, "reset")
		}
		raw, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		var back UsageLimit
		if err := json.Unmarshal(raw, &back); err != nil || back != u {
			t.Fatalf("%s: %+v, %v; want %+v", raw, back, err, u)
		}
		// The plan in a row is the same.
		p := newPlan([]UsageLimit{u}, 7, time.Now())
		if diff := cmp.Diff(p, parsePlan(p.text, 7), cmp.AllowUnexported(plan{}, slot{})); diff != "" {
			t.Fatalf("plan %q: %s", p.text, diff)
		}
	})
}

func TestPreparePreservesTheStateOfTheLimit(t *testing.T) {
	now := at("2026-11-20T10:00:00Z")
	first := UsageLimit{Type: Cost, CreditLimit: dollar, Cadence: Days, Days: 7}
	first.Prepare(nil, now)
	if !first.SetAt.Equal(now) || !first.NextReset.Equal(at("2026-11-27")) {
		t.Errorf("first: %+v", first)
	}
	first.ResetUsage(now.Add(time.Hour))
	raised := UsageLimit{Type: Cost, CreditLimit: 2 * dollar, Cadence: Days, Days: 7}
	raised.Prepare(&first, now.AddDate(0, 0, 3))
	if raised.SetAt != first.SetAt || raised.ResetAt != first.ResetAt || raised.NextReset != first.NextReset {
		t.Errorf("a raise loses its place: %+v", raised)
	}
	monthly := UsageLimit{Type: Cost, CreditLimit: 2 * dollar, Cadence: Monthly}
	monthly.Prepare(&raised, now.AddDate(0, 0, 3))
	if monthly.SetAt != first.SetAt || !monthly.NextReset.Equal(at("2026-12-01")) {
		t.Errorf("another cadence: %+v", monthly)
	}
	tokens := UsageLimit{Type: Tokens, CreditLimit: 100}
	tokens.Prepare(&monthly, now.AddDate(0, 0, 4))
	if !tokens.SetAt.Equal(now.AddDate(0, 0, 4)) || !tokens.ResetAt.IsZero() || !tokens.NextReset.IsZero() {
		t.Errorf("another type starts anew: %+v", tokens)
	}
}

// A change that repeats what reads show leaves the schedule unchanged; a change that removes
// the cadence removes the date, repeated or not.
func TestPrepareLeavesAShownScheduleUnchanged(t *testing.T) {
	set, now := at("2026-11-20T10:00:00Z"), at("2026-12-20T10:00:00Z")
	for name, u := range map[string]UsageLimit{
		"none": {}, "weekly": {Cadence: Weekly}, "monthly": {Cadence: Monthly}, "days": {Cadence: Days, Days: 9},
		"monthly from a day on": {Cadence: Monthly, NextReset: at("2026-11-25")}, "monthly later": {Cadence: Monthly, NextReset: at("2027-02-03")},
		"once": {NextReset: at("2027-02-03")}, "once and over": {NextReset: at("2026-12-03")},
	} {
		u.Type, u.CreditLimit = Cost, dollar
		u.Prepare(nil, set)
		schedule := u.Schedule()
		for which, shown := range map[string]func(time.Time) (time.Time, bool){"next": schedule.Next, "last": schedule.Last} {
			date, _ := shown(now)
			again := UsageLimit{Type: Cost, CreditLimit: 2 * dollar, Cadence: u.Cadence, Days: u.Days, NextReset: date}
			again.Prepare(&u, now)
			want := u
			want.CreditLimit = 2 * dollar
			if which == "last" && date.IsZero() && u.Cadence == Never {
				want.NextReset = time.Time{} // null removes a future reset
			}
			if again != want {
				t.Errorf("%s, %s: %+v, want %+v", name, which, again, want)
			}
			if u.Cadence == Never {
				continue
			}
			for _, date := range []time.Time{date, u.NextReset, {}} {
				removed := UsageLimit{Type: Cost, CreditLimit: dollar, NextReset: date}
				if removed.Prepare(&u, now); !removed.NextReset.IsZero() {
					t.Errorf("%s, %s without cadence: %v", name, which, removed.NextReset)
				}
			}
		}
		moved := UsageLimit{Type: Cost, CreditLimit: dollar, Cadence: u.Cadence, Days: u.Days, NextReset: at("2028-01-01")}
		if moved.Prepare(&u, now); !moved.NextReset.Equal(at("2028-01-01")) {
			t.Errorf("%s: a new date became %v", name, moved.NextReset)
		}
	}
}

func TestDecimals(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "1": dollar, "0.000000001": 1, "1.10": 1_100_000_000, "1e-9": 1, "10E+2": 1000 * dollar,
		"123.4500000000000": 123_450_000_000, "9223372036.854775807": math.MaxInt64, "-2.5": -2.5 * dollar, "0e400": 0,
	} {
		if got, err := parseDecimal(in, 9); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		"0.0000000001": errTooFine, "9223372036.854775808": errTooLarge, "1e400": errTooLarge, "1e999999999999": errTooLarge,
		"": errNotNumber, "-": errNotNumber, "1.2.3": errNotNumber, "0x10": errNotNumber, "NaN": errNotNumber,
	} {
		if _, err := parseDecimal(in, 9); err != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1: "0.000000001", -1: "-0.000000001", dollar: "1", 1_500_000_000: "1.5", math.MinInt64: "-9223372036.854775808"} {
		if got := formatDecimal(n, 9); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"1", "1.5e3", "-0.000000001", "1e-400", "00.10", "1e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseDecimal(s, 9)
		if err != nil {
			return
		}
		if again, err := parseDecimal(formatDecimal(n, 9), 9); err != nil || again != n {
			t.Fatalf("%q is %d, and back %d, %v", s, n, again, err)
		}
	})
}

func FuzzLimits(f *testing.F) {
	for _, s := range []string{`{"credit_limit":1}`, `[{"type":"tokens","credit_limit":100}]`, `[{"type":"requests","unit":"rpm","value":5}]`, `null`, `{`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range []LimitKind{OnKey, OnProvider, OnIntegration, OnWorkspace, OnPolicy, InToken} {
			limits, details := p.UsageLimits(raw, "usage_limits")
			for _, u := range limits {
				if len(details) > 0 || u.CreditLimit < 1 || u.AlertThreshold < 0 || u.AlertThreshold >= u.CreditLimit {
					t.Fatalf("%s gives %+v with %v", raw, u, details)
				}
			}
			rates, details := p.RateLimits(raw, "rate_limits")
			for _, r := range rates {
				if _, ok := newCounter(Key, r); len(details) > 0 || !ok || r.Value < 0 {
					t.Fatalf("%s gives %+v with %v", raw, r, details)
				}
			}
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	for _, e := range []entry{
		{slots: 1, due: 1_700_000_000, amounts: amounts{5}, request: "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C"},
		{slots: 7, due: 1, amounts: amounts{1, 2, 3}, request: "other", repairing: true},
		{slots: 2},
		{slots: 1, due: 2, amounts: amounts{9}, beyond: amounts{0, 300, 1}, turn: 1, request: "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C"},
	} {
		f.Add(e.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			return
		}
		again, err := decodeEntry(e.encode())
		if err != nil || again != e {
			t.Fatalf("%x: %+v, then %+v, %v", b, e, again, err)
		}
	})
}

func TestEntriesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := entry{
			slots: uint8(rapid.IntRange(0, 7).Draw(t, "slots")), due: rapid.Int64Range(0, math.MaxUint32).Draw(t, "due"),
			repairing: rapid.Bool().Draw(t, "repairing"),
			request:   rapid.SampledFrom([]string{"", "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", "01j9zq5m8t3v4w5x6y7z8a9b0c", "req-1", "ÿ"}).Draw(t, "request"),
		}
		for i := range e.amounts {
			if e.slots&(1<<i) != 0 {
				e.amounts[i] = rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
			}
		}
		if rapid.Bool().Draw(t, "more") {
			e.beyond[rapid.IntRange(0, 2).Draw(t, "slot")] = rapid.Int64Range(0, math.MaxInt64).Draw(t, "beyond")
			e.turn = rapid.IntRange(0, 1000).Draw(t, "turn")
		}
		got, err := decodeEntry(e.encode())
		if err != nil || got != e {
			t.Fatalf("%+v, %v; want %+v", got, err, e)
		}
		if past := entryPast(e.encode(), e.due); !past || entryPast(e.encode(), e.due-1) {
			t.Fatal("an entry is past due exactly from due on")
		}
	})
}
