package scim

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/people"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// groupDoc is a group as a resource; without members where they are not asked for.
func groupDoc(base string, rec *resource.Record, g *people.Group, members []string, with bool) map[string]any {
	doc := map[string]any{
		"schemas": []any{scim.GroupURN}, "id": rec.ID, "displayName": rec.Name, "meta": meta("Group", base+"/Groups/"+rec.ID, rec),
	}
	if g.ExternalID != "" {
		doc["externalId"] = g.ExternalID
	}
	if with {
		list := make([]any, len(members))
		for i, id := range members {
			list[i] = map[string]any{"value": id, "type": "User", "$ref": base + "/Users/" + id}
		}
		doc["members"] = list
	}
	return doc
}

// group reads a group.
func (f *family) group(c *admin.Call) (*resource.Record, *people.Group, error) {
	id := c.Param("scimId")
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), people.KindGroup, id)
	if err != nil {
		return nil, nil, err
	}
	if !ok || rec.ID != id || rec.Archived() {
		return nil, nil, missing(c)
	}
	g, err := people.DecodeGroup(rec)
	return &rec, g, err
}

func (f *family) shownGroup(c *admin.Call, rec *resource.Record, g *people.Group) (any, error) {
	var members []string
	with := asks(c, "members")
	if with {
		var err error
		if members, err = people.InGroup(c.Context, c.Resources, c.Organisation(), rec.ID); err != nil {
			return nil, err
		}
	}
	return answer(c, rec, groupDoc(f.base(c), rec, g, members, with)), nil
}

func (f *family) getGroup(c *admin.Call) (any, error) {
	rec, g, err := f.group(c)
	if err != nil {
		return nil, err
	}
	return f.shownGroup(c, rec, g)
}

func (f *family) listGroups(c *admin.Call) (any, error) {
	filter, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	all, err := c.Resources.List(c.Context, c.Organisation(), people.KindGroup)
	if err != nil {
		return nil, err
	}
	rows := ordered(filter, all)
	if filter != nil {
		if name, ok := filter.Equals("displayName"); ok {
			rows = slices.DeleteFunc(rows, func(r resource.Row) bool { return !strings.EqualFold(r.Name, name) })
		}
		docs, err := f.groupDocs(c, rows, filter, asks(c, "members") || filter.Names("members"))
		if err != nil {
			return nil, err
		}
		from, until, start := page(c, len(docs))
		chosen(c, docs[from:until]...)
		return listed(len(docs), start, docs[from:until]), nil
	}
	from, until, start := page(c, len(rows))
	docs, err := f.groupDocs(c, rows[from:until], nil, asks(c, "members"))
	if err != nil {
		return nil, err
	}
	chosen(c, docs...)
	return listed(len(rows), start, docs), nil
}

func (f *family) groupDocs(c *admin.Call, rows []resource.Row, filter *scim.Filter, with bool) (out []map[string]any, err error) {
	base := f.base(c)
	for part := range slices.Chunk(rows, readAtOnce) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), people.KindGroup, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			g, err := people.DecodeGroup(recs[i])
			if err != nil {
				return nil, err
			}
			doc := groupDoc(base, &recs[i], g, nil, false)
			if filter != nil && !filter.Names("members") && !filter.Matches(doc) {
				continue // before who is in it is read
			}
			if with {
				members, err := people.InGroup(c.Context, c.Resources, c.Organisation(), recs[i].ID)
				if err != nil {
					return nil, err
				}
				doc = groupDoc(base, &recs[i], g, members, true)
			}
			if filter == nil || filter.Matches(doc) {
				out = append(out, doc)
			}
		}
	}
	return out, nil
}

// grouped is what a resource says of a group.
type grouped struct {
	name, external string
	members        []string
}

func (f *family) grouped(c *admin.Call, doc map[string]any) (*grouped, error) {
	g := &grouped{name: strings.TrimSpace(scim.Text(doc, "displayName")), external: scim.Text(doc, "externalId"), members: scim.Values(doc, "members")}
	var bad []fault.Detail
	switch n := utf8.RuneCountInString(g.name); {
	case n == 0:
		bad = append(bad, fault.Detail{Field: "displayName", Message: "is required"})
	case n > maxName:
		bad = append(bad, fault.Detail{Field: "displayName", Message: "must have at most 255 characters"})
	case strings.ContainsFunc(g.name, unicode.IsControl):
		bad = append(bad, fault.Detail{Field: "displayName", Message: "must not have control characters"})
	}
	if len(g.external) > maxLogin {
		bad = append(bad, fault.Detail{Field: "externalId", Message: "must have at most 254 bytes"})
	}
	slices.Sort(g.members)
	g.members = slices.Compact(g.members)
	for part := range slices.Chunk(g.members, readAtOnce) {
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), people.KindUser, part)
		if err != nil {
			return nil, err
		}
		known := make(map[string]bool, len(recs))
		for i := range recs {
			known[recs[i].ID] = true
		}
		for _, id := range part {
			if !known[id] && len(bad) < 20 {
				bad = append(bad, fault.Detail{Field: "members", Message: "has nobody of the organisation: " + fault.Clip(id, 64)})
			}
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused.WithCause(scim.InvalidValue)
	}
	return g, nil
}

func (f *family) createGroup(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	doc, err := scim.Groups.Read(sent)
	if err != nil {
		return nil, err
	}
	w, err := f.grouped(c, doc)
	if err != nil {
		return nil, err
	}
	id := ""
	err = f.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, _, err := people.NewGroup(tx, c.Organisation(), w.name, w.external, c.Actor())
		if err != nil {
			return false, err
		}
		id = rec.ID
		_, err = f.mapByName(tx, c, rec)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	c.About(id)
	return f.fill(c, id, w.members, nil)
}

func (f *family) putGroup(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	doc, err := scim.Groups.Read(sent)
	if err != nil {
		return nil, err
	}
	return f.changeGroup(c, func(map[string]any) (map[string]any, error) { return doc, nil })
}

func (f *family) patchGroup(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	return f.changeGroup(c, func(now map[string]any) (map[string]any, error) { return now, scim.Groups.Patch(now, sent) })
}

// changeGroup writes what a group becomes, and what follows for who is in it.
func (f *family) changeGroup(c *admin.Call, become func(now map[string]any) (map[string]any, error)) (any, error) {
	id := c.Param("scimId")
	c.About(id)
	rec, g, err := f.group(c)
	if err != nil {
		return nil, err
	}
	if err := unchanged(c, rec); err != nil {
		return nil, err
	}
	before, err := people.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	doc, err := become(groupDoc(f.base(c), rec, g, before, true))
	if err != nil {
		return nil, err
	}
	w, err := f.grouped(c, doc)
	if err != nil {
		return nil, err
	}
	var ended map[[2]string]bool
	err = f.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, g, ok, err := people.AnyGroup(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, orMissing(c, err)
		}
		if err := unchanged(c, &rec); err != nil {
			return false, err
		}
		if rec.Name == w.name && g.ExternalID == w.external && g.Provisioned {
			return false, nil
		}
		renamed := rec.Name != w.name
		if err := people.ChangeGroup(tx, &rec, g, w.name, w.external, c.Actor()); err != nil || !renamed {
			return false, err
		}
		ended, err = f.mapByName(tx, c, rec)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return f.fill(c, id, w.members, ended)
}

func orMissing(c *admin.Call, err error) error {
	if err == nil {
		err = missing(c)
	}
	return err
}

// mapByName gives a group the mapping that its name makes, and takes back the one that
// another name made.
func (f *family) mapByName(tx *resource.Tx, c *admin.Call, rec resource.Record) (ended map[[2]string]bool, err error) {
	org, err := tenant.ReadSettings(tx, c.Organisation())
	if err != nil {
		return nil, err
	}
	name, role, automatic := org.Settings.AutomaticGroup(rec.Name)
	recs, forms, err := people.MappingsOf(tx, c.Organisation(), rec.ID)
	if err != nil {
		return nil, err
	}
	var ws *resource.Record
	if automatic {
		if ws, err = f.workspaceNamed(tx, c, name); err != nil {
			return nil, err
		}
	}
	ended = map[[2]string]bool{}
	for i, m := range forms {
		if ws != nil && m.WorkspaceID == ws.ID && m.Role == role {
			return ended, nil // it is there already
		}
		if !m.Automatic {
			continue
		}
		if err := people.Unmap(tx, &recs[i], m, c.Actor()); err != nil {
			return nil, err
		}
		ended[[2]string{rec.ID, m.WorkspaceID}] = true
	}
	if !automatic {
		return ended, nil
	}
	made := ws == nil
	if made {
		if ws, err = f.makeWorkspace(tx, c, name); err != nil {
			return nil, err
		}
	}
	now, g, _, err := people.AnyGroup(tx, c.Organisation(), rec.ID)
	if err != nil {
		return nil, err
	}
	return ended, people.MapByName(tx, now, g, ws.ID, role, made, c.Actor())
}

// workspaceNamed finds the workspace that the name of a group names: in the same
// spelling, or else in another case.
func (f *family) workspaceNamed(tx *resource.Tx, c *admin.Call, name string) (*resource.Record, error) {
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

// fill makes who is in a group those that are wanted, and gives them what the group
// gives. Where groups are written with users, who is in it stays.
func (f *family) fill(c *admin.Call, id string, want []string, ended map[[2]string]bool) (any, error) {
	org, err := tenant.FetchSettings(c.Context, c.Resources, c.Organisation())
	if err != nil {
		return nil, err
	}
	have, err := people.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	touched := slices.Clone(have) // a mapping may have changed for all of them
	if len(ended) == 0 {
		touched = nil
	}
	if !org.Settings.UserGroups {
		var into, out []string
		for _, u := range want {
			if _, in := slices.BinarySearch(have, u); !in {
				into = append(into, u)
			}
		}
		for _, u := range have {
			if _, stays := slices.BinarySearch(want, u); !stays {
				out = append(out, u)
			}
		}
		if err := f.move(c, id, into, people.Enter); err != nil {
			return nil, err
		}
		if err := f.move(c, id, out, func(tx *resource.Tx, rec *resource.Record, u *people.User, g string) error {
			people.Exit(tx, rec, u, g)
			return nil
		}); err != nil {
			return nil, err
		}
		if org.Settings.GroupProvisions {
			if err := f.bringBack(c, want); err != nil {
				return nil, err
			}
			touched = append(touched, want...)
		}
		touched = slices.Concat(touched, into, out)
	}
	if c.Request.Method == http.MethodPost {
		touched = append(touched, have...)
	}
	slices.Sort(touched)
	if err := f.settle(c, ended, true, slices.Compact(touched)...); err != nil {
		return nil, err
	}
	rec, g, err := f.groupByID(c, id)
	if err != nil {
		return nil, err
	}
	return f.shownGroup(c, rec, g)
}

func (f *family) groupByID(c *admin.Call, id string) (*resource.Record, *people.Group, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), people.KindGroup, id)
	if err != nil || !ok {
		return nil, nil, orMissing(c, err)
	}
	g, err := people.DecodeGroup(rec)
	return &rec, g, err
}

// movedAtOnce is how many users enter or leave a group in one change.
const movedAtOnce = 15

// move puts users into a group, or takes them out.
func (f *family) move(c *admin.Call, group string, ids []string, do func(tx *resource.Tx, rec *resource.Record, u *people.User, group string) error) error {
	for part := range slices.Chunk(ids, movedAtOnce) {
		err := f.rounds(c, func(tx *resource.Tx) (bool, error) {
			for _, id := range part {
				rec, u, ok, err := people.Known(tx, c.Organisation(), id)
				if err != nil {
					return false, err
				}
				if !ok {
					continue // it was removed meanwhile
				}
				if err := do(tx, &rec, u, group); err != nil {
					return false, err
				}
				if err := people.Save(tx, &rec, u, c.Actor()); err != nil {
					return false, err
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bringBack has users come back who are stopped.
func (f *family) bringBack(c *admin.Call, ids []string) error {
	for part := range slices.Chunk(ids, readAtOnce) {
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), people.KindUser, part)
		if err != nil {
			return err
		}
		for i := range recs {
			u, err := people.DecodeUser(recs[i])
			if err != nil {
				return err
			}
			if !u.Stopped && !u.Returning {
				continue
			}
			if err := f.rounds(c, func(tx *resource.Tx) (bool, error) {
				rec, u, ok, err := people.Known(tx, c.Organisation(), recs[i].ID)
				if err != nil || !ok {
					return false, err
				}
				return people.Revive(tx, c.Resources, &rec, u, c.Actor())
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteGroup takes everybody out, then the mappings back, and last the group away.
func (f *family) deleteGroup(c *admin.Call) (any, error) {
	id := c.Param("scimId")
	c.About(id)
	rec, _, err := f.group(c)
	if err != nil {
		return nil, err
	}
	if err := unchanged(c, rec); err != nil {
		return nil, err
	}
	members, err := people.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	if err := f.move(c, id, members, func(tx *resource.Tx, rec *resource.Record, u *people.User, g string) error {
		people.Exit(tx, rec, u, g)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := f.settle(c, nil, false, members...); err != nil {
		return nil, err
	}
	if err := f.unmapAll(c, id); err != nil {
		return nil, err
	}
	return admin.Answer{Status: http.StatusNoContent}, c.Change(func(tx *resource.Tx) error {
		rec, _, ok, err := people.AnyGroup(tx, c.Organisation(), id)
		if err != nil || !ok {
			return err
		}
		return people.DeleteGroup(tx, &rec)
	})
}

func (f *family) unmapAll(c *admin.Call, group string) error {
	alone := map[string]bool{} // workspaces that the group's name made, and nothing else maps to
	err := f.rounds(c, func(tx *resource.Tx) (bool, error) {
		recs, forms, err := people.MappingsOf(tx, c.Organisation(), group)
		if err != nil {
			return false, err
		}
		for i, m := range forms[:min(len(forms), movedAtOnce)] {
			others, err := people.Mapped(tx, c.Organisation(), m.WorkspaceID, group)
			if err != nil {
				return false, err
			}
			if m.Made && !others {
				alone[m.WorkspaceID] = true
			}
			if err := people.Unmap(tx, &recs[i], m, c.Actor()); err != nil {
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
func (f *family) makeWorkspace(tx *resource.Tx, c *admin.Call, name string) (*resource.Record, error) {
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

// rowsOfLeaving is how many rows a membership takes when it ends with a key.
const rowsOfLeaving = 6

// archiveWorkspace ends a workspace with its keys and members.
func (f *family) archiveWorkspace(c *admin.Call, id string) error {
	sc := store.Scope{Org: c.Organisation().Org, Workspace: id}
	if err := admin.Drain(c, sc, identity.KindKey, identity.RowsOfKey, identity.Retire); err != nil {
		return err
	}
	err := admin.Drain(c, sc, people.KindMember, rowsOfLeaving, func(tx *resource.Tx, rec *resource.Record) error {
		more, err := people.Leave(tx, c.Resources, rec, c.Actor())
		if more {
			return fault.New(fault.Conflict, "", "keys are made in the workspace while it is archived; try again")
		}
		return err
	})
	if err != nil {
		return err
	}
	return f.rounds(c, func(tx *resource.Tx) (bool, error) {
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
