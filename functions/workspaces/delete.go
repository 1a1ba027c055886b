package workspaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/app/notices"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/ledger"
	"gateway/shared/observe"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage/export/exportrow"
)

// deleteRoute is DELETE /admin/workspaces/{id}. It archives the workspace and its keys. If
// there are other dependants, it rejects, or archives them too when it is forced.
func (f *family) deleteRoute() admin.Route {
	return admin.Route{
		Method: "DELETE", Path: "/admin/workspaces/{id}", Aliases: []string{"/workspaces/{id}"},
		Name: "deleteWorkspace", Doc: "Delete a workspace. Requires its name as confirmation; force_delete also deletes its contents.",
		Scopes: f.workspaces.ScopesFor("delete"), Level: admin.InOrganisation, Role: admin.Admin,
		Action: audit.Delete, Resource: "workspaces", Response: admin.EmptyResponse, Errors: []int{409},
		Body: []admin.Field{
			{Name: "name", Type: admin.String, Required: true, Max: 2 * tenant.MaxName, Doc: "Name of the workspace, with or without its icon."},
			{Name: "force_delete", Type: admin.Boolean, Doc: "Also delete the contents of the workspace."},
		},
		Do: f.delete,
	}
}

func (f *family) delete(c *admin.Call) (any, error) {
	it, err := f.workspaces.Find(c)
	if err != nil {
		return nil, err
	}
	if err := confirm(c, it); err != nil {
		return nil, err
	}
	if err := f.empty(c, it.Record, c.Body.Bool("force_delete")); err != nil {
		return nil, err
	}
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.workspaces.FindIn(c, tx)
		if err != nil {
			return err
		}
		if err := confirm(c, it); err != nil {
			return err
		}
		if err := useConfig(tx, it.Record, it.Form.Defaults.UserAPIKeyConfig, &tenant.Workspace{}); err != nil {
			return err
		}
		return tx.Archive(it.Record)
	})
}

func confirm(c *admin.Call, it item) error {
	if it.Form.IsDefault {
		return fault.New(fault.Conflict, "", "The default workspace cannot be deleted")
	}
	switch c.Body.Text("name") {
	case it.Name, it.Form.Icon + " " + it.Name, it.Form.Icon + it.Name:
		return nil
	}
	return fault.Invalid("name", "must be the name of the workspace, as a confirmation")
}

// errNotEmpty names the resources that prevent a deletion.
func errNotEmpty(counts []string) error {
	return fault.Newf(fault.Conflict, "force_delete", "The workspace still has %s; delete them first, or send force_delete true", strings.Join(counts, ", "))
}

// empty archives the contents of the workspace, unless something prevents it. Keys are first,
// so that none of them can add resources. If it fails midway, the workspace still exists and
// the call can be repeated.
func (f *family) empty(c *admin.Call, rec *resource.Record, force bool) error {
	blocking := []resource.Kind{provider.KindProvider, route.KindConfig, prompt.KindPrompt, prompt.KindPartial, guard.KindGuardrail}
	along := along
	for _, d := range f.Dependents {
		if d.Along {
			along = append(along[:len(along):len(along)], d.Kind)
		} else {
			blocking = append(blocking, d.Kind)
		}
	}
	sc := inside(rec)
	if !force {
		if err := c.Resources.Change(c.Context, rec.Scope, func(tx *resource.Tx) error { return tx.RefuseIfUsed(rec.Ref()) }); err != nil {
			return err
		}
		var counts []string
		for _, k := range blocking {
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
	for _, k := range append([]resource.Kind{identity.KindKey}, append(blocking, along...)...) {
		err := admin.Drain(c, sc, k, rowsOfRecord, func(tx *resource.Tx, rec *resource.Record) error {
			if err := f.release(tx, rec); err != nil {
				return err
			}
			return tx.Archive(rec)
		})
		if err != nil {
			return err
		}
	}
	if err := unmap(c, rec); err != nil {
		return err
	}
	return admin.Drain(c, sc, membership.KindMember, rowsOfMember, func(tx *resource.Tx, rec *resource.Record) error {
		more, err := membership.EndMembership(tx, c.Resources, rec, c.Actor())
		if more {
			return fault.New(fault.Conflict, "", "Keys were created in the workspace while it was deleted; try again")
		}
		return err
	})
}

// unmap archives the mappings by which groups of an identity provider join the workspace.
func unmap(c *admin.Call, workspace *resource.Record) error {
	org := workspace.Scope.Organisation()
	rows, err := c.Resources.List(c.Context, org, membership.KindMapping)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Fields[membership.FieldWorkspace] != workspace.ID {
			continue
		}
		err := c.Resources.Change(c.Context, org, func(tx *resource.Tx) error {
			rec, ok, err := tx.Get(org, membership.KindMapping, rows[i].ID)
			if err != nil || !ok || rec.Archived() {
				return err
			}
			m, err := resource.Decode[membership.Mapping](rec)
			if err != nil {
				return err
			}
			return membership.Unmap(tx, &rec, m, c.Actor())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// along are the kinds that are archived with a workspace even without force.
var along = []resource.Kind{provider.KindIntegration, observe.KindDestination, prompt.KindCollection, prompt.KindLabel, ledger.KindUsagePolicy, ledger.KindRatePolicy, notices.KindWebhook, exportrow.Kind}

// rowsOfMember is how many rows a membership takes when it ends.
const rowsOfMember = 6

// rowsOfRecord is how many rows a record may take when it is archived. A key takes up to
// nine.
const rowsOfRecord = 10

// release removes the rows by which others find or keep a record.
func (f *family) release(tx *resource.Tx, rec *resource.Record) error {
	switch rec.Kind {
	case identity.KindKey:
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return errors.Join(errStored(rec), err)
		}
		identity.StageDelete(tx, rec, &k)
		for kind, at := range identity.DueTimes(&k) {
			if err := resource.Unschedule(tx, kind, at, rec.Ref()); err != nil {
				return err
			}
		}
	case provider.KindProvider:
		in, err := provider.DecodeInstance(*rec)
		if err != nil {
			return err
		}
		of := resource.Ref{Scope: in.IntegrationScope(rec.Scope), Kind: provider.KindIntegration, ID: in.IntegrationID}
		return tx.RemoveUse(of, rec.Ref())
	case exportrow.Kind: // ends the run that writes into it
		tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: exportrow.Run(rec.Scope, rec.ID)}}, nil)
	case prompt.KindPrompt: // no longer visible anywhere
		share, ok, err := tx.Get(rec.Scope.Organisation(), prompt.KindShare, rec.ID)
		if err != nil || !ok {
			return err
		}
		return tx.Delete(&share)
	}
	for _, d := range f.Dependents {
		if d.Kind == rec.Kind && d.Release != nil {
			return d.Release(tx, rec)
		}
	}
	return nil
}

func errStored(rec *resource.Record) error {
	return fmt.Errorf("workspaces: stored %s %s", rec.Kind, rec.ID)
}
