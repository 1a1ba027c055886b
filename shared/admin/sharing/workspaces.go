// Package sharing makes the routes by which a resource of the organization is opened to
// workspaces, and a resource of a workspace to users, for the families that have such
// resources.
package sharing

import (
	"fmt"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
	"gateway/shared/tenant/access"
)

// maxNamed is how many workspaces, or users, one call names.
const maxNamed = 1000

// Workspaces describes the routes that open the records of a collection to workspaces.
type Workspaces[T any] struct {
	Of   *admin.Collection[T]
	Name string // of the resource in operation ids: McpIntegration
	// Entries gives the entries of a record.
	Entries func(form *T) *access.Workspaces
}

var paging = admin.Paging{DefaultSize: 1000}

// Routes are GET and PUT below the item of the collection.
func (w Workspaces[T]) Routes(path string) []admin.Route {
	version := admin.Field{Name: "version", Type: admin.String, Max: 16, Doc: "With a version, the response has data and total, as other lists do."}
	return w.Of.ItemRoutes(
		admin.Route{Method: "GET", Path: path, Name: "list" + w.Name + "Workspaces", Doc: "List the workspaces with access or with overridden settings.",
			Query: append(paging.Fields(), version), Response: listSchema, Do: w.Of.WithItem("read", w.list)},
		admin.Route{Method: "PUT", Path: path, Name: "update" + w.Name + "Workspaces", Doc: "Grant or revoke access of workspaces.", Action: audit.Manage, Errors: []int{409},
			Body: fields(), BodyMode: admin.PartialBody, Response: admin.EmptyResponse, Do: w.Of.WithItem("update", w.put)},
	)
}

func fields() []admin.Field {
	enabled := admin.Field{Name: "enabled", Type: admin.Boolean, Required: true}
	return []admin.Field{
		{Name: "workspaces", Type: admin.Array, Max: maxNamed, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
			{Name: "id", Doc: "Id or slug of the workspace.", Type: admin.String, Reference: "/admin/workspaces", Required: true, Min: 1, Max: 255}, enabled,
			{Name: "status", Type: admin.String, ReadOnly: true}, {Name: "created_at", Type: admin.Timestamp, ReadOnly: true}, {Name: "last_updated_at", Type: admin.Timestamp, ReadOnly: true},
		}}},
		{Name: "global_workspace_access", Doc: "Access of workspaces without an entry, including later ones; null: none.", Type: admin.Object, Fields: []admin.Field{enabled}},
		{Name: "override_existing_workspace_access", Doc: "Removes the entries of workspaces, which then use the global access.", Type: admin.Boolean},
	}
}

var (
	entrySchema = admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "enabled": {"type": "boolean"}, "status": {"type": "string"},
		"created_at": {"type": []string{"string", "null"}, "format": "date-time"}, "last_updated_at": {"type": []string{"string", "null"}, "format": "date-time"},
	})
	// GlobalSchema is the member global_workspace_access of responses.
	GlobalSchema = admin.Closed(map[string]admin.Schema{"enabled": {"type": "boolean"}})
	listSchema   = admin.Schema{"anyOf": []any{
		admin.Closed(map[string]admin.Schema{"workspaces": {"type": "array", "items": entrySchema}, "global_workspace_access": GlobalSchema}),
		admin.Closed(map[string]admin.Schema{"data": {"type": "array", "items": entrySchema}, "total": {"type": "integer"}, "global_workspace_access": GlobalSchema}),
	}}
)

// Global is the member global_workspace_access of a response.
func Global(w *access.Workspaces) admin.Members { return admin.Members{"enabled": w.Global} }

// Count is how many live workspaces have access to a record.
func Count(rec *resource.Record, w *access.Workspaces, spaces []resource.Row) int {
	if rec.Scope.Workspace != "" {
		return 1
	}
	n := 0
	for i := range spaces {
		if w.Enabled(spaces[i].ID) {
			n++
		}
	}
	return n
}

func (w Workspaces[T]) list(c *admin.Call) (any, error) {
	page, err := paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	it, err := w.Of.Find(c)
	if err != nil {
		return nil, err
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	entries := w.Entries(it.Form)
	var all []admin.Members
	for i := range spaces {
		own, has := entries.Entry(spaces[i].ID)
		switch {
		case it.Scope.Workspace != "":
			if spaces[i].ID != it.Scope.Workspace {
				continue
			}
			own = access.Workspace{ID: spaces[i].ID, Enabled: true, Created: it.Created.UnixMilli(), Updated: it.Updated.UnixMilli()}
		case !has && !entries.Global:
			continue
		case !c.Caller.OfOrganisation() && spaces[i].ID != c.Caller.Scope.Workspace:
			continue
		}
		all = append(all, shown(c, &spaces[i], own))
	}
	out := admin.Members{"global_workspace_access": Global(entries), "workspaces": admin.OrEmpty(admin.Cut(all, page))}
	if c.Query.HasValue("version") {
		out = admin.Members{"global_workspace_access": Global(entries), "data": out["workspaces"], "total": len(all)}
	}
	return out, nil
}

// shown is an entry of the response. A workspace sees itself by its slug, the organization
// sees workspaces by id.
func shown(c *admin.Call, ws *resource.Row, own access.Workspace) admin.Members {
	id := ws.ID
	if !c.Caller.OfOrganisation() {
		id = ws.Slug
	}
	return admin.Members{"id": id, "enabled": own.Enabled, "status": ws.Status, "created_at": at(own.Created), "last_updated_at": at(own.Updated)}
}

func at(ms int64) any {
	if ms == 0 {
		return nil
	}
	return admin.FormatTime(time.UnixMilli(ms))
}

func (w Workspaces[T]) put(c *admin.Call) (any, error) {
	return nil, w.Of.Edit(c, func(_ *resource.Tx, ch *admin.Change[T]) error {
		if ch.Rec.Scope.Workspace != "" {
			return fault.Invalid("workspaces", "cannot be set: it belongs to one workspace")
		}
		return Apply(c, w.Entries(ch.Form))
	})
}

// Apply changes entries as specified by the body.
func Apply(c *admin.Call, entries *access.Workspaces) error {
	sent := c.Body.Objects("workspaces")
	ids, err := named(c, sent)
	if err != nil {
		return err
	}
	if c.Body.Has("global_workspace_access") {
		in, _ := c.Body.Object("global_workspace_access") // null takes it
		entries.Global = in.Bool("enabled")
	}
	if c.Body.Bool("override_existing_workspace_access") {
		entries.Own = nil
	}
	entries.Own = slices.Clone(entries.Own)
	for n, in := range sent {
		if in.Null("created_at") && in.Bool("enabled") == entries.Enabled(ids[n]) {
			continue // a read showed a workspace without an entry, and was sent back
		}
		entries.Set(ids[n], in.Bool("enabled"), c.Now)
	}
	if bad := fault.Invalids(entries.Validate()); bad != nil {
		return bad
	}
	return nil
}

// named finds the workspaces of the entries, by id or slug.
func named(c *admin.Call, sent []admin.Values) ([]string, error) {
	names := make([]string, len(sent))
	for n, in := range sent {
		names[n] = in.Text("id")
	}
	return Named(c, names, func(n int) string { return fmt.Sprintf("workspaces[%d].id", n) })
}

// Named returns the ids of workspaces given by id or slug; field returns the path of the n-th
// in the body.
func Named(c *admin.Call, names []string, field func(n int) string) ([]string, error) {
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]string, 2*len(spaces))
	for i := range spaces {
		ids[spaces[i].Slug] = spaces[i].ID
	}
	for i := range spaces { // an id wins over a slug
		ids[spaces[i].ID] = spaces[i].ID
	}
	out, seen := make([]string, len(names)), map[string]bool{}
	var bad []fault.Detail
	for n, name := range names {
		id, ok := ids[name]
		switch {
		case !ok:
			bad = append(bad, fault.Detail{Field: field(n), Message: "must name a workspace of the organization"})
		case seen[id]:
			bad = append(bad, fault.Detail{Field: field(n), Message: "must not be listed twice"})
		}
		out[n], seen[id] = id, true
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused
	}
	return out, nil
}
