package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Measure is the unit of a limit.
type Measure string

// The measures: cost and tokens for budgets, requests and tokens for rates;
// budgets of requests exist in policies only.
const (
	Cost     Measure = "cost"
	Tokens   Measure = "tokens"
	Requests Measure = "requests"
)

// RateLimit allows Value requests or tokens in each window of Unit. 0 blocks
// everything.
type RateLimit struct {
	Type  Measure `json:"type"`
	Unit  Unit    `json:"unit"`
	Value int64   `json:"value"`
}

// String returns text such as "100 requests per minute".
func (r RateLimit) String() string {
	noun := string(r.Type)
	if r.Value == 1 {
		noun = noun[:len(noun)-1]
	}
	return fmt.Sprintf("%d %s per %s", r.Value, noun, units[r.Unit].noun)
}

// UsageLimit is a budget. Amounts are nano-dollars for Cost, otherwise tokens or requests; the
// JSON form has dollars, tokens and requests.
type UsageLimit struct {
	Type           Measure
	CreditLimit    int64
	AlertThreshold int64 // 0 means none
	Cadence        Cadence
	Days           int       // for Days
	NextReset      time.Time // the first reset, 00:00 UTC; later ones follow the cadence
	// OnExceeded is Audit, Fallback, or empty for Deny. FallbackModel is the target of
	// Fallback: @provider/model.
	OnExceeded    OnExceeded
	FallbackModel string
	// Extra raises the limit until ExtraUntil; 0 means nothing.
	Extra      int64
	ExtraUntil time.Time
	// SetAt is when the limit was set: earlier counts, of a limit that was removed
	// meanwhile, are ignored. ResetAt is when its usage was last reset manually. Both are
	// only in the stored form, see Prepare.
	SetAt   time.Time
	ResetAt time.Time
	// Untyped is set if the client left the type out. NextSent is its text of
	// next_usage_reset_at. Reads show both as they were sent.
	Untyped  bool
	NextSent string
}

// OnExceeded is the action of a budget for requests that exceed it.
type OnExceeded string

// A budget rejects; admits the request, charges it and reports that; or sends it to
// another model and charges its cost.
const (
	Deny     OnExceeded = "deny"
	Audit    OnExceeded = "audit"
	Fallback OnExceeded = "fallback"
)

// Raised returns the amount by which the limit is raised at a time.
func (u *UsageLimit) Raised(now time.Time) int64 {
	if u.Extra > 0 && now.Before(u.ExtraUntil) {
		return u.Extra
	}
	return 0
}

// Schedule returns when the budget resets. A number of days without an explicit first
// reset counts from the day on which the limit was set.
func (u UsageLimit) Schedule() Schedule {
	s := Schedule{Cadence: u.Cadence, Days: u.Days, First: u.NextReset}
	if u.Cadence == Days && u.NextReset.IsZero() && !u.SetAt.IsZero() {
		s.First = midnight(u.SetAt)
	}
	return s
}

// Prepare completes the limit for storage at now in place of old, which is nil for a new
// limit. It preserves the time at which the limit was set and its manual reset. If the
// limit has the reset date that reads return, old's schedule is unchanged, and removing
// the cadence removes the date. A periodic limit without a date gets old's if the cadence
// is the same, otherwise the next slot of its cadence.
func (u *UsageLimit) Prepare(old *UsageLimit, now time.Time) {
	u.SetAt = now.UTC().Truncate(time.Millisecond)
	if old != nil && old.Type == u.Type {
		u.SetAt, u.ResetAt = old.SetAt, old.ResetAt
		switch shown := old.shows(u.NextReset, now); {
		case shown && old.Cadence == u.Cadence && old.Days == u.Days && !old.NextReset.IsZero():
			u.NextReset = old.NextReset
		case shown && old.Cadence != Never && u.Cadence == Never:
			u.NextReset = time.Time{}
		}
	}
	if u.Cadence != Never && u.NextReset.IsZero() {
		u.NextReset, _ = Schedule{Cadence: u.Cadence, Days: u.Days}.Next(now)
	}
}

// shows reports whether date is the limit's next reset as returned by reads: its first or
// next reset, or the last one for a read from before it. The zero date represents the
// whole schedule of a periodic limit, and a single reset that is over.
func (u *UsageLimit) shows(date, now time.Time) bool {
	schedule := u.Schedule()
	next, hasNext := schedule.Next(now)
	if date.IsZero() {
		return u.Cadence != Never || !hasNext
	}
	last, _ := schedule.Last(now)
	return date.Equal(u.NextReset) || date.Equal(next) || date.Equal(last)
}

// ResetUsage marks the usage as reset at now: the counters restart with the next update
// of each row.
func (u *UsageLimit) ResetUsage(now time.Time) {
	u.ResetAt = now.UTC().Truncate(time.Millisecond)
}

// places returns the number of decimal places of the measure's JSON form.
func (m Measure) places() int {
	if m == Cost {
		return 9
	}
	return 0
}

// Amount formats n, in the measure's units, as the JSON number of the API.
func (m Measure) Amount(n int64) json.Number { return json.Number(formatDecimal(n, m.places())) }

// words formats n for messages.
func (m Measure) words(n int64) string {
	if m == Cost {
		return "$" + formatDecimal(n, 9)
	}
	noun := string(m)
	if n == 1 {
		noun = noun[:len(noun)-1]
	}
	return formatDecimal(n, 0) + " " + noun
}

// atLeast formats a minimum, in the measure's units, for messages.
func (m Measure) atLeast(minimum int64) string {
	if m == Cost {
		return "more than $0"
	}
	return "at least " + m.words(minimum)
}

// usageJSON is the stored form and, except for set_at and reset_at, that of the API.
type usageJSON struct {
	Type              Measure      `json:"type"`
	CreditLimit       json.Number  `json:"credit_limit"`
	AlertThreshold    *json.Number `json:"alert_threshold"`
	PeriodicReset     *Cadence     `json:"periodic_reset"`
	PeriodicResetDays *int         `json:"periodic_reset_days"`
	NextUsageResetAt  *apiTime     `json:"next_usage_reset_at"`
	OnExceeded        OnExceeded   `json:"on_exceeded"`
	FallbackModel     *string      `json:"fallback_model"`
	TemporaryRaise    *extraJSON   `json:"temporary_raise"`
	SetAt             *time.Time   `json:"set_at,omitempty"`
	ResetAt           *time.Time   `json:"reset_at,omitempty"`
	Untyped           bool         `json:"untyped,omitempty"`
	NextSent          string       `json:"next_sent,omitempty"`
}

// extraJSON is a temporary raise.
type extraJSON struct {
	Amount    json.Number `json:"amount"`
	ExpiresAt apiTime     `json:"expires_at"`
}

// MarshalJSON returns the stored form.
func (u UsageLimit) MarshalJSON() ([]byte, error) { return json.Marshal(u.json()) }

func (u *UsageLimit) json() usageJSON {
	out := usageJSON{Type: u.Type, CreditLimit: u.Type.Amount(u.CreditLimit), OnExceeded: cmp.Or(u.OnExceeded, Deny), Untyped: u.Untyped, NextSent: u.NextSent}
	if u.FallbackModel != "" {
		out.FallbackModel = &u.FallbackModel
	}
	if u.Extra > 0 {
		out.TemporaryRaise = &extraJSON{u.Type.Amount(u.Extra), apiTime(u.ExtraUntil)}
	}
	if u.AlertThreshold > 0 {
		n := u.Type.Amount(u.AlertThreshold)
		out.AlertThreshold = &n
	}
	switch u.Cadence {
	case Days:
		out.PeriodicResetDays = &u.Days
	case Weekly, Monthly:
		out.PeriodicReset = &u.Cadence
	}
	out.NextUsageResetAt = optional(u.NextReset)
	if !u.SetAt.IsZero() {
		out.SetAt = &u.SetAt
	}
	if !u.ResetAt.IsZero() {
		out.ResetAt = &u.ResetAt
	}
	return out
}

// UnmarshalJSON reads the stored form. Client input goes through LimitKind.UsageLimits, which
// validates it.
func (u *UsageLimit) UnmarshalJSON(raw []byte) error {
	var in usageJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	*u = UsageLimit{Type: in.Type, OnExceeded: in.OnExceeded, Untyped: in.Untyped, NextSent: in.NextSent}
	var err error
	if u.OnExceeded == Deny {
		u.OnExceeded = ""
	}
	if in.FallbackModel != nil {
		u.FallbackModel = *in.FallbackModel
	}
	if r := in.TemporaryRaise; r != nil {
		if u.Extra, err = parseDecimal(string(r.Amount), in.Type.places()); err != nil {
			return fmt.Errorf("ledger: temporary_raise %w", err)
		}
		u.ExtraUntil = time.Time(r.ExpiresAt).UTC()
	}
	if u.CreditLimit, err = parseDecimal(string(in.CreditLimit), in.Type.places()); err != nil {
		return fmt.Errorf("ledger: credit_limit %w", err)
	}
	if in.AlertThreshold != nil {
		if u.AlertThreshold, err = parseDecimal(string(*in.AlertThreshold), in.Type.places()); err != nil {
			return fmt.Errorf("ledger: alert_threshold %w", err)
		}
	}
	if in.PeriodicReset != nil {
		u.Cadence = *in.PeriodicReset
	}
	if in.PeriodicResetDays != nil {
		u.Cadence, u.Days = Days, *in.PeriodicResetDays
	}
	for _, t := range []struct {
		from *time.Time
		to   *time.Time
	}{{(*time.Time)(in.NextUsageResetAt), &u.NextReset}, {in.SetAt, &u.SetAt}, {in.ResetAt, &u.ResetAt}} {
		if t.from != nil {
			*t.to = t.from.UTC()
		}
	}
	return nil
}

var (
	errNotNumber = errors.New("must be a number")
	errTooFine   = errors.New("has too many decimal places")
	errTooLarge  = errors.New("is too large")
)

// parseDecimal parses a JSON number exactly, as an integer of 10^-places. It never
// rounds: a number with more decimal places is rejected.
func parseDecimal(s string, places int) (int64, error) {
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
		if err != nil || e > 400 || e < -400 {
			return 0, errTooLarge
		}
		mantissa, exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" {
		return 0, errNotNumber
	}
	exponent += places - len(fraction)
	for exponent < 0 && strings.HasSuffix(digits, "0") {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return 0, nil
	}
	if exponent < 0 {
		return 0, errTooFine
	}
	if len(digits)+exponent > 19 {
		return 0, errTooLarge
	}
	n, err := strconv.ParseUint(digits+strings.Repeat("0", exponent), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, errNotNumber
	case err != nil || n > math.MaxInt64:
		return 0, errTooLarge
	case negative:
		return -int64(n), nil
	}
	return int64(n), nil
}

// formatDecimal returns the shortest decimal form of n of 10^-places.
func formatDecimal(n int64, places int) string {
	if places == 0 {
		return strconv.FormatInt(n, 10)
	}
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u, 10)
	if len(s) <= places {
		s = strings.Repeat("0", places-len(s)+1) + s
	}
	whole, fraction := s[:len(s)-places], strings.TrimRight(s[len(s)-places:], "0")
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}
