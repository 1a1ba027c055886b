package mcp

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity/bearer"
	"gateway/shared/provider"
	"gateway/shared/seal/hostpin"
	"gateway/shared/tenant/upstream"
)

// Defaults of JWTValidation.
const (
	defaultTolerance = 5 // seconds
	defaultKeyTTL    = 86_400
)

// RequiresToken reports whether clients must send a token in addition to their key.
func (i *Integration) RequiresToken() bool {
	raw := i.Configurations[confJWT]
	return len(raw) > 0 && string(raw) != "null" || slices.ContainsFunc(i.SecretMappings, func(m provider.SecretMapping) bool {
		top, _, _ := strings.Cut(strings.TrimPrefix(m.TargetField, configPrefix), ".")
		return top == confJWT
	})
}

// Header returns the header that contains the token.
func (j *JWTValidation) Header() string { return cmp.Or(j.HeaderKey, "Authorization") }

// Rules returns the validation rules. A rule that cannot be parsed rejects every token.
func (j *JWTValidation) Rules() *bearer.Rules {
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	r := &bearer.Rules{
		JWKSURI: j.JWKSURI, Introspect: j.IntrospectEndpoint, Kind: cmp.Or(j.IntrospectContentType, "application/json"),
		ClientID: j.IntrospectClientID, ClientSecret: j.IntrospectClientSecret,
		CacheFor: seconds(j.IntrospectCacheMaxAge), KeySetTTL: seconds(cmp.Or(j.CacheMaxAge, defaultKeyTTL)), Tolerance: seconds(cmp.Or(j.ClockTolerance, defaultTolerance)),
		Algorithms: j.Algorithms, NeedExpiry: true,
		Claims: bearer.ClaimRules{Required: j.RequiredClaims, Match: j.HeaderPayloadMatch},
	}
	if len(r.Algorithms) == 0 {
		r.Algorithms = []string{"RS256"}
	}
	if len(j.JWKS) > 0 {
		r.Inline = bearer.InPlace(j.JWKS)
	}
	if age, err := time.ParseDuration(j.MaxTokenAge); err == nil {
		r.MaxAge = age
	}
	patterns := map[string]*regexp.Regexp{}
	for _, claim := range slices.Sorted(maps.Keys(j.ClaimValues)) {
		v := j.ClaimValues[claim]
		r.Claims.Values = append(r.Claims.Values, bearer.ValueRule{Claim: claim, Allowed: v.Values, Match: cmp.Or(v.MatchType, "exact")})
		for _, text := range v.Values {
			if re, err := regexp.Compile(text); v.MatchType == "regex" && err == nil {
				patterns[text] = re
			}
		}
	}
	r.Claims.Pattern = func(pattern, text string) (bool, error) {
		re := patterns[pattern]
		return re != nil && re.MatchString(text), nil
	}
	return r
}

// check returns the faults that the limits in the struct tags do not cover.
func (j *JWTValidation) check(at string) (bad []fault.Detail) {
	sources := 0
	for _, set := range []bool{j.JWKSURI != "", len(j.JWKS) > 0, j.IntrospectEndpoint != ""} {
		if set {
			sources++
		}
	}
	if sources != 1 {
		bad = append(bad, fault.Detail{Field: at, Message: "must have exactly one of jwksUri, jwks, introspectEndpoint"})
	}
	if len(j.JWKS) > 0 {
		if err := bearer.CheckSet(j.JWKS); err != nil {
			bad = append(bad, fault.Detail{Field: at + ".jwks", Message: err.Error()})
		}
	}
	if h := j.HeaderKey; h != "" && (!upstream.HeaderName(h) || upstream.IsGatewayHeader(strings.ToLower(h)) || http.CanonicalHeaderKey(h) == "X-Gateway-Api-Key") {
		bad = append(bad, fault.Detail{Field: at + ".headerKey", Message: "must be a valid header name, and not the header of the key"})
	}
	if j.MaxTokenAge != "" {
		if d, err := time.ParseDuration(j.MaxTokenAge); err != nil || d <= 0 {
			bad = append(bad, fault.Detail{Field: at + ".maxTokenAge", Message: "must be a duration such as 30m or 12h"})
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(j.ClaimValues)) {
		v := j.ClaimValues[claim]
		if len(v.Values) == 0 {
			bad = append(bad, fault.Detail{Field: at + ".claimValues." + claim + ".values", Message: "must have an entry"})
		}
		for _, text := range v.Values {
			if _, err := regexp.Compile(text); v.MatchType == "regex" && err != nil {
				bad = append(bad, fault.Detail{Field: at + ".claimValues." + claim + ".values", Message: "must be a regular expression"})
			}
		}
	}
	return bad
}

// Fingerprint returns a string that differs for validations that differ, secrets included, or
// "" if it cannot be encoded.
func (j *JWTValidation) Fingerprint() string {
	raw, err := json.Marshal(j)
	if err != nil {
		return ""
	}
	return string(raw)
}

// Configuration describes how an upstream is called and who may call it. Its fields are stored
// separately, so an update names only the fields that it changes.
type Configuration struct {
	Headers            map[string]string   `json:"headers,omitempty" max:"50" each:"max=8192" doc:"Sent with each call."`
	CustomHeaders      map[string]string   `json:"custom_headers,omitempty" max:"50" each:"max=8192" doc:"As headers."`
	PassthroughHeaders map[string]string   `json:"passthrough_headers,omitempty" max:"50" each:"max=8192" doc:"Sent with each call; overrides headers of the same name."`
	PassthroughHeader  map[string]string   `json:"passthrough_header,omitempty" max:"50" each:"max=8192" doc:"As passthrough_headers."`
	ForwardHeaders     *upstream.Forward   `json:"forward_headers,omitempty" doc:"Client headers to forward to the server."`
	OAuth              *OAuthMetadata      `json:"oauth_metadata,omitempty" doc:"For sign-in at the server."`
	Identity           *IdentityForwarding `json:"user_identity_forwarding,omitempty" doc:"How the server learns the identity of the caller."`
	JWT                *JWTValidation      `json:"jwt_validation,omitempty" doc:"Tokens that clients must send in addition to their key, in each request."`
	External           *ExternalAuth       `json:"external_auth_config,omitempty" doc:"Sign-in at an identity provider of the organization."`
	// These fields are accepted for compatibility and have no effect.
	ToolAuthorization json.RawMessage `json:"tool_authorization,omitempty" doc:"Not used."`
	Webhook           json.RawMessage `json:"authorization_webhook,omitempty" doc:"Not used."`
}

// Fields that contain secrets.
const (
	confHeaders     = "headers"
	confCustom      = "custom_headers"
	confPassthrough = "passthrough_headers"
	confPassOne     = "passthrough_header"
	confOAuth       = "oauth_metadata"
	confJWT         = "jwt_validation"
	confExternal    = "external_auth_config"
)

const confIdentity = "user_identity_forwarding"

// ignoredFields are accepted and not stored.
var ignoredFields = []string{"tool_authorization", "authorization_webhook"}

// OAuthMetadata describes an authorization server and the gateway's client there.
type OAuthMetadata struct {
	Issuer                string            `json:"issuer,omitempty" max:"2048"`
	AuthorizationEndpoint string            `json:"authorization_endpoint,omitempty" max:"2048"`
	TokenEndpoint         string            `json:"token_endpoint,omitempty" max:"2048"`
	ScopesSupported       []string          `json:"scopes_supported,omitempty" max:"200" each:"max=255"`
	ClientID              string            `json:"client_id,omitempty" max:"2048" doc:"Absent if no client was registered."`
	ClientSecret          string            `json:"client_secret,omitempty" max:"8192"`
	ClientName            string            `json:"client_name,omitempty" max:"255"`
	ClientURI             string            `json:"client_uri,omitempty" max:"2048"`
	LogoURI               string            `json:"logo_uri,omitempty" max:"2048"`
	Scope                 string            `json:"scope,omitempty" max:"4096"`
	SoftwareID            string            `json:"software_id,omitempty" max:"255"`
	SoftwareVersion       string            `json:"software_version,omitempty" max:"255"`
	GrantTypes            []string          `json:"grant_types,omitempty" max:"10" each:"max=255"`
	ResponseTypes         []string          `json:"response_types,omitempty" max:"10" each:"max=255"`
	TokenEndpointAuth     string            `json:"token_endpoint_auth_method,omitempty" enum:"none,client_secret_basic,client_secret_post"`
	Contacts              []string          `json:"contacts,omitempty" max:"20" each:"max=255"`
	TosURI                string            `json:"tos_uri,omitempty" max:"2048"`
	PolicyURI             string            `json:"policy_uri,omitempty" max:"2048"`
	AuthorizationParams   map[string]string `json:"authorization_params,omitempty" max:"20" each:"max=2048"`
}

// IdentityForwarding configures how the upstream learns the identity of the caller.
type IdentityForwarding struct {
	Method        string   `json:"method" min:"1" enum:"claims_header,bearer,jwt_header" doc:"jwt_header is a token signed by the gateway (RS256); verify it with /.well-known/jwks.json."`
	IncludeClaims []string `json:"include_claims,omitempty" max:"50" each:"max=255"`
	HeaderName    string   `json:"header_name,omitempty" max:"128"`
	Expiry        int64    `json:"jwt_expiry_seconds,omitempty" min:"1" max:"86400" doc:"Of jwt_header; 300 without it."`
}

// JWTValidation configures the tokens that clients must send in addition to their key.
type JWTValidation struct {
	JWKSURI                string                `json:"jwksUri,omitempty" max:"2048"`
	JWKS                   json.RawMessage       `json:"jwks,omitempty"`
	IntrospectEndpoint     string                `json:"introspectEndpoint,omitempty" max:"2048"`
	HeaderKey              string                `json:"headerKey,omitempty" max:"128"`
	Algorithms             []string              `json:"algorithms,omitempty" max:"12" each:"enum=RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA"`
	CacheMaxAge            int64                 `json:"cacheMaxAge,omitempty" max:"604800"`
	ClockTolerance         int64                 `json:"clockTolerance,omitempty" max:"300"`
	MaxTokenAge            string                `json:"maxTokenAge,omitempty" max:"16"`
	IntrospectContentType  string                `json:"introspectContentType,omitempty" enum:"application/json,application/x-www-form-urlencoded"`
	IntrospectClientID     string                `json:"introspectClientId,omitempty" max:"2048"`
	IntrospectClientSecret string                `json:"introspectClientSecret,omitempty" max:"8192"`
	IntrospectCacheMaxAge  int64                 `json:"introspectCacheMaxAge,omitempty" max:"86400"`
	RequiredClaims         []string              `json:"requiredClaims,omitempty" max:"50" each:"max=255"`
	ClaimValues            map[string]ClaimValue `json:"claimValues,omitempty" max:"50"`
	HeaderPayloadMatch     []string              `json:"headerPayloadMatch,omitempty" max:"50" each:"max=255"`
}

// ClaimValue lists the allowed values of a claim.
type ClaimValue struct {
	Values    Texts  `json:"values"`
	MatchType string `json:"matchType,omitempty" enum:"exact,contains,containsAll,regex"`
}

// ExternalAuth is an identity provider of the organization.
type ExternalAuth struct {
	AuthorizationEndpoint string            `json:"authorization_endpoint" min:"1" max:"2048"`
	TokenEndpoint         string            `json:"token_endpoint" min:"1" max:"2048"`
	Scope                 string            `json:"scope,omitempty" max:"4096"`
	ClientID              string            `json:"client_id" min:"1" max:"2048"`
	ClientSecret          string            `json:"client_secret,omitempty" max:"8192"`
	AuthorizationParams   map[string]string `json:"authorization_params,omitempty" max:"20" each:"max=2048"`
}

// Configuration decodes the stored fields and restores their secrets. sealed is the result of
// Record.OpenSecrets; without it secrets stay masked.
func (i *Integration) Configuration(sealed map[string][]byte) (*Configuration, error) {
	c := new(Configuration)
	return c, upstream.DecodeFields(i.Configurations, sealed, c)
}

// Addresses returns the hosts that receive secrets of the integration, before and after a
// change. was is the zero Integration for a new one. User tokens are not among these secrets:
// each is bound to the address for which it was issued.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	const oauth, external, jwt = configPrefix + confOAuth, configPrefix + confExternal, configPrefix + confJWT
	toServer := []string{oauth}
	for _, name := range []string{confHeaders, confCustom, confPassthrough, confPassOne} {
		toServer = append(toServer, configPrefix+name)
	}
	before, after := was.addressFields(), i.addressFields()
	of := func(field string, secrets ...string) hostpin.Address {
		return hostpin.Address{Field: field, Was: before[field], Now: after[field], Open: true, Secrets: secrets}
	}
	return []hostpin.Address{
		of("url", toServer...),
		of(oauth+".issuer", oauth), of(oauth+".authorization_endpoint", oauth), of(oauth+".token_endpoint", oauth),
		of(external+".authorization_endpoint", external), of(external+".token_endpoint", external),
		of(jwt+".introspectEndpoint", jwt),
	}
}

// addressFields returns the values of the fields that Addresses names. If the configuration
// cannot be decoded, it returns only the URL: Check rejects such a configuration.
func (i *Integration) addressFields() map[string]string {
	out := map[string]string{"url": i.URL}
	c, err := i.Configuration(nil)
	if err != nil {
		return out
	}
	if o := c.OAuth; o != nil {
		const at = configPrefix + confOAuth
		out[at+".issuer"], out[at+".authorization_endpoint"], out[at+".token_endpoint"] = o.Issuer, o.AuthorizationEndpoint, o.TokenEndpoint
	}
	if e := c.External; e != nil {
		const at = configPrefix + confExternal
		out[at+".authorization_endpoint"], out[at+".token_endpoint"] = e.AuthorizationEndpoint, e.TokenEndpoint
	}
	if j := c.JWT; j != nil {
		out[configPrefix+confJWT+".introspectEndpoint"] = j.IntrospectEndpoint
	}
	return out
}

// Values of IdentityForwarding.Method.
const (
	IdentityClaims = "claims_header"
	IdentityBearer = "bearer"
	IdentitySigned = "jwt_header"
)

// Header returns the header that carries the identity.
func (f *IdentityForwarding) Header() string {
	switch f.Method {
	case IdentityBearer:
		return cmp.Or(f.HeaderName, "Authorization")
	case IdentitySigned:
		return cmp.Or(f.HeaderName, "X-User-JWT")
	}
	return cmp.Or(f.HeaderName, "X-User-Claims")
}

// Claims returns the names of the claims to forward.
func (f *IdentityForwarding) Claims() []string {
	if len(f.IncludeClaims) > 0 {
		return f.IncludeClaims
	}
	return []string{"sub", "email", "username", "user_id", "workspace_id", "organisation_id", "scope", "client_id"}
}

// Lifetime returns how long a signed token is valid.
func (f *IdentityForwarding) Lifetime() time.Duration {
	return time.Duration(cmp.Or(f.Expiry, defaultExpiry)) * time.Second
}

// defaultExpiry is in seconds.
const defaultExpiry = 300

// check returns the faults that the limits in the struct tags do not cover.
func (f *IdentityForwarding) check(at string) (bad []fault.Detail) {
	if f.HeaderName != "" && (!upstream.HeaderName(f.HeaderName) || upstream.IsGatewayHeader(strings.ToLower(f.HeaderName))) {
		bad = append(bad, fault.Detail{Field: at + ".header_name", Message: "is not a valid header name, or the header is reserved"})
	}
	return bad
}
