package upstream

import (
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Slugs are the slugs of one kind of server. They are unique in an organization, because
// clients call servers by slug.
type Slugs struct {
	Row  string // kind of the rows
	What string // name of the kind in messages
}

// Key returns the key of a slug's row, which contains the server's id and workspace as id and
// ws.
func (s Slugs) Key(org store.Scope, slug string) store.Key {
	return org.Organisation().Partition().Key(s.Row, slug)
}

// Claim stages the claim of a new server's slug.
func (s Slugs) Claim(tx *resource.Tx, rec *resource.Record) {
	row := store.Row{Key: s.Key(rec.Scope, rec.Slug), Item: store.Item{"id": rec.ID, "ws": rec.Scope.Workspace}}
	taken := fault.Newf(fault.Conflict, "slug", "the slug %q is already used by another %s of the organization; choose another", rec.Slug, s.What)
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}}, taken)
}

// Release stages the release of a deleted server's slug and references.
func (s Slugs) Release(tx *resource.Tx, rec *resource.Record, uses resource.Ref) error {
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: s.Key(rec.Scope, rec.Slug)}}, nil)
	return tx.RemoveUse(uses, rec.Ref())
}
