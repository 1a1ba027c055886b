package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/signin/attempts"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/confirm"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

type (
	connection = admin.Item[sso.Connection]
	joining    = admin.Change[sso.Connection]
)

// scopes returns those of the organization's settings.
func scopes(action string) []string {
	if action == "list" || action == "read" {
		return []string{"organisation_settings.read"}
	}
	return []string{"organisation_settings.update"}
}

const connectionsPath = "/auth/sso-configurations"

// describeConnections describes the identity providers of the organization.
func (f *family) describeConnections() *admin.Collection[sso.Connection] {
	return &admin.Collection[sso.Connection]{
		Kind: sso.KindConnection, Object: "sso-configuration", Path: connectionsPath, Param: "configurationId", UUIDOnly: true,
		Scopes: scopes, Resource: "sso_configurations", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin,
		List: admin.List{Search: true},
		Fields: []admin.Field{
			admin.NameField(255),
			{Name: "protocol", Fixed: true, Absent: sso.OIDC, Default: sso.OIDC, Doc: "Protocol of the identity provider: oidc (OpenID Connect) or saml (SAML 2.0)."},
			{Name: "issuer", Address: true, Example: "https://login.example.com", Doc: "For oidc, required: issuer of the identity provider, with its metadata at /.well-known/openid-configuration below it. For saml: its entity id, needed only if the metadata describe several."},
			{Name: "client_id", Example: "gateway", Doc: "For oidc, required: the gateway's client id at the identity provider. Register the redirect URI <base>/auth/callback/{organisation id}, shown as redirect_uri."},
			{Name: "client_secret", Secret: true, Max: 4096, Example: "a long secret", Doc: "For client_secret_basic and client_secret_post."},
			{Name: "jwks", Secret: true, Max: 16384, Check: privateKeys, Doc: "For private_key_jwt: a JSON Web Key Set of the gateway's private keys, as a string."},
			{Name: "token_endpoint_auth_method", Doc: "How the gateway authenticates; default private_key_jwt if there is a jwks, otherwise client_secret_basic."},
			{Name: "scopes", Absent: []any{}, Doc: "Requested in addition to openid, profile and email. With offline_access a session lasts only while the identity provider renews it, which is checked once per hour of use."},
			{Name: "disable_auto_provision_user", In: "disable_auto_provision_user", Absent: false, Default: false, Doc: "true: only existing and invited users may sign in. Otherwise every user with an address of a verified domain becomes a member."},
			{Name: "metadata_url", Doc: "For saml: address of the identity provider's metadata. They are refreshed every hour, and when a signature uses an unknown key."},
			{Name: "metadata_xml", Single: true, Doc: "For saml, instead of metadata_url: the metadata."},
			{Name: "email_attribute", Doc: "For saml: name of the attribute with the email address. Default: the NameID if it is an email address, otherwise common attributes."},
			{Name: "first_name_attribute", Doc: "For saml: name of the attribute with the first name; default: common attributes."},
			{Name: "last_name_attribute", Doc: "For saml: name of the attribute with the last name; default: common attributes."},
			{Name: "sign_requests", In: "sign_requests", Absent: false, Default: false, Doc: "For saml: sign requests even if the metadata do not require it."},
			{Name: "allow_idp_initiated", In: "allow_idp_initiated", Absent: false, Default: false, Doc: "For saml: accept sign-ins started at the identity provider. The user confirms each on a page of the gateway."},
		},
		Computed: append([]admin.ComputedField[sso.Connection]{f.redirectShown()}, bySAML{f}.serviceShown()...),
		Before:   f.checkConnection,
		Retire: func(_ *admin.Call, tx *resource.Tx, it connection) error {
			return membership.SetResponsible(tx, it.Ref(), it.Form.Sponsor, "")
		},
		Adjust: ownersWrite,
	}
}

// redirectURI returns the redirect URI for the identity provider.
func (f *family) redirectURI(c *admin.Call, it connection) string {
	return admin.Address(f.PublicURL, c.Request) + callbackPath + it.Scope.Org
}

func (f *family) redirectShown() admin.ComputedField[sso.Connection] {
	return admin.ComputedField[sso.Connection]{
		Field: admin.Field{Name: "redirect_uri", Type: admin.String, Single: true, Optional: true, Doc: "For oidc: the redirect URI, which must be registered at the identity provider."},
		Value: func(c *admin.Call, it connection) any {
			if it.Form.IsSAML() {
				return nil
			}
			return f.redirectURI(c, it)
		},
	}
}

// ownersWrite requires an owner for new and changed configurations: the identity provider
// determines who every user is, owners included.
func ownersWrite(action string, r *admin.Route) {
	recentWrites(action, r)
	if action == "create" || action == "update" {
		r.Role = admin.Owner
		r.Doc += " For owners, and for organization keys created by owners."
	}
}

// recentWrites requires a recent sign-in for changes.
func recentWrites(action string, r *admin.Route) {
	r.Recent = action != "list" && action != "read"
}

func privateKeys(raw json.RawMessage) []fault.Detail {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil // its type is checked elsewhere
	}
	if err := oidc.CheckKeys([]byte(text)); err != nil {
		return []fault.Detail{{Message: err.Error()}}
	}
	return nil
}

func (f *family) checkConnection(c *admin.Call, tx *resource.Tx, ch *joining) error {
	if ch.Form.Protocol == "" {
		ch.Form.Protocol = sso.OIDC
	}
	if err := c.Caller.Grantor().Grant("", membership.PermissionsOf(identity.RankOwner)); err != nil {
		return err
	}
	var bad []fault.Detail
	if ch.Form.IsSAML() {
		bad = bySAML{f}.checkSAML(c, ch)
	} else {
		bad = f.checkOIDC(ch)
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	if ch.Form.IsSAML() {
		if err := (bySAML{f}).equip(c, ch); err != nil {
			return err
		}
	}
	was := ch.Form.Sponsor
	ch.Form.Sponsor = c.Caller.ResponsibleUser()
	return membership.SetResponsible(tx, ch.Rec.Ref(), was, ch.Form.Sponsor)
}

func (f *family) checkOIDC(ch *joining) (bad []fault.Detail) {
	wrong := func(field, why string) { bad = append(bad, fault.Detail{Field: field, Message: why}) }
	if ch.Form.Issuer == "" {
		wrong("issuer", "is required")
	} else if _, err := f.CheckURL(ch.Form.Issuer, "issuer"); err != nil {
		wrong("issuer", fault.From(err).Message)
	}
	if ch.Form.ClientID == "" {
		wrong("client_id", "is required")
	}
	if ch.Form.AuthMethod(ch.Rec.HasSecret) == oidc.PrivateKey {
		if !ch.Rec.HasSecret(sso.SecretKeys) {
			wrong(sso.SecretKeys, "is required for private_key_jwt")
		}
	} else if !ch.Rec.HasSecret(sso.SecretClient) {
		wrong(sso.SecretClient, "is required unless the gateway authenticates with private_key_jwt")
	}
	for name, v := range map[string]string{"metadata_url": ch.Form.MetadataURL, "metadata_xml": ch.Form.MetadataXML, "email_attribute": ch.Form.EmailAttribute, "first_name_attribute": ch.Form.FirstNameAttribute, "last_name_attribute": ch.Form.LastNameAttribute} {
		if v != "" {
			wrong(name, "is only allowed with the protocol saml")
		}
	}
	for name, v := range map[string]bool{"sign_requests": ch.Form.SignRequests, "allow_idp_initiated": ch.Form.Unsolicited} {
		if v {
			wrong(name, "is only allowed with the protocol saml")
		}
	}
	return sorted(bad)
}

// verifyConnection calls the identity provider once, so that errors are found before the first
// sign-in.
func (f *family) verifyConnection() []admin.Route {
	return f.connections.ItemRoutes(admin.Route{
		Method: "POST", Path: connectionsPath + "/{configurationId}/verify", Name: "verifySsoConfiguration", Action: audit.Test, Scopes: scopes("read"),
		Doc: "Fetch the identity provider's metadata now, and check whether sign-in is possible.", ResponseOf: admin.SchemaOf[verified],
		Do: f.connections.WithItem("read", func(c *admin.Call) (any, error) {
			it, err := f.connections.Find(c)
			if err != nil {
				return nil, err
			}
			out := verified{Object: "sso-verification", Success: true, Message: "The identity provider's metadata is valid"}
			if err := f.described(c, it); err != nil {
				out.Success, out.Message = false, describeFailure(err)
			}
			return out, nil
		}),
	})
}

// described returns why users could not be sent to an identity provider.
func (f *family) described(c *admin.Call, it connection) error {
	if it.Form.IsSAML() {
		_, err := bySAML{f}.provider(c, it, true)
		return err
	}
	client, err := f.client(c, it)
	if err != nil {
		return err
	}
	return client.Check(c.Context)
}

type verified struct {
	Object  string `json:"object"`
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// client returns the gateway's client at an identity provider.
func (f *family) client(c *admin.Call, it connection) (*oidc.Client, error) {
	out, err := clientOf(c.Context, it, c.Sealer)
	if err != nil {
		return nil, err
	}
	out.Redirect, out.Transport, out.Now = f.redirectURI(c, it), f.Transport, c.Resources.Now
	return out, nil
}

func clientOf(ctx context.Context, it connection, s seal.Sealer) (*oidc.Client, error) {
	out := &oidc.Client{Issuer: it.Form.Issuer, ID: it.Form.ClientID, Method: it.Form.AuthMethod(it.HasSecret), Scopes: it.Form.Scopes}
	secrets, err := it.OpenSecrets(ctx, s)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	out.Secret, out.Keys = string(secrets[sso.SecretClient]), secrets[sso.SecretKeys]
	return out, nil
}

// Rate limits of public routes per address. Applications that request tokens serve many users
// from one address.
var (
	ofBrowsers     = attempts.Limit{Name: "sign-in pages", Most: 120, Take: 5, Each: time.Minute}
	ofClients      = attempts.Limit{Name: "requests of clients", Most: 1200, Take: 20, Each: time.Minute}
	ofOrganisation = attempts.Limit{Name: "sign-ins to an organisation", Most: 1200, Take: 20, Each: time.Minute}
	// ofStrays limits what anyone can write to the audit log of an organization.
	ofStrays = attempts.Limit{Name: "responses without a pending sign-in", Most: 60, Take: 1, Each: time.Minute}
)

// bound makes a public route reject an address that calls it too often. Routes that only
// describe the gateway are cheap and not limited.
func (f *family) bound(r *admin.Route) {
	by := ofBrowsers
	if r.Rejections != nil && r.Produces != page.HTML {
		if by = ofClients; r.Method == "GET" {
			return
		}
	}
	do := r.Do
	r.Do = func(c *admin.Call) (any, error) {
		if err := f.attempts.Count(c.Context, by, attempts.From(c.ClientIP()), c.Now); err != nil {
			return nil, err
		}
		return do(c)
	}
}

// loginRequest is a validated request to start a sign-in.
type loginRequest struct {
	admin.Values
	by    connection
	email string // may be empty
	back  string // path to return to
}

// query returns the parameters of the request.
func (a *loginRequest) query() url.Values {
	out := url.Values{}
	for _, name := range []string{"organisation_id", "email", "sso_client_id", "return_to"} {
		if v := a.Text(name); v != "" {
			out.Set(name, v)
		}
	}
	if a.Bool("fresh") {
		out.Set("fresh", "true")
	}
	return out
}

// action returns the action of a confirmation: exactly this sign-in.
func (a *loginRequest) action() string { return "log in " + a.query().Encode() }

// otherSession returns the email address of the signed-in user of this browser if that may be
// another user than the one who signs in, otherwise "".
func otherSession(f *family, c *admin.Call, a *loginRequest) (email string, err error) {
	token, ok := browser.Token(c.Request)
	if !ok {
		return "", nil
	}
	s, v, err := f.Sessions.Find(c.Context, token)
	if fault.Is(err, fault.Unauthorized) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	u, ok, err := resource.Load(c.Context, v, store.Scope{Org: s.Org}, membership.KindUser, s.User, membership.DecodeUser)
	if err != nil || !ok || s.Org == a.by.Scope.Org && (a.email == "" || a.email == u.Email) {
		return "", err
	}
	return u.Email, nil
}

// showLoginConfirmation shows the confirmation page of a sign-in. signedIn is the address of the user of the
// session that would be replaced, or "".
func (f *family) showLoginConfirmation(c *admin.Call, a *loginRequest, signedIn string) admin.Response {
	value, cookie := confirm.Begin(a.action(), c.Now)
	fields := a.query()
	fields.Set(confirm.Field, value)
	// The form redirects to the identity provider, on any host.
	return confirmPage(a.by.Scope.Org, a.email, signedIn, admin.Address(f.PublicURL, c.Request)+pathLogin, fields, cookie, "https:", "http:")
}

// confirmPage returns the page that asks whether to sign in to an organization. Its form posts
// fields to an address, which may redirect to the sources in leads. cookie holds the confirmation.
func confirmPage(org, email, signedIn, to string, fields url.Values, cookie *http.Cookie, leads ...string) admin.Response {
	rows := [][2]string{{"Organization", org}, {"You sign in as", email}, {"You are signed in as", signedIn}}
	body := "<p>Continue only if you want to sign in here. An existing session in this browser is replaced.</p><dl>"
	for _, row := range rows {
		if row[1] != "" {
			body += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
		}
	}
	body += `</dl><form method="post" action="` + page.Escape(to) + `">`
	for name, v := range fields {
		body += `<input type="hidden" name="` + page.Escape(name) + `" value="` + page.Escape(v[0]) + `">`
	}
	out := page.New(http.StatusOK, "Sign in?", body+"<button>Sign in</button></form>", leads...)
	out.Header.Set("Cache-Control", "no-store")
	out.Header.Add("Set-Cookie", cookie.String())
	return out
}
