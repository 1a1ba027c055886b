// Package mcpservers is the administration API of registered MCP servers: integrations of the
// organisation or a workspace, and servers, which are integrations in one workspace, with their
// capabilities and access.
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

// Deps are the dependencies of the package.
type Deps struct {
	// CheckURL is the egress rule for hosts that users configure.
	CheckURL provider.URLCheck
	// Opener calls servers to test and inspect them.
	Opener *mcp.Opener
	// PublicURL is the gateway's public address, such as https://gateway.example.com/v1; empty
	// for the address of the request.
	PublicURL string
	// MCPAddress is the address of MCP servers, as oauthserver.Public returns it.
	MCPAddress string
	// Sessions and Loader identify the user and the browser of a sign-in.
	Sessions *signin.Sessions
	Loader   *resource.Loader
	// Signing are the keys with published public halves.
	Signing *signing.Keys
}

// Of returns the dependencies in an installation. secrets connects to secret managers.
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

// Items and changes of integrations and servers.
type (
	integration       = admin.Item[mcp.Integration]
	integrationChange = admin.Change[mcp.Integration]
	server            = admin.Item[mcp.Server]
	serverChange      = admin.Change[mcp.Server]
)

// base returns the address below which servers are reached.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// issuer returns the address of the authorization server.
func (f *family) issuer(c *admin.Call) string { return oauthserver.Issuer(f.MCPAddress, c.Request) }

func text(name string) admin.Field {
	return admin.Field{Name: name, Type: admin.String, Optional: false}
}
