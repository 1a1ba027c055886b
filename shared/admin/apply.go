package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// apply puts in into record and form: absent fields stay, null clears, a value replaces.
// The form is a new one and shares nothing with OldForm.
func (w writer[T]) apply(c *Call, in Values, ch *Change[T]) error {
	var p problems
	body, err := applyFields(c, w.m.fields, in, ch.Rec, ch.Form, &p)
	if err != nil {
		return err
	}
	next, bad := formOf[T](body)
	p.addAll("", bad)
	if next != nil {
		ch.Form = next
		if w.col.Limits != nil {
			p.addAll("", w.col.Limits.prepare(in, ch, c.Now))
		}
		p.addAll("", w.check(c, ch))
	}
	if f := fault.Invalids(p.list); f != nil {
		return f
	}
	return nil
}

// applyFields merges the request's values into the fields of a form, and stores record-level
// fields in the record.
func applyFields(c *Call, fields []Field, in Values, rec *resource.Record, form any, p *problems) (map[string]json.RawMessage, error) {
	stored, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("admin: encode %s: %w", rec.Kind, err)
	}
	body := make(map[string]json.RawMessage)
	if err := json.Unmarshal(stored, &body); err != nil {
		return nil, fmt.Errorf("admin: the stored form of %s is not an object: %w", rec.Kind, err)
	}
	for i := range fields {
		f := &fields[i]
		if !in.Has(f.Name) || f.Trigger {
			continue
		}
		switch {
		case f.Column:
			setColumn(in, rec, f)
		case f.Secret:
			if err := setSecret(c, in, rec, body, f); err != nil {
				return nil, err
			}
		default:
			setMember(in, rec, body, f, p)
		}
	}
	return body, nil
}

// check returns the family's validation errors for the form.
func (w writer[T]) check(c *Call, ch *Change[T]) []fault.Detail {
	if w.col.Check != nil {
		return w.col.Check(c, ch)
	}
	if v, ok := any(ch.Form).(interface{ Validate() []fault.Detail }); ok {
		return v.Validate()
	}
	return nil
}

func setColumn(in Values, rec *resource.Record, f *Field) {
	switch f.Name {
	case "name":
		rec.Name = in.Text("name")
	case "slug":
		if s := in.Text("slug"); s != "" {
			rec.Slug = s
		}
	case "status":
		if s := in.Text("status"); s != "" {
			rec.Status = s
		}
	case "tags":
		rec.Tags = in.TextMap("tags")
	}
}

// setSecret seals a secret and stores its masked form beside the other fields.
func setSecret(c *Call, in Values, rec *resource.Record, body map[string]json.RawMessage, f *Field) error {
	masked := make(map[string]string)
	if raw, ok := body[maskedMember]; ok {
		_ = json.Unmarshal(raw, &masked)
	}
	var plain []byte
	delete(masked, f.Name)
	if in.HasValue(f.Name) {
		plain = secretBytes(in.Raw(f.Name))
		masked[f.Name] = audit.Mask(string(plain))
	}
	if err := rec.SetSecret(c.Context, c.Sealer, f.Name, plain); err != nil {
		return fault.Unavailable(err)
	}
	raw, err := json.Marshal(masked)
	if err != nil {
		return fmt.Errorf("admin: encode masks: %w", err)
	}
	body[maskedMember] = raw
	return nil
}

// secretBytes is the text of a JSON string, and the JSON of anything else.
func secretBytes(raw json.RawMessage) []byte {
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		return []byte(s)
	}
	return raw
}

func setMember(in Values, rec *resource.Record, body map[string]json.RawMessage, f *Field, p *problems) {
	raw, name := f.stored(in.Raw(f.Name)), f.member()
	if f.Convert != nil && !in.Null(f.Name) {
		var bad []fault.Detail
		if raw, bad = f.Convert(raw); len(bad) > 0 {
			p.addAll(f.Name, bad)
			return
		}
	}
	had, known := body[name]
	if f.Fixed && rec.Rev > 0 {
		if !sameJSON(raw, had, known) {
			p.add(f.Name, "cannot be changed")
		}
		return
	}
	switch {
	case in.Null(f.Name):
		delete(body, name)
	case f.Merge && known:
		body[name] = mergeObject(had, raw)
	default:
		body[name] = raw
	}
}

func sameJSON(a, b json.RawMessage, had bool) bool {
	if !had {
		return string(a) == "null"
	}
	return reflect.DeepEqual(decodeAny(a), decodeAny(b))
}

// mergeObject changes the fields of stored that patch names; null removes one.
func mergeObject(stored, patch json.RawMessage) json.RawMessage {
	have, give := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	if json.Unmarshal(stored, &have) != nil || json.Unmarshal(patch, &give) != nil {
		return patch
	}
	for k, v := range give {
		if string(v) == "null" {
			delete(have, k)
		} else {
			have[k] = v
		}
	}
	out, err := json.Marshal(have)
	if err != nil {
		return patch
	}
	return out
}

// formOf reads the fields of a stored form; nil where T rejects some.
func formOf[T any](body map[string]json.RawMessage) (*T, []fault.Detail) {
	form := new(T)
	bad, whole := decodeForm(body, form, func() any { return new(T) })
	if !whole {
		return nil, bad
	}
	return form, nil
}

// decodeForm decodes the fields of a stored form into form, and reports whether all of them
// could be decoded. It returns a detail for each field with a value of the wrong type. another
// returns one more value of the type.
func decodeForm(body map[string]json.RawMessage, form any, another func() any) (out []fault.Detail, whole bool) {
	text, err := json.Marshal(body)
	if err != nil {
		return []fault.Detail{{Message: "the body cannot be stored"}}, false
	}
	if json.Unmarshal(text, form) == nil {
		return nil, true
	}
	for _, name := range sortedKeys(body) {
		one, err := json.Marshal(map[string]json.RawMessage{name: body[name]})
		if err != nil {
			continue
		}
		if err := json.Unmarshal(one, another()); err != nil {
			out = append(out, rejection(name, err)...)
		}
	}
	if len(out) == 0 {
		out = []fault.Detail{{Message: "these fields cannot be combined"}}
	}
	return out, false
}

// rejection is what a type states about its field: its own faults, or where the
// JSON has another form.
func rejection(name string, err error) []fault.Detail {
	var f *fault.Fault
	if errors.As(err, &f) {
		if len(f.Details) > 0 {
			return f.Details
		}
		return []fault.Detail{{Field: orName(f.Field, name), Message: f.Message}}
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return []fault.Detail{{Field: orName(wrong.Field, name), Message: "does not have the expected form"}}
	}
	return []fault.Detail{{Field: name, Message: "does not have the expected form"}}
}

func orName(field, name string) string {
	if field == "" || !strings.HasPrefix(field, name) {
		return name
	}
	return field
}
