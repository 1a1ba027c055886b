package admin

import (
	"encoding/json"
	"maps"

	"gateway/shared/audit"
	"gateway/shared/resource"
)

// changesDetail is the detail of an audit record with the changes of an update:
// {"field":[before,after]}, secrets masked.
const changesDetail = "changes"

// maxChanges is the limit of that detail, in bytes; a longer one lists only the names of the
// fields.
const maxChanges = 4096

// NoteChanges adds what an update changed to the audit record of the call.
func NoteChanges(c *Call, diff map[string][2]any) {
	if len(diff) == 0 {
		return
	}
	raw, err := json.Marshal(diff)
	if err != nil || len(raw) > maxChanges {
		raw, _ = json.Marshal(sortedKeys(diff)) // texts
	}
	details := maps.Clone(c.details)
	if details == nil {
		details = make(map[string]string, 1)
	}
	details[changesDetail] = audit.MaskBody(raw)
	c.details = details
}

// changes compares a record before and after, field by field.
func changes(c *Call, fields []Field, old, rec *resource.Record) map[string][2]any {
	was, now := bodyOf(old), bodyOf(rec)
	out := map[string][2]any{}
	put := func(name string, before, after any) {
		a, errA := json.Marshal(before)
		b, errB := json.Marshal(after)
		if errA == nil && errB == nil && string(a) != string(b) {
			out[name] = [2]any{before, after}
		}
	}
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Trigger:
		case f.Secret:
			if c.Body.Has(f.Name) {
				out["masked_"+f.Name] = [2]any{maskOf(was, f.Name), maskOf(now, f.Name)}
			}
		case f.Column:
			put(f.Name, columnOf(old, f.Name), columnOf(rec, f.Name))
		default:
			put(f.Name, was[f.member()], now[f.member()])
		}
	}
	return out
}

func bodyOf(rec *resource.Record) map[string]json.RawMessage {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(rec.Body, &body) // no object: no members to compare
	return body
}

func columnOf(rec *resource.Record, name string) any {
	switch name {
	case "name":
		return rec.Name
	case "slug":
		return rec.Slug
	case "status":
		return rec.Status
	}
	return rec.Tags
}
