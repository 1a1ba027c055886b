package ledger

import (
	"time"
)

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

// JSON schemas of the limits of a place, for the administration's API document: they are
// beside the parser because they must match it.

type schema = map[string]any

// smallest is the minimum amount: a nano-dollar.
const smallest = 1e-9

// UsageSchema describes usage_limits in requests and responses.
func (p LimitKind) UsageSchema() map[string]any {
	measures := []Measure{Cost, Tokens}
	if p.requests {
		measures = append(measures, Requests)
	}
	one := schema{
		"type": "object", "required": []string{"credit_limit"}, "additionalProperties": false,
		"properties": schema{
			"type":                schema{"type": "string", "enum": measures, "default": Cost},
			"credit_limit":        schema{"type": "number", "minimum": smallest, "description": "US dollars with at most 9 decimal places, greater than 0; or tokens, at least 100."},
			"alert_threshold":     schema{"type": []string{"number", "null"}, "minimum": smallest, "description": "In the unit of credit_limit, and less than it."},
			"periodic_reset":      schema{"type": []string{"string", "null"}, "enum": []any{Weekly, Monthly, nil}},
			"periodic_reset_days": schema{"type": []string{"integer", "null"}, "minimum": 1, "maximum": 365, "description": "Instead of periodic_reset."},
			"next_usage_reset_at": schema{"type": []string{"string", "null"}, "description": "It takes effect at 00:00 UTC of its day. Reads return it as it was sent."},
			"next_reset_at":       schema{"type": []string{"string", "null"}, "format": "date-time", "readOnly": true, "description": "When the budget starts again; null if never."},
			"on_exceeded":         schema{"type": []string{"string", "null"}, "enum": []any{Deny, Audit, Fallback, nil}, "description": "Action when the budget is insufficient: audit admits and charges the requests, fallback sends them to fallback_model and charges its cost, deny (default) rejects them."},
			"fallback_model":      schema{"type": []string{"string", "null"}, "example": "@provider/model", "description": "For on_exceeded fallback: @provider/model."},
			"temporary_raise": schema{"type": []string{"object", "null"}, "required": []string{"amount", "expires_at"}, "additionalProperties": false, "description": "Adds to credit_limit until it expires.", "properties": schema{
				"amount": schema{"type": "number", "minimum": smallest, "description": "In the unit of credit_limit."}, "expires_at": schema{"type": "string", "format": "date-time"},
			}},
			"current_usage":            schema{"type": "number", "readOnly": true, "description": "Settled in this period, in the unit of credit_limit. Read-only fields are ignored in requests."},
			"reserved_usage":           schema{"type": "number", "readOnly": true, "description": "Reserved by requests in progress, in the unit of credit_limit."},
			"available":                schema{"type": "number", "readOnly": true, "description": "In the unit of credit_limit: credit_limit less current_usage and reserved_usage."},
			"status":                   schema{"type": "string", "enum": []string{"active", Exhausted}, "readOnly": true, "description": "exhausted: nothing is left, or a request was rejected and less is left than the last admitted request needed."},
			"last_reset_at":            schema{"type": []string{"string", "null"}, "format": "date-time", "readOnly": true},
			"is_threshold_alerts_sent": schema{"type": "boolean", "readOnly": true},
			"is_exhausted_alerts_sent": schema{"type": "boolean", "readOnly": true},
		},
	}
	if p.typed {
		one["required"] = []string{"type", "credit_limit"}
		delete(one["properties"].(schema)["type"].(schema), "default")
	}
	if p.usageArray {
		return listOf(one, p.maxUsage)
	}
	one["type"] = []string{"object", "null"}
	return one
}

// RateSchema describes rate_limits in requests and responses.
func (p LimitKind) RateSchema() map[string]any {
	units := []Unit{PerMinute, PerHour, PerDay, PerWeek}
	if p.perSecond {
		units = append(units, PerSecond)
	}
	one := schema{
		"type": "object", "required": []string{"type", "unit", "value"}, "additionalProperties": false,
		"properties": schema{
			"type":  schema{"type": "string", "enum": []Measure{Requests, Tokens}},
			"unit":  schema{"type": "string", "enum": units},
			"value": schema{"type": "integer", "minimum": p.minRate, "maximum": int64(maxCount)},
		},
	}
	list := listOf(one, p.maxRates)
	if p.rateObject {
		return schema{"anyOf": []any{list, one}}
	}
	return list
}

func listOf(one schema, most int) schema {
	return schema{"type": []string{"array", "null"}, "maxItems": most, "items": one}
}

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
