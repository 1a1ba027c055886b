package workspaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

// deleteRoute is DELETE /admin/workspaces/{id}: the workspace is archived, and
// its keys with it. Other dependants refuse it, or go with it when it is forced.
func (f *family) deleteRoute() admin.Route {
	return admin.Route{
		Method: "DELETE", Path: "/admin/workspaces/{id}", Aliases: []string{"/workspaces/{id}"},
		Name: "deleteWorkspace", Doc: "Delete a workspace. Its name confirms; force_delete takes what is in it along.",
		Scopes: f.workspaces.ScopesFor("delete"), Where: admin.InOrganisation, Role: admin.Admin,
		Action: audit.Delete, Resource: "workspaces", Answer: admin.Schema{"type": "object"}, Errors: []int{409},
		Body: []admin.Field{
			{Name: "name", Type: admin.String, Required: true, Max: 2 * tenant.MaxName, Doc: "Name of the workspace, with or without its icon."},
			{Name: "force_delete", Type: admin.Boolean, Doc: "Also delete what is in the workspace."},
		},
		Do: f.delete,
	}
}

func (f *family) delete(c *admin.Call) (any, error) {
	rec, w, err := f.workspaces.Find(c)
	if err != nil {
		return nil, err
	}
	if err := confirm(c, &rec, w); err != nil {
		return nil, err
	}
	force := c.Body.Bool("force_delete")
	if err := f.empty(c, &rec, force); err != nil {
		return nil, err
	}
	return nil, c.Change(func(tx *resource.Tx) error {
		rec, w, err := f.workspaces.FindIn(c, tx)
		if err != nil {
			return err
		}
		if err := confirm(c, &rec, w); err != nil {
			return err
		}
		if err := useConfig(tx, &rec, w.Defaults.UserAPIKeyConfig, &tenant.Workspace{}); err != nil {
			return err
		}
		return tx.Archive(&rec)
	})
}

func confirm(c *admin.Call, rec *resource.Record, w *tenant.Workspace) error {
	if w.IsDefault {
		return fault.New(fault.Conflict, "", "The default workspace cannot be deleted")
	}
	switch c.Body.Text("name") {
	case rec.Name, w.Icon + " " + rec.Name, w.Icon + rec.Name:
		return nil
	}
	return fault.Invalid("name", "must be the name of the workspace, to confirm that it is meant")
}

// errNotEmpty names what is in the way of a deletion.
func errNotEmpty(counts []string) error {
	return fault.Newf(fault.Conflict, "force_delete", "The workspace still has %s; delete them first, or send force_delete true", strings.Join(counts, ", "))
}

// empty archives what is in the workspace, unless something refuses. Keys go
// first, so that nobody adds anything with them. When it fails half way, the
// workspace is still there and the call can be repeated.
func (f *family) empty(c *admin.Call, rec *resource.Record, force bool) error {
	kinds := append([]resource.Kind{provider.KindProvider, route.KindConfig}, f.Dependants...)
	sc := inside(rec)
	if !force {
		if err := c.Resources.Change(c.Context, rec.Scope, func(tx *resource.Tx) error { return tx.RefuseIfUsed(rec.Ref()) }); err != nil {
			return err
		}
		var counts []string
		for _, k := range kinds {
			rows, err := c.Resources.List(c.Context, sc, k)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				counts = append(counts, fmt.Sprintf("%d of kind %s", len(rows), strings.ToLower(string(k))))
			}
		}
		if len(counts) > 0 {
			return errNotEmpty(counts)
		}
	}
	for _, k := range append([]resource.Kind{identity.KindKey}, append(kinds, provider.KindIntegration)...) {
		if err := archiveAll(c, rec, k); err != nil {
			return err
		}
	}
	return nil
}

// perChange is how many records one change archives, so that their rows (a
// key has up to nine) fit into a transaction.
const (
	perChange = 8
	maxRounds = 10
)

func archiveAll(c *admin.Call, ws *resource.Record, kind resource.Kind) error {
	sc := inside(ws)
	for range maxRounds { // again for what was added meanwhile
		rows, err := c.Resources.List(c.Context, sc, kind)
		if err != nil || len(rows) == 0 {
			return err
		}
		for len(rows) > 0 {
			part := rows[:min(perChange, len(rows))]
			rows = rows[len(part):]
			err := c.Resources.Change(c.Context, sc, func(tx *resource.Tx) error {
				for i := range part {
					rec, ok, err := tx.Get(sc, kind, part[i].ID)
					if err != nil {
						return err
					}
					if !ok || rec.Archived() {
						continue
					}
					if err := release(tx, &rec); err != nil {
						return err
					}
					if err := tx.Archive(&rec); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return fault.New(fault.Conflict, "", "The workspace fills faster than it is emptied; try again")
}

// release takes back the rows by which others find or keep a record.
func release(tx *resource.Tx, rec *resource.Record) error {
	switch rec.Kind {
	case identity.KindKey:
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return errors.Join(errStored(rec), err)
		}
		identity.Unstage(tx, rec, &k)
		for kind, at := range identity.DueTimes(&k) {
			if err := tx.Undue(kind, at, rec.Ref()); err != nil {
				return err
			}
		}
	case provider.KindProvider:
		in, err := provider.DecodeInstance(*rec)
		if err != nil {
			return err
		}
		of := resource.Ref{Scope: in.IntegrationScope(rec.Scope), Kind: provider.KindIntegration, ID: in.IntegrationID}
		return tx.Unuse(of, rec.Ref())
	}
	return nil
}

func errStored(rec *resource.Record) error {
	return fmt.Errorf("workspaces: stored %s %s", rec.Kind, rec.ID)
}
