// Package agentservers is the administration API of registered agents: integrations of the
// organization or a workspace, and servers, which are integrations in one workspace, with their
// skills and access.
package agentservers

import (
	"net/http"
	"slices"

	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// Deps are the dependencies of the package.
type Deps struct {
	// CheckURL is the egress rule for hosts that users configure.
	CheckURL provider.URLCheck
	// Opener calls agents for their cards.
	Opener *a2a.Opener
	// PublicURL is the gateway's public address, such as https://gateway.example.com/v1; empty
	// for the address of the request.
	PublicURL string
}

// New returns the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.integrations, f.servers = f.describeIntegrations(), f.describeServers()
	f.ofIntegration = f.describeSwitches(a2a.KindIntegrationSwitch, "agent-integration-skill", "/agent-integrations/{integrationId}/skills", "agent_integration_skills", f.integrations.AsParent())
	f.ofServer = f.describeSwitches(a2a.KindServerSwitch, "agent-server-skill", "/agent-servers/{serverId}/skills", "agent_server_skills", f.servers.AsParent())
	routes := slices.Concat(f.integrations.Routes(), f.integrationRoutes(), f.servers.Routes(), f.serverRoutes(), f.skillRoutes())
	routes = append(routes, sharing.Users[a2a.Server]{
		Of: f.servers, Path: "/agent-servers/{serverId}/user-access", Object: "agent-server-user", Name: "AgentServer", Kind: a2a.KindUser, Scope: "agent_server_user_access",
		Default: func(s *a2a.Server) *string { return &s.UserAccess },
	}.Routes()...)
	routes = append(routes, sharing.Workspaces[a2a.Integration]{
		Of: f.integrations, Name: "AgentIntegration", Entries: func(i *a2a.Integration) *access.Workspaces { return &i.Access },
	}.Routes("/agent-integrations/{integrationId}/workspaces")...)
	return admin.Family{Name: "agentservers", Doc: "Agent integrations and servers.", Routes: routes}
}

type family struct {
	Deps
	integrations            *admin.Collection[a2a.Integration]
	servers                 *admin.Collection[a2a.Server]
	ofIntegration, ofServer *admin.Collection[a2a.Switch]
}

// Items and changes of integrations and servers.
type (
	integration       = admin.Item[a2a.Integration]
	integrationChange = admin.Change[a2a.Integration]
	server            = admin.Item[a2a.Server]
	serverChange      = admin.Change[a2a.Server]
)

// base returns the address below which agents are reached.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

func (f *family) describeServers() *admin.Collection[a2a.Server] {
	slug := admin.SlugField(a2a.MaxSlug)
	slug.Min, slug.Doc = a2a.MinSlug, "Part of the agent's URL, unique in the organization; default: generated from the name."
	of := func(name, doc string, value func(c *admin.Call, it server) any) admin.ComputedField[a2a.Server] {
		return admin.ComputedField[a2a.Server]{Field: admin.Field{Name: name, Type: admin.String, Required: true, Doc: doc}, Value: value}
	}
	return &admin.Collection[a2a.Server]{
		Kind: a2a.KindServer, Object: "agent-server", Path: "/agent-servers", Param: "serverId",
		Scope: "agent_servers", Level: admin.InWorkspace, WriteRole: admin.Manager, Slugs: &admin.Slugs{Max: 40},
		List: admin.List{Paging: admin.Paging{DefaultSize: 100, MaxSize: 100}, Envelope: &admin.TotalEnvelope, Search: true, IDs: "id"},
		Fields: []admin.Field{
			admin.NameField(a2a.MaxName), slug, {Name: "description"},
			{Name: "agent_integration_id", Doc: "Id or slug of the integration, which cannot be changed.", Type: admin.String, Required: true, Min: 1, Max: 255, Trigger: true, CreateOnly: true, Reference: "/agent-integrations"},
		},
		Computed: []admin.ComputedField[a2a.Server]{
			of("owner_id", "", func(_ *admin.Call, it server) any { return it.CreatedBy }),
			of("agent_integration_id", "", func(_ *admin.Call, it server) any { return it.Form.IntegrationID }),
			of("agent_integration_slug", "", func(_ *admin.Call, it server) any { return it.Form.IntegrationSlug }),
			of("url", "URL at which clients call the agent.", func(c *admin.Call, it server) any { return f.address(c, it) }),
		},
		Before: f.bind,
		After: func(_ *admin.Call, tx *resource.Tx, ch *serverChange) error {
			if !ch.Creates() {
				return nil
			}
			a2a.ClaimSlug(tx, ch.Rec)
			return tx.Use(ch.Form.Integration(ch.Rec.Scope), ch.Rec.Ref())
		},
		Retire: func(_ *admin.Call, tx *resource.Tx, it server) error { return a2a.Release(tx, it.Record) },
	}
}

func (f *family) address(c *admin.Call, it server) string {
	return f.base(c.Request) + "/agent/" + it.Slug
}

// bind finds the integration of a new server: the workspace's own before the organization's. A
// missing integration and one that is not available to the workspace are indistinguishable.
func (f *family) bind(c *admin.Call, tx *resource.Tx, ch *serverChange) error {
	if !ch.Creates() {
		return nil
	}
	for _, sc := range []store.Scope{ch.Rec.Scope, ch.Rec.Scope.Organisation()} {
		of, ok, err := tx.Get(sc, a2a.KindIntegration, c.Body.Text("agent_integration_id"))
		if err != nil {
			return err
		}
		if !ok || of.Archived() {
			continue
		}
		i, err := a2a.DecodeIntegration(of)
		if err != nil {
			return err
		}
		if !i.Access.OpenTo(&of, ch.Rec.Scope.Workspace) {
			break
		}
		ch.Form.IntegrationID, ch.Form.IntegrationSlug, ch.Form.IntegrationOrg = of.ID, of.Slug, sc.Workspace == ""
		return nil
	}
	return fault.Invalid("agent_integration_id", "must name an integration that this workspace may use; PUT /v1/agent-integrations/{id}/workspaces grants access")
}

// whole returns the server in the path and its integration.
func (f *family) whole(c *admin.Call) (server, integration, error) {
	it, err := f.servers.Find(c)
	if err != nil {
		return it, integration{}, err
	}
	ref := it.Form.Integration(it.Scope)
	rec, ok, err := c.Resources.Get(c.Context, ref.Scope, ref.Kind, ref.ID)
	if err == nil && !ok {
		err = admin.Denied()
	}
	if err != nil {
		return it, integration{}, err
	}
	form, err := a2a.DecodeIntegration(rec)
	return it, integration{Record: &rec, Form: form}, err
}

// serverRoutes returns the routes of one server in addition to the standard ones.
func (f *family) serverRoutes() []admin.Route {
	const item = "/agent-servers/{serverId}"
	return f.servers.ItemRoutes(
		admin.Route{Method: "GET", Path: item + "/agent-card", Name: "getAgentServerCard", Doc: "Read the agent's card as clients get it, with the gateway's address and without disabled skills. Clients get it signed.", Response: cardSchema,
			Do: f.servers.WithItem("read", f.card)},
		admin.Route{Method: "POST", Path: item + "/test", Name: "testAgentServer", Doc: "Fetch and store the agent's card.", Action: audit.Test, Response: probeSchema,
			Do: f.servers.WithItem("update", func(c *admin.Call) (any, error) {
				it, of, err := f.whole(c)
				if err != nil {
					return nil, err
				}
				return f.probe(c, of.Record, it.Scope, of.Form.URL)
			})},
	)
}

func (f *family) card(c *admin.Call) (any, error) {
	it, of, err := f.whole(c)
	if err != nil {
		return nil, err
	}
	if len(of.Form.Card) == 0 {
		return nil, fault.New(fault.NotFound, "", "No card of the agent is stored yet; test the agent to fetch it")
	}
	off, err := f.disabled(c, it, of)
	if err != nil {
		return nil, err
	}
	return a2a.Rewrite(of.Form.Card, a2a.CardOptions{Address: f.address(c, it), Agent: of.Form.URL, Push: of.Form.AllowsPush(), Disabled: func(skill string) bool { return off[skill] }})
}
