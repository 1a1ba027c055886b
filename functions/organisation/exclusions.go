package organisation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// maxExclusions bounds the workspaces of one call.
const maxExclusions = 1000

// rowsOfWorkspace is how many rows the change of a workspace takes.
const rowsOfWorkspace = 3

// exclusion is one of the lists of guardrails that workspaces are omitted from.
type exclusion struct {
	name  string // in paths
	what  string // in prose
	field string // of list rows
	of    func(w *tenant.Workspace) *bool
}

var exclusions = []exclusion{
	{"input-guardrails", "InputGuardrail", tenant.InputExcluded, func(w *tenant.Workspace) *bool { return &w.InputExcluded }},
	{"output-guardrails", "OutputGuardrail", tenant.OutputExcluded, func(w *tenant.Workspace) *bool { return &w.OutputExcluded }},
}

var exclusionsSchema = admin.ListSchema(admin.Closed(map[string]admin.Schema{
	"workspace_id": {"type": "string"}, "slug": {"type": "string"}, "name": {"type": "string"}, "excluded": {"type": "boolean", "const": true}, "object": {"type": "string", "const": "workspace-exclusion"},
}))

// exclusionRoutes are the workspaces that the organization's guardrails omit.
func exclusionRoutes() []admin.Route {
	paging := admin.Paging{DefaultSize: 100}
	var out []admin.Route
	for _, x := range exclusions {
		route := admin.Route{Path: "/workspace-exclusions/" + x.name, Level: admin.InOrganisation, Role: admin.Admin, Resource: "organisation_exclusions"}
		list, put := route, route
		list.Method, list.Name, list.Doc = "GET", "list"+x.what+"Exclusions", "List the workspaces that are excluded from the organization's "+x.name+"."
		list.Scopes, list.Query, list.Response, list.Do = []string{"organisation_exclusions.list"}, paging.Fields(), exclusionsSchema, x.list(paging)
		put.Method, put.Name, put.Doc = "PUT", "update"+x.what+"Exclusions", "Exclude workspaces from the organization's "+x.name+", or include them again."
		put.Scopes, put.Action, put.Response, put.Do = []string{"organisation_exclusions.update"}, audit.Manage, admin.EmptyResponse, x.put
		put.Body = []admin.Field{
			{Name: "workspaces", Required: true, Type: admin.Array, Max: maxExclusions, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
				{Name: "workspace_id", Type: admin.String, Required: true, Min: 1, Max: 255, Doc: "Id or slug of the workspace.", Reference: "/admin/workspaces"},
				{Name: "excluded", Type: admin.Boolean, Required: true},
			}}, Doc: "Empty with override_existing only."},
			{Name: "override_existing", Type: admin.Boolean, Default: false, Doc: "Also re-includes the workspaces that are not named."},
		}
		out = append(out, list, put)
	}
	return out
}

func (x exclusion) list(paging admin.Paging) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		page, err := paging.Of(c.Query)
		if err != nil {
			return nil, err
		}
		rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		entries := []any{}
		for i := range rows {
			if r := &rows[i]; r.Fields[x.field] != "" {
				entries = append(entries, admin.Members{"workspace_id": r.ID, "slug": r.Slug, "name": r.Name, "excluded": true, "object": "workspace-exclusion"})
			}
		}
		return admin.ListEnvelope.Wrap(admin.Cut(entries, page), len(entries), page), nil
	}
}

// switched is a workspace with what it is to be.
type switched struct {
	id       string
	excluded bool
}

func (x exclusion) put(c *admin.Call) (any, error) {
	c.SetResource(c.Caller.Scope.Org)
	rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	all, err := x.requested(c, rows)
	if err != nil {
		return nil, err
	}
	return nil, admin.InChunks(c, all, rowsOfWorkspace, func(tx *resource.Tx, part []switched) error {
		for _, s := range part {
			if err := x.set(c, tx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// requested returns the workspaces that a call changes.
func (x exclusion) requested(c *admin.Call, rows []resource.Row) ([]switched, error) {
	sent, override := c.Body.Objects("workspaces"), c.Body.Bool("override_existing")
	if len(sent) == 0 && !override {
		return nil, fault.Invalid("workspaces", "must have an entry; it may be empty with override_existing true")
	}
	byName := make(map[string]*resource.Row, 2*len(rows))
	for i := range rows {
		byName[rows[i].Slug] = &rows[i]
	}
	for i := range rows { // an id wins over a slug
		byName[rows[i].ID] = &rows[i]
	}
	wanted := make(map[string]bool, len(sent))
	var bad []fault.Detail
	for n, in := range sent {
		row, known := byName[in.Text("workspace_id")]
		if !known {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("workspaces[%d].workspace_id", n), Message: "must name a workspace of the organization"})
			continue
		}
		if _, twice := wanted[row.ID]; twice {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("workspaces[%d].workspace_id", n), Message: "must not be listed twice"})
		}
		wanted[row.ID] = in.Bool("excluded")
	}
	if err := rejectedBy(bad); err != nil {
		return nil, err
	}
	var all []switched
	for i := range rows {
		excluded, named := wanted[rows[i].ID]
		if (named || override) && excluded != (rows[i].Fields[x.field] != "") {
			all = append(all, switched{rows[i].ID, excluded})
		}
	}
	return all, nil
}

// set changes a workspace. One that went meanwhile needs no change.
func (x exclusion) set(c *admin.Call, tx *resource.Tx, s switched) error {
	rec, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, s.id)
	if err != nil || !ok || rec.Archived() {
		return err
	}
	w, err := tenant.ReadWorkspace(rec)
	if err != nil {
		return err
	}
	*x.of(w) = s.excluded
	if rec.Body, err = json.Marshal(w); err != nil {
		return fmt.Errorf("organization: encode workspace %s: %w", s.id, err)
	}
	if rec.Fields = maps.Clone(rec.Fields); rec.Fields == nil {
		rec.Fields = map[string]string{}
	}
	if delete(rec.Fields, x.field); s.excluded {
		rec.Fields[x.field] = "1"
	}
	rec.UpdatedBy = c.Actor()
	return tx.Update(&rec)
}

const defaultsPath = "/admin/organisation/defaults"

// kindGuardrail is the kind of guardrails.
const kindGuardrail resource.Kind = "GUARDRAIL"

// maxGuardrails bounds a list of guardrails.
const maxGuardrails = 100

// lists are the lists of guardrails that an organization has, by their names in
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
		body = append(body, admin.Field{Name: l.name, Type: admin.Array, Max: maxGuardrails, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255, Reference: "/guardrails"},
			Doc: l.doc + ": ids or slugs of guardrails of the organization; null: none."})
		members[l.name] = entry
	}
	route := admin.Route{Path: defaultsPath, Level: admin.InOrganisation, Role: admin.Admin, Resource: "organisation_settings"}
	read, write := route, route
	read.Method, read.Name, read.Doc, read.Scopes = "GET", "getOrganisationDefaults", "Read the guardrails of requests of all workspaces.", []string{"organisation_settings.read"}
	read.Response, read.Do = admin.Closed(members), readDefaults
	write.Method, write.Name, write.Scopes = "PUT", "updateOrganisationDefaults", []string{"organisation_settings.update"}
	write.Doc = "Change the guardrails that apply to requests of all workspaces except the excluded ones: absent lists are unchanged. They apply within 2 seconds."
	write.Body, write.BodyMode, write.Action, write.Response, write.Do = body, admin.PartialBody, audit.Update, admin.EmptyResponse, writeDefaults
	return []admin.Route{read, write}
}

func readDefaults(c *admin.Call) (any, error) {
	c.SetResource(c.Caller.Scope.Org)
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
	c.SetResource(c.Caller.Scope.Org)
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
			return rejectedBy(bad)
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
			bad = append(bad, fault.Detail{Field: at, Message: "must name a guardrail of the organization"})
		case slices.Contains(ids, rec.ID):
			bad = append(bad, fault.Detail{Field: at, Message: "must not be listed twice"})
		default:
			ids = append(ids, rec.ID)
		}
	}
	return ids, bad, nil
}

// rejectedBy returns the fault with all that is wrong; nil for nothing.
func rejectedBy(bad []fault.Detail) error {
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}
