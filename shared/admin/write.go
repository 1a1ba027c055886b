package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// maskedMember is the member of a stored form that holds the masked forms of
// its secrets: map[string]string, by field.
const maskedMember = "masked"

// slugTries is how often a made slug that is taken is replaced by another.
const slugTries = 4

func (col *Collection[T]) create(c *Call) (any, error) {
	var rec resource.Record
	var form *T
	var err error
	for range slugTries {
		err = c.Change(func(tx *resource.Tx) error {
			rec, form, err = col.draft(c)
			if err != nil {
				return err
			}
			return col.stageNew(c, tx, &rec, form)
		})
		if col.Slugs == nil || c.Body.Given("slug") || !slugTaken(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if col.Committed != nil {
		col.Committed(c, nil, &rec)
	}
	if col.Created != nil {
		return col.Created(c, &rec, form)
	}
	out := map[string]any{"id": rec.ID}
	if rec.Slug != "" {
		out["slug"] = rec.Slug
	}
	return out, nil
}

func slugTaken(err error) bool {
	var f *fault.Fault
	return errors.As(err, &f) && f.Code == fault.Conflict && f.Field == "slug"
}

// draft is the new record that the body describes.
func (col *Collection[T]) draft(c *Call) (resource.Record, *T, error) {
	rec := resource.Record{
		Scope: c.Scope, Kind: col.Kind, ID: resource.NewID(), Status: "active",
		CreatedBy: c.actor(), UpdatedBy: c.actor(),
	}
	c.About(rec.ID)
	var form T
	if col.New != nil {
		form = col.New(c)
	}
	next, err := col.apply(c, &rec, &form)
	if err != nil {
		return rec, nil, err
	}
	if rec.Slug == "" && col.Slugs != nil {
		rec.Slug = col.Slugs.Make(rec.Name)
	}
	return rec, next, nil
}

// actor is who is written down as the author of a change.
func (c *Call) actor() string {
	if c.Caller.UserID != "" {
		return c.Caller.UserID
	}
	return c.Caller.KeyID
}

func (col *Collection[T]) stageNew(c *Call, tx *resource.Tx, rec *resource.Record, form *T) error {
	if col.BeforeCreate != nil {
		if err := col.BeforeCreate(c, tx, rec, form); err != nil {
			return err
		}
	}
	if err := col.encode(rec, form); err != nil {
		return err
	}
	if err := tx.Create(rec); err != nil {
		return err
	}
	if col.KeepVersions {
		tx.FirstVersion(rec)
	}
	if col.AfterCreate != nil {
		return col.AfterCreate(c, tx, rec, form)
	}
	return nil
}

func (col *Collection[T]) encode(rec *resource.Record, form *T) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("admin: encode %s: %w", col.Kind, err)
	}
	return nil
}

func (col *Collection[T]) update(c *Call) (any, error) {
	var old, rec resource.Record
	var form *T
	err := c.Change(func(tx *resource.Tx) error {
		var was *T
		var err error
		if rec, was, err = col.FindIn(c, tx); err != nil {
			return err
		}
		old = rec
		rec.Fields = maps.Clone(rec.Fields)
		rec.UpdatedBy = c.actor()
		if form, err = col.apply(c, &rec, was); err != nil {
			return err
		}
		return col.stageUpdate(c, tx, &old, &rec, was, form)
	})
	if err != nil {
		return nil, err
	}
	if col.Committed != nil {
		col.Committed(c, &old, &rec)
	}
	if col.Updated != nil {
		return col.Updated(c, &rec, form)
	}
	return nil, nil
}

func (col *Collection[T]) stageUpdate(c *Call, tx *resource.Tx, old, rec *resource.Record, was, form *T) error {
	if col.BeforeUpdate != nil {
		if err := col.BeforeUpdate(c, tx, old, rec, was, form); err != nil {
			return err
		}
	}
	if err := col.encode(rec, form); err != nil {
		return err
	}
	if col.KeepVersions && col.newVersion(c, old, rec) {
		tx.NewVersion(rec)
	}
	if err := tx.Update(rec); err != nil {
		return err
	}
	if col.AfterUpdate != nil {
		return col.AfterUpdate(c, tx, old, rec, was, form)
	}
	return nil
}

func (col *Collection[T]) newVersion(c *Call, old, rec *resource.Record) bool {
	if col.Versioned != nil {
		return col.Versioned(c.Body)
	}
	return !bytes.Equal(old.Body, rec.Body)
}

func (col *Collection[T]) delete(c *Call) (any, error) {
	var rec resource.Record
	err := c.Change(func(tx *resource.Tx) error {
		var form *T
		var err error
		if rec, form, err = col.FindIn(c, tx); err != nil {
			return err
		}
		if err := tx.RefuseIfUsed(rec.Ref()); err != nil {
			return err
		}
		rec.UpdatedBy = c.actor()
		if col.BeforeDelete != nil {
			if err := col.BeforeDelete(c, tx, &rec, form); err != nil {
				return err
			}
		}
		if col.ArchiveOnDelete {
			return tx.Archive(&rec)
		}
		return tx.Delete(&rec)
	})
	if err == nil && col.Committed != nil {
		col.Committed(c, &rec, nil)
	}
	return nil, err
}

// apply puts the call's body into record and form, and gives the form that
// results: absent stays, null clears, a value replaces.
func (col *Collection[T]) apply(c *Call, rec *resource.Record, form *T) (*T, error) {
	stored, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("admin: encode %s: %w", col.Kind, err)
	}
	body := make(map[string]json.RawMessage)
	if err := json.Unmarshal(stored, &body); err != nil {
		return nil, fmt.Errorf("admin: the stored form of %s is no object: %w", col.Kind, err)
	}
	var p problems
	for i := range col.Fields {
		f := &col.Fields[i]
		if !c.Body.Has(f.Name) || f.Trigger {
			continue
		}
		switch {
		case f.Column:
			setColumn(c, rec, f)
		case f.Secret:
			if err := col.setSecret(c, rec, body, f); err != nil {
				return nil, err
			}
		default:
			col.setMember(c, rec, body, f, &p)
		}
	}
	next, bad := decodeForm[T](body)
	p.addAll("", bad)
	if next != nil && col.Check != nil {
		p.addAll("", col.Check(c, rec, next))
	}
	if f := fault.Invalids(p.list); f != nil {
		return nil, f
	}
	return next, nil
}

func setColumn(c *Call, rec *resource.Record, f *Field) {
	switch f.Name {
	case "name":
		rec.Name = c.Body.Text("name")
	case "slug":
		if s := c.Body.Text("slug"); s != "" {
			rec.Slug = s
		}
	case "status":
		if s := c.Body.Text("status"); s != "" {
			rec.Status = s
		}
	case "tags":
		rec.Tags = c.Body.TextMap("tags")
	}
}

// setSecret seals a secret and keeps its masked form beside the other fields.
func (col *Collection[T]) setSecret(c *Call, rec *resource.Record, body map[string]json.RawMessage, f *Field) error {
	masked := make(map[string]string)
	if raw, ok := body[maskedMember]; ok {
		_ = json.Unmarshal(raw, &masked)
	}
	var plain []byte
	delete(masked, f.Name)
	if c.Body.Given(f.Name) {
		plain = secretBytes(c.Body.Raw(f.Name))
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

func (col *Collection[T]) setMember(c *Call, rec *resource.Record, body map[string]json.RawMessage, f *Field, p *problems) {
	raw := c.Body.Raw(f.Name)
	if f.Convert != nil && !c.Body.Null(f.Name) {
		var bad []fault.Detail
		if raw, bad = f.Convert(raw); len(bad) > 0 {
			p.addAll(f.Name, bad)
			return
		}
	}
	stored, had := body[f.Name]
	if f.Fixed && rec.Rev > 0 {
		if !sameJSON(raw, stored, had) {
			p.add(f.Name, "cannot be changed")
		}
		return
	}
	switch {
	case c.Body.Null(f.Name):
		delete(body, f.Name)
	case f.Merge && had:
		body[f.Name] = mergeObject(stored, raw)
	default:
		body[f.Name] = raw
	}
}

func sameJSON(a, b json.RawMessage, had bool) bool {
	if !had {
		return string(a) == "null"
	}
	return reflect.DeepEqual(decodeAny(a), decodeAny(b))
}

// mergeObject changes the members of stored that patch names; null removes one.
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

// decodeForm reads the members of a stored form. Members that T refuses are
// named, all of them.
func decodeForm[T any](body map[string]json.RawMessage) (*T, []fault.Detail) {
	whole, err := json.Marshal(body)
	if err != nil {
		return nil, []fault.Detail{{Message: "the body cannot be stored"}}
	}
	form := new(T)
	if json.Unmarshal(whole, form) == nil {
		return form, nil
	}
	var out []fault.Detail
	for _, name := range sortedKeys(body) {
		one, err := json.Marshal(map[string]json.RawMessage{name: body[name]})
		if err != nil {
			continue
		}
		if err := json.Unmarshal(one, new(T)); err != nil {
			out = append(out, refusal(name, err)...)
		}
	}
	if len(out) == 0 {
		out = []fault.Detail{{Message: "the fields do not go together"}}
	}
	return nil, out
}

// refusal is what a type says about its member: its own faults, or where the
// JSON has another form.
func refusal(name string, err error) []fault.Detail {
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
