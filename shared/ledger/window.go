package ledger

import "time"

// WeekStart is the day on which weekly windows and weekly resets begin, at
// 00:00 UTC.
const WeekStart = time.Monday

// Unit is the length of a rate window.
type Unit string

// The units of rate limits. PerSecond is allowed on API keys only.
const (
	PerSecond Unit = "rps"
	PerMinute Unit = "rpm"
	PerHour   Unit = "rph"
	PerDay    Unit = "rpd"
	PerWeek   Unit = "rpw"
)

type unitRow struct {
	length int64  // seconds
	offset int64  // seconds from the epoch to the first window's start
	noun   string // for messages
}

const day = 24 * 60 * 60

// firstWeek is the first WeekStart after the epoch, which was a Thursday.
const firstWeek = (int64(WeekStart) - int64(time.Thursday) + 7) % 7 * day

var units = map[Unit]unitRow{
	PerSecond: {1, 0, "second"},
	PerMinute: {60, 0, "minute"},
	PerHour:   {60 * 60, 0, "hour"},
	PerDay:    {day, 0, "day"},
	PerWeek:   {7 * day, firstWeek, "week"},
}

// window returns the start, in Unix seconds, of the window containing t. It is the
// window's id: ids of later windows are larger.
func (r unitRow) window(t int64) int64 {
	d := (t - r.offset) % r.length
	if d < 0 {
		d += r.length
	}
	return t - d
}

// Window returns the window of the unit containing t, aligned to the unit in UTC: start
// is inclusive, end exclusive. It is zero for an unknown unit.
func (u Unit) Window(t time.Time) (start, end time.Time) {
	r, ok := units[u]
	if !ok {
		return time.Time{}, time.Time{}
	}
	s := r.window(t.Unix())
	return time.Unix(s, 0).UTC(), time.Unix(s+r.length, 0).UTC()
}
