package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Fields of list rows.
const (
	FieldCollection = "collection_id" // of a prompt: the id of its collection
	FieldParent     = "parent_id"     // of a collection
	FieldDefault    = "is_default"    // "1": the default collection of its workspace
	FieldPartials   = "partials"      // "1": some version includes partials
	FieldProvider   = "provider"      // of a prompt: the slug of its saved provider
	FieldUpdated    = "updated"       // Unix milliseconds of the last change
)

// UniversalLabels are the labels that every organisation has.
var UniversalLabels = []string{"production", "staging", "development"}

// firstID returns an id that is the same in every process, so that a record created on first
// use is created only once.
func firstID(sc store.Scope, k resource.Kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("gateway:"+sc.Org+"#"+sc.Workspace+"#"+string(k)+"#"+name)).String()
}

// DefaultCollection gives the id of a workspace's default collection, and makes the
// collection if there is none.
func DefaultCollection(ctx context.Context, r *resource.Resources, sc store.Scope) (string, error) {
	id := firstID(sc, KindCollection, "default")
	rows, err := r.List(ctx, sc, KindCollection)
	if err != nil || slices.ContainsFunc(rows, func(row resource.Row) bool { return row.ID == id }) {
		return id, err
	}
	rec := resource.Record{
		Scope: sc, Kind: KindCollection, ID: id, Slug: "default-" + id[:6], Name: "Default", Status: "active",
		Fields: map[string]string{FieldDefault: "1"},
	}
	return id, makeFirst(ctx, r, rec, Collection{IsDefault: true})
}

// EnsureLabels makes those universal labels of an organisation that do not exist yet.
func EnsureLabels(ctx context.Context, r *resource.Resources, org string) error {
	sc := store.Scope{Org: org}
	rows, err := r.List(ctx, sc, KindLabel)
	if err != nil {
		return err
	}
	for _, name := range UniversalLabels {
		id := firstID(sc, KindLabel, name)
		if slices.ContainsFunc(rows, func(row resource.Row) bool { return row.ID == id }) {
			continue
		}
		rec := resource.Record{Scope: sc, Kind: KindLabel, ID: id, Slug: name, Name: name, Status: "active"}
		if err := makeFirst(ctx, r, rec, Label{Universal: true}); err != nil {
			return err
		}
	}
	return nil
}

// makeFirst makes a record unless another process was faster.
func makeFirst(ctx context.Context, r *resource.Resources, rec resource.Record, form any) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("prompt: encode %s: %w", rec.Kind, err)
	}
	err = r.Change(ctx, rec.Scope, func(tx *resource.Tx) error {
		one := rec
		return tx.Create(&one)
	})
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}
