package replay

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/ledger"
)

// maxName bounds the names of limits.
const maxName = 255

// ParseLimit reads a limit: the body of a usage policy, or of a rate policy if rate is set,
// plus name (by default the given one) and replaces. Errors name fields below the limit.
func ParseLimit(raw json.RawMessage, name string, rate bool) (*Limit, []fault.Detail) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, []fault.Detail{{Message: "must be an object"}}
	}
	l := &Limit{Name: name}
	known := append([]string{"name", "replaces", "conditions", "group_by"}, ledger.UsageFields...)
	if rate {
		known = append(known[:4:4], ledger.RateFields...)
	}
	var bad []fault.Detail
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, key) {
			bad = append(bad, fault.Detail{Field: fault.Clip(key, maxName), Message: "is not known; use " + strings.Join(known, ", ")})
		}
	}
	for key, to := range map[string]*string{"name": &l.Name, "replaces": &l.Replaces} {
		if v, ok := fields[key]; ok && string(v) != "null" && (json.Unmarshal(v, to) != nil || *to == "" || len(*to) > maxName) {
			bad = append(bad, fault.Detail{Field: key, Message: "must be a string of 1 to 255 bytes"})
		}
	}
	wrong := ledger.CheckConditions(fields["conditions"])
	for _, d := range wrong {
		bad = append(bad, below("conditions", d))
	}
	more := ledger.CheckGroups(fields["group_by"])
	for _, d := range more {
		bad = append(bad, below("group_by", d))
	}
	if rate {
		r, d := ledger.InSimulation.RateLimitOf(fields, "")
		l.Rate, bad = &r, append(bad, d...)
	} else {
		u, d := ledger.InSimulation.UsageLimitOf(fields, "")
		l.Limit, bad = &u, append(bad, d...)
	}
	if len(wrong) == 0 && len(more) == 0 {
		_ = json.Unmarshal(orNone(fields["conditions"]), &l.Conditions) // cannot fail: they have been checked
		_ = json.Unmarshal(orNone(fields["group_by"]), &l.GroupBy)
		bad = append(bad, l.Validate()...)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return l, nil
}

func orNone(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// below puts the name of a list in front of an error's field.
func below(list string, d fault.Detail) fault.Detail {
	switch {
	case d.Field == "":
		d.Field = list
	case d.Field[0] == '[':
		d.Field = list + d.Field
	default:
		d.Field = list + "." + d.Field
	}
	return d
}
