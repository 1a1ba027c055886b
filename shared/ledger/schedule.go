package ledger

import "time"

// Cadence is how often a budget resets. The zero value means never.
type Cadence string

// The cadences of periodic_reset.
const (
	Never   Cadence = ""
	Weekly  Cadence = "weekly"
	Monthly Cadence = "monthly"
	Days    Cadence = "days" // every Schedule.Days days
)

// Schedule is when a budget resets: at First, if set, and then at the cadence's slots;
// all at 00:00 UTC. A Schedule with only First resets once.
type Schedule struct {
	Cadence Cadence
	Days    int       // 1 to 365, for Days
	First   time.Time // if zero, counted from the day passed to Next
}

// Next returns the first reset strictly after t; ok is false if there is none.
func (s Schedule) Next(t time.Time) (next time.Time, ok bool) {
	t = t.UTC()
	if first := midnight(s.First); !s.First.IsZero() && first.After(t) {
		return first, true
	}
	switch s.Cadence {
	case Weekly:
		return startOfWeek(t).AddDate(0, 0, 7), true
	case Monthly:
		return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC), true
	case Days:
		from := midnight(t)
		if !s.First.IsZero() {
			from = midnight(s.First)
		}
		step := int64(max(s.Days, 1)) * day
		slots := (t.Unix()-from.Unix())/step + 1
		return time.Unix(from.Unix()+slots*step, 0).UTC(), true
	}
	return time.Time{}, false
}

// Last returns the latest reset at or before t; ok is false if none has been due since
// First, or if that is unknown (a schedule of days without First).
func (s Schedule) Last(t time.Time) (last time.Time, ok bool) {
	t = t.UTC()
	first := s.First
	if !first.IsZero() {
		if first = midnight(first); first.After(t) {
			return time.Time{}, false
		}
	}
	switch s.Cadence {
	case Weekly:
		last = startOfWeek(t)
	case Monthly:
		last = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	case Days:
		if first.IsZero() {
			return time.Time{}, false
		}
		step := int64(max(s.Days, 1)) * day
		last = time.Unix(first.Unix()+(t.Unix()-first.Unix())/step*step, 0).UTC()
	}
	if last.Before(first) {
		last = first
	}
	return last, !last.IsZero()
}

func midnight(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func startOfWeek(t time.Time) time.Time {
	return time.Unix(units[PerWeek].window(t.Unix()), 0).UTC()
}
