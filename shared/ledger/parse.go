package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
)

// LimitKind is a kind of object with limits, with the accepted forms of limits.
type LimitKind struct {
	usageArray bool // usage_limits is an array, otherwise an object
	maxUsage   int
	maxRates   int
	rateObject bool // a single rate limit may be written as an object
	perSecond  bool
	requests   bool // budgets of requests
	minRate    int64
	typed      bool // a budget states its type
	looseAlert bool // an alert threshold may be above the limit: it never fires
}

// The places. An integration has limits for each workspace, and a default for new ones. A
// simulation writes limits like a policy's, for any other place.
var (
	OnKey         = LimitKind{maxUsage: 1, maxRates: 16, perSecond: true}
	OnProvider    = LimitKind{maxUsage: 1, maxRates: 16, rateObject: true}
	OnIntegration = LimitKind{usageArray: true, maxUsage: 1, maxRates: 1, looseAlert: true}
	OnWorkspace   = LimitKind{usageArray: true, maxUsage: 2, maxRates: 16}
	OnPolicy      = LimitKind{maxUsage: 1, maxRates: 1, requests: true, minRate: 1, rateObject: true, typed: true}
	InSimulation  = LimitKind{maxUsage: 1, maxRates: 1, requests: true, perSecond: true, rateObject: true}
	InToken       = LimitKind{usageArray: true, maxUsage: 2, maxRates: 16, perSecond: true}
)

// ManyBudgets reports whether usage_limits is an array at the place.
func (p LimitKind) ManyBudgets() bool { return p.usageArray }

// Maximum amounts; above them sums could overflow 64 bits.
const (
	maxDollars = 1_000_000_000
	maxCount   = 1_000_000_000_000_000
)

// minTokens is the minimum budget of tokens. The minimum budget of dollars is a
// nano-dollar.
const minTokens = 100

// UsageFields and RateFields are the keys of a flat form (a policy's body); UsageLimitOf
// and RateLimitOf read them.
var (
	UsageFields = []string{"type", "credit_limit", "alert_threshold", "periodic_reset", "periodic_reset_days", "next_usage_reset_at", "on_exceeded", "fallback_model", "temporary_raise"}
	RateFields  = []string{"type", "unit", "value"}
)

// readOnlyFields are the fields that a read adds to a usage limit. A body may repeat them
// with the types of a read; null counts as absent.
var readOnlyFields = map[string]func(d *details, raw json.RawMessage, path string){
	"current_usage": shownNumber, "reserved_usage": shownNumber, "available": shownNumber,
	"status":                   func(d *details, raw json.RawMessage, path string) { oneOf(d, raw, path, []string{"active", Exhausted}) },
	"last_reset_at":            func(d *details, raw json.RawMessage, path string) { d.time(raw, path) },
	"next_reset_at":            func(d *details, raw json.RawMessage, path string) { d.time(raw, path) },
	"is_threshold_alerts_sent": shownFlag, "is_exhausted_alerts_sent": shownFlag,
}

func shownNumber(d *details, raw json.RawMessage, path string) {
	shown[json.Number](d, raw, path, "a number")
}
func shownFlag(d *details, raw json.RawMessage, path string) {
	shown[bool](d, raw, path, "true or false")
}

// shown rejects a value of another type than T.
func shown[T any](d *details, raw json.RawMessage, path, want string) {
	var v T
	if json.Unmarshal(raw, &v) != nil || raw[0] == '"' { // json.Number also accepts text
		d.add(path, "must be %s; it is ignored", want)
	}
}

// UsageLimits parses a client's usage_limits: an object or an array, depending on the
// place. null and [] mean none. All field errors are returned together, with their paths
// under path; limits are returned only without errors.
func (p LimitKind) UsageLimits(raw []byte, path string) ([]UsageLimit, []fault.Detail) {
	d := &details{}
	var limits []UsageLimit
	for _, el := range d.elements(raw, path, p.usageArray, !p.usageArray, p.maxUsage) {
		for _, key := range slices.Sorted(maps.Keys(readOnlyFields)) {
			if raw, ok := present(el.fields, key); ok {
				readOnlyFields[key](d, raw, join(el.path, key))
			}
		}
		maps.DeleteFunc(el.fields, func(key string, _ json.RawMessage) bool { return readOnlyFields[key] != nil })
		d.known(el.fields, el.path, UsageFields)
		limits = append(limits, p.usage(d, el.fields, el.path))
	}
	for i, u := range limits {
		if slices.ContainsFunc(limits[:i], func(v UsageLimit) bool { return v.Type == u.Type }) {
			d.add(join(fmt.Sprintf("%s[%d]", path, i), "type"), "repeats %q: each type may be limited once", u.Type)
		}
	}
	return ifClean(limits, d)
}

// RateLimits parses a client's rate_limits, like UsageLimits.
func (p LimitKind) RateLimits(raw []byte, path string) ([]RateLimit, []fault.Detail) {
	d := &details{}
	var limits []RateLimit
	for _, el := range d.elements(raw, path, true, p.rateObject, p.maxRates) {
		d.known(el.fields, el.path, RateFields)
		limits = append(limits, p.rate(d, el.fields, el.path))
	}
	for i, r := range limits {
		if slices.ContainsFunc(limits[:i], func(v RateLimit) bool { return v.Type == r.Type && v.Unit == r.Unit }) {
			d.add(fmt.Sprintf("%s[%d]", path, i), "repeats type %q with unit %q: each pair may be limited once", r.Type, r.Unit)
		}
	}
	return ifClean(limits, d)
}

// UsageLimitOf parses the limit from the fields of a flat body; the caller checks other
// keys.
func (p LimitKind) UsageLimitOf(fields map[string]json.RawMessage, path string) (UsageLimit, []fault.Detail) {
	d := &details{}
	u := p.usage(d, fields, path)
	return u, d.list
}

// RateLimitOf is UsageLimitOf for a rate limit.
func (p LimitKind) RateLimitOf(fields map[string]json.RawMessage, path string) (RateLimit, []fault.Detail) {
	d := &details{}
	r := p.rate(d, fields, path)
	return r, d.list
}

func (p LimitKind) usage(d *details, fields map[string]json.RawMessage, path string) UsageLimit {
	u := UsageLimit{Type: Cost}
	allowed, minimum := []Measure{Cost, Tokens}, map[Measure]int64{Cost: 1, Tokens: minTokens, Requests: 1}
	if p.requests {
		allowed = append(allowed, Requests)
	}
	if raw, ok := fields["type"]; ok || p.typed {
		if !ok {
			d.add(join(path, "type"), "is required: one of %s", list(allowed))
		} else if u.Type, ok = oneOf(d, raw, join(path, "type"), allowed); !ok {
			u.Type = Cost
			minimum[Cost] = 0 // the minimum depends on the type
		}
	} else {
		u.Untyped = true
	}
	if raw, ok := fields["credit_limit"]; ok {
		u.CreditLimit = d.amount(raw, join(path, "credit_limit"), u.Type, minimum[u.Type])
	} else {
		d.add(join(path, "credit_limit"), "is required: a number, %s", u.Type.atLeast(minimum[u.Type]))
	}
	if raw, ok := present(fields, "alert_threshold"); ok {
		at := join(path, "alert_threshold")
		u.AlertThreshold = d.amount(raw, at, u.Type, 1)
		if !p.looseAlert && u.AlertThreshold > 0 && u.CreditLimit > 0 && u.AlertThreshold >= u.CreditLimit {
			d.add(at, "must be less than credit_limit (an amount in the same unit, not a percentage)")
		}
	}
	p.cadence(d, fields, path, &u)
	if raw, ok := present(fields, "on_exceeded"); ok {
		if u.OnExceeded, _ = oneOf(d, raw, join(path, "on_exceeded"), []OnExceeded{Deny, Audit, Fallback}); u.OnExceeded == Deny {
			u.OnExceeded = ""
		}
	}
	d.fallback(fields, path, &u)
	if raw, ok := present(fields, "temporary_raise"); ok {
		d.raise(raw, join(path, "temporary_raise"), &u)
	}
	return u
}

// fallback parses the model to which requests are sent.
func (d *details) fallback(fields map[string]json.RawMessage, path string, u *UsageLimit) {
	at := join(path, "fallback_model")
	raw, exists := present(fields, "fallback_model")
	switch {
	case u.OnExceeded == Fallback && !exists:
		d.add(at, "is required with on_exceeded %q: @provider/model", Fallback)
	case !exists:
	case json.Unmarshal(raw, &u.FallbackModel) != nil || u.FallbackModel == "" || len(u.FallbackModel) > 2*maxValue || !saved(u.FallbackModel) || strings.HasSuffix(u.FallbackModel, "/"+Wildcard):
		d.add(at, "must be @provider/model")
	case u.OnExceeded != Fallback:
		d.add(at, "is only allowed with on_exceeded %q", Fallback)
	}
}

// raise parses {amount, expires_at}.
func (d *details) raise(raw []byte, path string, u *UsageLimit) {
	fields, ok := d.object(raw, path)
	if !ok {
		return
	}
	d.known(fields, path, []string{"amount", "expires_at"})
	if raw, ok := d.required(fields, path, "amount"); ok {
		at := join(path, "amount")
		if u.Extra = d.amount(raw, at, u.Type, 1); u.Extra > 0 && u.Extra > maxDollars*unitOf(Cost)-u.CreditLimit {
			d.add(at, "is too large in addition to credit_limit")
		}
	}
	if raw, ok := d.required(fields, path, "expires_at"); ok {
		u.ExtraUntil = d.time(raw, join(path, "expires_at"))
	}
}

func (p LimitKind) cadence(d *details, fields map[string]json.RawMessage, path string, u *UsageLimit) {
	period, hasPeriod := present(fields, "periodic_reset")
	if hasPeriod {
		u.Cadence, _ = oneOf(d, period, join(path, "periodic_reset"), []Cadence{Weekly, Monthly})
	}
	if raw, ok := present(fields, "periodic_reset_days"); ok {
		at := join(path, "periodic_reset_days")
		switch n, ok := d.integer(raw, at); {
		case hasPeriod:
			d.add(at, "cannot be combined with periodic_reset: send one of them")
		case ok && (n < 1 || n > 365):
			d.add(at, "must be from 1 to 365")
		case ok:
			u.Cadence, u.Days = Days, int(n)
		}
	}
	if raw, ok := present(fields, "next_usage_reset_at"); ok {
		u.NextReset = d.date(raw, join(path, "next_usage_reset_at"))
		_ = json.Unmarshal(raw, &u.NextSent) // date has rejected values other than strings
	}
}

func (p LimitKind) rate(d *details, fields map[string]json.RawMessage, path string) RateLimit {
	var r RateLimit
	allowed := []Unit{PerMinute, PerHour, PerDay, PerWeek}
	if p.perSecond {
		allowed = append(allowed, PerSecond)
	}
	if raw, ok := d.required(fields, path, "type"); ok {
		r.Type, _ = oneOf(d, raw, join(path, "type"), []Measure{Requests, Tokens})
	}
	if raw, ok := d.required(fields, path, "unit"); ok {
		r.Unit, _ = oneOf(d, raw, join(path, "unit"), allowed)
	}
	if raw, ok := d.required(fields, path, "value"); ok {
		n, ok := d.integer(raw, join(path, "value"))
		if ok && (n < p.minRate || n > maxCount) {
			d.add(join(path, "value"), "must be from %d to %d", p.minRate, int64(maxCount))
		}
		r.Value = n
	}
	return r
}

// unitOf is one dollar, token or request in the measure's units.
func unitOf(m Measure) int64 {
	if m == Cost {
		return 1_000_000_000
	}
	return 1
}

// details collects field errors.
type details struct{ list []fault.Detail }

func (d *details) add(path, format string, args ...any) {
	d.list = append(d.list, fault.Detail{Field: path, Message: fmt.Sprintf(format, args...)})
}

type element struct {
	path   string
	fields map[string]json.RawMessage
}

// elements splits the form into objects: those of an array, or a single one.
func (d *details) elements(raw []byte, path string, array, object bool, most int) []element {
	raw = bytes.TrimSpace(raw)
	var parts []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case raw[0] == '[' && array:
		if err := json.Unmarshal(raw, &parts); err != nil {
			d.add(path, "is not valid JSON")
			return nil
		}
		if len(parts) > most {
			d.add(path, "must have at most %d %s", most, plural(most, "entry", "entries"))
			return nil
		}
	case raw[0] == '{' && object:
		fields, ok := d.object(raw, path)
		if !ok {
			return nil
		}
		return []element{{path, fields}}
	default:
		want := "an array of objects"
		if object && !array {
			want = "an object"
		} else if object {
			want = "an object or an array of objects"
		}
		d.add(path, "must be %s or null", want)
		return nil
	}
	var out []element
	for i, part := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		if fields, ok := d.object(part, at); ok {
			out = append(out, element{at, fields})
		}
	}
	return out
}

func (d *details) object(raw []byte, path string) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		d.add(path, "must be an object")
		return nil, false
	}
	return fields, true
}

// known rejects keys that are not in allowed.
func (d *details) known(fields map[string]json.RawMessage, path string, allowed []string) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(allowed, key) {
			d.add(join(path, key), "is not known: allowed are %s", strings.Join(allowed, ", "))
		}
	}
}

func (d *details) required(fields map[string]json.RawMessage, path, key string) (json.RawMessage, bool) {
	raw, ok := fields[key]
	if !ok {
		d.add(join(path, key), "is required")
	}
	return raw, ok
}

// amount parses a number of dollars, tokens or requests. minimum is in the measure's
// units.
func (d *details) amount(raw []byte, path string, m Measure, minimum int64) int64 {
	if !isNumber(raw) {
		d.add(path, "must be a number")
		return 0
	}
	most := int64(maxCount)
	if m == Cost {
		most = maxDollars
	}
	n, err := parseDecimal(string(raw), m.places())
	switch {
	case err == errTooFine && m != Cost:
		d.add(path, "must be a whole number of %s", m)
	case err == errTooFine:
		d.add(path, "must have at most 9 decimal places")
	case err != nil || n > most*unitOf(m):
		d.add(path, "must be at most %d", most)
	case n < minimum:
		d.add(path, "must be %s", m.atLeast(minimum))
	default:
		return n
	}
	return 0
}

func (d *details) integer(raw []byte, path string) (int64, bool) {
	if isNumber(raw) {
		if n, err := parseDecimal(string(raw), 0); err == nil {
			return n, true
		}
	}
	d.add(path, "must be an integer")
	return 0, false
}

// date parses an ISO 8601 date or time and returns 00:00 UTC of its day.
func (d *details) date(raw []byte, path string) time.Time {
	if t := d.time(raw, path); !t.IsZero() {
		return midnight(t)
	}
	return time.Time{}
}

// time parses an ISO 8601 date or time.
func (d *details) time(raw []byte, path string) time.Time {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
			if t, err := time.Parse(layout, s); err == nil && t.UTC().Year() >= 1970 && t.UTC().Year() <= 9000 {
				return t.UTC()
			}
		}
	}
	d.add(path, "must be an ISO 8601 date or time, such as 2030-01-31T00:00:00Z")
	return time.Time{}
}

func oneOf[T ~string](d *details, raw []byte, path string, allowed []T) (T, bool) {
	var s T
	if json.Unmarshal(raw, &s) == nil && slices.Contains(allowed, s) {
		return s, true
	}
	d.add(path, "must be one of %s", list(allowed))
	return "", false
}

func list[T ~string](allowed []T) string {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}

// present returns a field that exists and is not null.
func present(fields map[string]json.RawMessage, key string) (json.RawMessage, bool) {
	raw, ok := fields[key]
	return raw, ok && string(bytes.TrimSpace(raw)) != "null"
}

func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func ifClean[T any](limits []T, d *details) ([]T, []fault.Detail) {
	if len(d.list) > 0 {
		return nil, d.list
	}
	return limits, nil
}
