package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// grantRoutes returns the routes that authorize a client and issue tokens.
func (f *granting) grantRoutes() []admin.Route {
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	fields := []admin.Field{
		text("response_type", 64, "code."), text("client_id", oauthserver.MaxClientID, "Id of a registration, or address of a client id metadata document."),
		text("redirect_uri", 512, "One of the client's."), text("scope", 255, "Of mcp, mcp:read and mcp:write; default mcp."), text("state", 2048, "Returned unchanged."),
		text("code_challenge", 128, "RFC 7636."), text("code_challenge_method", 16, "S256."), text("resource", 2048, "Address of the MCP server (RFC 8707)."),
	}
	token := text("token", 512, "An access or refresh token.")
	token.Required = true
	client := text("client_id", oauthserver.MaxClientID, "Id of the client.")
	hint := text("token_type_hint", 64, "Not needed.")
	shown := func(r admin.Route) admin.Route { r.Produces = page.HTML; return r }
	return []admin.Route{
		shown(admin.Route{Method: "GET", Path: oauthserver.PathAuthorize, Name: "authorizeMcpClient", Errors: []int{302}, Response: admin.Schema{"type": "string"}, Do: f.authorize,
			Doc:   "Show the consent page on which a user allows a client to use an MCP server. Users who are not signed in sign in first.",
			Query: append(fields, admin.Field{Name: "here", Type: admin.Boolean, Doc: "Set by the page itself."})}),
		shown(admin.Route{Method: "POST", Path: oauthserver.PathConsent, Name: "consentToMcpClient", Status: http.StatusSeeOther, Consumes: []string{form}, Unrecorded: true, Do: f.consent,
			Doc: "Submit the user's decision. The browser is redirected to the client.", Body: append(fields[:len(fields):len(fields)],
				text("csrf", 255, "Of the page."), admin.Field{Name: "decision", Type: admin.String, Enum: []string{"allow", "deny"}, Required: true})}),
		{Method: "POST", Path: oauthserver.PathToken, Name: "getMcpToken", Doc: "Exchange an authorization code, a refresh token, or an approved device code for tokens.", Consumes: []string{form}, Unrecorded: true,
			ResponseOf: admin.SchemaOf[tokens], Do: f.token, Body: []admin.Field{
				{Name: "grant_type", Type: admin.String, Required: true, Max: 255, Doc: "authorization_code, refresh_token or " + grantDevice + "."}, client, text("device_code", 512, "Of "+grantDevice+" (RFC 8628)."), text("code", 512, "Of authorization_code."),
				text("redirect_uri", 512, "Must equal that of the authorization request."), text("code_verifier", 128, "RFC 7636."), text("refresh_token", 512, "For refresh_token; valid once."),
				text("scope", 255, "A subset of the granted scopes."), text("resource", 2048, "Address of the MCP server (RFC 8707)."),
			}},
		{Method: "POST", Path: oauthserver.PathRevoke, Name: "revokeMcpToken", Doc: "Revoke a token and its grant (RFC 7009). It becomes invalid within two seconds.", Consumes: []string{form}, Unrecorded: true,
			Response: admin.EmptyResponse, Do: f.revoke, Body: []admin.Field{token, hint, client}},
		{Method: "POST", Path: oauthserver.PathInspect, Name: "introspectMcpToken", Doc: "Introspect a token of the caller's workspaces (RFC 7662).", Consumes: []string{form, "application/json"}, Unrecorded: true,
			Scopes: []string{"mcp_servers.read"}, Level: admin.Shared, ResponseOf: admin.SchemaOf[inspected], Do: f.introspect, Body: []admin.Field{token, hint}},
	}
}

// authorizationRequest is a client's authorization request.
type authorizationRequest struct {
	admin.Values
	client  *oauthserver.Client
	target  oauthserver.Target
	scopes  []string
	issuer  string
	decided bool // a user has decided on a page of the gateway
}

// back returns the redirect with a response. RFC 9207 requires the issuer in it.
func (a *authorizationRequest) back(answer url.Values) admin.Response {
	if s := a.Text("state"); s != "" {
		answer.Set("state", s)
	}
	answer.Set("iss", a.issuer)
	u, err := url.Parse(a.Text("redirect_uri"))
	if err != nil { // validated before
		return page.New(http.StatusBadRequest, "This request is not valid", "<p>The redirect URI is missing or invalid.</p>")
	}
	q := u.Query()
	for name, v := range answer {
		q[name] = v
	}
	u.RawQuery = q.Encode()
	out := admin.Redirect(http.StatusSeeOther, u.String())
	out.Header.Set("Referrer-Policy", "no-referrer")
	return out
}

// reject returns the error. Before a user has decided, it is a page with a link if the client is on
// another host: anybody can register a client, so a redirect could lead anywhere, without a user who
// has seen the address (RFC 9700, 4.11.2).
func (a *authorizationRequest) reject(code, why string) admin.Response {
	response := a.back(url.Values{"error": {code}, "error_description": {why}})
	to, err := url.Parse(a.Text("redirect_uri"))
	if a.decided || err != nil || !strings.EqualFold(to.Scheme, "https") {
		return response
	}
	return page.New(http.StatusBadRequest, "This request is not valid", "<p>"+page.Escape(why)+`</p><p><a rel="noreferrer" href="`+page.Escape(response.Header.Get("Location"))+`">Return to `+page.Escape(to.Host)+"</a></p>")
}

// read validates an authorization request. stop is the response otherwise: browsers are never
// redirected to an address that is not the client's.
func (f *granting) read(c *admin.Call, v admin.Values, decided bool) (a *authorizationRequest, stop *admin.Response) {
	a = &authorizationRequest{Values: v, issuer: f.issuer(c), decided: decided}
	wrong := func(why string) (*authorizationRequest, *admin.Response) {
		p := page.New(http.StatusBadRequest, "This request is not valid", "<p>"+page.Escape(why)+"</p><p>The application that sent you here asked for something that is not allowed.</p>")
		return nil, &p
	}
	var err error
	finder := oauthserver.Fetcher{Transport: f.family.Transport, CheckURL: f.family.CheckURL}
	if a.client, err = finder.Find(c.Context, v.Text("client_id")); err != nil {
		return wrong(sentence(fault.From(err)))
	}
	if !a.client.Allows(v.Text("redirect_uri")) {
		return wrong("redirect_uri is not one of the client's.")
	}
	refused := func(code, why string) (*authorizationRequest, *admin.Response) {
		r := a.reject(code, why)
		return nil, &r
	}
	var ok bool
	challenge := v.Text("code_challenge")
	switch {
	case v.Text("response_type") != "code":
		return refused("unsupported_response_type", "response_type must be code")
	case challenge == "" || v.Text("code_challenge_method") != "S256":
		return refused("invalid_request", "code_challenge is required, with code_challenge_method S256")
	case len(challenge) != 43 || strings.ContainsFunc(challenge, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r)
	}):
		return refused("invalid_request", "code_challenge must have 43 characters of base64url")
	}
	if s := oauthserver.UnknownScope(v.Text("scope")); s != "" {
		return refused("invalid_scope", "scope has "+strconv.Quote(fault.Clip(s, 100))+", which is unknown; the scopes are "+strings.Join(oauthserver.Scopes, ", "))
	}
	a.scopes = oauthserver.ScopesOf(v.Text("scope"))
	if a.target, ok = oauthserver.ParseResource(v.Text("resource"), a.issuer); !ok {
		return refused("invalid_target", "resource must be the address of an MCP server here, as in its description")
	}
	return a, nil
}

func (f *granting) authorize(c *admin.Call) (any, error) {
	a, stop := f.read(c, c.Query, false)
	if stop != nil {
		return *stop, nil
	}
	again := a.issuer + oauthserver.PathAuthorize + "?" + a.query(url.Values{"here": {"true"}}).Encode()
	p, first, err := f.arrive(c, again)
	if err != nil {
		return nil, err
	}
	if first != nil {
		return *first, nil
	}
	facts, err := p.reaches(c.Context, f.family, a.target)
	if err != nil {
		return nil, err
	}
	if facts == nil {
		return a.reject("access_denied", "the MCP server does not exist, or the user has no access to it"), nil
	}
	return f.showConsent(a, p, facts), nil
}

// query returns the request as query parameters of a page of the gateway.
func (a *authorizationRequest) query(more url.Values) url.Values {
	for _, name := range []string{"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource"} {
		if v := a.Text(name); v != "" {
			more.Set(name, v)
		}
	}
	return more
}

// deciding is the user who decides.
type deciding struct {
	token string
	of    *signin.Session
	user  *membership.User
	view  *resource.View
	// Of the requested server.
	workspace *resource.Record
}

// person returns the signed-in user, or an Unauthorized fault.
func (f *granting) person(c *admin.Call) (*deciding, error) {
	token, ok := browser.Token(c.Request)
	if !ok {
		return nil, signin.Ended()
	}
	of, v, err := f.family.Sessions.Find(c.Context, token)
	if err != nil {
		return nil, err
	}
	u, ok, err := resource.Load(c.Context, v, store.Scope{Org: of.Org}, membership.KindUser, of.User, membership.DecodeUser)
	if err != nil {
		return nil, err
	}
	if !ok || u.Leaving {
		return nil, signin.Ended()
	}
	return &deciding{token: token, of: of, user: u, view: v}, nil
}

// reaches returns the facts about a server if the user may use it, or nil.
func (p *deciding) reaches(ctx context.Context, f *family, t oauthserver.Target) (*authz.Facts, error) {
	at, _, ok, err := mcp.FindBySlug(ctx, f.Resources.Store(), store.Scope{Org: p.of.Org}, t.Slug)
	if err != nil || !ok {
		return nil, err
	}
	ws, ok, err := resource.Load(ctx, p.view, at.Organisation(), tenant.KindWorkspace, at.Workspace, func(rec resource.Record) (*resource.Record, error) { return &rec, nil })
	if err != nil || !ok || ws.Status != tenant.StatusActive || t.Workspace != "" && t.Workspace != ws.Slug && t.Workspace != ws.ID {
		return nil, err
	}
	if _, ok, err := membership.LoadRole(ctx, p.view, at, p.of.User); err != nil || !ok {
		return nil, err
	}
	who := &identity.Principal{Type: identity.WorkspaceUser, Scope: at, WorkspaceSlug: ws.Slug, UserID: p.of.User, Scopes: identity.NewScopeSet(authz.Invoke)}
	facts, err := authz.Load(ctx, p.view, who, t.Slug)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil || facts.Decide(authz.Capability{}) != authz.Allowed {
		return nil, err
	}
	p.workspace = ws
	return facts, nil
}

// errNotOurs returns the fault for a decision that no page of the gateway sent for the user.
func errNotOurs() error {
	return fault.New(fault.NotAllowed, "csrf", "The form must be submitted from the gateway's own page. Start again")
}

// fromOwnPage reports whether a decision comes from a page that the gateway showed to the user
// in its session.
func (f *granting) fromOwnPage(c *admin.Call, p *deciding) bool {
	return browser.SameOrigin(c.Request, f.issuer(c)) &&
		subtle.ConstantTimeCompare([]byte(c.Body.Text("csrf")), []byte(signin.WriteToken(p.token))) == 1
}

func (f *granting) consent(c *admin.Call) (any, error) {
	p, err := f.person(c)
	if err != nil {
		return nil, err
	}
	if !f.fromOwnPage(c, p) {
		return nil, errNotOurs()
	}
	a, stop := f.read(c, c.Body, true)
	if stop != nil {
		return *stop, nil
	}
	if c.Body.Text("decision") != "allow" {
		return a.reject("access_denied", "the user denied the request"), nil
	}
	facts, err := p.reaches(c.Context, f.family, a.target)
	if err != nil {
		return nil, err
	}
	if facts == nil {
		return a.reject("access_denied", "the MCP server does not exist, or the user has no access to it"), nil
	}
	code := &oauthserver.Code{Redirect: a.Text("redirect_uri"), Challenge: a.Text("code_challenge"), Grant: oauthserver.Grant{
		Scope: facts.Server.Record.Scope, WorkspaceSlug: p.workspace.Slug, User: p.of.User, Email: p.user.Email, Server: facts.Server.Record.ID,
		Client: a.client.ID, ClientName: a.client.DisplayName(), Scopes: a.scopes, Resource: a.Text("resource"),
	}}
	secret := ""
	err = c.Resources.Change(c.Context, code.Scope, func(tx *resource.Tx) (err error) {
		if secret, err = oauthserver.Begin(tx, code); err != nil {
			return err
		}
		return audit.Append(tx, grantEntry(c, &code.Grant, audit.Create))
	})
	if err != nil {
		return nil, err
	}
	return a.back(url.Values{"code": {secret}}), nil
}

// used reports whether an error is that of a reused code or token.
func used(err error) bool { return errors.Is(err, oauthserver.ErrReused) }
