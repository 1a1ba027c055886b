package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// rowsPerChange is how many rows of one transaction are the caller's: the rest
// is for counts, the generation and the audit record.
const rowsPerChange = 90

// Rounds makes changes with more rows than fit one transaction. It runs f in successive
// transactions while f returns more; the last one includes the audit record of the call. Each
// run of f reads what remains and stages a part of it; the last run stages the rows that make
// the change effective.
func Rounds(c *Call, f func(tx *resource.Tx) (more bool, err error)) error {
	first := !c.recorded
	for range maxRounds {
		var more bool
		err := c.Resources.Change(c.Context, c.Organisation(), func(tx *resource.Tx) error {
			var err error
			if more, err = f(tx); err == nil {
				c.track(tx)
			}
			if err != nil || more || !first || !c.Route.changes() || c.Route.Unrecorded {
				return err
			}
			return audit.Append(tx, c.entry(c.Route.status()))
		})
		if err != nil {
			return err
		}
		if !more {
			c.recorded = c.recorded || first
			return nil
		}
		if resource.IsDryRun(c.Context) { // it would find the same again
			c.partial = true
			return nil
		}
	}
	return fault.New(fault.Conflict, "", "The collection changed during the update; try again")
}

// InChunks changes many resources in as many transactions as they need: stage gets consecutive
// parts, each entry of at most rows rows. The last transaction includes the audit record.
//
// If one fails, earlier transactions remain and the error states how many entries are saved.
// stage must therefore be idempotent: repeating the call completes it.
func InChunks[E any](c *Call, all []E, rows int, stage func(tx *resource.Tx, part []E) error) error {
	size := max(1, rowsPerChange/max(rows, 1))
	for done := 0; ; done += size {
		part := all[min(done, len(all)):min(done+size, len(all))]
		last := done+size >= len(all)
		change := func(tx *resource.Tx) error { return stage(tx, part) }
		var err error
		if last {
			err = c.Change(change)
		} else {
			err = c.Resources.Change(c.Context, c.Organisation(), change)
		}
		if err != nil {
			return partly(err, done, len(all))
		}
		if last {
			return nil
		}
	}
}

// partly adds the number of saved entries to an error.
func partly(err error, done, all int) error {
	if done == 0 {
		return err
	}
	f := *fault.From(err)
	f.Message = fmt.Sprintf("%s (the first %d of %d entries are saved: send the call again to save the others)", f.Message, done, all)
	return &f
}

// maxRounds bounds how often something is emptied that fills up meanwhile.
const maxRounds = 10_000

// Drain runs f over all live records of a kind, each of at most rows rows, in as
// many changes as they need, until none is left: f deletes or archives. When it
// fails half way it can be repeated.
func Drain(c *Call, sc store.Scope, kind resource.Kind, rows int, f func(tx *resource.Tx, rec *resource.Record) error) error {
	size := max(1, rowsPerChange/max(rows, 1))
	for range maxRounds {
		left, err := c.Resources.List(c.Context, sc, kind)
		if err != nil || len(left) == 0 {
			return err
		}
		part := left[:min(size, len(left))]
		if resource.IsDryRun(c.Context) {
			part = left // nothing is deleted, so that there are no further rounds
		}
		err = c.Resources.Change(c.Context, sc, func(tx *resource.Tx) error {
			for i := range part {
				rec, ok, err := tx.Get(sc, kind, part[i].ID)
				if err != nil {
					return err
				}
				if !ok || rec.Archived() {
					continue
				}
				if err := f(tx, &rec); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || resource.IsDryRun(c.Context) {
			return err
		}
	}
	return fault.New(fault.Conflict, "", "New items were added while deleting; try again")
}

// AddReference stores a reference to another resource of a scope, which prevents its deletion. was and
// now are ids or slugs, "" for none. It returns the record of now, and an error if that is
// archived or missing.
func AddReference(tx *resource.Tx, by resource.Ref, in store.Scope, kind resource.Kind, field, was, now string) (resource.Record, error) {
	if was != "" && was != now {
		old, ok, err := tx.Get(in, kind, was)
		if err != nil {
			return old, err
		}
		if ok {
			if err := tx.RemoveUse(old.Ref(), by); err != nil {
				return old, err
			}
		}
	}
	if now == "" {
		return resource.Record{}, nil
	}
	rec, ok, err := tx.Get(in, kind, now)
	switch {
	case err != nil:
		return rec, err
	case !ok || rec.Archived():
		return rec, fault.Invalid(field, "must name an existing %s of the workspace", title(strings.ToLower(string(kind))))
	case was == now:
		return rec, nil
	}
	return rec, tx.Use(rec.Ref(), by)
}

// Amend changes the stored form of a live record of another family within a
// change; ok is false when it is not there.
func Amend[T any](tx *resource.Tx, sc store.Scope, kind resource.Kind, id string, f func(form *T)) (ok bool, err error) {
	rec, ok, err := tx.Get(sc, kind, id)
	if err != nil || !ok || rec.Archived() {
		return false, err
	}
	form := new(T)
	if len(rec.Body) > 0 {
		if err := json.Unmarshal(rec.Body, form); err != nil {
			return false, fmt.Errorf("admin: stored %s %s: %w", kind, rec.ID, err)
		}
	}
	f(form)
	body, err := json.Marshal(form)
	if err != nil || bytes.Equal(body, rec.Body) {
		return true, err
	}
	rec.Body = body
	return true, tx.Update(&rec)
}

// Exists reports whether a live record is in one of the scopes, by id or slug.
func Exists(tx *resource.Tx, kind resource.Kind, name string, in ...store.Scope) (bool, error) {
	for _, sc := range in {
		if rec, ok, err := tx.Get(sc, kind, name); err != nil || ok && !rec.Archived() {
			return ok, err
		}
	}
	return false, nil
}

// BulkWrite is a route that writes many resources of a collection at once: those that
// exist are changed, the others made.
type BulkWrite struct {
	Method, Path string // default PUT, the collection's path
	Aliases      []string
	Name, Doc    string
	Field        string  // member of the body that has the entries: users
	More         []Field // fields of the body beside it
	Key          string  // member of an entry that is the id: user_id
	Reference    string  // the collection that Key names, as of a Field
	// ID gives the id where it is not the field Key alone.
	ID       func(entry Values) string
	Max      int64 // entries; default 1000
	Rows     int   // rows that one entry takes at most; default 4
	Response Schema
	Reply    any // response body; default {}
	// Finish runs in the last change, for the fields beside the entries.
	Finish func(c *Call, tx *resource.Tx) error
}

// BulkRoute makes the route. Entries have the fields of the collection and Key.
func (col *Collection[T]) BulkRoute(m BulkWrite) Route {
	made, err := col.compile()
	if err != nil {
		return Route{Method: "PUT", Path: col.Path, mistake: err}
	}
	key := Field{Name: m.Key, Type: String, Reference: m.Reference, Min: 1, Max: 255, Required: true}
	entry := Field{Type: Object, Fields: append([]Field{key}, slices.DeleteFunc(slices.Clone(made.fields), func(f Field) bool { return f.Name == m.Key })...)}
	if m.Method == "" {
		m.Method = "PUT"
	}
	if m.Path == "" {
		m.Path = col.Path
	}
	if m.Max == 0 {
		m.Max = 1000
	}
	if m.Rows == 0 {
		m.Rows = 4
	}
	if m.Response == nil {
		m.Response = emptySchema
	}
	least := int64(1)
	if len(m.More) > 0 {
		least = 0
	}
	return col.finish("update", Route{
		Method: m.Method, Path: m.Path, Aliases: m.Aliases, Name: m.Name, Doc: m.Doc, Role: col.WriteRole, Action: audit.Manage, Response: m.Response, Errors: []int{409},
		Body: append([]Field{{Name: m.Field, Type: Array, Required: len(m.More) == 0, Min: least, Max: m.Max, Of: &entry}}, m.More...),
		Do:   func(c *Call) (any, error) { return m.Reply, made.writer.many(c, &m) },
	})
}

// many writes the entries of the call's body.
func (w writer[T]) many(c *Call, m *BulkWrite) error {
	entries, err := entriesOf(c, m)
	if err != nil {
		return err
	}
	changes := make([]Change[T], len(entries))
	err = InChunks(c, entries, m.Rows, func(tx *resource.Tx, part []entryOf) error {
		if w.col.Parent != nil {
			if err := tx.Require(c.parent.Ref()); err != nil {
				return err
			}
		}
		for i := range part {
			var err error
			if changes[part[i].index], err = w.upsert(c, tx, &part[i]); err != nil {
				return below(fmt.Sprintf("%s[%d]", m.Field, part[i].index), err)
			}
		}
		if m.Finish != nil && (len(part) == 0 || part[len(part)-1].index == len(entries)-1) {
			return m.Finish(c, tx)
		}
		return nil
	})
	if err == nil && w.col.Committed != nil {
		for i := range changes {
			w.col.Committed(c, &changes[i])
		}
	}
	return err
}

// entryOf is an entry of a bulk body.
type entryOf struct {
	id     string
	index  int
	values Values
}

func entriesOf(c *Call, m *BulkWrite) ([]entryOf, error) {
	var sent []map[string]json.RawMessage
	if err := c.Body.Decode(m.Field, &sent); err != nil {
		return nil, err
	}
	out := make([]entryOf, len(sent))
	seen := make(map[string]bool, len(sent))
	var p problems
	for n, members := range sent {
		v := Values{maps.Clone(members)}
		id := v.Text(m.Key)
		if m.ID != nil {
			id = m.ID(v)
		}
		if seen[id] {
			p.add(fmt.Sprintf("%s[%d].%s", m.Field, n, m.Key), "must not be listed twice")
		}
		seen[id] = true
		out[n] = entryOf{id, n, v}
	}
	if f := fault.Invalids(p.list); f != nil {
		return nil, f
	}
	return out, nil
}

// upsert stages one entry.
func (w writer[T]) upsert(c *Call, tx *resource.Tx, e *entryOf) (Change[T], error) {
	rec, ok, err := tx.Get(c.Scope, w.col.kind(c), e.id)
	if err != nil {
		return Change[T]{}, err
	}
	if ok {
		form, err := readForm[T](w.col.Kind, &rec)
		if err != nil {
			return Change[T]{}, err
		}
		return w.stageUpdate(c, tx, e.values, Item[T]{&rec, form})
	}
	return w.stageNew(c, tx, e.values, e.id)
}

// below puts the fields of a rejection below an entry.
func below(at string, err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) || (f.Field == "" && len(f.Details) == 0) {
		return err
	}
	out := *f
	out.Details = slices.Clone(f.Details)
	for i := range out.Details {
		out.Details[i].Field = join(at, out.Details[i].Field)
	}
	out.Field = join(at, f.Field)
	return &out
}
