package agentservers

import (
	"maps"
	"slices"

	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/resource"
)

// maxNamed is the number of skills in one call.
const maxNamed = 1000

// describeSwitches describes the switches of skills of an integration or a server.
func (f *family) describeSwitches(kind resource.Kind, object, path, scope string, parent *admin.Parent) *admin.Collection[a2a.Switch] {
	return &admin.Collection[a2a.Switch]{
		Kind: kind, Object: object, Path: path, Param: "skillId", Scope: scope, WriteRole: admin.Manager, Parent: parent,
		Fields: []admin.Field{{Name: "skill", Hidden: true}, {Name: "enabled", Required: true}},
		Before: func(c *admin.Call, _ *resource.Tx, ch *admin.Change[a2a.Switch]) error {
			if ch.Creates() {
				ch.Form.Skill = skillOf(c, ch.Rec.ID)
				ch.Rec.Name = ch.Form.Skill
			}
			return nil
		},
	}
}

// skillOf returns the skill of an entry in the call's body by the id of its switch.
func skillOf(c *admin.Call, id string) string {
	for _, in := range c.Body.Objects("skills") {
		if s := in.Text("id"); a2a.SwitchID(s) == id {
			return s
		}
	}
	return ""
}

var skillsSchema = admin.MoreEnvelope.Schema(admin.Closed(map[string]admin.Schema{
	"id": {"type": "string"}, "name": {"type": "string"}, "description": {"type": "string"}, "tags": {"type": "array", "items": admin.Schema{"type": "string"}}, "enabled": {"type": "boolean"},
}))

// skillRoutes returns the routes to list and switch the skills of integrations and servers.
func (f *family) skillRoutes() []admin.Route {
	var routes []admin.Route
	for _, of := range []struct {
		col  *admin.Collection[a2a.Switch]
		name string
		list func(*admin.Call) (any, error)
	}{{f.ofIntegration, "AgentIntegration", f.listOfIntegration}, {f.ofServer, "AgentServer", f.listOfServer}} {
		routes = append(routes, of.col.ItemRoutes(admin.Route{
			Method: "GET", Path: of.col.Path, Name: "list" + of.name + "Skills", Doc: "List the skills of the agent's card, and configured skills that it does not have yet.",
			Query: sharing.FromOne().Fields(), Response: skillsSchema, Scopes: []string{of.col.Scope + ".list", of.col.Scope + ".read"}, Do: of.col.WithItem("list", of.list),
		})...)
		routes = append(routes, of.col.BulkRoute(admin.BulkWrite{
			Name: "update" + of.name + "Skills", Doc: "Enable and disable skills.", Field: "skills", Key: "id", Max: maxNamed,
			ID: func(entry admin.Values) string { return a2a.SwitchID(entry.Text("id")) }, Response: sharing.Done, Reply: admin.Members{"success": true},
		}))
	}
	return routes
}

// switches returns the switches of a record by skill id.
func switches(c *admin.Call, rec *resource.Record, kind resource.Kind) (map[string]bool, error) {
	rows, err := c.Resources.List(c.Context, rec.Scope, kind.Of(rec.ID))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, rec.Scope, kind.Of(rec.ID), ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(recs))
	for i := range recs {
		s, err := a2a.DecodeSwitch(recs[i])
		if err != nil {
			return nil, err
		}
		out[s.Skill] = s.Enabled
	}
	return out, nil
}

// disabled returns the skills that an integration or its server has disabled.
func (f *family) disabled(c *admin.Call, it server, of integration) (map[string]bool, error) {
	out := map[string]bool{}
	for _, level := range []struct {
		rec  *resource.Record
		kind resource.Kind
	}{{of.Record, a2a.KindIntegrationSwitch}, {it.Record, a2a.KindServerSwitch}} {
		states, err := switches(c, level.rec, level.kind)
		if err != nil {
			return nil, err
		}
		for skill, on := range states {
			out[skill] = out[skill] || !on
		}
	}
	return out, nil
}

func (f *family) listOfIntegration(c *admin.Call) (any, error) {
	it, err := f.integrations.Find(c)
	if err != nil {
		return nil, err
	}
	states, err := switches(c, it.Record, a2a.KindIntegrationSwitch)
	if err != nil {
		return nil, err
	}
	off := make(map[string]bool, len(states))
	for skill, on := range states {
		off[skill] = !on
	}
	return listSkills(c, it.Form, off)
}

func (f *family) listOfServer(c *admin.Call) (any, error) {
	it, of, err := f.whole(c)
	if err != nil {
		return nil, err
	}
	off, err := f.disabled(c, it, of)
	if err != nil {
		return nil, err
	}
	return listSkills(c, of.Form, off)
}

// listSkills returns the skills of the card, followed by those that only have a switch.
func listSkills(c *admin.Call, of *a2a.Integration, off map[string]bool) (any, error) {
	page, err := sharing.FromOne().Of(c.Query)
	if err != nil {
		return nil, err
	}
	all := a2a.Skills(of.Card)
	shown := make(map[string]bool, len(all))
	for _, s := range all {
		shown[s.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(off)) {
		if !shown[id] {
			all = append(all, a2a.Skill{ID: id})
		}
	}
	entries := []any{}
	for _, s := range admin.Cut(all, page) {
		entries = append(entries, admin.Members{"id": s.ID, "name": s.Name, "description": s.Description, "tags": admin.OrEmpty(s.Tags), "enabled": !off[s.ID]})
	}
	return admin.Members{"data": entries, "total": len(all), "has_more": page.Number*page.Size < int64(len(all))}, nil
}
