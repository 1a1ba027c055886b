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

// Kinds of the stored resources. An integration belongs to the organisation or to one
// workspace, a server always to a workspace. Switches are stored below the integration or
// server that they apply to, users below their server.
const (
	KindIntegration       resource.Kind = "AGENT_INTEGRATION"
	KindServer            resource.Kind = "AGENT_SERVER"
	KindIntegrationSwitch resource.Kind = "AGENT_INTEGRATION_SKILL"
	KindServerSwitch      resource.Kind = "AGENT_SERVER_SKILL"
	KindUser              resource.Kind = "AGENT_USER_ACCESS"
)

// Values of Integration.AuthType.
const (
	AuthNone    = "none"
	AuthHeaders = "headers"
)

// Integration is the stored form of a registered agent.
type Integration struct {
	URL         string `json:"url" min:"1" max:"2048"`
	AuthType    string `json:"auth_type" enum:"none,headers"`
	Description string `json:"description,omitempty" max:"2048"`
	// Configurations are the members of Configuration by name, with secrets masked. A member
	// that holds secrets is also sealed as a whole, under its name.
	Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
	SecretMappings []provider.SecretMapping   `json:"secret_mappings,omitempty"`
	Access         access.Workspaces          `json:"access"`
	Card           json.RawMessage            `json:"card,omitempty"`      // as the agent shows it
	Signature      *Verified                  `json:"signature,omitempty"` // of the card
	Synced         Synced                     `json:"synced"`
}

// Synced tells when the card was fetched last, and what went wrong.
type Synced struct {
	Status string     `json:"sync_status,omitempty" enum:"pending,success,failed"`
	At     *time.Time `json:"last_synced_at,omitempty"`
	Error  string     `json:"sync_error,omitempty"`
}

// Values of Synced.Status.
const (
	SyncPending = "pending"
	SyncSuccess = "success"
	SyncFailed  = "failed"
)

// Server is the stored form of an agent in one workspace.
type Server struct {
	Description     string `json:"description,omitempty" max:"500"`
	IntegrationID   string `json:"agent_integration_id"`
	IntegrationOrg  bool   `json:"integration_org,omitempty"` // the integration is the organisation's
	IntegrationSlug string `json:"agent_integration_slug"`
	// UserAccess applies to users without an entry of their own.
	UserAccess string `json:"default_user_access,omitempty" enum:"allow,deny"`
}

// Switch is what an integration or a server says of a skill.
type Switch struct {
	Skill   string `json:"skill"`
	Enabled bool   `json:"enabled"`
}

// Bounds in characters.
const (
	MaxName     = 255
	MinSlug     = 3
	MaxSlug     = 50
	MaxSlugLong = 255 // of integrations
	MaxSkill    = 512 // of the id of a skill
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

// SwitchID is the id of the switch of a skill. The skill's own id may have any characters.
func SwitchID(skill string) string {
	sum := sha256.Sum256([]byte(skill))
	return "skill-" + hex.EncodeToString(sum[:16])
}

var slugs = upstream.Slugs{Row: "AGENT_SLUG", What: "agent server"}

// Claim stages that a new server takes its slug, which no other server of the organisation
// may have.
func Claim(tx *resource.Tx, rec *resource.Record) { slugs.Claim(tx, rec) }

// Release stages that a server that is deleted gives back its slug and its integration.
func Release(tx *resource.Tx, rec *resource.Record) error {
	s, err := DecodeServer(*rec)
	if err != nil {
		return err
	}
	return slugs.Release(tx, rec, s.Integration(rec.Scope))
}

// DecodeIntegration, DecodeServer and DecodeSwitch read the stored forms.
func DecodeIntegration(rec resource.Record) (*Integration, error) {
	return resource.Decode[Integration](rec)
}

func DecodeServer(rec resource.Record) (*Server, error) { return resource.Decode[Server](rec) }

func DecodeSwitch(rec resource.Record) (*Switch, error) { return resource.Decode[Switch](rec) }
