// Package instant describes and parses points in time of query strings, with their UTC offset.
// The meaning of a query belongs to its family.
package instant

import (
	"encoding/json"
	"regexp"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
)

// forms are the accepted spellings; without an offset a time is UTC.
var forms = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", time.DateOnly,
}

// lostPlus matches an offset with a space for its plus sign: an unescaped plus sign in a query
// string decodes to a space.
var lostPlus = regexp.MustCompile(`^(.*:\d\d(?:\.\d+)?) (\d\d:?\d\d)$`)

// Years that a time may lie in.
const (
	firstYear = 1970
	lastYear  = 2200
)

// Parse parses a point in time; ok is false if s is not valid.
func Parse(s string) (t time.Time, ok bool) {
	t, _, ok = parse(s)
	return t, ok
}

// parse is Parse, and reports whether s is a date without a time.
func parse(s string) (t time.Time, date, ok bool) {
	s = lostPlus.ReplaceAllString(s, "$1+$2")
	for _, form := range forms {
		if t, err := time.Parse(form, s); err == nil {
			return t, form == time.DateOnly, t.Year() >= firstYear && t.Year() <= lastYear
		}
	}
	return time.Time{}, false, false
}

// Field is a query parameter that holds a point in time.
func Field(name, doc string, required bool) admin.Field {
	return admin.Field{
		Name: name, Type: admin.String, Max: 64, Required: required, Check: check, Example: "2026-01-31T15:04:05Z",
		Doc: doc + " An ISO 8601 time with its offset from UTC, such as 2026-01-31T15:04:05+01:00; UTC without one.",
	}
}

// EndField is Field for the end of a range, which Range reads.
func EndField(name, doc string, required bool) admin.Field {
	f := Field(name, doc, required)
	f.Doc += " A date without a time means the end of that day."
	return f
}

func check(raw json.RawMessage) []fault.Detail {
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		if _, ok := Parse(s); ok {
			return nil
		}
	}
	return []fault.Detail{{Message: "must be an ISO 8601 time from 1970 to 2200 with offset, such as 2026-01-31T15:04:05+01:00"}}
}

// Of reads a parameter that Field describes; the zero time when it is absent.
func Of(q admin.Values, name string) time.Time {
	t, _ := Parse(q.Text(name))
	return t
}

// Range reads the ends of a time range; an absent end is the zero time. Both ends are included:
// a date without a time as the last one includes that entire day. A range that ends before it
// begins is a fault.
func Range(q admin.Values, from, to string) (start, end time.Time, wrong *fault.Detail) {
	start = Of(q, from)
	end, date, _ := parse(q.Text(to))
	if date {
		end = end.AddDate(0, 0, 1).Add(-time.Nanosecond)
	}
	if q.HasValue(from) && q.HasValue(to) && end.Before(start) {
		wrong = &fault.Detail{Field: to, Message: "must not be before " + from}
	}
	return start, end, wrong
}
