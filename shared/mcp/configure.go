package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/tenant/upstream"
)

// Texts is a list of strings. Its JSON is a list or a single string.
type Texts []string

func (t *Texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = Texts{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// lockedParams are set by the gateway and cannot be set by authorization_params.
var lockedParams = []string{"response_type", "client_id", "client_secret", "code_challenge", "code_challenge_method", "redirect_uri", "state", "scope", "resource"}

func checkParams(field string, params map[string]string) (bad []fault.Detail) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if slices.Contains(lockedParams, name) {
			bad = append(bad, fault.Detail{Field: field + ".authorization_params." + name, Message: "is set by the gateway"})
		}
	}
	return bad
}

// ConfigDeps are the dependencies of Configure.
type ConfigDeps struct {
	Sealer   seal.Sealer
	CheckURL provider.URLCheck
}

// check returns the faults that the limits in the struct tags do not cover. Field names begin
// with configurations.
func (c *Configuration) check(k ConfigDeps) (bad []fault.Detail) {
	const at = "configurations."
	for name, headers := range map[string]map[string]string{confHeaders: c.Headers, confCustom: c.CustomHeaders, confPassthrough: c.PassthroughHeaders, confPassOne: c.PassthroughHeader} {
		bad = append(bad, upstream.CheckHeaders(at+name, headers)...)
	}
	address := func(field, raw string) {
		if raw == "" {
			return
		}
		if _, err := k.CheckURL(raw, field); err != nil {
			bad = append(bad, fault.Detail{Field: field, Message: fault.From(err).Message})
		}
	}
	if o := c.OAuth; o != nil {
		address(at+"oauth_metadata.issuer", o.Issuer)
		address(at+"oauth_metadata.authorization_endpoint", o.AuthorizationEndpoint)
		address(at+"oauth_metadata.token_endpoint", o.TokenEndpoint)
		bad = append(bad, checkParams(at+confOAuth, o.AuthorizationParams)...)
	}
	if e := c.External; e != nil {
		address(at+"external_auth_config.authorization_endpoint", e.AuthorizationEndpoint)
		address(at+"external_auth_config.token_endpoint", e.TokenEndpoint)
		bad = append(bad, checkParams(at+confExternal, e.AuthorizationParams)...)
	}
	if j := c.JWT; j != nil {
		address(at+"jwt_validation.jwksUri", j.JWKSURI)
		address(at+"jwt_validation.introspectEndpoint", j.IntrospectEndpoint)
		bad = append(bad, j.check(at+confJWT)...)
	}
	if f := c.Identity; f != nil {
		bad = append(bad, f.check(at+confIdentity)...)
	}
	return bad
}

// checkCredentials returns the fields that the authentication type requires and that are
// missing.
func (i *Integration) checkCredentials() []fault.Detail {
	mapped := slices.ContainsFunc(i.SecretMappings, func(m provider.SecretMapping) bool { return strings.HasPrefix(m.TargetField, configPrefix) })
	c, err := i.Configuration(nil)
	if err != nil {
		return []fault.Detail{{Field: "configurations", Message: "does not have the expected form"}}
	}
	switch {
	case i.AuthType == AuthClientCredentials && (c.OAuth == nil || c.OAuth.ClientID == "" || c.OAuth.TokenEndpoint == "" || c.OAuth.ClientSecret == "" && !mapped):
		return []fault.Detail{{Field: "configurations.oauth_metadata", Message: "must have token_endpoint, client_id and client_secret with auth_type oauth_client_credentials"}}
	}
	return nil
}

const configPrefix = upstream.Prefix

// secretsOf lists the fields with secrets, and which parts of them are secret.
var secretsOf = upstream.Secrets{
	confHeaders: nil, confCustom: nil, confPassthrough: nil, confPassOne: nil,
	confOAuth: {"client_secret"}, confExternal: {"client_secret"}, confJWT: {"introspectClientSecret"},
}

// Configure validates the changed fields, seals their secrets into rec and stores the rest.
func (i *Integration) Configure(ctx context.Context, k ConfigDeps, rec *resource.Record, ch upstream.Change) error {
	sent := new(Configuration)
	if err := upstream.Open(ch.Members, nil, sent); err != nil {
		return fault.Invalid("configurations", "does not have the expected form")
	}
	for _, name := range ignoredFields {
		delete(ch.Members, name)
	}
	next, err := ch.Apply(ctx, k.Sealer, rec, i.Configurations, secretsOf, func() []fault.Detail { return sent.check(k) })
	if err == nil {
		i.Configurations = next
	}
	return err
}

// CheckMappings validates the target fields of secret mappings.
func CheckMappings(list []provider.SecretMapping) (bad []fault.Detail) {
	seen := map[string]bool{}
	for n, m := range list {
		at := fmt.Sprintf("secret_mappings[%d].target_field", n)
		top, _, _ := strings.Cut(strings.TrimPrefix(m.TargetField, configPrefix), ".")
		if _, known := secretsOf[top]; !known || !strings.HasPrefix(m.TargetField, configPrefix) {
			bad = append(bad, fault.Detail{Field: at, Message: "must be configurations.<field>, such as configurations.headers.Authorization or configurations.oauth_metadata.client_secret"})
		}
		if seen[m.TargetField] {
			bad = append(bad, fault.Detail{Field: at, Message: "is mapped twice"})
		}
		seen[m.TargetField] = true
	}
	return bad
}
