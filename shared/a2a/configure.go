package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Configuration describes how an agent is called. Its fields are stored separately, so an
// update names only the fields that it changes.
type Configuration struct {
	Headers        map[string]string `json:"headers,omitempty" max:"50" each:"max=8192" doc:"Sent with each call."`
	ForwardHeaders *upstream.Forward `json:"forward_headers,omitempty" doc:"Client headers to forward to the agent."`
	// PushNotifications allows push. Pushed messages bypass the gateway.
	PushNotifications bool `json:"push_notifications,omitempty" doc:"Clients may register public addresses for push notifications of the agent."`
}

const confHeaders = "headers"

var secretsOf = upstream.Secrets{confHeaders: nil}

// Configure validates the changed fields, seals their secrets into rec and stores the rest.
func (i *Integration) Configure(ctx context.Context, s seal.Sealer, rec *resource.Record, ch upstream.Change) error {
	sent := new(Configuration)
	if err := upstream.DecodeFields(ch.Members, nil, sent); err != nil {
		return fault.Invalid("configurations", "does not have the expected form")
	}
	next, err := ch.Apply(ctx, s, rec, i.Configurations, secretsOf, func() []fault.Detail {
		return upstream.CheckHeaders(upstream.Prefix+confHeaders, sent.Headers)
	})
	if err == nil {
		i.Configurations = next
	}
	return err
}

// Addresses returns the host that receives the headers, before and after a change. was is the
// zero Integration for a new one.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	return []hostpin.Address{{Field: "url", Was: was.URL, Now: i.URL, Open: true, Secrets: []string{upstream.Prefix + confHeaders}}}
}

// Configuration decodes the stored fields and restores their secrets. sealed is the result of
// Record.OpenSecrets; without it secrets stay masked.
func (i *Integration) Configuration(sealed map[string][]byte) (*Configuration, error) {
	c := new(Configuration)
	return c, upstream.DecodeFields(i.Configurations, sealed, c)
}

// Check validates the fields and their combinations after the configurations were set.
func (i *Integration) Check() []fault.Detail {
	bad := append(bound.Check(i), i.Access.Validate()...)
	c, err := i.Configuration(nil)
	if err != nil {
		return append(bad, fault.Detail{Field: "configurations", Message: "does not have the expected form"})
	}
	if i.AuthType == AuthHeaders && len(c.Headers) == 0 && len(i.SecretMappings) == 0 {
		bad = append(bad, fault.Detail{Field: "configurations.headers", Message: "is required with auth_type headers, unless secret_mappings set it"})
	}
	if strings.Contains(i.URL, "#") {
		bad = append(bad, fault.Detail{Field: "url", Message: "must not have a fragment"})
	}
	return bad
}

// AllowsPush reports whether clients may register push notifications.
func (i *Integration) AllowsPush() bool {
	return string(i.Configurations["push_notifications"]) == "true"
}

// CheckMappings validates the target fields of secret mappings.
func CheckMappings(list []provider.SecretMapping) (bad []fault.Detail) {
	var seen []string
	for n, m := range list {
		at := fmt.Sprintf("secret_mappings[%d].target_field", n)
		if m.TargetField != upstream.Prefix+confHeaders && !strings.HasPrefix(m.TargetField, upstream.Prefix+confHeaders+".") {
			bad = append(bad, fault.Detail{Field: at, Message: "must be configurations.headers, or configurations.headers.<name>"})
		}
		if slices.Contains(seen, m.TargetField) {
			bad = append(bad, fault.Detail{Field: at, Message: "is mapped twice"})
		}
		seen = append(seen, m.TargetField)
	}
	return bad
}

// Opener resolves the headers for calls to agents.
type Opener struct {
	Sealer    seal.Sealer
	Transport http.RoundTripper
	Secrets   *provider.Loaded // if nil, integrations with secret mappings cannot be called
}

// Open returns the headers for calls of an integration, for a workspace or for the
// organization.
func (o *Opener) Open(ctx context.Context, rec *resource.Record, in store.Scope) (*Integration, http.Header, error) {
	i, err := DecodeIntegration(*rec)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := rec.OpenSecrets(ctx, o.Sealer)
	if err != nil {
		return nil, nil, err
	}
	c, err := i.Configuration(sealed)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{}
	for name, v := range c.Headers {
		h.Set(name, v)
	}
	return i, h, o.resolveSecrets(ctx, in, i, h)
}

// resolveSecrets sets the headers that secret mappings name.
func (o *Opener) resolveSecrets(ctx context.Context, in store.Scope, i *Integration, h http.Header) error {
	if len(i.SecretMappings) == 0 {
		return nil
	}
	if o.Secrets == nil {
		return upstream.Fail(0, "the agent's credentials are in a secret manager that is not available here")
	}
	values, err := o.Secrets.Values(ctx, in, i.SecretMappings)
	if err != nil {
		return upstream.Unresolved(err)
	}
	for _, m := range i.SecretMappings {
		all := map[string]string{}
		if name, one := strings.CutPrefix(m.TargetField, upstream.Prefix+confHeaders+"."); one {
			all[name] = values[m.TargetField]
		} else if json.Unmarshal([]byte(values[m.TargetField]), &all) != nil {
			return upstream.Fail(0, "a secret of the agent's credentials does not match its field")
		}
		if len(upstream.CheckHeaders(confHeaders, all)) > 0 {
			return upstream.Fail(0, "a secret of the agent's credentials is not a valid header")
		}
		for name, v := range all {
			h.Set(name, v)
		}
	}
	return nil
}

// Card fetches the card of an integration's agent. If the agent rejects the credentials, those
// of secret managers are read again once.
func (o *Opener) Card(ctx context.Context, rec *resource.Record, in store.Scope) (json.RawMessage, error) {
	card, err := o.card(ctx, rec, in)
	var failed *upstream.Failure
	if o.Secrets == nil || !errors.As(err, &failed) || failed.Status != http.StatusUnauthorized {
		return card, err
	}
	i, decoded := DecodeIntegration(*rec)
	if decoded != nil || len(i.SecretMappings) == 0 {
		return card, err
	}
	o.Secrets.MarkRejected(ctx, in, i.SecretMappings)
	return o.card(ctx, rec, in)
}

func (o *Opener) card(ctx context.Context, rec *resource.Record, in store.Scope) (json.RawMessage, error) {
	i, headers, err := o.Open(ctx, rec, in)
	if err != nil {
		return nil, err
	}
	return Fetch(ctx, o.Transport, i.URL, headers, provider.MappedHeaders(i.SecretMappings))
}

// Kinds of stored resources. An integration belongs to the organization or to one workspace, a
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
	IntegrationOrg  bool   `json:"integration_org,omitempty"` // the integration belongs to the organization
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

// ClaimSlug stages the claim of a new server's slug, which is unique in the organization.
func ClaimSlug(tx *resource.Tx, rec *resource.Record) { slugs.Claim(tx, rec) }

// Dependents are the kinds that end with their workspace.
var Dependents = []resource.Dependent{{Kind: KindServer, Release: Release}, {Kind: KindIntegration, Along: true}}

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
