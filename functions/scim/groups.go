package scim

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
)

// groupDoc returns a group as a resource. It has members only on request.
func groupDoc(base string, rec *resource.Record, g *membership.Group, members []string, with bool) map[string]any {
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
func (f *groups) group(c *admin.Call) (*resource.Record, *membership.Group, error) {
	id := c.Param("scimId")
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), membership.KindGroup, id)
	if err != nil {
		return nil, nil, err
	}
	if !ok || rec.ID != id || rec.Archived() {
		return nil, nil, missing(c)
	}
	g, err := membership.DecodeGroup(rec)
	return &rec, g, err
}

func (f *groups) shownGroup(c *admin.Call, rec *resource.Record, g *membership.Group) (any, error) {
	var members []string
	with := isRequested(c, "members")
	if with {
		var err error
		if members, err = membership.InGroup(c.Context, c.Resources, c.Organisation(), rec.ID); err != nil {
			return nil, err
		}
	}
	return respond(c, rec, groupDoc(f.users.family.base(c), rec, g, members, with)), nil
}

func (f *groups) getGroup(c *admin.Call) (any, error) {
	rec, g, err := f.group(c)
	if err != nil {
		return nil, err
	}
	return f.shownGroup(c, rec, g)
}

func (f *groups) listGroups(c *admin.Call) (any, error) {
	filter, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	all, err := c.Resources.List(c.Context, c.Organisation(), membership.KindGroup)
	if err != nil {
		return nil, err
	}
	rows := ordered(filter, all)
	if filter != nil {
		if name, ok := filter.Equals("displayName"); ok {
			rows = slices.DeleteFunc(rows, func(r resource.Row) bool { return !strings.EqualFold(r.Name, name) })
		}
		docs, err := f.groupDocs(c, rows, filter, isRequested(c, "members") || filter.Names("members"))
		if err != nil {
			return nil, err
		}
		from, until, start := page(c, len(docs))
		filterAttributes(c, docs[from:until]...)
		return listed(len(docs), start, docs[from:until]), nil
	}
	from, until, start := page(c, len(rows))
	docs, err := f.groupDocs(c, rows[from:until], nil, isRequested(c, "members"))
	if err != nil {
		return nil, err
	}
	filterAttributes(c, docs...)
	return listed(len(rows), start, docs), nil
}

func (f *groups) groupDocs(c *admin.Call, rows []resource.Row, filter *scim.Filter, with bool) (out []map[string]any, err error) {
	base := f.users.family.base(c)
	for part := range slices.Chunk(rows, readAtOnce) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindGroup, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			g, err := membership.DecodeGroup(recs[i])
			if err != nil {
				return nil, err
			}
			doc := groupDoc(base, &recs[i], g, nil, false)
			if filter != nil && !filter.Names("members") && !filter.Matches(doc) {
				continue // before the members are read, which takes longer
			}
			if with {
				members, err := membership.InGroup(c.Context, c.Resources, c.Organisation(), recs[i].ID)
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

// grouped is what a resource states about a group.
type grouped struct {
	name, external string
	members        []string
}

func (f *groups) grouped(c *admin.Call, doc map[string]any) (*grouped, error) {
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
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindUser, part)
		if err != nil {
			return nil, err
		}
		known := make(map[string]bool, len(recs))
		for i := range recs {
			known[recs[i].ID] = true
		}
		for _, id := range part {
			if !known[id] && len(bad) < 20 {
				bad = append(bad, fault.Detail{Field: "members", Message: "must contain users of the organization only; unknown are " + fault.Clip(id, 64)})
			}
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused.WithCause(scim.InvalidValue)
	}
	return g, nil
}

func (f *groups) createGroup(c *admin.Call) (any, error) {
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
	err = f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, _, err := membership.NewGroup(tx, c.Organisation(), w.name, w.external, c.Actor())
		if err != nil {
			return false, err
		}
		id = rec.ID
		return false, f.mapByName(tx, c, rec)
	})
	if err != nil {
		return nil, err
	}
	c.SetResource(id)
	return f.fill(c, id, fills{all: w.members})
}

func (f *groups) putGroup(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	doc, err := scim.Groups.Read(sent)
	if err != nil {
		return nil, err
	}
	return f.changeGroup(c, func(map[string]any) (map[string]any, error) { return doc, nil }, func(_, after []string) fills { return fills{all: after} })
}

func (f *groups) patchGroup(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	// Only the difference is applied: calls at the same time may change other members.
	return f.changeGroup(c, func(now map[string]any) (map[string]any, error) { return now, scim.Groups.Patch(now, sent) }, func(before, after []string) fills {
		return fills{all: after, into: lacking(after, before), out: lacking(before, after), partly: true}
	})
}

// changeGroup writes what a group becomes, and what follows for who is in it.
func (f *groups) changeGroup(c *admin.Call, become func(now map[string]any) (map[string]any, error), with func(before, after []string) fills) (any, error) {
	id := c.Param("scimId")
	c.SetResource(id)
	rec, g, err := f.group(c)
	if err != nil {
		return nil, err
	}
	if err := unchanged(c, rec); err != nil {
		return nil, err
	}
	before, err := membership.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	doc, err := become(groupDoc(f.users.family.base(c), rec, g, before, true))
	if err != nil {
		return nil, err
	}
	w, err := f.grouped(c, doc)
	if err != nil {
		return nil, err
	}
	err = f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, g, ok, err := membership.AnyGroup(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, orMissing(c, err)
		}
		if err := unchanged(c, &rec); err != nil {
			return false, err
		}
		if rec.Name == w.name && g.ExternalID == w.external && g.Provisioned {
			return false, f.claim(tx, c, &rec, g)
		}
		renamed := rec.Name != w.name
		if err := membership.ChangeGroup(tx, &rec, g, w.name, w.external, c.Actor()); err != nil || !renamed {
			return false, err
		}
		return false, f.mapByName(tx, c, rec)
	})
	if err != nil {
		return nil, err
	}
	return f.fill(c, id, with(before, w.members))
}

// claim ensures, if the client sent If-Match, that the group is not changed concurrently: of
// two calls that have seen the same version, one is rejected.
func (f *groups) claim(tx *resource.Tx, c *admin.Call, rec *resource.Record, g *membership.Group) error {
	if len(c.Request.Header.Values("If-Match")) == 0 {
		return nil
	}
	return membership.SaveGroup(tx, rec, g, c.Actor())
}

func orMissing(c *admin.Call, err error) error {
	if err == nil {
		err = missing(c)
	}
	return err
}

// deleteGroup first takes out all members, then removes the mappings, and last the group.
func (f *groups) deleteGroup(c *admin.Call) (any, error) {
	id := c.Param("scimId")
	c.SetResource(id)
	rec, g, err := f.group(c)
	if err != nil {
		return nil, err
	}
	if err := f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		now, g, ok, err := membership.AnyGroup(tx, c.Organisation(), rec.ID)
		if err != nil || !ok {
			return false, orMissing(c, err)
		}
		if err := unchanged(c, &now); err != nil {
			return false, err
		}
		return false, f.claim(tx, c, &now, g)
	}); err != nil {
		return nil, err
	}
	members, err := membership.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	if err := f.move(c, id, members, membership.ExitOpen); err != nil {
		return nil, err
	}
	if err := f.settleOpen(c, id, g.EndedOf(id), false, nil); err != nil {
		return nil, err
	}
	if err := f.unmapAll(c, id); err != nil {
		return nil, err
	}
	return admin.Response{Status: http.StatusNoContent}, c.Change(func(tx *resource.Tx) error {
		rec, _, ok, err := membership.AnyGroup(tx, c.Organisation(), id)
		if err != nil || !ok {
			return err
		}
		return membership.DeleteGroup(tx, &rec)
	})
}
