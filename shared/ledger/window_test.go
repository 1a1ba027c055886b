package ledger

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	panic("not a time: " + s)
}

func TestWindowsAreAlignedToTheUnitInUTC(t *testing.T) {
	for _, c := range []struct {
		unit             Unit
		now, start, ends string
	}{
		{PerSecond, "2026-03-29T01:59:59.999Z", "2026-03-29T01:59:59Z", "2026-03-29T02:00:00Z"},
		{PerMinute, "2026-03-29T01:59:59.999Z", "2026-03-29T01:59:00Z", "2026-03-29T02:00:00Z"},
		{PerMinute, "2026-03-29T02:00:00Z", "2026-03-29T02:00:00Z", "2026-03-29T02:01:00Z"},
		{PerHour, "2026-10-25T02:30:00+02:00", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{PerDay, "2028-02-29T23:59:59Z", "2028-02-29", "2028-03-01"},
		{PerDay, "2026-10-25T00:30:00+02:00", "2026-10-24", "2026-10-25"},
		{PerWeek, "2026-11-20T14:00:00Z", "2026-11-16", "2026-11-23"}, // a Friday
		{PerWeek, "2026-11-22T23:59:59Z", "2026-11-16", "2026-11-23"}, // Sunday is the last day
		{PerWeek, "2026-11-23T00:00:00Z", "2026-11-23", "2026-11-30"}, // Monday the first
		{PerWeek, "2027-01-01T00:00:00Z", "2026-12-28", "2027-01-04"},
		{PerWeek, "1970-01-01T00:00:00Z", "1969-12-29", "1970-01-05"},
	} {
		start, end := c.unit.Window(at(c.now))
		if !start.Equal(at(c.start)) || !end.Equal(at(c.ends)) {
			t.Errorf("%s at %s: %s to %s, want %s to %s", c.unit, c.now, start, end, c.start, c.ends)
		}
	}
	if start, _ := Unit("rpy").Window(time.Now()); !start.IsZero() {
		t.Error("an unknown unit has a window")
	}
}

func TestWindowsTileTheTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SampledFrom([]Unit{PerSecond, PerMinute, PerHour, PerDay, PerWeek}).Draw(t, "unit")
		now := time.Unix(rapid.Int64Range(-1e9, 5e9).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		start, end := u.Window(now)
		if now.Before(start) || !now.Before(end) {
			t.Fatalf("%s is not in [%s, %s)", now, start, end)
		}
		if next, _ := u.Window(end); !next.Equal(end) {
			t.Fatalf("the window after %s starts at %s", end, next)
		}
		if u == PerWeek && start.Weekday() != WeekStart {
			t.Fatalf("a week starts on %s", start.Weekday())
		}
	})
}

func TestNextReset(t *testing.T) {
	for _, c := range []struct {
		name      string
		s         Schedule
		now, next string
		last      string
	}{
		{"never", Schedule{}, "2026-11-20", "", ""},
		{"once, ahead", Schedule{First: at("2026-12-24")}, "2026-11-20", "2026-12-24", ""},
		{"once, past", Schedule{First: at("2026-12-24")}, "2026-12-24", "", "2026-12-24"},
		{"monthly", Schedule{Cadence: Monthly}, "2026-11-20T15:04:05Z", "2026-12-01", "2026-11-01"},
		{"monthly at a slot is strictly later", Schedule{Cadence: Monthly}, "2026-12-01T00:00:00Z", "2027-01-01", "2026-12-01"},
		{"monthly just before a slot", Schedule{Cadence: Monthly}, "2026-11-30T23:59:59.999Z", "2026-12-01", "2026-11-01"},
		{"monthly from the 31st", Schedule{Cadence: Monthly}, "2027-01-31T12:00:00Z", "2027-02-01", "2027-01-01"},
		{"monthly, first given", Schedule{Cadence: Monthly, First: at("2026-11-25")}, "2026-11-20", "2026-11-25", ""},
		{"monthly, after the first", Schedule{Cadence: Monthly, First: at("2026-11-25")}, "2026-11-25", "2026-12-01", "2026-11-25"},
		{"weekly", Schedule{Cadence: Weekly}, "2026-11-20", "2026-11-23", "2026-11-16"},
		{"weekly on Monday", Schedule{Cadence: Weekly}, "2026-11-23", "2026-11-30", "2026-11-23"},
		{"weekly on Sunday", Schedule{Cadence: Weekly}, "2026-11-22T23:59:59Z", "2026-11-23", "2026-11-16"},
		{"weekly, first given", Schedule{Cadence: Weekly, First: at("2026-11-26")}, "2026-11-20", "2026-11-26", ""},
		{"weekly, after the first", Schedule{Cadence: Weekly, First: at("2026-11-26")}, "2026-11-27", "2026-11-30", "2026-11-26"},
		{"days from now", Schedule{Cadence: Days, Days: 1}, "2026-11-20T15:00:00Z", "2026-11-21", ""},
		{"days over a leap day", Schedule{Cadence: Days, Days: 2, First: at("2028-02-28")}, "2028-02-28", "2028-03-01", "2028-02-28"},
		{"days over no leap day", Schedule{Cadence: Days, Days: 2, First: at("2027-02-28")}, "2027-02-28", "2027-03-02", "2027-02-28"},
		{"365 days over a leap year", Schedule{Cadence: Days, Days: 365, First: at("2028-01-01")}, "2028-06-01", "2028-12-31", "2028-01-01"},
		{"missed slots are caught up", Schedule{Cadence: Days, Days: 7, First: at("2026-01-01")}, "2026-11-20", "2026-11-26", "2026-11-19"},
		{"first is taken at midnight", Schedule{Cadence: Days, Days: 7, First: at("2026-11-20T17:00:00Z")}, "2026-11-20T12:00:00Z", "2026-11-27", "2026-11-20"},
	} {
		next, ok := c.s.Next(at(c.now))
		if want := c.next; ok != (want != "") || ok && !next.Equal(at(want)) {
			t.Errorf("%s: next after %s is %s (%v), want %q", c.name, c.now, next, ok, want)
		}
		last, ok := c.s.Last(at(c.now))
		if want := c.last; ok != (want != "") || ok && !last.Equal(at(want)) {
			t.Errorf("%s: last at %s is %s (%v), want %q", c.name, c.now, last, ok, want)
		}
	}
}

func TestResetsAreMidnightsStrictlyAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{Cadence: rapid.SampledFrom([]Cadence{Weekly, Monthly, Days}).Draw(t, "cadence")}
		if s.Cadence == Days {
			s.Days = rapid.IntRange(1, 365).Draw(t, "days")
		}
		base := at("2024-01-01").Unix()
		if rapid.Bool().Draw(t, "first given") {
			s.First = midnight(time.Unix(base+rapid.Int64Range(0, 4*366*day).Draw(t, "first"), 0))
		}
		now := time.Unix(base+rapid.Int64Range(0, 8*366*day).Draw(t, "now"), 0).UTC()
		next, ok := s.Next(now)
		if !ok || !next.After(now) || !next.Equal(midnight(next)) {
			t.Fatalf("next after %s is %s", now, next)
		}
		// There is none in between: just before it, it is still the next. (Days without a first
		// reset are counted from the day of the call.)
		if again, _ := s.Next(next.Add(-time.Second)); !again.Equal(next) && (s.Cadence != Days || !s.First.IsZero()) {
			t.Fatalf("a second before %s the next is %s", next, again)
		}
		last, ok := s.Last(now)
		if ok && (last.After(now) || !last.Equal(midnight(last))) {
			t.Fatalf("last at %s is %s", now, last)
		}
		if ok && s.First.Before(now) {
			if after, _ := s.Next(last); !after.Equal(next) {
				t.Fatalf("after the last, %s, comes %s, not %s", last, after, next)
			}
		}
		if s.Cadence == Days && !s.First.IsZero() && (next.Unix()-s.First.Unix())%(int64(s.Days)*day) != 0 {
			t.Fatalf("%s is not on the grid of %d days from %s", next, s.Days, s.First)
		}
	})
}
