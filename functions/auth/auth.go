// Package auth is the API for signing in: the identity providers and domains of an
// organization, the sign-in itself, the current user, and sessions.
package auth

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gateway/functions/auth/browsersession"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp/cors"
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
	Browser   browsersession.Deps
	// CheckURL is the egress rule for hosts that users configure; Transport is the guarded transport
	// to identity providers, LookUpTXT the DNS resolver.
	CheckURL  func(raw, field string) (*url.URL, error)
	Transport http.RoundTripper
	LookUpTXT sso.LookUp
	// Record receives audit records of failed sign-ins. It may be nil.
	Record    func(ctx context.Context, org string, e audit.Entry) error
	Loader    *resource.Loader
	Resources *resource.Resources
	// MCPAddress is the address of MCP servers and their authorization server, as
	// cors.Public returns it.
	MCPAddress string
	PublicURL  string // public address of the gateway; empty for the address of the request
}

// NewDeps returns the dependencies in an installation.
func NewDeps(c *app.Core) Deps {
	c.Renewal = renewal(c) // this process may renew sessions at identity providers
	sessions := console.Sessions(c)
	d := Deps{Sessions: sessions, Self: console.Self(c), SessionOf: console.SessionOf(c, sessions), Browser: browsersession.NewDeps(c), CheckURL: c.Egress.CheckURL, Transport: c.Transport, PublicURL: c.PublicURL, MCPAddress: cors.Public(c.PublicURL), Loader: c.Loader, Resources: c.Resources}
	d.LookUpTXT = func(ctx context.Context, name string) ([]string, error) {
		if c.LookUpTXT != nil {
			return c.LookUpTXT(ctx, name)
		}
		return net.DefaultResolver.LookupTXT(ctx, name)
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
	return admin.Family{Name: browsersession.Name, Doc: "Sign-in of users, sessions, SSO configurations and domains, and the OAuth server.", Routes: slices.Concat(themselves{f}.selfRoutes(), browsersession.Routes(f.Browser), f.loginRoutes(), bySAML{f}.samlRoutes(), f.connections.Routes(), f.verifyConnection(), f.domains.Routes(), f.verifyDomain(), (&granting{f}).oauthRoutes())}
}

type family struct {
	Deps
	attempts    *attempts.Counter
	connections *admin.Collection[sso.Connection]
	domains     *admin.Collection[sso.Domain]
}

// about are the scopes of routes about the caller, which every signed-in user has.
var about = []string{"auth.self"}

const domainsPath = "/auth/domains"

type domain = admin.Item[sso.Domain]

// describeDomains describes the email domains of users who may sign in.
func (f *family) describeDomains() *admin.Collection[sso.Domain] {
	record := func(value func(d *sso.Domain) string) func(*admin.Call, domain) any {
		return func(_ *admin.Call, it domain) any { return value(it.Form) }
	}
	return &admin.Collection[sso.Domain]{
		Kind: sso.KindDomain, Object: "sso-domain", Path: domainsPath, Param: "domainId", UUIDOnly: true,
		Scopes: scopes, Resource: "sso_domains", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin,
		Fields: []admin.Field{
			{Name: "domain", Required: true, Fixed: true, Example: "example.com", Doc: "Domain of email addresses, such as example.com."},
			{Name: "allow_subdomains", In: "allow_subdomains", Absent: false, Default: false, Doc: "Whether addresses of subdomains may sign in too; only for registrable domains."},
		},
		Computed: []admin.ComputedField[sso.Domain]{
			{Field: admin.Field{Name: "verified_at", Type: admin.Timestamp, Doc: "null: not verified, so its users cannot sign in yet."}, Value: func(_ *admin.Call, it domain) any { return admin.OrNull(it.Form.VerifiedAt) }},
			{Field: admin.Field{Name: "txt_name", Type: admin.String, Required: true, Doc: "Name of the TXT record that proves ownership of the domain."}, Value: record(func(d *sso.Domain) string { name, _ := d.Record(); return name })},
			{Field: admin.Field{Name: "txt_value", Type: admin.String, Required: true, Doc: "Value of the TXT record."}, Value: record(func(d *sso.Domain) string { _, value := d.Record(); return value })},
		},
		New:    func(*admin.Call) sso.Domain { return sso.Domain{Challenge: sso.NewChallenge()} },
		Before: checkDomain,
		Retire: func(_ *admin.Call, tx *resource.Tx, it domain) error { sso.StageRelease(tx, it.Form); return nil },
		Adjust: func(action string, r *admin.Route) {
			recentWrites(action, r)
			if action == "create" {
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					if f := fault.From(err); err != nil && f.Code == fault.Conflict && f.Field == "slug" {
						err = fault.New(fault.Conflict, "domain", "has already been added")
					}
					return made, err
				}
			}
		},
		Created: &admin.Reply{Members: []string{"id", "txt_name", "txt_value"}},
	}
}

func checkDomain(_ *admin.Call, _ *resource.Tx, ch *admin.Change[sso.Domain]) error {
	var bad []fault.Detail
	name, ok := sso.NormalizeDomain(ch.Form.Domain)
	if !ok {
		bad = append(bad, fault.Detail{Field: "domain", Message: "must be a registrable domain, such as example.com"})
	}
	if ok && ch.Form.Subdomains && !sso.Root(name) {
		bad = append(bad, fault.Detail{Field: "allow_subdomains", Message: "is only allowed for registrable domains, such as example.com"})
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	ch.Form.Domain, ch.Rec.Name, ch.Rec.Slug = name, name, sso.Slug(name)
	return nil
}

// verifyDomain looks up the TXT record.
func (f *family) verifyDomain() []admin.Route {
	return f.domains.ItemRoutes(admin.Route{
		Method: "POST", Path: domainsPath + "/{domainId}/verify", Name: "verifyDomain", Action: audit.Update, Recent: true, Errors: []int{409},
		Doc: "Verify the TXT record. Afterwards users with addresses of the domain may sign in. A domain can belong to one organization only.", Response: admin.EmptyResponse,
		Do: f.domains.WithItem("update", func(c *admin.Call) (any, error) {
			it, err := f.domains.Find(c)
			if err != nil {
				return nil, err
			}
			if err := it.Form.CheckRecord(c.Context, f.LookUpTXT); err != nil {
				return nil, err
			}
			err = c.Change(func(tx *resource.Tx) error {
				it, err := f.domains.FindIn(c, tx)
				if err != nil {
					return err
				}
				it.Form.VerifiedAt = admin.FormatTime(tx.Now().Truncate(time.Second)).(string)
				if err := sso.Claim(tx, it.Form); err != nil {
					return err
				}
				return f.domains.Save(c, tx, it)
			})
			if f := fault.From(err); err != nil && f.Code == fault.Conflict && f.Field == "key" {
				err = fault.New(fault.Conflict, "domain", "belongs to another organization")
			}
			return nil, err
		}),
	})
}
