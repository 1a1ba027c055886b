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

// Find reads the record that the path names, with its form. Custom actions use it; the error is
// the family's response for inaccessible resources.
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
	col := f.col
	rec, err := sought{col.kind(c), col.param(), col.Versions != nil, col.UUIDOnly, col.ArchivedReachable, col.May}.find(c, get)
	if err != nil {
		return Item[T]{}, err
	}
	if rec == nil {
		return Item[T]{}, col.missing()
	}
	form, err := readForm[T](col.Kind, rec)
	return Item[T]{rec, form}, err
}

// sought says which record a path names.
type sought struct {
	kind               resource.Kind
	param              string
	versions, uuidOnly bool
	archived           bool // these are found, too
	may                func(c *Call, action string, row *resource.Row) bool
}

// find gives the record; nil: it is out of the caller's reach.
func (s sought) find(c *Call, get func(store.Scope, resource.Kind, string) (resource.Record, bool, error)) (*resource.Record, error) {
	id := c.Param(s.param)
	if s.versions {
		id, _ = reference(id)
	}
	c.About(id)
	if s.uuidOnly && !IsUUID(id) {
		return nil, nil
	}
	rec, ok, err := get(c.Scope, s.kind, id)
	if err != nil {
		return nil, err
	}
	row := rec.Row()
	if !ok || (rec.Archived() && !s.archived) || (s.may != nil && !s.may(c, c.action, &row)) {
		return nil, nil
	}
	c.About(rec.ID)
	return &rec, nil
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
