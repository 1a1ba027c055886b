package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
)

// Resource kinds of this package. An integration belongs to the organization or to one
// workspace; a provider (also called virtual key) always to a workspace.
const (
	KindIntegration resource.Kind = "INTEGRATION"
	KindProvider    resource.Kind = "PROVIDER"
)

// States of integrations and providers. Exhausted is derived from the budget.
const (
	StatusActive   = "active"
	StatusArchived = "archived"
	StatusExpired  = "expired"
)

// Integration is the stored form of a provider's credentials: the body of its
// resource. The secret parts are sealed beside it.
type Integration struct {
	AIProviderID   string         `json:"ai_provider_id"`
	Description    string         `json:"description,omitempty" max:"2048"`
	Configurations map[string]any `json:"configurations,omitempty"` // without secrets
	// Masked holds the masked form of each secret that is sealed, by its field.
	Masked             map[string]string  `json:"masked,omitempty"`
	Credentials        []StoredCredential `json:"credentials,omitempty"` // instead of one key
	SecretMappings     []SecretMapping    `json:"secret_mappings,omitempty"`
	PricingAdjustments json.RawMessage    `json:"pricing_adjustments,omitempty"`
	AllowAllModels     bool               `json:"allow_all_models"`
	Models             []IntegrationModel `json:"models,omitempty"`
	// ModelHeaders holds the masked custom headers of models, by slug. See SealModels.
	ModelHeaders map[string]map[string]string `json:"masked_model_headers,omitempty"`
	Workspaces   []WorkspaceAccess            `json:"workspaces,omitempty"`
	Global       GlobalAccess                 `json:"global_workspace_access"`
	LastResetAt  *time.Time                   `json:"last_reset_at,omitempty"`
}

// SecretMapping means that a field of the credential is a secret in an external secret
// manager, which is fetched when a request needs it.
type SecretMapping struct {
	TargetField       string `json:"target_field" min:"1" max:"255"`            // key, or configurations.<field>
	SecretReferenceID string `json:"secret_reference_id" min:"1" max:"255"`     // id or slug of the reference
	SecretKey         string `json:"secret_key,omitempty" max:"255"`            // key in a secret of several values; "": the reference's own
	ValueFormat       string `json:"value_format,omitempty" enum:"string,json"` // "": string
	// Restricted is set by LinkSecrets for callers who may not read secret references. It holds
	// after the reference has changed, too.
	Restricted bool `json:"restricted,omitempty" doc:"The mapping returns only the field of the secret that the reference names. Always true for callers without read access to secret references."`
}

// IntegrationModel is one model of an integration: an enabled or disabled one, or its own.
type IntegrationModel struct {
	Slug           string          `json:"slug" min:"1" max:"255"`
	Enabled        bool            `json:"enabled"`
	Custom         bool            `json:"is_custom,omitempty" doc:"A model that the catalog does not contain."`
	FineTuned      bool            `json:"is_finetune,omitempty"`
	BaseModelSlug  string          `json:"base_model_slug,omitempty" max:"255" doc:"Model of the catalog that it is based on."`
	Configurations *ModelHost      `json:"configurations,omitempty" doc:"Region in which the model is served."`
	Pricing        json.RawMessage `json:"pricing_config,omitempty" doc:"Prices in cents, instead of the catalog's."`
}

// ModelHost is the address of an integration's model, if it is not the provider's.
// CustomHeaders are sealed, and empty in the stored form; earlier versions stored them
// here.
type ModelHost struct {
	CustomHost    string            `json:"custom_host,omitempty" min:"1" max:"2048"`
	CustomHeaders map[string]string `json:"custom_headers,omitempty" max:"100" each:"max=8192"`
}

// WorkspaceAccess opens or closes an integration for one workspace.
type WorkspaceAccess struct {
	Workspace   string              `json:"id"` // workspace id
	Enabled     bool                `json:"enabled"`
	UsageLimits []ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits  []ledger.RateLimit  `json:"rate_limits,omitempty"`
	LastResetAt *time.Time          `json:"last_reset_at,omitempty"`
}

// GlobalAccess is what workspaces get that have no entry of their own.
type GlobalAccess struct {
	Enabled     bool                `json:"enabled"`
	UsageLimits []ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits  []ledger.RateLimit  `json:"rate_limits,omitempty"`
}

// Access is the entry that applies to a workspace.
func (i *Integration) Access(workspace string) WorkspaceAccess {
	for _, a := range i.Workspaces {
		if a.Workspace == workspace {
			return a
		}
	}
	return WorkspaceAccess{Workspace: workspace, Enabled: i.Global.Enabled, UsageLimits: i.Global.UsageLimits, RateLimits: i.Global.RateLimits}
}

// SharedBeyond reports whether other workspaces than this one may use the integration.
func (i *Integration) SharedBeyond(workspace string) bool {
	if i.Global.Enabled {
		return true
	}
	return slices.ContainsFunc(i.Workspaces, func(a WorkspaceAccess) bool { return a.Enabled && a.Workspace != workspace })
}

// Allows reports whether a model may be called: every model that is not disabled or, if
// AllowAllModels is off, only enabled ones.
func (i *Integration) Allows(model string) bool {
	for _, m := range i.Models {
		if m.Slug == model {
			return m.Enabled
		}
	}
	return i.AllowAllModels
}

// Callable returns the names of the models that may be called: the catalog's (unless
// only enabled ones are allowed) without disabled ones, and the integration's own.
func (i *Integration) Callable(catalog []string) []string {
	state := make(map[string]bool, len(i.Models))
	for _, m := range i.Models {
		state[m.Slug] = m.Enabled
	}
	var names []string
	if i.AllowAllModels {
		for _, name := range catalog {
			if enabled, set := state[name]; enabled || !set {
				names = append(names, name)
				delete(state, name)
			}
		}
	}
	for name, enabled := range state {
		if enabled {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Restricts reports whether some models of the provider may not be called.
func (i *Integration) Restricts() bool {
	if !i.AllowAllModels {
		return true
	}
	for _, m := range i.Models {
		if !m.Enabled {
			return true
		}
	}
	return false
}

// SecretKey is the name under which an integration's key is sealed; its secret
// configuration fields are sealed under their own names.
const SecretKey = "key"

// Instance is the stored form of a provider: an integration that can be called in one
// workspace, under a slug.
type Instance struct {
	IntegrationID   string             `json:"integration_id"`   // resource id
	IntegrationSlug string             `json:"integration_slug"` // as shown
	IntegrationOrg  bool               `json:"integration_org"`  // the integration is the organization's, not the workspace's
	AIProviderID    string             `json:"ai_provider_id"`
	Note            string             `json:"note,omitempty" max:"2048"`
	UsageLimits     *ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits      []ledger.RateLimit `json:"rate_limits,omitempty"`
	ExpiresAt       *time.Time         `json:"expires_at,omitempty"`
	LastResetAt     *time.Time         `json:"last_reset_at,omitempty"`
	VirtualKey      bool               `json:"virtual_key,omitempty"` // created by /virtual-keys, with a separate integration
}

// IntegrationScope is where the provider's integration lives.
func (in *Instance) IntegrationScope(sc store.Scope) store.Scope {
	if in.IntegrationOrg {
		return sc.Organisation()
	}
	return sc
}

// InstanceSubject is the ledger subject of a provider; nil without limits.
func InstanceSubject(sc store.Scope, id, slug string, revision int64, in *Instance) *ledger.Subject {
	if in.UsageLimits == nil && len(in.RateLimits) == 0 {
		return nil
	}
	s := &ledger.Subject{Scope: sc, Kind: ledger.Provider, ID: id, Label: slug, Rates: in.RateLimits, Revision: revision}
	if in.UsageLimits != nil {
		s.Budgets = []ledger.UsageLimit{*in.UsageLimits}
	}
	return s
}

// AccessSubject is the ledger subject of an integration in one workspace; nil
// without limits.
func AccessSubject(sc store.Scope, id, slug string, revision int64, a WorkspaceAccess) *ledger.Subject {
	if len(a.UsageLimits) == 0 && len(a.RateLimits) == 0 {
		return nil
	}
	return &ledger.Subject{Scope: sc, Kind: ledger.Integration, ID: id, Label: slug, Rates: a.RateLimits, Budgets: a.UsageLimits, Revision: revision}
}

// DecodeInstance and DecodeIntegration read the stored forms.
func DecodeInstance(rec resource.Record) (*Instance, error) {
	var in Instance
	if err := json.Unmarshal(rec.Body, &in); err != nil {
		return nil, fmt.Errorf("provider: instance %s: %w", rec.ID, err)
	}
	return &in, nil
}

func DecodeIntegration(rec resource.Record) (*Integration, error) {
	var i Integration
	if err := json.Unmarshal(rec.Body, &i); err != nil {
		return nil, fmt.Errorf("provider: integration %s: %w", rec.ID, err)
	}
	return &i, nil
}

// Addresses returns the fields that decide which host an integration calls, with their
// values before and after a change. was is the zero Integration for a new one.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	p, ok := ByID(i.AIProviderID)
	if !ok {
		return nil
	}
	return addresses(p, was, i)
}

// addresses includes fields that a secret mapping sets: their value is the mapping
// itself. It omits fields that are also secrets, such as a key file, because they are
// always replaced completely.
func addresses(p *Provider, was, now *Integration) []hostpin.Address {
	out := []hostpin.Address{{Field: configPrefix + customHost, Was: was.placeOf(customHost), Now: now.placeOf(customHost), Open: true}}
	for n := range p.Fields {
		f := &p.Fields[n]
		if f.Part()&HostField == 0 || f.Secret {
			continue
		}
		out = append(out, hostpin.Address{Field: configPrefix + f.Name, Was: was.placeOf(f.Name), Now: now.placeOf(f.Name), Open: f.Form == BaseURL})
	}
	return append(out, now.ModelHosts(was)...)
}

// placeOf returns the value of a field as text; empty if it has none.
func (i *Integration) placeOf(name string) string {
	for _, m := range i.SecretMappings {
		if m.TargetField == configPrefix+name {
			return fmt.Sprintf("secret reference %s, %s", m.SecretReferenceID, m.SecretKey)
		}
	}
	if v := i.Configurations[name]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// ModelHosts returns the hosts of single models, before and after a change. A model that
// loses its host, or that is served at the integration's own host, moves no credential to a
// new address.
func (i *Integration) ModelHosts(was *Integration) (out []hostpin.Address) {
	before := make(map[string]string, len(was.Models))
	for _, m := range was.Models {
		if m.Configurations != nil {
			before[m.Slug] = m.Configurations.CustomHost
		}
	}
	own := strings.TrimRight(was.placeOf(customHost), "/")
	for _, m := range i.Models {
		if m.Configurations == nil || m.Configurations.CustomHost == "" {
			continue
		}
		a := hostpin.Address{Field: "models." + m.Slug + ".configurations.custom_host", Was: before[m.Slug], Now: m.Configurations.CustomHost, Open: true}
		if own != "" && strings.TrimRight(a.Now, "/") == own {
			a.Was = a.Now
		}
		out = append(out, a)
	}
	return out
}

// retained returns the stored secrets that the change neither replaces nor removes.
func (e *edit) retained() (names []string) {
	for _, name := range append(e.p.SecretFields(), customHeaders, SecretKey) {
		if _, present := e.secret[name]; present || !e.rec.HasSecret(name) {
			continue
		}
		if name != SecretKey {
			name = configPrefix + name
		}
		names = append(names, name)
	}
	return names
}
