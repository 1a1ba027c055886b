package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Kinds of the stored resources. An integration belongs to the organisation or to
// one workspace, a server always to a workspace. Capabilities stand below their
// integration; overrides, users and connections below their server.
const (
	KindIntegration resource.Kind = "MCP_INTEGRATION"
	KindServer      resource.Kind = "MCP_SERVER"
	KindCapability  resource.Kind = "MCP_CAPABILITY"
	KindOverride    resource.Kind = "MCP_OVERRIDE"
	KindUser        resource.Kind = "MCP_USER_ACCESS"
	KindConnection  resource.Kind = "MCP_CONNECTION"
	KindClient      resource.Kind = "MCP_CLIENT" // who the gateway is at an authorization server
)

// Values of Integration.AuthType.
const (
	AuthNone              = "none"
	AuthHeaders           = "headers"
	AuthOAuth             = "oauth_auto"
	AuthClientCredentials = "oauth_client_credentials"
)

// Transports towards upstreams.
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
	// Configurations are those of Configuration by name, with secrets masked; a
	// member that has some is sealed whole under its name.
	Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
	SecretMappings []provider.SecretMapping   `json:"secret_mappings,omitempty"`
	Access         access.Workspaces          `json:"access"`
	Synced         Metadata                   `json:"synced"`
}

// Metadata is what the server said of itself when it was asked last.
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

// Values of Metadata.Status.
const (
	SyncPending = "pending"
	SyncSuccess = "success"
	SyncFailed  = "failed"
)

// Check gives what is out of bounds and what does not go together, once the
// configurations are in place.
func (i *Integration) Check() []fault.Detail {
	bad := append(bound.Check(i), i.Access.Validate()...)
	return append(bad, i.checkCredentials()...)
}

// Server is the stored form of an integration in one workspace, or of a bundle of tools
// of other servers there.
type Server struct {
	Description     string `json:"description,omitempty" max:"500"`
	IntegrationID   string `json:"mcp_integration_id"`        // "": it is virtual
	IntegrationOrg  bool   `json:"integration_org,omitempty"` // the integration is the organisation's
	IntegrationSlug string `json:"mcp_integration_slug"`
	// UserAccess holds for users without an entry of their own.
	UserAccess string `json:"default_user_access,omitempty" enum:"allow,deny"`

	// Of virtual servers.
	Members   []Member `json:"members,omitempty" max:"20"`
	Search    string   `json:"search,omitempty" enum:"always,auto,off"`
	Threshold int64    `json:"search_threshold,omitempty" min:"1" max:"5000"`
}

// Bounds of servers, in characters.
const (
	MaxName     = 255
	MinSlug     = 3
	MaxSlug     = 50
	MaxSlugLong = 255 // of integrations
)

// IntegrationScope is where the server's integration lives.
func (s *Server) IntegrationScope(sc store.Scope) store.Scope {
	if s.IntegrationOrg {
		return sc.Organisation()
	}
	return sc
}

// Integration is the reference to the server's integration.
func (s *Server) Integration(sc store.Scope) resource.Ref {
	return resource.Ref{Scope: s.IntegrationScope(sc), Kind: KindIntegration, ID: s.IntegrationID}
}

// Uses are what the server stands on: its integration, or its members.
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

// Below is what the addresses of servers stand below, behind the gateway's own.
const Below = oauthserver.Below

// Types of capabilities.
const (
	Tool             = "tool"
	Prompt           = "prompt"
	Resource         = "resource"
	ResourceTemplate = "resource_template"
)

// Types lists the types of capabilities.
var Types = []string{Tool, Prompt, Resource, ResourceTemplate}

// Capability is the stored form of what an upstream can do. Its record has the name;
// Shape is what the upstream said, unchanged.
type Capability struct {
	Type    string          `json:"type" enum:"tool,prompt,resource,resource_template"`
	Enabled bool            `json:"enabled"`
	Shape   json.RawMessage `json:"shape,omitempty"`
}

// Override is what a server says of a capability of its integration. Its id is the
// capability's.
type Override struct {
	Type    string `json:"type" enum:"tool,prompt,resource,resource_template"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// CapabilityID is the id of a capability: names may be longer than ids, and have
// characters that ids have not. Resources and templates are told apart by their
// address, tools and prompts by their name.
func CapabilityID(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

// IsCapability reports whether an id is that of a capability of a kind, listed or not.
func IsCapability(id, kind string) bool { return strings.HasPrefix(id, kind+"-") }

// Connection is the stored form of what a user has signed in to. The tokens stand in a
// row of their own, sealed: see the package connect.
type Connection struct {
	Issuer string `json:"issuer,omitempty"`
	Serial string `json:"serial,omitempty"` // of the tokens that belong to it
}

var slugs = upstream.Slugs{Row: "MCP_SLUG", What: "mcp server"}

// Claim stages that a new server takes its slug, which no other of the organisation
// may have.
func Claim(tx *resource.Tx, rec *resource.Record) { slugs.Claim(tx, rec) }

// Find gives where the server of a slug is in an organisation; ok is false where there is
// none.
func Find(ctx context.Context, s store.Store, org store.Scope, slug string) (at store.Scope, id string, ok bool, err error) {
	it, ok, err := s.Table(store.Control).Get(ctx, slugs.Key(org, slug), true)
	if err != nil {
		return at, "", false, fault.Unavailable(err)
	}
	return store.Scope{Org: org.Org, Workspace: it.String("ws")}, it.String("id"), ok, nil
}

// Release stages that a server that goes gives back its slug and what it stands on.
func Release(tx *resource.Tx, rec *resource.Record) error {
	s, err := DecodeServer(*rec)
	if err != nil {
		return err
	}
	uses := s.Uses(rec.Scope)
	for _, of := range uses[1:] {
		if err := tx.Unuse(of, rec.Ref()); err != nil {
			return err
		}
	}
	return slugs.Release(tx, rec, uses[0])
}

// DecodeIntegration, DecodeServer and the others read the stored forms.
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
