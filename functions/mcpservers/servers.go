package mcpservers

import (
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

const scopeServers = "mcp_servers"

func (f *family) describeServers() *admin.Collection[mcp.Server] {
	slug := admin.SlugField(mcp.MaxSlug)
	slug.Min, slug.Doc = mcp.MinSlug, "Part of the server's URL, unique in the organization; default: generated from the name."
	of := func(fd admin.Field, value func(c *admin.Call, it server) any) admin.ComputedField[mcp.Server] {
		return admin.ComputedField[mcp.Server]{Field: fd, Value: value}
	}
	shown := []admin.ComputedField[mcp.Server]{
		of(admin.Field{Name: "owner_id", Type: admin.String, Required: true}, func(_ *admin.Call, it server) any { return it.CreatedBy }),
		of(admin.Field{Name: "mcp_integration_id", Type: admin.String, Required: true, Doc: "Empty for virtual servers, as its slug is."}, func(_ *admin.Call, it server) any { return it.Form.IntegrationID }),
		of(admin.Field{Name: "mcp_integration_slug", Type: admin.String, Required: true}, func(_ *admin.Call, it server) any { return it.Form.IntegrationSlug }),
		of(admin.Field{Name: "url", Type: admin.String, Required: true, Doc: "URL for clients."}, func(c *admin.Call, it server) any { return f.base(c.Request) + mcp.PathPrefix + "/" + it.Slug + "/mcp" }),
		{Field: text("mcp_integration_url")}, {Field: text("auth_type")}, {Field: text("workspace_name")}, {Field: text("workspace_slug")},
		{Field: admin.Field{Name: "mcp_integration_details", Type: admin.Object, Open: true, Single: true, Optional: true, Doc: "For keys of services; secrets are masked."}},
	}
	for _, m := range reportedFields {
		fd := m.Field
		if fd.Name == "sync_status" {
			fd.Absent = mcp.SyncPending
		}
		shown = append(shown, admin.ComputedField[mcp.Server]{Field: fd})
	}
	return &admin.Collection[mcp.Server]{
		Kind: mcp.KindServer, Object: "mcp-server", Path: "/mcp-servers", Param: "serverId",
		Scope: scopeServers, Level: admin.InWorkspace, WriteRole: admin.Manager, Slugs: &admin.Slugs{Max: 40},
		List: admin.List{Paging: admin.Paging{DefaultSize: 100, MaxSize: 100}, Envelope: &admin.TotalEnvelope, Search: true, IDs: "id"},
		Fields: []admin.Field{
			admin.NameField(mcp.MaxName), slug, {Name: "description"},
			{Name: "mcp_integration_id", Doc: "Id or slug of the integration, which cannot be changed. Required except for virtual servers.", Type: admin.String, Min: 1, Max: 255, Trigger: true, CreateOnly: true, Reference: "/mcp-integrations"},
			{Name: "members", Optional: true, Doc: "For a virtual server, instead of an integration: the servers that provide its tools. An update replaces the list."},
			{Name: "search", Optional: true, Doc: "For a virtual server: when it lists the tool search_tools instead of all tools. Default auto: with more tools than search_threshold."},
			{Name: "search_threshold", Optional: true, Doc: "For a virtual server: the number of tools visible to a caller above which the search replaces them; default 40."},
		},
		Computed: shown, Before: f.bind, Decorate: f.decorateServers,
		After: func(_ *admin.Call, tx *resource.Tx, ch *serverChange) error {
			if ch.Creates() {
				mcp.ClaimSlug(tx, ch.Rec)
			}
			return link(tx, ch)
		},
		Retire: func(_ *admin.Call, tx *resource.Tx, it server) error { return mcp.Release(tx, it.Record) },
	}
}

// bind finds the integration of a new server: the workspace's own before the organization's. A
// missing integration and one that is not available to the workspace are indistinguishable.
func (f *family) bind(c *admin.Call, tx *resource.Tx, ch *serverChange) error {
	if virtual, err := f.bundle(c, tx, ch); virtual || err != nil || !ch.Creates() {
		return err
	}
	if !c.Body.HasValue("mcp_integration_id") {
		return fault.Invalid("mcp_integration_id", "is required, unless members are sent for a virtual server")
	}
	for _, sc := range []store.Scope{ch.Rec.Scope, ch.Rec.Scope.Organisation()} {
		of, ok, err := tx.Get(sc, mcp.KindIntegration, c.Body.Text("mcp_integration_id"))
		if err != nil {
			return err
		}
		if !ok || of.Archived() {
			continue
		}
		i, err := mcp.DecodeIntegration(of)
		if err != nil {
			return err
		}
		if !i.Access.OpenTo(&of, ch.Rec.Scope.Workspace) {
			break
		}
		ch.Form.IntegrationID, ch.Form.IntegrationSlug, ch.Form.IntegrationOrg = of.ID, of.Slug, sc.Workspace == ""
		return nil
	}
	return fault.Invalid("mcp_integration_id", "must name an integration that this workspace may use; PUT /v1/mcp-integrations/{id}/workspaces grants access")
}

// decorateServers adds data of the integrations and the workspace, which are read in batches.
func (f *family) decorateServers(c *admin.Call, items []server, objects []admin.Members) error {
	found := integrations{}
	if err := readIntegrations(c, items, found); err != nil {
		return err
	}
	spaces, err := f.workspacesOf(c, items)
	if err != nil {
		return err
	}
	for n, it := range items {
		if ws := spaces[it.Scope.Workspace]; ws != nil {
			objects[n]["workspace_name"], objects[n]["workspace_slug"] = ws.Name, ws.Slug
		}
		if of := found.of(it); of != nil {
			showIntegration(c, of, objects[n])
		}
	}
	return nil
}

// integrations caches integrations by scope and id; nil for a missing one.
type integrations map[store.Scope]map[string]*integration

// of returns the integration of a server.
func (known integrations) of(it server) *integration {
	return known[it.Form.IntegrationScope(it.Scope)][it.Form.IntegrationID]
}

// readIntegrations reads the integrations of servers that are not cached, in one batch.
func readIntegrations(c *admin.Call, servers []server, known integrations) error {
	missing := map[store.Scope][]string{}
	for _, it := range servers {
		if it.Form.Virtual() {
			continue
		}
		sc, id := it.Form.IntegrationScope(it.Scope), it.Form.IntegrationID
		if known[sc] == nil {
			known[sc] = map[string]*integration{}
		}
		if _, ok := known[sc][id]; !ok {
			known[sc][id] = nil
			missing[sc] = append(missing[sc], id)
		}
	}
	for sc, ids := range missing {
		recs, err := c.Resources.GetMany(c.Context, sc, mcp.KindIntegration, ids)
		if err != nil {
			return err
		}
		for i := range recs {
			form, err := mcp.DecodeIntegration(recs[i])
			if err != nil {
				return err
			}
			known[sc][recs[i].ID] = &integration{Record: &recs[i], Form: form}
		}
	}
	return nil
}

// workspacesOf returns the workspaces of servers by id.
func (f *family) workspacesOf(c *admin.Call, items []server) (map[string]*resource.Record, error) {
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.Scope.Workspace
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), tenant.KindWorkspace, ids)
	found := make(map[string]*resource.Record, len(recs))
	for i := range recs {
		found[recs[i].ID] = &recs[i]
	}
	return found, err
}

func showIntegration(c *admin.Call, of *integration, o admin.Members) {
	i := of.Form
	o["mcp_integration_url"], o["auth_type"] = i.URL, i.AuthType
	for _, m := range reportedFields {
		o[m.Name] = m.of(&i.Synced)
	}
	if c.Caller.UserID == "" {
		o["mcp_integration_details"] = admin.Members{
			"id": of.ID, "slug": of.Slug, "status": of.Status, "configurations": admin.OrEmptyMap(i.Configurations), "url": i.URL, "transport": i.Transport, "auth_type": i.AuthType,
		}
	}
}

// serverRoutes returns the routes of one server in addition to the standard ones.
func (f *family) serverRoutes() []admin.Route {
	const item = "/mcp-servers/{serverId}"
	routes := f.servers.ItemRoutes(
		admin.Route{Method: "GET", Path: item + "/metadata", Name: "getMcpServerMetadata", Doc: "Read the server's self-description.", Response: metadataSchema,
			Do: f.servers.WithItem("read", func(c *admin.Call) (any, error) {
				_, of, err := f.ofServer(c)
				if err != nil {
					return nil, err
				}
				return metadata(&of.Form.Synced), nil
			})},
		admin.Route{Method: "POST", Path: item + "/test", Aliases: []string{item + "/capabilities/sync", item + "/metadata/sync"}, Name: "testMcpServer", Doc: "Connect to the server and update its capabilities.", Action: audit.Test, Response: probeSchema,
			Do: f.servers.WithItem("update", func(c *admin.Call) (any, error) {
				it, of, err := f.ofServer(c)
				if err != nil {
					return nil, err
				}
				return f.probe(c, of.Record, it.Scope)
			})},
	)
	routes = append(routes, f.overrideRoutes()...)
	routes = append(routes, sharing.Users[mcp.Server]{
		Of: f.servers, Path: item + "/user-access", Object: "mcp-server-user", Name: "McpServer", Kind: mcp.KindUser,
		Default: func(s *mcp.Server) *string { return &s.UserAccess }, Connected: connected,
	}.Routes()...)
	return append(append(routes, f.connectionRoutes()...), f.selfRoutes()...)
}

// ofServer returns the server in the path, and its integration.
func (f *family) ofServer(c *admin.Call) (server, integration, error) {
	it, err := f.servers.Find(c)
	if err != nil {
		return it, integration{}, err
	}
	if it.Form.Virtual() {
		return it, integration{}, fault.Invalid("serverId", "is a virtual server: read its capabilities and state from its members")
	}
	ref := it.Form.Integration(it.Scope)
	rec, ok, err := c.Resources.Get(c.Context, ref.Scope, ref.Kind, ref.ID)
	if err == nil && !ok {
		err = admin.Denied()
	}
	if err != nil {
		return it, integration{}, err
	}
	form, err := mcp.DecodeIntegration(rec)
	return it, integration{Record: &rec, Form: form}, err
}

// bundle validates a virtual server and resolves its members, which are stored by id. virtual
// is false for the server of an integration.
func (f *family) bundle(c *admin.Call, tx *resource.Tx, ch *serverChange) (virtual bool, err error) {
	if !ch.Form.Virtual() && !ch.OldForm.Virtual() {
		if ch.Creates() && c.Body.Has("members") && !c.Body.HasValue("mcp_integration_id") {
			return false, fault.Invalid("members", "must name at least one server")
		}
		for _, name := range []string{"members", "search", "search_threshold"} {
			if c.Body.HasValue(name) {
				return false, fault.Invalid(name, "is only allowed for virtual servers, which have members instead of an integration")
			}
		}
		return false, nil
	}
	switch {
	case ch.Creates() && c.Body.HasValue("mcp_integration_id"):
		return true, fault.Invalid("members", "cannot be given together with mcp_integration_id")
	case !ch.Creates() && !ch.OldForm.Virtual():
		return true, fault.Invalid("members", "is only allowed for virtual servers: this server belongs to an integration")
	case !ch.Form.Virtual():
		return true, fault.Invalid("members", "must name at least one server")
	case !c.Body.Has("members"):
		return true, nil
	}
	bad, err := found(tx, ch)
	if err != nil {
		return true, err
	}
	if bad == nil {
		bad = ch.Form.CheckMembers()
	}
	if invalid := fault.Invalids(bad); invalid != nil {
		return true, invalid
	}
	return true, nil
}

// found replaces the names of members by their ids, and returns faults for missing ones.
// Members of another workspace are missing.
func found(tx *resource.Tx, ch *serverChange) (bad []fault.Detail, err error) {
	ch.Form.Members = slices.Clone(ch.Form.Members)
	for i := range ch.Form.Members {
		m := &ch.Form.Members[i]
		field := fmt.Sprintf("members[%d].server", i)
		rec, ok, err := tx.Get(ch.Rec.Scope, mcp.KindServer, m.Server)
		if err != nil {
			return nil, err
		}
		if !ok || rec.Archived() {
			bad = append(bad, fault.Detail{Field: field, Message: "must name an MCP server of the workspace"})
			continue
		}
		form, err := mcp.DecodeServer(rec)
		if err != nil {
			return nil, err
		}
		if form.Virtual() {
			bad = append(bad, fault.Detail{Field: field, Message: "is a virtual server: name its members instead"})
		}
		m.Server = rec.ID
	}
	return bad, nil
}

// link stages the references of a server, which prevent their deletion.
func link(tx *resource.Tx, ch *serverChange) error {
	by := ch.Rec.Ref()
	now := ch.Form.Uses(ch.Rec.Scope)
	var was []resource.Ref
	if !ch.Creates() {
		was = ch.OldForm.Uses(ch.Rec.Scope)
	}
	for _, of := range was {
		if !slices.Contains(now, of) {
			if err := tx.RemoveUse(of, by); err != nil {
				return err
			}
		}
	}
	for _, of := range now {
		if !slices.Contains(was, of) {
			if err := tx.Use(of, by); err != nil {
				return err
			}
		}
	}
	return nil
}
