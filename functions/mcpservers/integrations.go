package mcpservers

import (
	"encoding/json"

	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
	"gateway/shared/tenant"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

const maxMappings = 100

func (f *family) describeIntegrations() *admin.Collection[mcp.Integration] {
	configurations := admin.FieldOf[mcp.Configuration]("configurations", "How the server is called, and by which users. An update changes the fields that it names; null removes one. Secrets are masked on read.", 0)
	forward := configurations.Member("forward_headers")
	forward.Type, forward.Check, forward.Form = admin.Any, upstream.CheckForward, upstream.ForwardSchema
	return &admin.Collection[mcp.Integration]{
		Kind: mcp.KindIntegration, Object: "mcp-integration", Path: "/mcp-integrations", Param: "integrationId",
		Resource: "mcp_integrations", WriteRole: admin.Manager, Slugs: &admin.Slugs{Max: 40},
		Levels: &admin.Levels[mcp.Integration]{
			Organisation: "organisation_mcp_integrations", Workspace: "workspace_mcp_integrations", Filter: true,
			Open: func(it integration, workspace string) bool { return it.Form.Access.OpenTo(it.Record, workspace) },
		},
		List: admin.List{Paging: admin.Paging{DefaultSize: 100}, Envelope: &admin.MoreEnvelope, Search: true},
		Fields: []admin.Field{
			admin.NameField(mcp.MaxName), admin.SlugField(mcp.MaxSlugLong),
			{Name: "url", Required: true, Doc: "Address of the server, http or https."},
			{Name: "auth_type", Required: true, Doc: "How the gateway authenticates to it."},
			{Name: "transport", Required: true, Doc: "Streamable HTTP, or the older HTTP+SSE transport."},
			{Name: "description"}, configurations,
			admin.FieldOf[[]provider.SecretMapping]("secret_mappings", "Fields of configurations from a secret manager: configurations.<field>.", maxMappings),
		},
		Computed: shownOfIntegration(), Before: f.before, Decorate: f.decorateIntegrations,
		Retire: func(_ *admin.Call, tx *resource.Tx, it integration) error {
			return provider.LinkSecrets(tx, it.Ref(), provider.Links{Was: it.Form.SecretMappings})
		},
		Committed: func(c *admin.Call, ch *integrationChange) {
			if ch.Rec != nil && c.Value(changed) != nil {
				f.learn(c, ch.Rec.Ref())
			}
		},
	}
}

func shownOfIntegration() []admin.ComputedField[mcp.Integration] {
	of := func(fd admin.Field, value func(it integration) any) admin.ComputedField[mcp.Integration] {
		return admin.ComputedField[mcp.Integration]{Field: fd, Value: func(_ *admin.Call, it integration) any { return value(it) }}
	}
	all := []admin.ComputedField[mcp.Integration]{
		of(admin.Field{Name: "type", Type: admin.String, Enum: []string{"organisation", "workspace"}, Required: true}, func(it integration) any { return admin.LevelOf(it.Record) }),
		of(admin.Field{Name: "owner_id", Type: admin.String, Required: true}, func(it integration) any { return it.CreatedBy }),
		of(admin.Field{Name: "configurations", Type: admin.Object, Open: true, Required: true, Doc: "Secrets are masked."}, func(it integration) any { return admin.OrEmptyMap(it.Form.Configurations) }),
		of(admin.Field{Name: "secret_mappings", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Required: true}, func(it integration) any { return admin.OrEmpty(it.Form.SecretMappings) }),
		of(admin.Field{Name: "global_workspace_access", Type: admin.Object, Single: true, Required: true, Form: sharing.GlobalSchema}, func(it integration) any { return sharing.Global(&it.Form.Access) }),
		{Field: admin.Field{Name: "workspaces_count", Type: admin.Integer, Required: true}},
	}
	for _, m := range reportedFields {
		all = append(all, of(m.Field, func(it integration) any { return m.of(&it.Form.Synced) }))
	}
	return all
}

// reportedFields are the fields of list entries that the server reported.
var reportedFields = []struct {
	admin.Field
	of func(m *mcp.Metadata) any
}{
	{text("title"), func(m *mcp.Metadata) any { return admin.OrNull(m.Title) }},
	{admin.Field{Name: "icons", Type: admin.Array, Of: &admin.Field{Type: admin.Any}}, func(m *mcp.Metadata) any { return rawOrNull(m.Icons) }},
	{text("server_name"), func(m *mcp.Metadata) any { return admin.OrNull(m.ServerName) }},
	{text("server_version"), func(m *mcp.Metadata) any { return admin.OrNull(m.ServerVersion) }},
	{text("protocol_version"), func(m *mcp.Metadata) any { return admin.OrNull(m.ProtocolVersion) }},
	{admin.Field{Name: "sync_status", Type: admin.String, Enum: []string{mcp.SyncPending, mcp.SyncSuccess, mcp.SyncFailed}, Required: true}, func(m *mcp.Metadata) any { return syncStatus(m) }},
}

func syncStatus(m *mcp.Metadata) string {
	if m.Status == "" {
		return mcp.SyncPending
	}
	return m.Status
}

func rawOrNull(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// changed marks a call after which the server must be inspected again.
const changed = "changed"

// before applies the configurations and validates the integration.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *integrationChange) error {
	form := ch.Form
	touched := ch.Creates()
	for _, name := range []string{"url", "auth_type", "transport", "configurations", "secret_mappings"} {
		touched = touched || c.Body.Has(name)
	}
	if !touched {
		return nil
	}
	if c.Body.Has("url") {
		u, err := f.CheckURL(form.URL, "url")
		if err != nil {
			return err
		}
		form.URL = u.String()
	}
	if c.Body.Has("secret_mappings") {
		form.SecretMappings = nil
		if err := c.Body.Decode("secret_mappings", &form.SecretMappings); err != nil {
			return err
		}
		if bad := fault.Invalids(mcp.CheckMappings(form.SecretMappings)); bad != nil {
			return bad
		}
	}
	set := upstream.Change{Clear: c.Body.Null("configurations")}
	if c.Body.Has("configurations") {
		if err := c.Body.Decode("configurations", &set.Members); err != nil {
			return err
		}
		if err := form.Configure(c.Context, mcp.ConfigDeps{Sealer: c.Sealer, CheckURL: f.CheckURL}, ch.Rec, set); err != nil {
			return err
		}
	}
	if bad := fault.Invalids(form.Check()); bad != nil {
		return bad
	}
	addresses := form.Addresses(ch.OldForm)
	pinned := hostpin.Change{Addresses: addresses, Retained: set.Retained(ch.Rec)}
	if err := pinned.Check(); err != nil {
		return err
	}
	links := provider.Links{Was: ch.OldForm.SecretMappings, Now: form.SecretMappings, Addresses: addresses, By: c.SecretReferences()}
	if err := provider.LinkSecrets(tx, ch.Rec.Ref(), links); err != nil {
		return err
	}
	if ch.Creates() || form.URL != ch.OldForm.URL || form.AuthType != ch.OldForm.AuthType || form.Transport != ch.OldForm.Transport || c.Body.Has("configurations") || c.Body.Has("secret_mappings") {
		form.Synced.Status, form.Synced.Error = mcp.SyncPending, ""
		c.SetValue(changed, true)
	}
	return nil
}

func (f *family) decorateIntegrations(c *admin.Call, items []integration, objects []admin.Members) error {
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return err
	}
	for n, it := range items {
		objects[n]["workspaces_count"] = sharing.Count(it.Record, &it.Form.Access, spaces)
	}
	return nil
}

// integrationRoutes returns the routes of one integration in addition to the standard ones.
func (f *family) integrationRoutes() []admin.Route {
	const item = "/mcp-integrations/{integrationId}"
	routes := sharing.Workspaces[mcp.Integration]{Of: f.integrations, Name: "McpIntegration", Entries: func(i *mcp.Integration) *access.Workspaces { return &i.Access }}.Routes(item + "/workspaces")
	routes = append(routes, f.integrations.ItemRoutes(
		admin.Route{Method: "GET", Path: item + "/metadata", Name: "getMcpIntegrationMetadata", Doc: "Read the server's self-description.", Response: metadataSchema,
			Do: f.integrations.WithItem("read", func(c *admin.Call) (any, error) {
				it, err := f.integrations.Find(c)
				if err != nil {
					return nil, err
				}
				return metadata(&it.Form.Synced), nil
			})},
		admin.Route{Method: "POST", Path: item + "/test", Aliases: []string{item + "/sync"}, Name: "testMcpIntegration", Doc: "Connect to the server and update its capabilities.", Action: audit.Test, Response: probeSchema,
			Do: f.integrations.WithItem("update", func(c *admin.Call) (any, error) {
				it, err := f.integrations.Find(c)
				if err != nil {
					return nil, err
				}
				return f.probe(c, it.Record, it.Scope)
			})},
	)...)
	return append(routes, f.knownRoutes()...)
}

var metadataSchema = admin.Closed(map[string]admin.Schema{
	"server_name": {"type": []string{"string", "null"}}, "server_version": {"type": []string{"string", "null"}}, "protocol_version": {"type": []string{"string", "null"}},
	"capability_flags": {"type": []string{"object", "null"}}, "sync_status": {"type": "string"}, "last_synced_at": {"type": []string{"string", "null"}, "format": "date-time"},
	"sync_error": {"type": []string{"string", "null"}},
})

func metadata(m *mcp.Metadata) admin.Members {
	out := admin.Members{
		"server_name": admin.OrNull(m.ServerName), "server_version": admin.OrNull(m.ServerVersion), "protocol_version": admin.OrNull(m.ProtocolVersion),
		"capability_flags": rawOrNull(m.Capabilities), "sync_status": syncStatus(m), "last_synced_at": nil, "sync_error": admin.OrNull(m.Error),
	}
	if m.At != nil {
		out["last_synced_at"] = admin.FormatTime(*m.At)
	}
	return out
}
