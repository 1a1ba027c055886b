package mcp

import (
	"encoding/json"

	"gateway/shared/tenant/upstream"
)

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
	External           *ExternalAuth       `json:"external_auth_config,omitempty" doc:"Sign-in at an identity provider of the organisation."`
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

// ExternalAuth is an identity provider of the organisation.
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
	return c, upstream.Open(i.Configurations, sealed, c)
}
