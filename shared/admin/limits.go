package admin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// Limits are the budgets and rate limits of a resource. They are parsed as their place
// writes them, given their dates, reset, counted and shown. They bring the fields
// usage_limits, rate_limits and reset_usage, and last_reset_at in responses.
type Limits[T any] struct {
	Ledger *ledger.Ledger
	Place  ledger.LimitKind
	// Budgets returns the form's list of budgets, Budget its only one; one of the two is set.
	// Both are stored as usage_limits, rates as rate_limits.
	Budgets func(*T) *[]ledger.UsageLimit
	Budget  func(*T) **ledger.UsageLimit
	// Rates returns the form's rate limits; only Set needs it.
	Rates func(*T) *[]ledger.RateLimit
	// Reset returns the form's time of the last manual reset; nil if only the counters have it.
	Reset func(*T) **time.Time
	// Subject is what the limits count; nil without limits.
	Subject func(it Item[T]) *ledger.Subject
	// Status shows a resource with an exhausted budget as exhausted.
	Status bool
	// Flat is for resources that are a limit themselves, such as policies: the
	// fields of the budget, or of the rate limit at Rate, are those of the body.
	// Its type cannot be changed. Counters belong to what the policy groups by.
	Flat bool
	Rate func(*T) *ledger.RateLimit
}

// Names of the fields.
const (
	usageField = "usage_limits"
	rateField  = "rate_limits"
	resetField = "reset_usage"
	resetAt    = "last_reset_at"
)

// LimitFields are usage_limits and rate_limits of a place, for the bodies of
// routes that keep limits elsewhere than in a Collection.
func LimitFields(p ledger.LimitKind) []Field {
	shown := Field{Name: usageField, Doc: "Budget of dollars or tokens; reads also show current_usage and status. null clears.", Type: Any, FormOf: p.UsageSchema,
		Convert: func(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
			limits, bad := p.UsageLimits(raw, "")
			return storedLimits(limits, bad, !p.ManyBudgets())
		}}
	rates := Field{Name: rateField, Doc: "Requests or tokens per time unit. null clears.", Type: Any, FormOf: p.RateSchema,
		Convert: func(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
			limits, bad := p.RateLimits(raw, "")
			return storedLimits(limits, bad, false)
		}}
	rates.Absent = []any{}
	if p.ManyBudgets() {
		shown.Absent = []any{}
	}
	return []Field{shown, rates}
}

// storedLimits is the stored form of limits: a list, or the only one.
func storedLimits[L any](limits []L, bad []fault.Detail, one bool) (json.RawMessage, []fault.Detail) {
	if len(bad) > 0 {
		return nil, bad
	}
	var v any = limits
	if one {
		if v = nil; len(limits) > 0 {
			v = limits[0]
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, []fault.Detail{{Message: "cannot be stored"}}
	}
	return raw, nil
}

func (l *Limits[T]) fields() []Field {
	if l.Flat {
		return l.flatFields()
	}
	return append(LimitFields(l.Place),
		Field{Name: resetField, Doc: "true resets the usage of the budget. A number, as returned by reads, is ignored.", Type: Any, Form: Schema{"type": []string{"boolean", "integer", "null"}}, Check: checkReset, Trigger: true, UpdateOnly: true})
}

// checkReset accepts a Boolean, and the integer that reads show.
func checkReset(raw json.RawMessage) []fault.Detail {
	switch v := decodeAny(raw).(type) {
	case bool, nil:
		return nil
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return nil
		}
	}
	return []fault.Detail{{Message: "must be true or false"}}
}

// shown are the fields that decorate fills.
func (l *Limits[T]) shown() []Field {
	if l.Flat {
		return l.flatShown()
	}
	fields := LimitFields(l.Place)[:1]
	fields = append(fields, Field{Name: resetAt, Type: Timestamp, Doc: "When the usage was last reset."})
	if l.Reset != nil {
		fields = append(fields, Field{Name: resetField, Type: Integer, Doc: "1 when the usage was reset once."})
	}
	return fields
}

// budgets are those of a form; they can be changed in place.
func (l *Limits[T]) budgets(form *T) []*ledger.UsageLimit {
	var out []*ledger.UsageLimit
	if l.Budget != nil {
		if one := *l.Budget(form); one != nil {
			out = append(out, one)
		}
		return out
	}
	list := *l.Budgets(form)
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// prepare gives new budgets their dates and resets those that in says.
func (l *Limits[T]) prepare(in Values, ch *Change[T], now time.Time) []fault.Detail {
	if l.Flat {
		return l.flatSet(in, ch, now)
	}
	if in.HasValue(usageField) {
		PrepareBudgets(l.budgets(ch.Form), l.budgets(ch.OldForm), now)
		if bad := l.past(l.budgets(ch.Form), l.budgets(ch.OldForm), now); len(bad) > 0 {
			return bad
		}
	}
	if ch.Old != nil && in.Bool(resetField) {
		l.reset(ch.Form, now)
	}
	return nil
}

// past rejects dates before now; those that were already stored may remain.
func (l *Limits[T]) past(budgets, was []*ledger.UsageLimit, now time.Time) (bad []fault.Detail) {
	for i, u := range budgets {
		bad = append(bad, pastDates(u, was, l.at(i), now)...)
	}
	return bad
}

func pastDates(u *ledger.UsageLimit, was []*ledger.UsageLimit, path string, now time.Time) (bad []fault.Detail) {
	unchanged := func(same func(o *ledger.UsageLimit) bool) bool { return slices.ContainsFunc(was, same) }
	today := now.UTC().Truncate(24 * time.Hour)
	if t := u.NextReset; !t.IsZero() && t.Before(today) && !unchanged(func(o *ledger.UsageLimit) bool { return o.NextReset.Equal(t) }) {
		bad = append(bad, fault.Detail{Field: path + "next_usage_reset_at", Message: "must not be in the past"})
	}
	if t := u.ExtraUntil; u.Extra > 0 && !now.Before(t) && !unchanged(func(o *ledger.UsageLimit) bool { return o.ExtraUntil.Equal(t) }) {
		bad = append(bad, fault.Detail{Field: path + "temporary_raise.expires_at", Message: "must be in the future"})
	}
	return bad
}

func (l *Limits[T]) reset(form *T, now time.Time) {
	budgets := l.budgets(form)
	for _, u := range budgets {
		u.ResetUsage(now)
	}
	if l.Reset != nil && len(budgets) > 0 {
		at := now.UTC().Truncate(time.Millisecond)
		*l.Reset(form) = &at
	}
}

// Set copies the limits of in into a form that is not a separate resource, such as the access
// of one workspace. in has been checked with LimitFields; form shares no list of limits with
// the stored one. Dates that have passed are reported as faults of fields below in.
func (l *Limits[T]) Set(in Values, form *T, now time.Time) (bad []fault.Detail) {
	if in.Has(usageField) {
		was := l.budgets(form)
		*l.Budgets(form), _ = l.Place.UsageLimits(in.Raw(usageField), "")
		PrepareBudgets(l.budgets(form), was, now)
		bad = l.past(l.budgets(form), was, now)
	}
	if in.Has(rateField) {
		*l.Rates(form), _ = l.Place.RateLimits(in.Raw(rateField), "")
	}
	if in.Bool(resetField) {
		l.reset(form, now)
	}
	return bad
}

// PrepareBudgets completes budgets that replace was at now: each inherits the state of the
// previous budget of its type.
func PrepareBudgets(budgets, was []*ledger.UsageLimit, now time.Time) {
	for _, u := range budgets {
		var old *ledger.UsageLimit
		if n := slices.IndexFunc(was, func(o *ledger.UsageLimit) bool { return o.Type == u.Type }); n >= 0 {
			old = was[n]
		}
		u.Prepare(old, now)
	}
}

// committed brings the counters in line with the change. Limits hold without it, because
// the next request does the same.
func (l *Limits[T]) committed(c *Call, ch *Change[T]) {
	if l.Ledger == nil || l.Flat {
		return
	}
	if ch.Rec == nil {
		if s := l.Subject(Item[T]{ch.Old, ch.OldForm}); s != nil {
			_ = l.Ledger.Clear(c.Context, s)
		}
		return
	}
	if s := l.Subject(ch.Item()); s != nil && len(s.Budgets) > 0 && (c.Body.Has(usageField) || c.Body.Has(resetField)) {
		_ = l.Ledger.Apply(c.Context, s)
	}
}

// Decorate shows the usage of each budget, with one read for all.
func (l *Limits[T]) Decorate(c *Call, items []Item[T], objects []Members) error {
	if l.Flat {
		for i, it := range items {
			l.flatShow(it.Form, objects[i])
		}
		return nil
	}
	var subjects []*ledger.Subject
	var at []int
	for i, it := range items {
		if l.Reset != nil {
			if t := *l.Reset(it.Form); t != nil {
				objects[i][resetAt] = FormatTime(*t)
				if _, present := objects[i][resetField]; present {
					objects[i][resetField] = 1
				}
			}
		}
		if s := l.Subject(it); s != nil && len(s.Budgets) > 0 {
			subjects, at = append(subjects, s), append(at, i)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	states, err := l.Ledger.States(c.Context, subjects)
	if err != nil {
		return err
	}
	for n, i := range at {
		l.show(objects[i], states[n])
	}
	return nil
}

func (l *Limits[T]) show(o Members, states []ledger.BudgetState) {
	last, exhausted := LastReset(states)
	o[usageField] = states
	if l.Budget != nil {
		o[usageField] = states[0]
	}
	if !last.IsZero() {
		o[resetAt] = FormatTime(last)
	}
	if l.Status && exhausted && o["status"] == "active" {
		o["status"] = ledger.Exhausted
	}
}

// LastReset is when a budget of several was last reset, zero for never, and
// whether one of them is exhausted.
func LastReset(states []ledger.BudgetState) (last time.Time, exhausted bool) {
	for _, s := range states {
		if s.LastResetAt.After(last) {
			last = s.LastResetAt
		}
		exhausted = exhausted || s.Status == ledger.Exhausted
	}
	return last, exhausted
}

// fallbacks rejects budgets that reroute requests to a saved provider that the workspace does
// not have. Models are not checked, since new ones appear every week. References that were
// stored before may remain, and a provider may name itself. Budgets above workspaces are not
// checked: their workspaces may get the provider later.
func (l *Limits[T]) fallbacks(tx *resource.Tx, ch *Change[T]) error {
	if ch.Rec.Scope.Workspace == "" || l.Budget == nil && l.Budgets == nil {
		return nil
	}
	was := l.budgets(ch.OldForm)
	for i, u := range l.budgets(ch.Form) {
		if u.FallbackModel == "" || slices.ContainsFunc(was, func(o *ledger.UsageLimit) bool { return o.FallbackModel == u.FallbackModel }) {
			continue
		}
		slug, _, _ := strings.Cut(strings.TrimPrefix(u.FallbackModel, "@"), "/")
		if ch.Rec.Kind == provider.KindProvider && slug == ch.Rec.Slug {
			continue
		}
		rec, ok, err := tx.Get(ch.Rec.Scope, provider.KindProvider, slug)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			return fault.Invalids([]fault.Detail{{Field: l.at(i) + "fallback_model", Message: "must name a saved provider of this workspace; it must be @provider/model"}})
		}
	}
	return nil
}

// at returns the path prefix of the fields of budget i in a body.
func (l *Limits[T]) at(i int) string {
	switch {
	case l.Flat:
		return ""
	case l.Place.ManyBudgets():
		return usageField + "[" + strconv.Itoa(i) + "]."
	}
	return usageField + "."
}
