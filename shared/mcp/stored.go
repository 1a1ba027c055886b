package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Kinds of stored resources. An integration belongs to the organization or to one workspace, a
// server always to a workspace. Capabilities are stored under their integration; overrides,
// users and connections under their server.
const (
	KindIntegration resource.Kind = "MCP_INTEGRATION"
	KindServer      resource.Kind = "MCP_SERVER"
	KindCapability  resource.Kind = "MCP_CAPABILITY"
	KindOverride    resource.Kind = "MCP_OVERRIDE"
	KindUser        resource.Kind = "MCP_USER_ACCESS"
	KindConnection  resource.Kind = "MCP_CONNECTION"
	KindClient      resource.Kind = "MCP_CLIENT" // the gateway's client at an authorization server
)

const (
	AuthNone              = "none"
	AuthHeaders           = "headers"
	AuthOAuth             = "oauth_auto"
	AuthClientCredentials = "oauth_client_credentials"
)

const (
	TransportHTTP = "http"
	TransportSSE  = "sse"
)

// Integration is the stored form of a registered server.
type Integration struct {
	URL         string `json:"url" min:"1" max:"2048"`
	AuthType    string `json:"auth_type" enum:"oauth_auto,headers,none,oauth_client_credentials"`
	Transport   string `json:"transport" enum:"http,sse"`
	Description string `json:"description,omitempty" max:"2048"`
	// Configurations maps the JSON fields of Configuration to their values, with secrets
	// masked. A field with secrets is sealed entirely under its name.
	Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
	SecretMappings []provider.SecretMapping   `json:"secret_mappings,omitempty"`
	Access         access.Workspaces          `json:"access"`
	Synced         Metadata                   `json:"synced"`
}

// Metadata is what the server reported at the last synchronization.
type Metadata struct {
	Title           string          `json:"title,omitempty"`
	Description     string          `json:"description,omitempty"`
	Icons           json.RawMessage `json:"icons,omitempty"`
	ServerName      string          `json:"server_name,omitempty"`
	ServerVersion   string          `json:"server_version,omitempty"`
	Website         string          `json:"website_url,omitempty"`
	ProtocolVersion string          `json:"protocol_version,omitempty"`
	Capabilities    json.RawMessage `json:"capability_flags,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Status          string          `json:"sync_status,omitempty" enum:"pending,success,failed"`
	At              *time.Time      `json:"last_synced_at,omitempty"`
	Error           string          `json:"sync_error,omitempty"`
}

const (
	SyncPending = "pending"
	SyncSuccess = "success"
	SyncFailed  = "failed"
)

// Check validates the fields and their combinations after the configurations were set.
func (i *Integration) Check() []fault.Detail {
	bad := append(bound.Check(i), i.Access.Validate()...)
	return append(bad, i.checkCredentials()...)
}

// Server is the stored form of an integration in one workspace, or of a virtual server.
type Server struct {
	Description     string `json:"description,omitempty" max:"500"`
	IntegrationID   string `json:"mcp_integration_id"`        // empty for a virtual server
	IntegrationOrg  bool   `json:"integration_org,omitempty"` // the integration belongs to the organization
	IntegrationSlug string `json:"mcp_integration_slug"`
	// UserAccess applies to users without an entry.
	UserAccess string `json:"default_user_access,omitempty" enum:"allow,deny"`

	// Only for virtual servers.
	Members   []Member `json:"members,omitempty" max:"20"`
	Search    string   `json:"search,omitempty" enum:"always,auto,off"`
	Threshold int64    `json:"search_threshold,omitempty" min:"1" max:"5000"`
}

// Limits in characters.
const (
	MaxName     = 255
	MinSlug     = 3
	MaxSlug     = 50
	MaxSlugLong = 255 // for integrations
)

// IntegrationScope returns the scope of the server's integration.
func (s *Server) IntegrationScope(sc store.Scope) store.Scope {
	if s.IntegrationOrg {
		return sc.Organisation()
	}
	return sc
}

// Integration returns the reference to the server's integration.
func (s *Server) Integration(sc store.Scope) resource.Ref {
	return resource.Ref{Scope: s.IntegrationScope(sc), Kind: KindIntegration, ID: s.IntegrationID}
}

// Uses returns the resources that the server depends on: its integration or its members.
func (s *Server) Uses(sc store.Scope) []resource.Ref {
	if !s.Virtual() {
		return []resource.Ref{s.Integration(sc)}
	}
	out := make([]resource.Ref, len(s.Members))
	for i := range s.Members {
		out[i] = resource.Ref{Scope: sc, Kind: KindServer, ID: s.Members[i].Server}
	}
	return out
}

// PathPrefix is the path under which servers are reached.
const PathPrefix = oauthserver.PathPrefix

const (
	Tool             = "tool"
	Prompt           = "prompt"
	Resource         = "resource"
	ResourceTemplate = "resource_template"
)

var Types = []string{Tool, Prompt, Resource, ResourceTemplate}

// Capability is the stored form of a capability. Its record has the name; Shape is the
// upstream's definition, verbatim.
type Capability struct {
	Type    string          `json:"type" enum:"tool,prompt,resource,resource_template"`
	Enabled bool            `json:"enabled"`
	Shape   json.RawMessage `json:"shape,omitempty"`
}

// Override is the setting of a server for a capability of its integration, under the id of the
// capability.
type Override struct {
	Type    string `json:"type" enum:"tool,prompt,resource,resource_template"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// CapabilityID returns the id of a capability: a hash, because names may be longer than ids and
// contain other characters. key is the URI of a resource or template, the name of a tool or
// prompt.
func CapabilityID(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

// IsCapability reports whether id is a capability id of the kind.
func IsCapability(id, kind string) bool { return strings.HasPrefix(id, kind+"-") }

// Connection is the stored form of a user's sign-in. The sealed tokens are in a separate row,
// see package oauthclient.
type Connection struct {
	Issuer string `json:"issuer,omitempty"`
	Serial string `json:"serial,omitempty"` // identifies the tokens that belong to the connection
}

var slugs = upstream.Slugs{Row: "MCP_SLUG", What: "mcp server"}

// ClaimSlug stages the claim of a new server's slug, which is unique in the organization.
func ClaimSlug(tx *resource.Tx, rec *resource.Record) { slugs.Claim(tx, rec) }

// FindBySlug returns the location of a server. ok is false if there is none.
func FindBySlug(ctx context.Context, s store.Store, org store.Scope, slug string) (at store.Scope, id string, ok bool, err error) {
	it, ok, err := s.Table(store.Control).Get(ctx, slugs.Key(org, slug), true)
	if err != nil {
		return at, "", false, fault.Unavailable(err)
	}
	return store.Scope{Org: org.Org, Workspace: it.String("ws")}, it.String("id"), ok, nil
}

// Dependents are the kinds that end with their workspace.
var Dependents = []resource.Dependent{{Kind: KindServer, Release: Release}, {Kind: KindIntegration, Along: true}}

// Release stages the release of a deleted server's slug and references.
func Release(tx *resource.Tx, rec *resource.Record) error {
	s, err := DecodeServer(*rec)
	if err != nil {
		return err
	}
	uses := s.Uses(rec.Scope)
	for _, of := range uses[1:] {
		if err := tx.RemoveUse(of, rec.Ref()); err != nil {
			return err
		}
	}
	return slugs.Release(tx, rec, uses[0])
}

// DecodeIntegration decodes a stored integration.
func DecodeIntegration(rec resource.Record) (*Integration, error) {
	return resource.Decode[Integration](rec)
}

func DecodeServer(rec resource.Record) (*Server, error) { return resource.Decode[Server](rec) }

func DecodeCapability(rec resource.Record) (*Capability, error) {
	return resource.Decode[Capability](rec)
}

func DecodeConnection(rec resource.Record) (*Connection, error) {
	return resource.Decode[Connection](rec)
}

func DecodeOverride(rec resource.Record) (*Override, error) { return resource.Decode[Override](rec) }

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
	if err := upstream.DecodeFields(ch.Members, nil, sent); err != nil {
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
