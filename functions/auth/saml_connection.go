package auth

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/signin/saml"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

func sorted(bad []fault.Detail) []fault.Detail {
	slices.SortFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

func (f bySAML) checkSAML(c *admin.Call, ch *joining) (bad []fault.Detail) {
	wrong := func(field, why string) { bad = append(bad, fault.Detail{Field: field, Message: why}) }
	form := ch.Form
	switch {
	case form.MetadataURL == "" && form.MetadataXML == "":
		wrong("metadata_url", "is required for the protocol saml, or metadata_xml")
	case form.MetadataURL != "" && form.MetadataXML != "":
		wrong("metadata_xml", "must not be given beside metadata_url")
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
		wrong("client_id", "is for the protocol oidc")
	}
	if form.Method != "" {
		wrong("token_endpoint_auth_method", "is for the protocol oidc")
	}
	if len(form.Scopes) > 0 {
		wrong("scopes", "is for the protocol oidc")
	}
	for _, name := range []string{sso.SecretClient, sso.SecretKeys} {
		if ch.Rec.HasSecret(name) {
			wrong(name, "is for the protocol oidc")
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
func (f bySAML) serviceShown() []admin.Shown[sso.Connection] {
	shown := func(name, doc string, value func(it connection) string) admin.Shown[sso.Connection] {
		return admin.Shown[sso.Connection]{Field: admin.Field{Name: name, Type: admin.String, Single: true, Optional: true, Doc: doc}, Value: func(_ *admin.Call, it connection) any {
			if !it.Form.IsSAML() {
				return nil
			}
			return value(it)
		}}
	}
	return []admin.Shown[sso.Connection]{
		shown("sp_entity_id", "For saml: the gateway's entity id at the identity provider (audience).", func(it connection) string { return f.entityID(it) }),
		shown("sp_acs_url", "For saml: the address to which the identity provider sends its responses, by POST.", func(it connection) string { return f.entityID(it) + acs }),
		shown("sp_metadata_url", "For saml: the address of the gateway's metadata.", func(it connection) string { return f.entityID(it) + metadata + "?sso_client_id=" + it.ID }),
		shown("sp_certificate", "For saml: the gateway's certificate, as base64 of DER. It signs requests, and assertions may be encrypted for it.", func(it connection) string {
			return base64.StdEncoding.EncodeToString(it.Form.Certificate)
		}),
	}
}

// Paths below the entity id of an organisation.
const (
	samlPath = "/auth/saml/"
	acs      = "/acs"
	metadata = "/metadata"
)

// entityID returns the gateway's entity id at the identity providers of an organisation.
func (f bySAML) entityID(it connection) string {
	return strings.TrimRight(cmp.Or(f.family.PublicURL, it.Form.Base), "/") + samlPath + it.Scope.Org
}

// provider returns the metadata of an identity provider. renew requests newer metadata than the
// cached copy.
func (f bySAML) provider(c *admin.Call, it connection, renew bool) (*saml.Provider, error) {
	if it.Form.MetadataXML != "" {
		return saml.ParseMetadata([]byte(it.Form.MetadataXML), it.Form.Issuer, c.Now)
	}
	source := &saml.Source{Store: c.Resources.Store(), Via: f.family.Via, Org: it.Scope.Org, ID: it.ID, URL: it.Form.MetadataURL, Entity: it.Form.Issuer}
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

// organisation returns the organisation of a path, which may not exist.
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
