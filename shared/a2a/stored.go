package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Kinds of stored resources. An integration belongs to the organisation or to one workspace, a
// server always to a workspace. Switches are stored under their integration or server, users
// under their server.
const (
	KindIntegration       resource.Kind = "AGENT_INTEGRATION"
	KindServer            resource.Kind = "AGENT_SERVER"
	KindIntegrationSwitch resource.Kind = "AGENT_INTEGRATION_SKILL"
	KindServerSwitch      resource.Kind = "AGENT_SERVER_SKILL"
	KindUser              resource.Kind = "AGENT_USER_ACCESS"
)

const (
	AuthNone    = "none"
	AuthHeaders = "headers"
)

// Integration is the stored form of a registered agent.
type Integration struct {
	URL         string `json:"url" min:"1" max:"2048"`
	AuthType    string `json:"auth_type" enum:"none,headers"`
	Description string `json:"description,omitempty" max:"2048"`
	// Configurations maps the JSON fields of Configuration to their values, with secrets
	// masked. A field with secrets is sealed as a whole under its name.
	Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
	SecretMappings []provider.SecretMapping   `json:"secret_mappings,omitempty"`
	Access         access.Workspaces          `json:"access"`
	Card           json.RawMessage            `json:"card,omitempty"`      // verbatim
	Signature      *Verified                  `json:"signature,omitempty"` // of the card
	Synced         Synced                     `json:"synced"`
}

// Synced is the result of the last fetch of the card.
type Synced struct {
	Status string     `json:"sync_status,omitempty" enum:"pending,success,failed"`
	At     *time.Time `json:"last_synced_at,omitempty"`
	Error  string     `json:"sync_error,omitempty"`
}

const (
	SyncPending = "pending"
	SyncSuccess = "success"
	SyncFailed  = "failed"
)

// Server is the stored form of an agent in one workspace.
type Server struct {
	Description     string `json:"description,omitempty" max:"500"`
	IntegrationID   string `json:"agent_integration_id"`
	IntegrationOrg  bool   `json:"integration_org,omitempty"` // the integration belongs to the organisation
	IntegrationSlug string `json:"agent_integration_slug"`
	// UserAccess applies to users without an entry.
	UserAccess string `json:"default_user_access,omitempty" enum:"allow,deny"`
}

// Switch enables or disables a skill of an integration or a server.
type Switch struct {
	Skill   string `json:"skill"`
	Enabled bool   `json:"enabled"`
}

// Limits in characters.
const (
	MaxName     = 255
	MinSlug     = 3
	MaxSlug     = 50
	MaxSlugLong = 255 // for integrations
	MaxSkill    = 512 // for skill ids
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

// SwitchID returns the id of a skill's switch: a hash, because skill ids may contain any
// characters.
func SwitchID(skill string) string {
	sum := sha256.Sum256([]byte(skill))
	return "skill-" + hex.EncodeToString(sum[:16])
}

var slugs = upstream.Slugs{Row: "AGENT_SLUG", What: "agent server"}

// ClaimSlug stages the claim of a new server's slug, which is unique in the organisation.
func ClaimSlug(tx *resource.Tx, rec *resource.Record) { slugs.Claim(tx, rec) }

// Release stages the release of a deleted server's slug and integration.
func Release(tx *resource.Tx, rec *resource.Record) error {
	s, err := DecodeServer(*rec)
	if err != nil {
		return err
	}
	return slugs.Release(tx, rec, s.Integration(rec.Scope))
}

// DecodeIntegration decodes a stored integration.
func DecodeIntegration(rec resource.Record) (*Integration, error) {
	return resource.Decode[Integration](rec)
}

func DecodeServer(rec resource.Record) (*Server, error) { return resource.Decode[Server](rec) }

func DecodeSwitch(rec resource.Record) (*Switch, error) { return resource.Decode[Switch](rec) }
