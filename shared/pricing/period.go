package pricing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
)

// period is when a price applies; the zero value is always. All of it is in UTC.
type period struct {
	from, until time.Time // zero: unlimited; until is excluded
	days        uint8     // a bit for each day of the week, Sunday first; 0: all
	hours       []span    // of the day; nil: all
}

// span is a part of the day in minutes; until is excluded. It passes midnight if until is
// not after from.
type span struct{ from, until int }

const maxSpans = 8

func (p *period) limited() bool {
	return !p.from.IsZero() || !p.until.IsZero() || p.days != 0 || p.hours != nil
}

// includes reports whether a time is in the period.
func (p *period) includes(t time.Time) bool {
	if !p.limited() {
		return true
	}
	if t.IsZero() || t.Before(p.from) || !p.until.IsZero() && !t.Before(p.until) {
		return false
	}
	t = t.UTC()
	if p.days != 0 && p.days&(1<<t.Weekday()) == 0 {
		return false
	}
	minute := t.Hour()*60 + t.Minute()
	return p.hours == nil || slices.ContainsFunc(p.hours, func(s span) bool {
		if s.from < s.until {
			return s.from <= minute && minute < s.until
		}
		return s.from <= minute || minute < s.until
	})
}

// lessThan reports whether another period is the more special one: it is limited to hours
// or days and this is not, or it began later.
func (p *period) lessThan(other *period) bool {
	narrow := func(q *period) bool { return q.days != 0 || q.hours != nil }
	if narrow(p) != narrow(other) {
		return narrow(other)
	}
	return p.from.Before(other.from)
}

// parsePeriod reads the text between brackets of a header in the list, with the closing one.
func parsePeriod(text string) (p period, err error) {
	inner, ok := strings.CutSuffix(text, "]")
	if !ok || inner == "" {
		return p, fmt.Errorf("pricing: %q is not a time: it ends with ]", text)
	}
	for part := range strings.SplitSeq(inner, ",") {
		from, until, dates := strings.Cut(part, "..")
		switch {
		case dates:
			if p.from, err = instant(from, false); err == nil {
				p.until, err = instant(until, true)
			}
		case part == "mon-fri":
			p.days = 0b0111110
		default:
			p.hours, err = parseHours(strings.ReplaceAll(part, "+", ","))
		}
		if err != nil {
			return p, fmt.Errorf("pricing: %q is not a time: %w", text, err)
		}
	}
	if !p.from.IsZero() && !p.until.IsZero() && !p.from.Before(p.until) {
		return p, fmt.Errorf("pricing: %q ends before it begins", text)
	}
	return p, nil
}

// instant reads a day or a time; end: the end of the day. An empty text is no limit.
func instant(text string, end bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("must be a day (2026-12-31) or a time (2026-12-31T16:00:00Z)")
}

// parseHours reads parts of the day: 01:00-04:00,06:00-10:00.
func parseHours(text string) ([]span, error) {
	var out []span
	for part := range strings.SplitSeq(text, ",") {
		from, until, ok := strings.Cut(strings.TrimSpace(part), "-")
		a, err1 := minuteOf(from)
		b, err2 := minuteOf(until)
		if !ok || err1 != nil || err2 != nil || a == b || a == 24*60 || len(out) == maxSpans {
			return nil, fmt.Errorf("must be up to %d parts of the day in UTC, such as 01:00-04:00,16:30-00:30", maxSpans)
		}
		out = append(out, span{a, b})
	}
	return out, nil
}

func minuteOf(text string) (int, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err
}

// period reads the members from, until, days and hours of a pricing_config.
func (o *object) period() (p period) {
	text := func(key string) (s string, ok bool) {
		raw, ok := o.take(key)
		if ok && json.Unmarshal(raw, &s) != nil || ok && s == "" {
			o.fail(key, "must be a text")
			ok = false
		}
		return s, ok
	}
	var err error
	if s, ok := text("from"); ok {
		if p.from, err = instant(s, false); err != nil {
			o.fail("from", err.Error())
		}
	}
	if s, ok := text("until"); ok {
		if p.until, err = instant(s, true); err != nil {
			o.fail("until", err.Error())
		}
	}
	if !p.from.IsZero() && !p.until.IsZero() && !p.from.Before(p.until) {
		o.fail("until", "must be after from")
	}
	if s, ok := text("days"); ok {
		if p.days = 0b0111110; s != "mon-fri" {
			o.fail("days", `must be "mon-fri"; without it a price applies every day`)
		}
	}
	if s, ok := text("hours"); ok {
		if p.hours, err = parseHours(s); err != nil {
			o.fail("hours", err.Error())
		}
	}
	return p
}

// tokens reads a number of tokens; 0: absent.
func (o *object) tokens(key string) int64 {
	raw, ok := o.take(key)
	if !ok {
		return 0
	}
	n, exact, err := parseDecimal(string(raw), 0)
	if err != nil || !exact || n < 1 || n > maxTierTokens {
		o.fail(key, fmt.Sprintf("must be a whole number from 1 to %d: the price applies to prompts with more tokens", maxTierTokens))
		return 0
	}
	return n
}

const (
	maxTierTokens = 100_000_000
	maxParts      = 20
)

// listOf are the elements of a list; nil: raw is none.
func listOf(raw []byte) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return append([]json.RawMessage{}, list...)
}

// parseCustoms reads a list of prices, each with the time or the prompts that it is for.
func parseCustoms(list []json.RawMessage, field string) (*Custom, []fault.Detail) {
	if len(list) == 0 || len(list) > maxParts {
		return nil, []fault.Detail{{Field: field, Message: fmt.Sprintf("must have 1 to %d prices", maxParts)}}
	}
	all := new(Custom)
	var errs []fault.Detail
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if listOf(raw) != nil {
			errs = append(errs, fault.Detail{Field: at, Message: "must be an object"})
			continue
		}
		one, bad := ParseCustom(raw, at)
		if errs = append(errs, bad...); len(bad) > 0 {
			continue
		}
		if i == 0 {
			all.rates = one.rates
		}
		if len(one.parts) == 0 {
			one.parts = []part{{rates: one.rates}}
		}
		all.parts = append(all.parts, one.parts...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return all, nil
}
