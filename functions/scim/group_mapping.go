package scim

import (
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// mapByName sets the mapping that a group's name implies, and removes that of an earlier name.
func (f *groups) mapByName(tx *resource.Tx, c *admin.Call, rec resource.Record) error {
	org, err := tenant.ReadSettings(tx, c.Organisation())
	if err != nil {
		return err
	}
	name, role, automatic := org.Settings.AutomaticGroup(rec.Name)
	recs, forms, err := membership.MappingsOf(tx, c.Organisation(), rec.ID)
	if err != nil {
		return err
	}
	var ws *resource.Record
	var one *onlyOne
	if automatic {
		if err := c.Caller.Grantor().Grant("displayName", authority.Permissions{Rank: identity.Rank(role)}); err != nil {
			return err
		}
		if one, err = readOnlyOne(c, name); err != nil {
			return err
		}
		if ws, err = f.workspaceNamed(tx, c, name); err != nil {
			return err
		}
	}
	var ended []string
	for i, m := range forms {
		if ws != nil && m.WorkspaceID == ws.ID && m.Role == role {
			return nil // the mapping exists already
		}
		if !m.Automatic {
			continue
		}
		if err := membership.Unmap(tx, &recs[i], m, c.Actor()); err != nil {
			return err
		}
		ended = append(ended, m.WorkspaceID)
	}
	if !automatic && len(ended) == 0 {
		return nil
	}
	made := automatic && ws == nil
	if made {
		if ws, err = f.makeWorkspace(tx, c, name); err != nil {
			return err
		}
		one.stage(tx, ws.ID)
	}
	now, g, ok, err := membership.AnyGroup(tx, c.Organisation(), rec.ID)
	if err != nil || !ok {
		return err
	}
	if g.Remap(ended...); !automatic {
		return membership.SaveGroup(tx, &now, g, c.Actor())
	}
	return membership.MapByName(tx, now, g, ws.ID, role, made, c.Actor())
}

// workspaceNamed finds the workspace that the name of a group names: first in the same
// spelling, then in any case.
func (f *groups) workspaceNamed(tx *resource.Tx, c *admin.Call, name string) (*resource.Record, error) {
	rows, err := tx.List(c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(r resource.Row) bool { return r.Name == name })
	if at < 0 {
		at = slices.IndexFunc(rows, func(r resource.Row) bool { return strings.EqualFold(r.Name, name) })
	}
	if at < 0 {
		return nil, nil
	}
	rec, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, rows[at].ID)
	if err != nil || !ok {
		return nil, err
	}
	return &rec, nil
}

func (f *groups) unmapAll(c *admin.Call, group string) error {
	alone := map[string]bool{} // workspaces that only exist because of the group's name and that nothing else maps to
	err := f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		recs, forms, err := membership.MappingsOf(tx, c.Organisation(), group)
		if err != nil {
			return false, err
		}
		for i, m := range forms[:min(len(forms), movedAtOnce)] {
			others, err := membership.Mapped(tx, c.Organisation(), m.WorkspaceID, group)
			if err != nil {
				return false, err
			}
			if m.Made && !others {
				alone[m.WorkspaceID] = true
			}
			if err := membership.Unmap(tx, &recs[i], m, c.Actor()); err != nil {
				return false, err
			}
		}
		return len(forms) > movedAtOnce, nil
	})
	if err != nil {
		return err
	}
	for ws := range alone {
		if err := f.archiveWorkspace(c, ws); err != nil {
			return err
		}
	}
	return nil
}

// makeWorkspace makes the workspace that the name of a group names.
func (f *groups) makeWorkspace(tx *resource.Tx, c *admin.Call, name string) (*resource.Record, error) {
	org, err := tenant.ReadSettings(tx, c.Organisation())
	if err != nil {
		return nil, err
	}
	rec, err := tenant.NewWorkspace(c.Organisation(), name, admin.Slugs{Prefix: "ws-"}.Make(name), org.Settings.WorkspaceMetadata, c.Actor())
	if err != nil {
		return nil, err
	}
	if err := tx.Create(rec); err != nil {
		return nil, err
	}
	return rec, provider.OpenDefaults(tx, c.Resources, rec, 0)
}

// onlyOne is the row with the workspace that groups last created for a name. It is read before
// the existing workspaces are: a workspace that another group creates between then and the end
// of the transaction is seen in one of the two places, and the slower transaction runs again.
type onlyOne struct {
	key       store.Key
	unchanged store.Cond
}

func readOnlyOne(c *admin.Call, name string) (*onlyOne, error) {
	o := &onlyOne{key: c.Organisation().Partition().Key("GROUPWORKSPACE", identity.HashToken(strings.ToLower(name))), unchanged: store.IfAbsent()}
	it, there, err := c.Resources.Store().Table(store.Control).Get(c.Context, o.key, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if there {
		o.unchanged = store.IfEqual(store.At("id"), it.String("id"))
	}
	return o, nil
}

// stage notes the workspace that is made, on condition that no other was made meanwhile.
func (o *onlyOne) stage(tx *resource.Tx, id string) {
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: o.key, Item: store.Item{"id": id}}, If: []store.Cond{o.unchanged}}}, nil)
}

// rowsOfLeaving is how many rows a membership takes when it ends with a key.
const rowsOfLeaving = 6

// archiveWorkspace ends a workspace with its keys and members.
func (f *groups) archiveWorkspace(c *admin.Call, id string) error {
	sc := store.Scope{Org: c.Organisation().Org, Workspace: id}
	if err := admin.Drain(c, sc, identity.KindKey, identity.RowsOfKey, identity.Retire); err != nil {
		return err
	}
	err := admin.Drain(c, sc, membership.KindMember, rowsOfLeaving, func(tx *resource.Tx, rec *resource.Record) error {
		more, err := membership.EndMembership(tx, c.Resources, rec, c.Actor())
		if more {
			return fault.New(fault.Conflict, "", "keys were created in the workspace while it was archived; try again")
		}
		return err
	})
	if err != nil {
		return err
	}
	return f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, id)
		if err != nil || !ok || rec.Archived() {
			return false, err
		}
		w, err := tenant.ReadWorkspace(rec)
		if err != nil || w.IsDefault {
			return false, err
		}
		rec.UpdatedBy = c.Actor()
		return false, tx.Archive(&rec)
	})
}
