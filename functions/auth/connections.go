package auth

import (
	"encoding/json"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/sso"
)

type (
	connection = admin.Item[sso.Connection]
	joining    = admin.Change[sso.Connection]
)

// scopes are those of the organisation's settings.
func scopes(action string) []string {
	if action == "list" || action == "read" {
		return []string{"organisation_settings.read"}
	}
	return []string{"organisation_settings.update"}
}

const connectionsPath = "/auth/sso-configurations"

// describeConnections are the identity providers that people of the organisation sign
// in with.
func (f *family) describeConnections() *admin.Collection[sso.Connection] {
	return &admin.Collection[sso.Connection]{
		Kind: sso.KindConnection, Object: "sso-configuration", Path: connectionsPath, Param: "configurationId", UUIDOnly: true,
		Scopes: scopes, Resource: "sso_configurations", Where: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Missing: fault.NotFound,
		List: admin.List{Search: true},
		Fields: []admin.Field{
			admin.NameField(255),
			{Name: "issuer", Required: true, Example: "https://login.example.com", Doc: "Issuer of the identity provider, which describes itself at /.well-known/openid-configuration below it."},
			{Name: "client_id", Required: true, Doc: "The gateway's client id at the identity provider. Its redirect URI there is <base>/auth/callback."},
			{Name: "client_secret", Secret: true, Max: 4096, Doc: "Of client_secret_basic and client_secret_post."},
			{Name: "jwks", Secret: true, Max: 16384, Check: privateKeys, Doc: "Of private_key_jwt: a JSON Web Key Set of the gateway's private keys, as a text."},
			{Name: "token_endpoint_auth_method", Doc: "How the gateway shows who it is; without it private_key_jwt where there is a jwks, else client_secret_basic."},
			{Name: "scopes", Absent: []any{}, Doc: "Asked for beside openid, profile and email."},
			{Name: "disable_auto_provision_user", In: "disable_auto_provision_user", Absent: false, Default: false, Doc: "true: only users and people who are invited may sign in. Otherwise everybody with an address of a verified domain becomes a member."},
		},
		Before: f.checkConnection,
		Adjust: recentWrites,
	}
}

// recentWrites has changes ask for a recent sign-in.
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

func (f *family) checkConnection(_ *admin.Call, _ *resource.Tx, ch *joining) error {
	var bad []fault.Detail
	if _, err := f.CheckURL(ch.Form.Issuer, "issuer"); err != nil {
		bad = append(bad, fault.Detail{Field: "issuer", Message: fault.From(err).Message})
	}
	switch ch.Form.Way(ch.Rec.HasSecret) {
	case oidc.PrivateKey:
		if !ch.Rec.HasSecret(sso.SecretKeys) {
			bad = append(bad, fault.Detail{Field: sso.SecretKeys, Message: "is required for private_key_jwt"})
		}
	default:
		if !ch.Rec.HasSecret(sso.SecretClient) {
			bad = append(bad, fault.Detail{Field: sso.SecretClient, Message: "is required unless the gateway shows who it is by private_key_jwt"})
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

// verifyConnection asks the identity provider once, so that a mistake is known before
// somebody signs in.
func (f *family) verifyConnection() []admin.Route {
	return f.connections.Below(admin.Route{
		Method: "POST", Path: connectionsPath + "/{configurationId}/verify", Name: "verifySsoConfiguration", Action: audit.Test, Scopes: scopes("read"),
		Doc: "Read the identity provider's description now, and tell whether people could be sent there.", AnswerOf: admin.SchemaOf[verified],
		Do: f.connections.At("read", func(c *admin.Call) (any, error) {
			it, err := f.connections.Find(c)
			if err != nil {
				return nil, err
			}
			client, err := f.client(c, it)
			if err != nil {
				return nil, err
			}
			out := verified{Object: "sso-verification", Success: true, Message: "The identity provider describes itself as it should"}
			if err := client.Check(c.Context); err != nil {
				out.Success, out.Message = false, told(err)
			}
			return out, nil
		}),
	})
}

type verified struct {
	Object  string `json:"object"`
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// client is the gateway at an identity provider.
func (f *family) client(c *admin.Call, it connection) (*oidc.Client, error) {
	out := &oidc.Client{
		Issuer: it.Form.Issuer, ID: it.Form.ClientID, Method: it.Form.Way(it.HasSecret), Scopes: it.Form.Scopes,
		Redirect: admin.Address(f.PublicURL, c.Request) + "/auth/callback", Via: f.Via, Now: c.Resources.Now,
	}
	secrets, err := it.OpenSecrets(c.Context, c.Sealer)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	out.Secret, out.Keys = string(secrets[sso.SecretClient]), secrets[sso.SecretKeys]
	return out, nil
}
