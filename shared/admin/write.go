package admin

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// writer makes, changes and deletes the records of a collection.
type writer[T any] struct {
	col *Collection[T]
	m   *machine[T]
}

// slugTries is how often a made slug that is taken is replaced by another.
const slugTries = 4

func (w writer[T]) create(c *Call) (any, error) {
	var ch Change[T]
	var err error
	for range slugTries {
		err = c.Change(func(tx *resource.Tx) error {
			if w.col.Parent != nil {
				if err := tx.Require(c.parent.Ref()); err != nil {
					return err
				}
			}
			ch, err = w.stageNew(c, tx, c.Body, "")
			return err
		})
		if w.col.Slugs == nil || c.Body.HasValue("slug") || !slugTaken(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	w.committed(c, &ch)
	return w.m.shower.reply(c, w.col.Created, ch.Item(), w.m.shape.those("id", "slug")...)
}

// those are the names that the shape has.
func (s *shape) those(names ...string) []string {
	var out []string
	for _, name := range names {
		if s.has(name) {
			out = append(out, name)
		}
	}
	return out
}

func (w writer[T]) committed(c *Call, ch *Change[T]) {
	if resource.IsDryRun(c.Context) {
		return
	}
	if w.col.Limits != nil {
		w.col.Limits.committed(c, ch)
	}
	if w.col.Committed != nil {
		w.col.Committed(c, ch)
	}
}

func slugTaken(err error) bool {
	var f *fault.Fault
	return errors.As(err, &f) && f.Code == fault.Conflict && f.Field == "slug"
}

// stageNew stages the new record that in describes. id is its id; "": a new one.
func (w writer[T]) stageNew(c *Call, tx *resource.Tx, in Values, id string) (Change[T], error) {
	col := w.col
	rec := newRecord(c, col.kind(c), id)
	ch := Change[T]{OldForm: new(T), Rec: rec, Form: new(T)}
	if col.New != nil {
		*ch.Form = col.New(c)
	}
	if err := w.apply(c, in, &ch); err != nil {
		return ch, err
	}
	if rec.Slug == "" && col.Slugs != nil {
		rec.Slug = col.Slugs.Make(rec.Name)
	}
	if err := w.before(c, tx, &ch); err != nil {
		return ch, err
	}
	if err := tx.Create(rec); err != nil {
		return ch, err
	}
	if col.Versions != nil {
		tx.FirstVersion(rec)
	}
	return ch, w.after(c, tx, &ch)
}

// newRecord is a record without content. id is its id; "": a new one.
func newRecord(c *Call, kind resource.Kind, id string) *resource.Record {
	rec := &resource.Record{Scope: c.Scope, Kind: kind, ID: id, Status: "active", CreatedBy: c.Actor(), UpdatedBy: c.Actor()}
	if id == "" {
		rec.ID = resource.NewID()
		c.SetResource(rec.ID)
	}
	return rec
}

// before runs the hooks that come first and writes the form into the record.
func (w writer[T]) before(c *Call, tx *resource.Tx, ch *Change[T]) error {
	if w.col.Before != nil {
		if err := w.col.Before(c, tx, ch); err != nil {
			return err
		}
	}
	if w.col.Limits != nil {
		if err := w.col.Limits.fallbacks(tx, ch); err != nil {
			return err
		}
	}
	if err := writeForm(w.col.Kind, ch.Rec, ch.Form); err != nil {
		return err
	}
	setListed(ch.Rec, w.m.fields)
	return nil
}

func (w writer[T]) after(c *Call, tx *resource.Tx, ch *Change[T]) error {
	if w.col.After == nil {
		return nil
	}
	return w.col.After(c, tx, ch)
}

// setListed copies what lists filter by into the row of the list.
func setListed(rec *resource.Record, fields []Field) {
	var body map[string]any
	for i := range fields {
		f := &fields[i]
		if !f.Listed {
			continue
		}
		if body == nil && json.Unmarshal(rec.Body, &body) != nil {
			return
		}
		if rec.Fields == nil {
			rec.Fields = make(map[string]string)
		}
		if v := textOfMember(body[f.member()]); v != "" {
			rec.Fields[f.Name] = v
		} else {
			delete(rec.Fields, f.Name)
		}
	}
}

func (w writer[T]) update(c *Call) (any, error) {
	var ch Change[T]
	err := c.Change(func(tx *resource.Tx) error {
		it, err := w.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		past := w.m.past
		if past != nil && past.drafts(c) {
			ch, err = past.stageDraft(c, tx, it)
		} else if ch, err = w.stageUpdate(c, tx, c.Body, it); err == nil && past != nil {
			err = past.rewrite(c, tx, ch.Item())
		}
		if err != nil {
			return err
		}
		NoteChanges(c, changes(c, w.m.fields, ch.Old, ch.Rec))
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.committed(c, &ch)
	if ch.Draft != nil && w.col.Versions.drafted() != nil {
		form, err := readForm[T](w.col.Kind, ch.Draft)
		if err != nil {
			return nil, err
		}
		return w.m.shower.reply(c, w.col.Versions.drafted(), Item[T]{ch.Draft, form})
	}
	return w.m.shower.reply(c, w.col.Updated, ch.Item())
}

// stageUpdate stages what in changes of a record that was read.
func (w writer[T]) stageUpdate(c *Call, tx *resource.Tx, in Values, it Item[T]) (Change[T], error) {
	old, rec := *it.Record, it.Record
	rec.Fields = maps.Clone(rec.Fields)
	rec.UpdatedBy = c.Actor()
	ch := Change[T]{Old: &old, OldForm: it.Form, Rec: rec, Form: it.Form}
	if err := w.apply(c, in, &ch); err != nil {
		return ch, err
	}
	if err := w.before(c, tx, &ch); err != nil {
		return ch, err
	}
	if err := checkAddresses(w.m.fields, in, &old, rec); err != nil {
		return ch, err
	}
	if w.m.past != nil && w.m.past.moves(in, &ch) {
		tx.NewVersion(rec)
	}
	if err := tx.Update(rec); err != nil {
		return ch, err
	}
	return ch, w.after(c, tx, &ch)
}

func (w writer[T]) delete(c *Call) (any, error) {
	if w.col.children != nil {
		it, err := w.col.Find(c)
		if err != nil {
			return nil, err
		}
		if err := emptyAll(c, it.Ref(), w.col.children); err != nil {
			return nil, err
		}
	}
	var ch Change[T]
	err := c.Change(func(tx *resource.Tx) error {
		it, err := w.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		if err := tx.RefuseIfUsed(it.Ref()); err != nil {
			return err
		}
		ch = Change[T]{Old: it.Record, OldForm: it.Form}
		it.UpdatedBy = c.Actor()
		if w.col.Retire != nil {
			if err := w.col.Retire(c, tx, it); err != nil {
				return err
			}
		}
		if w.col.ArchiveOnDelete {
			return tx.Archive(it.Record)
		}
		return tx.Delete(it.Record)
	})
	if err == nil {
		w.committed(c, &ch)
	}
	return nil, err
}

// emptyAll deletes the records below a record, unless the record is in use.
func emptyAll(c *Call, of resource.Ref, kinds []resource.Kind) error {
	users, err := c.Resources.Users(c.Context, of)
	if err == nil {
		err = resource.InUse(of, users) // before anything below it goes
	}
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := Empty(c, of, kind); err != nil {
			return err
		}
	}
	return nil
}

// sameBody reports whether a change leaves the stored form as it is.
func sameBody[T any](ch *Change[T]) bool {
	return ch.Old != nil && bytes.Equal(ch.Old.Body, ch.Rec.Body)
}

// SlugPattern is what slugs that people choose must match.
var SlugPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Slugs is how a family makes slugs from names.
type Slugs struct {
	Prefix string // such as pc-
	Max    int    // characters of the slugified name; default 6
	Plain  bool   // no random end: the slug is the slugified name
}

// Make gives a new slug: prefix, slugified name, six random hex digits.
func (s Slugs) Make(name string) string {
	limit := s.Max
	if limit == 0 {
		limit = 6
	}
	base := slugify(name)
	if len(base) > limit {
		base = base[:limit]
	}
	base = strings.Trim(base, "-")
	if s.Plain && base != "" {
		return s.Prefix + base
	}
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	if base == "" {
		return s.Prefix + hex.EncodeToString(b[:])
	}
	return s.Prefix + base + "-" + hex.EncodeToString(b[:])
}

// slugify retains ASCII letters and digits and joins the rest with single hyphens.
func slugify(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// NameField, SlugField and TagsField are the columns that most resources have.
func NameField(most int64) Field {
	return Field{Name: "name", Type: String, Required: true, Min: 1, Max: most, Column: true}
}

// SlugField is a slug that the creator may choose.
func SlugField(most int64) Field {
	return Field{Name: "slug", Doc: "Default: generated from the name.", Type: String, Min: 1, Max: most, Pattern: SlugPattern, Column: true, CreateOnly: true}
}

// TagsField are the tags.
func TagsField() Field {
	return Field{Name: "tags", Type: Map, Of: &Field{Type: String, Max: maxTagValue}, Max: maxTags, Column: true}
}

// Bounds of tags.
const (
	maxTags     = 50
	maxTagValue = 255
)
