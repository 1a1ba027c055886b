// Package agentservers is the administration API of registered agents: integrations of the
// organisation or a workspace, and servers, which are integrations in one workspace, with their
// skills and access.
package agentservers

import (
	"net/http"
	"slices"

	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/provider"
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
