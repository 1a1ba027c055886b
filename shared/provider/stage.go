package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// maxBase leaves space for the random end of a slug.
const maxBase = 240

// Bind makes the instance one of the integration, for calls by the workspace of sc.
func (in *Instance) Bind(of *resource.Record, i *Integration) {
	in.IntegrationID, in.IntegrationSlug = of.ID, of.Slug
	in.IntegrationOrg = of.Scope.Workspace == ""
	in.AIProviderID = i.AIProviderID
}

// Default is a provider that a workspace gets with its access to an integration.
type Default struct {
	Workspace string // id
	Slug      string // "": the integration's slug, with a random end if it is taken
	Field     string // the field that errors about the slug name
	Actor     string
}

// Stage makes the provider. The integration of must exist, or be written in the same
// change. A taken Slug is a 400 at Field.
func (d *Default) Stage(tx *resource.Tx, of *resource.Record, i *Integration) error {
	sc := store.Scope{Org: of.Scope.Org, Workspace: d.Workspace}
	slug := d.Slug
	if slug == "" {
		slug = of.Slug
	}
	_, taken, err := tx.Get(sc, KindProvider, slug)
	switch {
	case err != nil:
		return err
	case taken && d.Slug != "":
		return SlugConflict(d.Field, slug)
	case taken:
		slug = FreshSlug(slug)
	}
	rec := resource.Record{
		Scope: sc, Kind: KindProvider, ID: resource.NewID(), Slug: slug, Name: of.Name, Status: StatusActive,
		CreatedBy: d.Actor, UpdatedBy: d.Actor,
	}
	var in Instance
	in.Bind(of, i)
	if rec.Body, err = json.Marshal(in); err != nil {
		return fmt.Errorf("provider: encode: %w", err)
	}
	if err := tx.Create(&rec); err != nil {
		return err
	}
	return tx.Use(of.Ref(), rec.Ref())
}

// SlugConflict is the rejection of a default provider's slug.
func SlugConflict(field, slug string) error {
	return fault.Invalid(field, "the slug %q is already used by another provider of the workspace; choose another", slug)
}

// FreshSlug is a slug with a random end.
func FreshSlug(base string) string {
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	return base + "-" + resource.NewID()[:6]
}

// Retire archives a provider and frees its slug. It is rejected while something uses the
// provider.
func Retire(tx *resource.Tx, rec *resource.Record) error {
	if err := tx.RefuseIfUsed(rec.Ref()); err != nil {
		return err
	}
	in, err := DecodeInstance(*rec)
	if err != nil {
		return err
	}
	if err := tx.RemoveUse(in.integration(rec.Scope), rec.Ref()); err != nil {
		return err
	}
	return tx.ArchiveAndFreeSlug(rec)
}

// integration names the integration of an instance in sc.
func (in *Instance) integration(sc store.Scope) resource.Ref {
	return resource.Ref{Scope: in.IntegrationScope(sc), Kind: KindIntegration, ID: in.IntegrationID}
}

// Of reads the integration of an instance in sc; ok is false when it no longer exists or is
// not open to the workspace.
func (in *Instance) Of(ctx context.Context, r *resource.Resources, sc store.Scope) (rec resource.Record, i *Integration, ok bool, err error) {
	ref := in.integration(sc)
	rec, ok, err = r.Get(ctx, ref.Scope, ref.Kind, ref.ID)
	if err != nil || !ok {
		return rec, nil, false, err
	}
	i, err = DecodeIntegration(rec)
	if err != nil {
		return rec, nil, false, err
	}
	return rec, i, i.OpenTo(&rec, sc.Workspace), nil
}

// OpenTo reports whether a workspace may call the integration that rec holds.
func (i *Integration) OpenTo(rec *resource.Record, workspace string) bool {
	switch {
	case rec.Archived():
		return false
	case rec.Scope.Workspace != "":
		return rec.Scope.Workspace == workspace
	}
	return i.Access(workspace).Enabled
}

// maxDefaults bounds the default providers of a new workspace, because each takes a few
// rows of the one transaction.
const maxDefaults = 14

// OpenDefaults returns a new workspace a provider for each of the organization's
// integrations that is open to every workspace, but only as many as fit into the change
// beside taken rows. The workspace has access to the others as well, but their providers
// must be made by hand.
func OpenDefaults(tx *resource.Tx, r *resource.Resources, workspace *resource.Record, taken int) error {
	org := workspace.Scope.Organisation()
	rows, err := r.List(tx.Context(), org, KindIntegration)
	if err != nil {
		return err
	}
	for _, row := range rows {
		of, ok, err := tx.Get(org, KindIntegration, row.ID)
		if err != nil {
			return err
		}
		if !ok || of.Archived() || taken >= maxDefaults {
			continue
		}
		in, err := DecodeIntegration(of)
		if err != nil {
			return err
		}
		if !in.Global.Enabled {
			continue
		}
		taken++
		if err := (&Default{Workspace: workspace.ID, Actor: workspace.CreatedBy}).Stage(tx, &of, in); err != nil {
			return err
		}
	}
	return nil
}
