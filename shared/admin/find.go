package admin

import (
	"regexp"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// finder finds the record that a path names.
type finder[T any] struct{ col *Collection[T] }

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// IsUUID reports whether s has the form of a UUID.
func IsUUID(s string) bool { return uuidForm.MatchString(s) }

// Find reads the record that the path names, with its form. Custom actions use
// it; the error is the family's answer for what is out of reach.
func (col *Collection[T]) Find(c *Call) (Item[T], error) {
	return finder[T]{col}.find(c, func(sc store.Scope, k resource.Kind, id string) (resource.Record, bool, error) {
		return c.Resources.Get(c.Context, sc, k, id)
	})
}

// FindIn is Find within a change.
func (col *Collection[T]) FindIn(c *Call, tx *resource.Tx) (Item[T], error) {
	return finder[T]{col}.find(c, tx.Get)
}

func (f finder[T]) find(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (Item[T], error) {
	col, id := f.col, c.Param(f.col.param())
	if col.Versions != nil {
		id, _ = reference(id)
	}
	c.About(id)
	if col.UUIDOnly && !IsUUID(id) {
		return Item[T]{}, col.missing()
	}
	rec, ok, err := get(c.Scope, col.kind(c), id)
	if err != nil {
		return Item[T]{}, err
	}
	row := rec.Row()
	if !ok || (rec.Archived() && !col.ArchivedReachable) || (col.May != nil && !col.May(c, c.action, &row)) {
		return Item[T]{}, col.missing()
	}
	c.About(rec.ID)
	form, err := col.decode(&rec)
	return Item[T]{&rec, form}, err
}

func (f finder[T]) read(c *Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	if past := f.col.made.past; past != nil {
		if it, err = past.at(c, it); err != nil {
			return nil, err
		}
	}
	o, err := f.col.Show(c, it)
	if err != nil {
		return nil, err
	}
	return wrapped(f.col.Wrapped, o), nil
}
