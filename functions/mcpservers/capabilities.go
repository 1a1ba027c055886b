package mcpservers

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

const maxNamed = 1000

// describeKnown describes the capabilities of an integration.
func (f *family) describeKnown() *admin.Collection[mcp.Capability] {
	return &admin.Collection[mcp.Capability]{
		Kind: mcp.KindCapability, Object: "mcp-capability", Path: "/mcp-integrations/{integrationId}/capabilities", Param: "capabilityId",
		WriteRole: admin.Manager, Parent: f.integrations.AsParent(),
	}
}

// describeOverrides describes a server's settings for capabilities.
func (f *family) describeOverrides() *admin.Collection[mcp.Override] {
	return &admin.Collection[mcp.Override]{
		Kind: mcp.KindOverride, Object: "mcp-server-capability", Path: "/mcp-servers/{serverId}/capabilities", Param: "capabilityId",
		WriteRole: admin.Manager, Parent: f.servers.AsParent(),
	}
}

var (
	capabilityQuery = append(sharing.FromOne().Fields(), admin.Field{Name: "type", Type: admin.String, Enum: mcp.Types, Doc: "Only those of this type."})
	capabilityBody  = []admin.Field{{Name: "capabilities", Type: admin.Array, Required: true, Min: 1, Max: maxNamed, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
		{Name: "name", Type: admin.String, Required: true, Min: 1, Max: 2048, Doc: "Name; for a resource its address (URI)."},
		{Name: "type", Type: admin.String, Required: true, Enum: []string{mcp.Tool, mcp.Prompt, mcp.Resource}, Doc: "Templates are resources."},
		{Name: "enabled", Type: admin.Boolean, Required: true},
	}}}}
)

func (f *family) knownRoutes() []admin.Route {
	const path = "/mcp-integrations/{integrationId}/capabilities"
	return f.known.ItemRoutes(
		admin.Route{Method: "GET", Path: path, Name: "listMcpIntegrationCapabilities", Doc: "List tools, prompts, resources and templates.", Query: capabilityQuery, Response: capabilitiesSchema(true),
			Do: f.known.WithItem("read", func(c *admin.Call) (any, error) {
				it, err := f.integrations.Find(c)
				if err != nil {
					return nil, err
				}
				return f.listCapabilities(c, it.Record, nil)
			})},
		admin.Route{Method: "PUT", Path: path, Name: "updateMcpIntegrationCapabilities", Doc: "Enable and disable capabilities for all servers of the integration. Unknown names are stored and apply when the server adds them.",
			Action: audit.Manage, Errors: []int{409}, Body: capabilityBody, Response: sharing.Done,
			Do: f.known.WithItem("update", func(c *admin.Call) (any, error) {
				it, err := f.integrations.Find(c)
				if err != nil {
					return nil, err
				}
				return f.toggle(c, it.Record, it.Ref(), mcp.KindCapability, switchKnown)
			})},
	)
}

func (f *family) overrideRoutes() []admin.Route {
	const path = "/mcp-servers/{serverId}/capabilities"
	return f.overrides.ItemRoutes(
		admin.Route{Method: "GET", Path: path, Name: "listMcpServerCapabilities", Doc: "List tools, prompts, resources and templates of the server.", Query: capabilityQuery, Response: capabilitiesSchema(false),
			Do: f.overrides.WithItem("read", func(c *admin.Call) (any, error) {
				it, of, err := f.ofServer(c)
				if err != nil {
					return nil, err
				}
				return f.listCapabilities(c, of.Record, it.Record)
			})},
		admin.Route{Method: "PUT", Path: path, Name: "updateMcpServerCapabilities", Doc: "Enable and disable capabilities of the server. Capabilities that the integration disables remain disabled.",
			Action: audit.Manage, Errors: []int{409}, Body: capabilityBody, Response: sharing.Done,
			Do: f.overrides.WithItem("update", func(c *admin.Call) (any, error) {
				it, of, err := f.ofServer(c)
				if err != nil {
					return nil, err
				}
				return f.toggle(c, of.Record, it.Ref(), mcp.KindOverride, switchOverride)
			})},
	)
}

// named is a capability that an entry of the body names.
type named struct {
	id, kind, name string
	enabled        bool
}

// toggle enables or disables the capabilities in the body. of is the integration with the
// capabilities; owner is the resource that owns the records.
func (f *family) toggle(c *admin.Call, of *resource.Record, owner resource.Ref, kind resource.Kind, write func(*admin.Call, *resource.Tx, resource.Record, bool, named) error) (any, error) {
	rows, err := c.Resources.List(c.Context, of.Scope, mcp.KindCapability.Of(of.ID))
	if err != nil {
		return nil, err
	}
	var all []named
	seen := map[string]bool{}
	for n, in := range c.Body.Objects("capabilities") {
		for _, e := range wanted(rows, in) {
			if seen[e.id] {
				return nil, fault.Invalid("capabilities["+itoa(n)+"].name", "must not be listed twice")
			}
			seen[e.id] = true
			all = append(all, e)
		}
	}
	err = admin.InChunks(c, all, 3, func(tx *resource.Tx, part []named) error {
		if err := tx.Require(owner); err != nil {
			return err
		}
		for _, e := range part {
			rec, ok, err := tx.Get(owner.Scope, kind.Of(owner.ID), e.id)
			if err != nil {
				return err
			}
			if !ok {
				rec = resource.Record{Scope: owner.Scope, Kind: kind.Of(owner.ID), ID: e.id, Name: e.name, Status: "active", CreatedBy: c.Actor()}
			}
			rec.UpdatedBy = c.Actor()
			if err := write(c, tx, rec, ok, e); err != nil {
				return err
			}
		}
		return nil
	})
	return admin.Members{"success": true}, err
}

// wanted returns the capabilities that an entry names: by name, and resources and templates
// also by URI. An unknown one is stored under its name.
func wanted(rows []resource.Row, in admin.Values) (out []named) {
	kind, name, on := in.Text("type"), in.Text("name"), in.Bool("enabled")
	kinds := []string{kind}
	if kind == mcp.Resource {
		kinds = append(kinds, mcp.ResourceTemplate)
	}
	for i := range rows {
		r := &rows[i]
		if t := r.Fields[mcp.FieldType]; slices.Contains(kinds, t) && (r.Name == name || r.ID == mcp.CapabilityID(t, name)) {
			out = append(out, named{r.ID, t, r.Name, on})
		}
	}
	if out == nil {
		out = []named{{mcp.CapabilityID(kind, name), kind, name, on}}
	}
	return out
}

func switchKnown(_ *admin.Call, tx *resource.Tx, rec resource.Record, known bool, e named) error {
	form := &mcp.Capability{Type: e.kind}
	if known {
		var err error
		if form, err = mcp.DecodeCapability(rec); err != nil {
			return err
		}
	}
	form.Enabled = e.enabled
	if err := form.EncodeTo(&rec); err != nil {
		return err
	}
	return write(tx, &rec, known)
}

func switchOverride(_ *admin.Call, tx *resource.Tx, rec resource.Record, known bool, e named) error {
	body, err := json.Marshal(mcp.Override{Type: e.kind, Name: e.name, Enabled: e.enabled})
	if err != nil {
		return err
	}
	rec.Body = body
	return write(tx, &rec, known)
}

func write(tx *resource.Tx, rec *resource.Record, known bool) error {
	if known {
		return tx.Update(rec)
	}
	return tx.Create(rec)
}

// listCapabilities returns a page of an integration's capabilities. server is the server with
// overrides, or nil.
func (f *family) listCapabilities(c *admin.Call, of, server *resource.Record) (any, error) {
	page, err := sharing.FromOne().Of(c.Query)
	if err != nil {
		return nil, err
	}
	rows, err := c.Resources.List(c.Context, of.Scope, mcp.KindCapability.Of(of.ID))
	if err != nil {
		return nil, err
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b resource.Row) int {
		return cmp.Or(cmp.Compare(place(&a), place(&b)), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	overrides := map[string]bool{}
	if server != nil {
		if overrides, err = overridesOf(c, server); err != nil {
			return nil, err
		}
	}
	counts := map[string]*count{}
	for _, t := range mcp.Types {
		counts[t] = new(count)
	}
	var shown []resource.Row
	for _, r := range rows {
		kind := r.Fields[mcp.FieldType]
		n := counts[kind]
		if n == nil {
			continue
		}
		n.Total++
		if own, set := overrides[r.ID]; r.Fields[mcp.FieldEnabled] != "" && (own || !set) {
			n.Enabled++
		}
		if !c.Query.HasValue("type") || c.Query.Text("type") == kind {
			shown = append(shown, r)
		}
	}
	cut := admin.Cut(shown, page)
	ids := make([]string, len(cut))
	for i := range cut {
		ids[i] = cut[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, of.Scope, mcp.KindCapability.Of(of.ID), ids)
	if err != nil {
		return nil, err
	}
	entries := make([]admin.Members, 0, len(recs))
	for i := range recs {
		e, err := showCapability(&recs[i])
		if err != nil {
			return nil, err
		}
		if server != nil {
			asOfServer(c, e, &recs[i], overrides)
		}
		entries = append(entries, e)
	}
	return admin.Members{
		"data": entries, "total": len(shown), "has_more": page.Number*page.Size < int64(len(shown)),
		"counts": admin.Members{"tools": counts[mcp.Tool], "prompts": counts[mcp.Prompt], "resources": counts[mcp.Resource], "resource_templates": counts[mcp.ResourceTemplate]},
	}, nil
}

type count struct {
	Total   int `json:"total"`
	Enabled int `json:"enabled"`
}

func place(r *resource.Row) int { return slices.Index(mcp.Types, r.Fields[mcp.FieldType]) }

// overridesOf returns a server's settings for capabilities by id.
func overridesOf(c *admin.Call, server *resource.Record) (map[string]bool, error) {
	kind := mcp.KindOverride.Of(server.ID)
	rows, err := c.Resources.List(c.Context, server.Scope, kind)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, server.Scope, kind, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(recs))
	for i := range recs {
		o, err := mcp.DecodeOverride(recs[i])
		if err != nil {
			return nil, err
		}
		out[recs[i].ID] = o.Enabled
	}
	return out, nil
}

// asOfServer shows a capability with the server's setting. Service keys also see the
// integration's.
func asOfServer(c *admin.Call, e admin.Members, rec *resource.Record, overrides map[string]bool) {
	delete(e, "created_at")
	delete(e, "last_updated_at")
	own, set := overrides[rec.ID]
	own = own || !set
	if c.Caller.UserID == "" {
		e["integration_enabled"] = e["enabled"]
		e["enabled"] = own
		return
	}
	e["enabled"] = own && e["enabled"] == true
}

// members are the fields of a capability that are the upstream's, with their names in
// responses.
var members = [][2]string{
	{"title", "title"}, {"description", "description"}, {"icons", "icons"}, {"inputSchema", "input_schema"}, {"outputSchema", "output_schema"}, {"execution", "execution"},
	{"annotations", "annotations"}, {"arguments", "arguments"}, {"uri", "uri"}, {"uriTemplate", "uri_template"}, {"mimeType", "mime_type"}, {"size", "size"},
}

func showCapability(rec *resource.Record) (admin.Members, error) {
	form, err := mcp.DecodeCapability(*rec)
	if err != nil {
		return nil, err
	}
	out := admin.Members{"name": rec.Name, "type": form.Type, "enabled": form.Enabled, "created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated)}
	var shape map[string]json.RawMessage
	if len(form.Shape) > 0 {
		if err := json.Unmarshal(form.Shape, &shape); err != nil {
			return nil, err
		}
	}
	for _, m := range members {
		out[m[1]] = rawOrNull(shape[m[0]])
	}
	return out, nil
}

func capabilitiesSchema(dated bool) admin.Schema {
	entry := map[string]admin.Schema{"name": {"type": "string"}, "type": {"type": "string", "enum": mcp.Types}, "enabled": {"type": "boolean"}}
	for _, m := range members {
		entry[m[1]] = admin.Schema{"description": "As reported by the server."}
	}
	if dated {
		entry["created_at"], entry["last_updated_at"] = admin.Schema{"type": "string", "format": "date-time"}, admin.Schema{"type": "string", "format": "date-time"}
	}
	whole := admin.Closed(entry)
	if !dated {
		whole["properties"].(map[string]admin.Schema)["integration_enabled"] = admin.Schema{"type": "boolean", "description": "For keys of services."}
	}
	counted := admin.Closed(map[string]admin.Schema{"total": {"type": "integer"}, "enabled": {"type": "integer"}})
	return admin.Closed(map[string]admin.Schema{
		"data": {"type": "array", "items": whole}, "total": {"type": "integer"}, "has_more": {"type": "boolean"},
		"counts": admin.Closed(map[string]admin.Schema{"tools": counted, "prompts": counted, "resources": counted, "resource_templates": counted}),
	})
}
