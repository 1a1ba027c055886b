// Package auth is the family of people who sign in: the identity providers and domains
// of an organisation, the way in, who they are, their sessions and the end of them.
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

// Deps is what the family works with.
type Deps struct {
	Sessions *signin.Sessions
	// Self finds the callers of routes about themselves, SessionOf their session.
	Self      admin.Authenticate
	SessionOf func(context.Context, *http.Request) (*signin.Session, string, error)
	// Keys authenticates API keys; CallerOf returns what a key may do now. Browser finds the
	// callers of routes about the session of a browser.
	Keys     *identity.Authenticator
	CallerOf func(context.Context, *identity.Principal) (admin.Caller, error)
	Browser  admin.Authenticate
	// CheckURL is the egress rule for hosts that people name; Via is the guarded way
	// out to identity providers, LookUpTXT to the domain name system.
	CheckURL  func(raw, field string) (*url.URL, error)
	Via       http.RoundTripper
	LookUpTXT sso.LookUp
	// Record takes audit records of sign-ins that fail; nil: nobody does.
	Record    func(ctx context.Context, org string, e audit.Entry) error
	Loader    *resource.Loader
	Resources *resource.Resources
	// MCPAddress is that of MCP servers and their authorization server, as
	// oauthserver.Public gives it.
	MCPAddress string
	PublicURL  string // where people reach the gateway; "": where the request went
}

// Of is what the family works with in an installation.
func Of(c *app.Core) Deps {
	c.Renewal = renewal(c) // whoever has people call in this process may ask for it
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
	return admin.Family{Name: "auth", Doc: "Who is signed in, and until when.", Routes: slices.Concat(themselves{f}.selfRoutes(), f.browserRoutes(), f.loginRoutes(), bySAML{f}.samlRoutes(), f.connections.Routes(), f.verifyConnection(), f.domains.Routes(), f.verifyDomain(), (&granting{f}).oauthRoutes())}
}

type family struct {
	Deps
	attempts    *attempts.Counter
	connections *admin.Collection[sso.Connection]
	domains     *admin.Collection[sso.Domain]
}

// about are the scopes of routes about the caller, which everybody has who signed in.
var about = []string{"auth.self"}
