// Package auth is the API for signing in: the identity providers and domains of an
// organisation, the sign-in itself, the current user, and sessions.
package auth

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/attempts"
	"gateway/shared/signin/sso"
)

// Deps are the dependencies of the package.
type Deps struct {
	Sessions *signin.Sessions
	// Self authenticates callers of routes about themselves, SessionOf their session.
	Self      admin.Authenticate
	SessionOf func(context.Context, *http.Request) (*signin.Session, string, error)
	// Keys authenticates API keys; CallerOf returns the current permissions of a key. Browser
	// authenticates callers of routes about a browser's session.
	Keys     *identity.Authenticator
	CallerOf func(context.Context, *identity.Principal) (admin.Caller, error)
	Browser  admin.Authenticate
	// CheckURL is the egress rule for hosts that users configure; Via is the guarded transport
	// to identity providers, LookUpTXT the DNS resolver.
	CheckURL  func(raw, field string) (*url.URL, error)
	Via       http.RoundTripper
	LookUpTXT sso.LookUp
	// Record receives audit records of failed sign-ins. It may be nil.
	Record    func(ctx context.Context, org string, e audit.Entry) error
	Loader    *resource.Loader
	Resources *resource.Resources
	// MCPAddress is the address of MCP servers and their authorization server, as
	// oauthserver.Public returns it.
	MCPAddress string
	PublicURL  string // public address of the gateway; empty for the address of the request
}

// Of returns the dependencies in an installation.
func Of(c *app.Core) Deps {
	c.Renewal = renewal(c) // this process may renew sessions at identity providers
	sessions := console.Sessions(c)
	d := Deps{Sessions: sessions, Self: console.Self(c), SessionOf: console.SessionOf(c, sessions), Keys: c.Auth, Browser: console.Browser(c), CheckURL: c.Egress.CheckURL, Via: c.Transport, PublicURL: c.PublicURL, MCPAddress: oauthserver.Public(c.PublicURL), Loader: c.Loader, Resources: c.Resources}
	d.LookUpTXT = func(ctx context.Context, name string) ([]string, error) {
		if c.LookUpTXT != nil {
			return c.LookUpTXT(ctx, name)
		}
		return net.DefaultResolver.LookupTXT(ctx, name)
	}
	d.CallerOf = func(ctx context.Context, p *identity.Principal) (admin.Caller, error) {
		return console.CallerOf(ctx, c.Loader, p)
	}
	d.Record = func(ctx context.Context, org string, e audit.Entry) error {
		if c.Records == nil {
			return nil
		}
		return c.Records.Record(context.WithoutCancel(ctx), org, e)
	}
	return d
}

// New returns the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d, attempts: &attempts.Counter{Store: d.Resources.Store()}}
	f.connections, f.domains = f.describeConnections(), f.describeDomains()
	return admin.Family{Name: "auth", Doc: "Sign-in of users, sessions, SSO configurations and domains, and the OAuth server.", Routes: slices.Concat(themselves{f}.selfRoutes(), f.browserRoutes(), f.loginRoutes(), bySAML{f}.samlRoutes(), f.connections.Routes(), f.verifyConnection(), f.domains.Routes(), f.verifyDomain(), (&granting{f}).oauthRoutes())}
}

type family struct {
	Deps
	attempts    *attempts.Counter
	connections *admin.Collection[sso.Connection]
	domains     *admin.Collection[sso.Domain]
}

// about are the scopes of routes about the caller, which every signed-in user has.
var about = []string{"auth.self"}
