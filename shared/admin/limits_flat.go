package admin

import (
	"encoding/json"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
)

// Limits that are resources themselves: the fields of the limit are top-level fields of the
// body.

// flatNames are those fields.
func (l *Limits[T]) flatNames() []string {
	if l.Rate != nil {
		return ledger.RateFields
	}
	return ledger.UsageFields
}

func (l *Limits[T]) flatFields() []Field {
	if l.Rate != nil {
		return flatFields(l.flatNames(), l.Place.RateSchema)
	}
	return flatFields(l.flatNames(), l.Place.UsageSchema)
}

// flatFields describes the fields; what they must be is the place's to say.
func flatFields(names []string, schema func() map[string]any) []Field {
	needed, _ := limitSchema(schema())["required"].([]string)
	var out []Field
	for _, name := range names {
		form := func() map[string]any {
			form, _ := limitSchema(schema())["properties"].(map[string]any)[name].(map[string]any)
			return form
		}
		out = append(out, Field{Name: name, Type: Any, FormOf: form, Trigger: true, Fixed: name == "type", Required: slices.Contains(needed, name)})
	}
	return out
}

// limitSchema finds the one object that a schema of limits describes.
func limitSchema(schema map[string]any) map[string]any {
	if _, ok := schema["properties"]; ok {
		return schema
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return limitSchema(items)
	}
	for _, one := range slices.Backward(anyList(schema["anyOf"])) {
		if m, ok := one.(map[string]any); ok {
			return limitSchema(m)
		}
	}
	return nil
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

func (l *Limits[T]) flatShown() []Field {
	out := l.flatFields()
	for i := range out {
		out[i].Trigger = false
	}
	return out
}

// flatStored are the fields of the limit that a form has.
func (l *Limits[T]) flatStored(form *T) map[string]json.RawMessage {
	var v any
	if l.Rate != nil {
		v = l.Rate(form)
	} else if one := *l.Budget(form); one != nil {
		v = one
	}
	members, err := membersOf(v)
	if err != nil || members == nil {
		return map[string]json.RawMessage{}
	}
	return members
}

func (l *Limits[T]) flatShow(form *T, o Members) {
	stored := l.flatStored(form)
	for _, name := range l.flatNames() {
		if raw, ok := stored[name]; ok {
			o[name] = raw
		}
	}
}

// flatSet replaces the fields of the form that in has.
func (l *Limits[T]) flatSet(in Values, ch *Change[T], now time.Time) []fault.Detail {
	var was map[string]json.RawMessage
	if ch.Old != nil {
		was = l.flatStored(ch.OldForm)
	}
	members, bad := flatMembers(l.flatNames(), in, was)
	if members == nil || len(bad) > 0 {
		return bad
	}
	if l.Rate != nil {
		limit, bad := l.Place.RateLimitOf(members, "")
		*l.Rate(ch.Form) = limit
		return bad
	}
	limit, bad := l.Place.UsageLimitOf(members, "")
	if len(bad) > 0 {
		return bad
	}
	limit.Prepare(*l.Budget(ch.OldForm), now)
	if bad := pastDates(&limit, l.budgets(ch.OldForm), "", now); len(bad) > 0 {
		return bad
	}
	*l.Budget(ch.Form) = &limit
	return nil
}

// flatMembers are those of a limit with what in says; was is nil for a new one. The
// fields are nil where nothing changes.
func flatMembers(names []string, in Values, was map[string]json.RawMessage) (map[string]json.RawMessage, []fault.Detail) {
	members := map[string]json.RawMessage{}
	if was != nil {
		if !slices.ContainsFunc(names, in.Has) {
			return nil, nil
		}
		members = was
		if kind, ok := was["type"]; ok && in.Has("type") && string(kind) != string(in.Raw("type")) {
			return nil, []fault.Detail{{Field: "type", Message: "cannot be changed"}}
		}
		if in.HasValue("periodic_reset") || in.HasValue("periodic_reset_days") { // a new cadence replaces the previous one
			for _, name := range []string{"periodic_reset", "periodic_reset_days", "next_usage_reset_at"} {
				delete(members, name)
			}
		}
	}
	for _, name := range names {
		if in.Null(name) {
			delete(members, name)
		} else if in.Has(name) {
			members[name] = in.Raw(name)
		}
	}
	return members, nil
}
