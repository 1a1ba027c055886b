package upstream

import (
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Slugs are those of a kind of servers, of which none is there twice in an
// organisation: clients call servers by them.
type Slugs struct {
	Row  string // kind of the rows that hold them
	What string // they are of, in prose
}

// Key is the row of a slug: the server's id and its workspace, as id and ws.
func (s Slugs) Key(org store.Scope, slug string) store.Key {
	return org.Organisation().Partition().Key(s.Row, slug)
}

// Claim stages that a new server takes its slug.
func (s Slugs) Claim(tx *resource.Tx, rec *resource.Record) {
	row := store.Row{Key: s.Key(rec.Scope, rec.Slug), Item: store.Item{"id": rec.ID, "ws": rec.Scope.Workspace}}
	taken := fault.Newf(fault.Conflict, "slug", "the slug %q is taken by another %s of the organisation; choose another", rec.Slug, s.What)
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}}, taken)
}

// Release stages that a server that goes gives its slug back, and what it uses.
func (s Slugs) Release(tx *resource.Tx, rec *resource.Record, uses resource.Ref) error {
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: s.Key(rec.Scope, rec.Slug)}}, nil)
	return tx.Unuse(uses, rec.Ref())
}
