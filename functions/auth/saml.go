package auth

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/confirm"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/saml"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

const metadataType = "application/samlmetadata+xml"

// Limits of a posted response: base64 of a response, and the form around it.
const (
	maxPosted = saml.MaxResponse/3*4 + 1024
	maxForm   = 512 << 10
	maxState  = 1024
)

// bySAML implements sign-in with SAML.
type bySAML struct{ family *family }

// samlRoutes returns the routes that SAML identity providers use. Sign-ins start at
// /auth/login.
func (f bySAML) samlRoutes() []admin.Route {
	routes := []admin.Route{
		{Method: "GET", Path: samlPath + "{organisationId}" + metadata, Name: "getSamlMetadata", Public: true, Errors: []int{404, 429}, Produces: metadataType, Response: admin.Schema{"type": "string"}, Do: f.ownMetadata,
			Doc: "Read the gateway's SAML metadata for an organization: entity id, address for responses, and certificate.", Query: []admin.Field{
				{Name: "sso_client_id", Type: admin.String, Max: 64, Doc: "Id of the configuration, if the organization has several."},
			}},
		{Method: "POST", Path: samlPath + "{organisationId}" + acs, Name: "consumeSamlResponse", Public: true, Unrecorded: true, Status: http.StatusSeeOther, Errors: []int{200, 401, 403, 404, 429}, Consumes: []string{form}, MaxBody: maxForm, Produces: page.HTML, Response: admin.Schema{"type": "string"}, Do: f.consume,
			Doc: "Receive the response of an identity provider from a browser. The session is set as a cookie. For a sign-in that began at the identity provider, a page asks for confirmation first.", Body: []admin.Field{
				{Name: "SAMLResponse", Type: admin.String, Required: true, Max: maxPosted, Doc: "The response, in base64."},
				{Name: "RelayState", Type: admin.String, Max: maxState, Doc: "As it was sent. It is never used for redirects."},
				{Name: confirm.Field, Type: admin.String, Max: confirm.MaxValue, Doc: "Set by the page that asks for confirmation; valid once."},
			}},
	}
	for i := range routes {
		f.family.bound(&routes[i])
	}
	return routes
}

func (f bySAML) ownMetadata(c *admin.Call) (any, error) {
	org, err := organisation(c)
	if err != nil {
		return nil, err
	}
	it, err := f.family.findConnection(c, org, c.Query.Text("sso_client_id"))
	if err != nil {
		return nil, err
	}
	if !it.Form.IsSAML() {
		return nil, errNoLogin()
	}
	s, err := f.service(c, it, nil)
	if err != nil {
		return nil, err
	}
	return admin.Response{ContentType: metadataType, Body: s.Metadata()}, nil
}

// loginBySAML redirects a browser to an identity provider. The request id is derived from the
// nonce, so that the sign-in that a state identifies contains both.
func (f bySAML) loginBySAML(c *admin.Call, it connection, p *sso.Pending) (any, error) {
	provider, err := f.provider(c, it, false)
	if err != nil {
		return nil, fault.New(fault.ProviderUnreachable, "", "The identity provider cannot be used: "+describeFailure(err))
	}
	s, err := f.service(c, it, provider)
	if err != nil {
		return nil, err
	}
	if err := sso.Start(c.Context, c.Resources.Store(), p, c.Now); err != nil {
		return nil, err
	}
	to, err := s.RequestURL(requestID(p), p.State, p.Fresh, c.Now)
	if err != nil {
		return nil, err
	}
	return redirect(to, browser.BindAcross(p.Binding, c.Now.Add(sso.PendingFor))), nil
}

func requestID(p *sso.Pending) string { return "_" + p.Nonce }

// consume ends a sign-in: with a session, or with a rejection in the audit log.
func (f bySAML) consume(c *admin.Call) (any, error) {
	org, err := organisation(c)
	if err != nil {
		return nil, err
	}
	state := c.Body.Text("RelayState")
	if strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, fault.Invalid("RelayState", "must have no control characters")
	}
	p, err := sso.ConsumeState(c.Context, c.Resources.Store(), state, browser.Binding(c.Request), c.Now)
	if err != nil && !fault.Is(err, fault.Unauthorized) {
		return nil, err
	}
	if err != nil {
		return f.unsolicited(c, org)
	}
	if p.Org != org.Org {
		return nil, f.family.stray(c, org, signin.BySAML, "", sso.NoPending())
	}
	it, err := stored(c, org, p.Connection)
	if err != nil {
		return nil, err
	}
	if !it.Form.IsSAML() {
		return nil, f.family.stray(c, org, signin.BySAML, it.ID, sso.NoPending())
	}
	m, err := saml.Open(c.Body.Text("SAMLResponse"))
	if err != nil {
		return nil, f.family.reject(c, it, "", failed(err))
	}
	return f.enter(c, it, m, saml.Expectation{Request: requestID(p), Fresh: p.Fresh, Since: p.Since, Now: c.Now}, p.ReturnTo)
}

func failed(err error) error {
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		return err
	}
	return fault.New(fault.Unauthorized, "", "The sign-in failed: "+describeFailure(err))
}

// unsolicited accepts an unsolicited response if that is allowed, and if the user confirms it:
// any site can have a browser post a response, and the session that it opens may be that of
// another user of any organization. Its target address is ignored.
func (f bySAML) unsolicited(c *admin.Call, org store.Scope) (any, error) {
	m, err := saml.Open(c.Body.Text("SAMLResponse"))
	if err != nil {
		return nil, f.family.stray(c, org, signin.BySAML, "", fault.Invalid("SAMLResponse", "cannot be read: %s", err))
	}
	it, ok, err := f.issuedBy(c, org, m.Claimed())
	if err != nil {
		return nil, err
	}
	if !ok || m.InResponseTo() != "" {
		return nil, f.family.stray(c, org, signin.BySAML, idOf(it), sso.NoPending())
	}
	if !it.Form.Unsolicited {
		return nil, f.family.reject(c, it, "", fault.New(fault.NotAllowed, "", "Sign-ins that start at the identity provider are not allowed: start at the gateway"))
	}
	w, value := saml.Expectation{Now: c.Now}, c.Body.Text(confirm.Field)
	if value == "" {
		who, err := f.believe(c, it, m, w)
		if err != nil {
			return nil, f.family.reject(c, it, "", failed(err))
		}
		return f.confirmUnsolicited(c, it, who.Email), nil
	}
	action := confirmsResponse(c)
	if err := confirm.Consume(c.Context, c.Resources.Store().Table(store.Keys), c.Request, f.family.PublicURL, action, value, c.Now); err != nil {
		return nil, err
	}
	got, err := f.enter(c, it, m, w, "/")
	if out, ok := got.(admin.Response); ok {
		out.Header.Add("Set-Cookie", confirm.Clear(action).String())
	}
	return got, err
}

// confirmsResponse returns the action of a confirmation: the sign-in by exactly this response.
func confirmsResponse(c *admin.Call) string {
	return "log in by " + identity.HashToken(c.Body.Text("SAMLResponse"))
}

// confirmUnsolicited shows the confirmation page of a sign-in that began at the identity provider.
// Its form posts the response again.
func (f bySAML) confirmUnsolicited(c *admin.Call, it connection, email string) admin.Response {
	value, cookie := confirm.Begin(confirmsResponse(c), c.Now)
	to := admin.Address(f.family.PublicURL, c.Request) + samlPath + it.Scope.Org + acs
	return confirmPage(it.Scope.Org, email, "", to, url.Values{"SAMLResponse": {c.Body.Text("SAMLResponse")}, confirm.Field: {value}}, cookie)
}

// idOf returns the id of a configuration, or "" if it was not found.
func idOf(it connection) string {
	if it.Record == nil {
		return ""
	}
	return it.ID
}

// issuedBy finds the identity provider of an issuer in an organization; one that allows
// unsolicited responses takes precedence.
func (f bySAML) issuedBy(c *admin.Call, org store.Scope, issuer string) (found connection, ok bool, err error) {
	rows, err := c.Resources.List(c.Context, org, sso.KindConnection)
	if err != nil || issuer == "" {
		return found, false, err
	}
	for i := range rows {
		it, err := stored(c, org, rows[i].ID)
		if fault.Is(err, fault.NotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return found, false, err
		}
		if !it.Form.IsSAML() || ok && !it.Form.Unsolicited {
			continue
		}
		p, err := f.provider(c, it, false)
		if err != nil || p.EntityID != issuer {
			continue // an unreachable provider admits no user
		}
		if found, ok = it, true; it.Form.Unsolicited {
			break
		}
	}
	return found, ok, nil
}

// enter validates a response and signs its user in.
func (f bySAML) enter(c *admin.Call, it connection, m *saml.Message, w saml.Expectation, to string) (any, error) {
	who, err := f.believe(c, it, m, w)
	if err != nil {
		return nil, f.family.reject(c, it, "", failed(err))
	}
	if err := saml.Use(c.Context, c.Resources.Store(), it.Scope.Org, who); err != nil {
		return nil, f.family.reject(c, it, who.Email, failed(err))
	}
	token, s, err := f.family.admit(c, it, &oidc.User{
		Subject: who.Subject, Email: who.Email, FirstName: who.FirstName, LastName: who.LastName, SessionID: who.SessionIndex, AuthenticatedAt: who.Authenticated,
	}, who.Until)
	if err != nil {
		return nil, f.family.reject(c, it, who.Email, err)
	}
	out := redirect(to, append(browser.ClearKey(), browser.Set(token, s.Until), browser.Unbind())...)
	out.Status = http.StatusSeeOther
	return out, nil
}

// believe validates a response. An identity provider that publishes its metadata may have
// rotated its keys since they were fetched.
func (f bySAML) believe(c *admin.Call, it connection, m *saml.Message, w saml.Expectation) (*saml.User, error) {
	p, err := f.provider(c, it, false)
	if err != nil {
		return nil, err
	}
	s, err := f.service(c, it, p)
	if err != nil {
		return nil, err
	}
	who, err := s.Check(m, w)
	if err == nil || !saml.IsUnknownKey(err) || it.Form.MetadataXML != "" {
		return who, err
	}
	newer, fetched := f.provider(c, it, true)
	if fetched != nil {
		return nil, err
	}
	s.Provider = newer
	return s.Check(m, w)
}

func sorted(bad []fault.Detail) []fault.Detail {
	slices.SortFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

func (f bySAML) checkSAML(c *admin.Call, ch *joining) (bad []fault.Detail) {
	wrong := func(field, why string) { bad = append(bad, fault.Detail{Field: field, Message: why}) }
	form := ch.Form
	switch {
	case form.MetadataURL == "" && form.MetadataXML == "":
		wrong("metadata_url", "is required for the protocol saml unless metadata_xml is set")
	case form.MetadataURL != "" && form.MetadataXML != "":
		wrong("metadata_xml", "cannot be combined with metadata_url")
	case form.MetadataURL != "":
		if _, err := f.family.CheckURL(form.MetadataURL, "metadata_url"); err != nil {
			wrong("metadata_url", fault.From(err).Message)
		}
	default:
		if _, err := saml.ParseMetadata([]byte(form.MetadataXML), form.Issuer, c.Now); err != nil {
			wrong("metadata_xml", "cannot be used: "+err.Error())
		}
	}
	if form.ClientID != "" {
		wrong("client_id", "is only allowed with the protocol oidc")
	}
	if form.Method != "" {
		wrong("token_endpoint_auth_method", "is only allowed with the protocol oidc")
	}
	if len(form.Scopes) > 0 {
		wrong("scopes", "is only allowed with the protocol oidc")
	}
	for _, name := range []string{sso.SecretClient, sso.SecretKeys} {
		if ch.Rec.HasSecret(name) {
			wrong(name, "is only allowed with the protocol oidc")
		}
	}
	return sorted(bad)
}

// equip sets the gateway's identifiers and key of a new connection.
func (f bySAML) equip(c *admin.Call, ch *joining) error {
	if ch.Form.Base == "" {
		ch.Form.Base = admin.Address(f.family.PublicURL, c.Request)
	}
	if ch.Rec.HasSecret(sso.SecretService) {
		return nil
	}
	key, certificate, err := saml.NewKey("gateway "+ch.Rec.Scope.Org, c.Now)
	if err != nil {
		return err
	}
	if err := ch.Rec.SetSecret(c.Context, c.Sealer, sso.SecretService, key); err != nil {
		return fault.Unavailable(err)
	}
	ch.Form.Certificate = certificate
	return nil
}

// serviceShown describes what an identity provider needs to know about the gateway.
func (f bySAML) serviceShown() []admin.ComputedField[sso.Connection] {
	shown := func(name, doc string, value func(it connection) string) admin.ComputedField[sso.Connection] {
		return admin.ComputedField[sso.Connection]{Field: admin.Field{Name: name, Type: admin.String, Single: true, Optional: true, Doc: doc}, Value: func(_ *admin.Call, it connection) any {
			if !it.Form.IsSAML() {
				return nil
			}
			return value(it)
		}}
	}
	return []admin.ComputedField[sso.Connection]{
		shown("sp_entity_id", "For saml: the gateway's entity id at the identity provider (audience).", func(it connection) string { return f.entityID(it) }),
		shown("sp_acs_url", "For saml: the address to which the identity provider sends its responses, by POST.", func(it connection) string { return f.entityID(it) + acs }),
		shown("sp_metadata_url", "For saml: the address of the gateway's metadata.", func(it connection) string { return f.entityID(it) + metadata + "?sso_client_id=" + it.ID }),
		shown("sp_certificate", "For saml: the gateway's certificate, as base64 of DER. It signs requests, and assertions may be encrypted for it.", func(it connection) string {
			return base64.StdEncoding.EncodeToString(it.Form.Certificate)
		}),
	}
}

// Paths below the entity id of an organization.
const (
	samlPath = "/auth/saml/"
	acs      = "/acs"
	metadata = "/metadata"
)

// entityID returns the gateway's entity id at the identity providers of an organization.
func (f bySAML) entityID(it connection) string {
	return strings.TrimRight(cmp.Or(f.family.PublicURL, it.Form.Base), "/") + samlPath + it.Scope.Org
}

// provider returns the metadata of an identity provider. renew requests newer metadata than the
// cached copy.
func (f bySAML) provider(c *admin.Call, it connection, renew bool) (*saml.Provider, error) {
	if it.Form.MetadataXML != "" {
		return saml.ParseMetadata([]byte(it.Form.MetadataXML), it.Form.Issuer, c.Now)
	}
	source := &saml.Source{Store: c.Resources.Store(), Transport: f.family.Transport, Org: it.Scope.Org, ID: it.ID, URL: it.Form.MetadataURL, Entity: it.Form.Issuer}
	return source.Get(c.Context, c.Now, renew)
}

// service returns the gateway as a service provider; p may be nil if only its own identifiers
// are needed.
func (f bySAML) service(c *admin.Call, it connection, p *saml.Provider) (*saml.Service, error) {
	secrets, err := it.OpenSecrets(c.Context, c.Sealer)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	key, err := saml.ReadKey(secrets[sso.SecretService])
	if err != nil {
		return nil, err
	}
	id := f.entityID(it)
	return &saml.Service{
		EntityID: id, Consumer: id + acs, Provider: p, Key: key, Certificate: it.Form.Certificate, SignRequests: it.Form.SignRequests,
		Mapping: saml.Mapping{Email: it.Form.EmailAttribute, FirstName: it.Form.FirstNameAttribute, LastName: it.Form.LastNameAttribute},
	}, nil
}

// organisation returns the organization of a path, which may not exist.
func organisation(c *admin.Call) (store.Scope, error) {
	org := store.Scope{Org: c.Param("organisationId")}
	if len(org.Org) > 64 {
		return org, errNoLogin()
	}
	n, err := c.Resources.Generation(c.Context, org.Org)
	if err == nil && n == 0 {
		err = errNoLogin()
	}
	return org, err
}
