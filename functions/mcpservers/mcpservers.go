// Package mcpservers is the family of registered MCP servers: integrations, which
// the organisation or a workspace registers, and servers, which are integrations in
// one workspace, with what they can do and who may use them.
package mcpservers

import (
	"net/http"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/identity/signing"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/signin"
)

// Deps is what the family works with.
type Deps struct {
	// CheckURL is the egress rule for hosts that people name.
	CheckURL provider.URLCheck
	// Opener calls servers, to test them and to learn what they can do.
	Opener *mcp.Opener
	// PublicURL is where clients reach the gateway, such as
	// https://gateway.example.com/v1; "": where the request went.
	PublicURL string
	// MCPAddress is that of MCP servers, as oauthserver.Public gives it.
	MCPAddress string
	// Sessions and Loader find who signs in at a server, and at which browser.
	Sessions *signin.Sessions
	Loader   *resource.Loader
	// Signing are the keys whose public halves are published.
	Signing *signing.Keys
}

// Of is what the family works with in an installation. secrets reach secret managers.
func Of(c *app.Core, secrets *provider.Loaded) Deps {
	return Deps{
		CheckURL: c.Egress.CheckURL, PublicURL: c.PublicURL, MCPAddress: oauthserver.Public(c.PublicURL), Sessions: signin.New(c.Loader, c.Resources), Loader: c.Loader, Signing: c.Signing,
		Opener: &mcp.Opener{Sealer: c.Sealer, Via: c.Transport, Hosts: c.Trusting, Now: c.Now, Secrets: secrets},
	}
}

// New returns the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.integrations, f.servers = f.describeIntegrations(), f.describeServers()
	f.known, f.overrides, f.connections = f.describeKnown(), f.describeOverrides(), f.describeConnections()
	return admin.Family{
		Name: "mcpservers", Doc: "MCP integrations and servers.",
		Routes: slices.Concat(f.integrations.Routes(), f.integrationRoutes(), f.servers.Routes(), f.serverRoutes(), signIn{f}.routes(), directory{f}.routes(), (&published{Keys: f.Signing}).routes()),
	}
}

type family struct {
	Deps
	integrations *admin.Collection[mcp.Integration]
	servers      *admin.Collection[mcp.Server]
	known        *admin.Collection[mcp.Capability]
	overrides    *admin.Collection[mcp.Override]
	connections  *admin.Collection[mcp.Connection]
}

// Items and changes of the two.
type (
	integration       = admin.Item[mcp.Integration]
	integrationChange = admin.Change[mcp.Integration]
	server            = admin.Item[mcp.Server]
	serverChange      = admin.Change[mcp.Server]
)

// base returns the address that servers are reached below.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// issuer returns the gateway's name as an authorization server, below which MCP servers are.
func (f *family) issuer(c *admin.Call) string { return oauthserver.Issuer(f.MCPAddress, c.Request) }

func text(name string) admin.Field {
	return admin.Field{Name: name, Type: admin.String, Optional: false}
}
