package organisation

import (
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

const defaultsPath = "/admin/organisation/defaults"

// kindGuardrail is the kind of guardrails.
const kindGuardrail resource.Kind = "GUARDRAIL"

// maxGuardrails bounds a list of guardrails.
const maxGuardrails = 100

// lists are the lists of guardrails that an organisation has, by their names in
// bodies.
var lists = []struct {
	name, doc string
	of        func(o *tenant.Organisation) *[]string
}{
	{"input_guardrails", "Guardrails of requests, in order", func(o *tenant.Organisation) *[]string { return &o.InputGuardrails }},
	{"output_guardrails", "Guardrails of responses, in order", func(o *tenant.Organisation) *[]string { return &o.OutputGuardrails }},
}

// defaultRoutes are the guardrails of all workspaces that are not excluded.
func defaultRoutes() []admin.Route {
	var body []admin.Field
	members := map[string]admin.Schema{"object": {"type": "string", "const": "organisation-defaults"}, "organisation_id": {"type": "string"}}
	entry := admin.Schema{"type": "array", "items": admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "slug": {"type": "string"}})}
	for _, l := range lists {
		body = append(body, admin.Field{Name: l.name, Type: admin.Array, Max: maxGuardrails, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255, Refers: "/guardrails"},
			Doc: l.doc + ": ids or slugs of guardrails of the organisation; null: none."})
		members[l.name] = entry
	}
	route := admin.Route{Path: defaultsPath, Where: admin.InOrganisation, Role: admin.Admin, Resource: "organisation_settings"}
	read, write := route, route
	read.Method, read.Name, read.Doc, read.Scopes = "GET", "getOrganisationDefaults", "Read the guardrails of requests of all workspaces.", []string{"organisation_settings.read"}
	read.Answer, read.Do = admin.Closed(members), readDefaults
	write.Method, write.Name, write.Scopes = "PUT", "updateOrganisationDefaults", []string{"organisation_settings.update"}
	write.Doc = "Change the guardrails that apply to requests of all workspaces except the excluded ones: absent lists are unchanged. They apply within 2 seconds."
	write.Body, write.BodyMode, write.Action, write.Answer, write.Do = body, admin.PartialBody, audit.Update, admin.Nothing, writeDefaults
	return []admin.Route{read, write}
}

func readDefaults(c *admin.Call) (any, error) {
	c.About(c.Caller.Scope.Org)
	sc := c.Organisation()
	var o tenant.Organisation
	rec, ok, err := c.Resources.Get(c.Context, sc, tenant.KindOrganisation, sc.Org)
	if err != nil {
		return nil, err
	}
	if ok {
		stored, err := tenant.DecodeOrganisation(rec)
		if err != nil {
			return nil, err
		}
		o = *stored
	}
	rows, err := c.Resources.List(c.Context, sc, kindGuardrail)
	if err != nil {
		return nil, err
	}
	slugs := make(map[string]string, len(rows))
	for i := range rows {
		slugs[rows[i].ID] = rows[i].Slug
	}
	out := admin.Members{"object": "organisation-defaults", "organisation_id": sc.Org}
	for _, l := range lists {
		entries := []any{}
		for _, id := range *l.of(&o) {
			entries = append(entries, admin.Members{"id": id, "slug": slugs[id]})
		}
		out[l.name] = entries
	}
	return out, nil
}

func writeDefaults(c *admin.Call) (any, error) {
	c.About(c.Caller.Scope.Org)
	return nil, c.Change(func(tx *resource.Tx) error {
		diff := map[string][2]any{}
		err := tenant.AmendOrganisation(tx, c.Organisation(), c.Actor(), func(o *tenant.Organisation) error {
			var bad []fault.Detail
			for _, l := range lists {
				if !c.Body.Has(l.name) {
					continue
				}
				ids, wrong, err := guardrails(tx, l.name, c.Body.Texts(l.name))
				if err != nil {
					return err
				}
				bad = append(bad, wrong...)
				if was := l.of(o); !slices.Equal(*was, ids) {
					diff[l.name] = [2]any{*was, ids}
					*was = ids
				}
			}
			return refusedBy(bad)
		})
		if err == nil {
			admin.NoteChanges(c, diff)
		}
		return err
	})
}

// guardrails returns the ids of the named guardrails. They cannot be deleted while a list
// contains them.
func guardrails(tx *resource.Tx, field string, names []string) (ids []string, bad []fault.Detail, err error) {
	for i, name := range names {
		rec, ok, err := tx.Get(tx.Scope().Organisation(), kindGuardrail, name)
		if err != nil {
			return nil, nil, err
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case !ok || rec.Archived():
			bad = append(bad, fault.Detail{Field: at, Message: "is no guardrail of the organisation"})
		case slices.Contains(ids, rec.ID):
			bad = append(bad, fault.Detail{Field: at, Message: "is named twice"})
		default:
			ids = append(ids, rec.ID)
		}
	}
	return ids, bad, nil
}

// refusedBy is the refusal of all that is wrong; nil for nothing.
func refusedBy(bad []fault.Detail) error {
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}
