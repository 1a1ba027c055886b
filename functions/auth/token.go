package auth

import (
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/signin"
)

// tokens is the response of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in,omitempty"` // seconds; omitted for keys that never expire
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
	// Of an API key for a device.
	KeyID       string `json:"api_key_id,omitempty"`
	WorkspaceID string `json:"workspace_id,omitempty"`
}

func rejectToken(code, why string) (any, error) {
	return admin.Response{Status: http.StatusBadRequest, JSON: problem{code, why}}, nil
}

// noGrant returns the one error for invalid codes and tokens.
func noGrant() (any, error) {
	return rejectToken("invalid_grant", "the code or token is unknown, has expired, was already used, or belongs to another client")
}

func (f *granting) token(c *admin.Call) (any, error) {
	if c.Request.Header.Get("Authorization") != "" {
		return admin.Response{Status: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Basic"}}, JSON: problem{"invalid_client", "clients are public: send client_id in the body, and no Authorization"}}, nil
	}
	if c.Body.Text("client_id") == "" {
		return rejectToken("invalid_request", "client_id is required")
	}
	switch c.Body.Text("grant_type") {
	case "authorization_code":
		return f.exchange(c)
	case "refresh_token":
		return f.renew(c)
	case grantDevice:
		return (&devices{f}).fetch(c)
	}
	return rejectToken("unsupported_grant_type", "grant_type must be authorization_code, refresh_token or "+grantDevice)
}

// otherResource reports whether a client requests a token for another server than the grant's.
func otherResource(c *admin.Call, g *oauthserver.Grant) bool {
	resource := c.Body.Text("resource")
	return resource != "" && resource != g.Resource
}

func (f *granting) exchange(c *admin.Call) (any, error) {
	secret := c.Body.Text("code")
	code, err := oauthserver.FindCode(c.Context, c.Resources.Store(), secret, c.Now)
	switch {
	case used(err) && code.Client == c.Body.Text("client_id"):
		return f.reused(c, &code.Grant)
	case used(err), err == oauthserver.ErrUnknown:
		return noGrant()
	case err != nil:
		return nil, err
	case code.Client != c.Body.Text("client_id"), code.Redirect != c.Body.Text("redirect_uri"), !code.Matches(c.Body.Text("code_verifier")):
		return noGrant()
	case otherResource(c, &code.Grant):
		return rejectToken("invalid_target", "resource must equal that of the authorization request")
	}
	return f.issue(c, &code.Grant, code.Grant.Scopes, audit.Login, func(tx *resource.Tx) (*oauthserver.Tokens, error) { return code.Exchange(tx, secret) })
}

func (f *granting) renew(c *admin.Call) (any, error) {
	held, err := oauthserver.FindRefresh(c.Context, c.Resources.Store(), c.Body.Text("refresh_token"), c.Now)
	switch {
	case used(err):
		return f.reused(c, &held.Grant)
	case err == oauthserver.ErrUnknown:
		return noGrant()
	case err != nil:
		return nil, err
	case held.Client != c.Body.Text("client_id"):
		return noGrant()
	case otherResource(c, &held.Grant):
		return rejectToken("invalid_target", "resource must equal that of the original grant")
	}
	scopes := held.Scopes
	if fewer, ok := oauthserver.NarrowScopes(held.Scopes, c.Body.Text("scope")); !ok {
		return rejectToken("invalid_scope", "scope must be a subset of the granted scopes")
	} else if len(fewer) > 0 {
		scopes = fewer
	}
	return f.issue(c, &held.Grant, scopes, audit.Rotate, func(tx *resource.Tx) (*oauthserver.Tokens, error) { return held.Renew(tx, scopes) })
}

// issue issues tokens for a grant of an existing user. If the code or token was used
// concurrently, the grant ends.
func (f *granting) issue(c *admin.Call, g *oauthserver.Grant, scopes []string, action string, stage func(*resource.Tx) (*oauthserver.Tokens, error)) (any, error) {
	view, err := f.family.Loader.Fresh(c.Context, g.Scope.Org)
	if err != nil {
		return nil, err
	}
	if member, err := g.Allowed(c.Context, view); err != nil || !member {
		if err != nil {
			return nil, err
		}
		return noGrant()
	}
	var t *oauthserver.Tokens
	err = c.Resources.Change(c.Context, g.Scope, func(tx *resource.Tx) (err error) {
		if t, err = stage(tx); err != nil {
			return err
		}
		return audit.Append(tx, grantEntry(c, g, action))
	})
	if used(err) {
		return f.reused(c, g)
	}
	if err != nil {
		return nil, err
	}
	return tokens{Access: t.Access, Type: "Bearer", Expires: int64(t.Expires.Seconds()), Refresh: t.Refresh, Scope: strings.Join(scopes, " ")}, nil
}

// reused ends a grant after a reuse, since one of the two clients is an attacker.
func (f *granting) reused(c *admin.Call, g *oauthserver.Grant) (any, error) {
	if err := f.endGrant(c, g.ID); err != nil {
		return nil, err
	}
	return noGrant()
}

// endGrant ends a grant if it exists.
func (f *granting) endGrant(c *admin.Call, id string) error {
	held, err := oauthserver.FindGrant(c.Context, c.Resources.Store(), id, c.Now)
	if err == oauthserver.ErrUnknown {
		return nil
	}
	if err != nil {
		return err
	}
	return c.Resources.Change(c.Context, held.Scope, func(tx *resource.Tx) error {
		held.End(tx)
		return audit.Append(tx, grantEntry(c, &held.Grant, audit.Delete))
	})
}

// tokenGrant returns the grant of an access or refresh token, even of a used one.
func (f *granting) tokenGrant(c *admin.Call) (held *oauthserver.StoredGrant, until int64, err error) {
	token := c.Body.Text("token")
	if oauthserver.IsAccess(token) {
		h, at, err := oauthserver.FindAccess(c.Context, c.Resources.Store(), token, c.Now)
		return h, at.Unix(), err
	}
	held, err = oauthserver.FindRefresh(c.Context, c.Resources.Store(), token, c.Now)
	return held, 0, err
}

func (f *granting) revoke(c *admin.Call) (any, error) {
	held, _, err := f.tokenGrant(c)
	if err == oauthserver.ErrUnknown {
		return nil, nil
	}
	if err != nil && !used(err) {
		return nil, err
	}
	if of := c.Body.Text("client_id"); of != "" && of != held.Client {
		return noGrant()
	}
	return nil, f.endGrant(c, held.ID)
}

// inspected is the introspection response.
type inspected struct {
	Active       bool   `json:"active"`
	Subject      string `json:"sub,omitempty"`
	Email        string `json:"email,omitempty"`
	Username     string `json:"username,omitempty"`
	DisplayName  string `json:"display_name,omitempty"`
	Scope        string `json:"scope,omitempty"`
	Client       string `json:"client_id,omitempty"`
	Audience     string `json:"aud,omitempty"`
	Issuer       string `json:"iss,omitempty"`
	Type         string `json:"token_type,omitempty"`
	Expires      int64  `json:"exp,omitempty"`
	Issued       int64  `json:"iat,omitempty"`
	Workspace    string `json:"workspace_id,omitempty"`
	Organisation string `json:"organisation_id,omitempty"`
}

// introspect describes a token to callers with access to its workspace; for others it does not
// exist.
func (f *granting) introspect(c *admin.Call) (any, error) {
	held, until, err := f.tokenGrant(c)
	if err == oauthserver.ErrUnknown || used(err) {
		return inspected{}, nil
	}
	if err != nil {
		return nil, err
	}
	if held.Scope.Org != c.Caller.Scope.Org || !c.Caller.MayAccess(held.Scope.Workspace) {
		return inspected{}, nil
	}
	view, err := f.family.Loader.Fresh(c.Context, held.Scope.Org)
	if err != nil {
		return nil, err
	}
	if member, err := held.Allowed(c.Context, view); err != nil || !member {
		return inspected{}, err
	}
	out := inspected{
		Active: true, Subject: held.User, Email: held.Email, Username: held.Email, DisplayName: held.Email, Scope: strings.Join(held.Scopes, " "), Client: held.Client,
		Audience: held.Resource, Issuer: f.issuer(c), Expires: until, Issued: held.Since.Unix(), Workspace: held.Scope.Workspace, Organisation: held.Scope.Org,
	}
	if until > 0 {
		out.Type = "Bearer"
	}
	return out, nil
}

// arrive returns the user at the browser. again is the address of the page, with the query
// parameter here; first is the response that must precede the page.
func (f *granting) arrive(c *admin.Call, again string) (p *deciding, first *admin.Response, err error) {
	if !c.Query.Bool("here") {
		// Browsers send the session cookie only with requests from this site's pages.
		lead := page.Leading(again)
		return nil, &lead, nil
	}
	p, err = f.person(c)
	if fault.Is(err, fault.Unauthorized) {
		answer := f.signInFirst(c, again)
		return nil, &answer, nil
	}
	return p, nil, err
}

// signInFirst requests the email address, which determines the organization's identity
// provider.
func (f *granting) signInFirst(c *admin.Call, again string) admin.Response {
	back := again
	if u, err := url.Parse(again); err == nil {
		// After a redirect from the identity provider the browser does not send the session
		// cookie, so it first gets a page that leads here.
		q := u.Query()
		q.Del("here")
		back = u.EscapedPath() + "?" + q.Encode()
	}
	body := `<form method="get" action="` + page.Escape(f.issuer(c)+"/auth/login") + `"><label>Your e-mail address<input type="email" name="email" required autofocus></label>` +
		`<input type="hidden" name="return_to" value="` + page.Escape(back) + `"><button>Sign in</button></form>`
	return page.New(http.StatusOK, "Sign in to continue", body, "https:", "http:")
}

// showConsent shows the client and what it requests.
func (f *granting) showConsent(a *authorizationRequest, p *deciding, facts *authz.Facts) admin.Response {
	to, _ := url.Parse(a.Text("redirect_uri")) // validated before
	fields := ""
	for name, v := range a.query(url.Values{"csrf": {signin.WriteToken(p.token)}}) {
		fields += `<input type="hidden" name="` + page.Escape(name) + `" value="` + page.Escape(v[0]) + `">`
	}
	rows := [][2]string{{"Application", a.client.DisplayName()}}
	if h := a.client.Host(); h != "" {
		rows = append(rows, [2]string{"Described at", h})
	}
	rows = append(rows, [2]string{"Sends you back to", shownHost(to)}, [2]string{"MCP server", facts.Server.Record.Name}, [2]string{"Workspace", p.workspace.Name},
		[2]string{"You are", p.user.Email}, [2]string{"It may", describeScopes(a.scopes)})
	list := "<dl>"
	for _, row := range rows {
		list += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
	}
	body := "<p>Allow this only if you started it yourself.</p>" + list + `</dl><form method="post" action="` + page.Escape(a.issuer+oauthserver.PathConsent) + `">` + fields +
		`<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Refuse</button></form>`
	return page.New(http.StatusOK, "Allow an application?", body, formSource(to))
}

// shownHost returns the displayed form of a redirect URI: its host, or the scheme of an
// application on the user's machine.
func shownHost(to *url.URL) string {
	if to.Scheme == "https" || to.Scheme == "http" {
		return to.Host
	}
	return "an application on this computer (" + to.Scheme + ":)"
}

// formSource returns the source of a redirect URI in a content security policy, which has no
// hosts for other schemes.
func formSource(to *url.URL) string {
	if to.Scheme == "https" || to.Scheme == "http" {
		return to.Scheme + "://" + to.Host
	}
	return to.Scheme + ":"
}

// describeScopes returns what scopes allow, in words for the user.
func describeScopes(scopes []string) string {
	switch strings.Join(scopes, " ") {
	case oauthserver.Read:
		return "see and read what the server offers, and call no tools"
	case oauthserver.Write:
		return "call tools of the server"
	}
	return "see and read what the server offers, and call its tools, as you"
}
