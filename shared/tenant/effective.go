package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindOverrides is the resource kind of a workspace's own settings: one record in its scope
// with the id OverridesID.
const KindOverrides resource.Kind = "WORKSPACE_SETTINGS"

// OverridesID is the id of that record.
const OverridesID = "settings"

// Origins of an effective value.
const (
	FromWorkspace    = "workspace"
	FromOrganisation = "organisation"
	FromStandard     = "standard"
)

// Value is the effective value of a setting in a workspace, and its origin.
type Value struct {
	Raw    json.RawMessage // nil if it is not set and has no default
	Origin string
}

// Hold returns the effective value of a setting in a workspace: the workspace's effective value
// if there is one, otherwise the organization's, otherwise the default. The maps contain the
// fields of stored settings.
func Hold(member string, stored, of, standard map[string]json.RawMessage) Value {
	if raw, ok := stored[member]; ok {
		return Value{raw, FromWorkspace}
	}
	raw, ok := of[member]
	if !ok || string(raw) == string(standard[member]) {
		return Value{standard[member], FromStandard}
	}
	return Value{raw, FromOrganisation}
}

// openings is the field of a workspace's settings that stores the organization's Openings when
// they were set.
const openings = "openings"

// Effective returns the workspace's settings that still apply: without those of a category that is
// closed or was closed in the meantime.
func (s *Settings) Effective(own map[string]json.RawMessage) map[string]json.RawMessage {
	var then map[string]int64
	if raw, ok := own[openings]; ok && json.Unmarshal(raw, &then) != nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(own))
	for member, raw := range own {
		if c := CategoryOf(member); s.OverridableCategories.Contains(c) && then[c] == s.Openings[c] {
			out[member] = raw
		}
	}
	return out
}

// RecordSetTimes records when a workspace's own settings were set.
func (s *Settings) RecordSetTimes(own map[string]json.RawMessage) error {
	delete(own, openings)
	if len(s.Openings) == 0 {
		return nil
	}
	raw, err := json.Marshal(s.Openings)
	own[openings] = raw
	return err
}

// CountOpenings counts the categories that a change of the settings opens, so that earlier
// values of workspaces do not apply again.
func CountOpenings(was, now map[string]json.RawMessage) error {
	var n map[string]int64
	if raw, ok := now[openings]; ok {
		if err := json.Unmarshal(raw, &n); err != nil {
			return fmt.Errorf("tenant: settings: %w", err)
		}
	}
	for _, c := range Categories() {
		if member := OpenPrefix + c; string(now[member]) == "true" && string(was[member]) != "true" {
			if n == nil {
				n = map[string]int64{}
			}
			n[c]++
		}
	}
	if n == nil {
		return nil
	}
	raw, err := json.Marshal(n)
	now[openings] = raw
	return err
}

// Overrides are the stored settings of a workspace.
type Overrides struct {
	own map[string]json.RawMessage
	// cache caches the effective settings together with the settings they were computed from.
	// Both are immutable.
	cache atomic.Pointer[cached]
}

type cached struct {
	of, settings *Organisation
}

// DecodeOverrides decodes the record for requests.
func DecodeOverrides(rec resource.Record) (*Overrides, error) {
	o := &Overrides{}
	if err := json.Unmarshal(rec.Body, &o.own); err != nil {
		return nil, fmt.Errorf("tenant: settings of workspace %s: %w", rec.Scope.Workspace, err)
	}
	return o, nil
}

// ApplyTo returns the effective settings in a workspace of an organization. The result is shared
// and must not be changed.
func (o *Overrides) ApplyTo(of *Organisation) (*Organisation, error) {
	if h := o.cache.Load(); h != nil && h.of == of {
		return h.settings, nil
	}
	settings, err := o.over(of)
	if err == nil {
		o.cache.Store(&cached{of, settings})
	}
	return settings, err
}

func (o *Overrides) over(of *Organisation) (*Organisation, error) {
	raw, err := json.Marshal(&of.Settings)
	if err != nil {
		return nil, fmt.Errorf("tenant: settings: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("tenant: settings: %w", err)
	}
	effective := of.Settings.Effective(o.own)
	for member := range effective {
		members[member] = Hold(member, effective, members, nil).Raw
	}
	if raw, err = json.Marshal(members); err != nil {
		return nil, fmt.Errorf("tenant: settings: %w", err)
	}
	out := *of
	out.Settings = Settings{}
	if err := json.Unmarshal(raw, &out.Settings); err != nil {
		return nil, fmt.Errorf("tenant: settings: %w", err)
	}
	return &out, nil
}

// defaultOrganisation is an organization without stored settings.
var defaultOrganisation = &Organisation{Settings: Settings{BlockInlineConfig: true}}

// LoadSettings returns the organization with the effective settings of one of its scopes. The
// result is shared and must not be changed.
func LoadSettings(ctx context.Context, v *resource.View, sc store.Scope) (*Organisation, error) {
	org, ok, err := resource.Load(ctx, v, sc.Organisation(), KindOrganisation, sc.Org, DecodeOrganisation)
	if err != nil {
		return nil, err
	}
	if !ok {
		org = defaultOrganisation
	}
	if sc.Workspace == "" || org.Settings.OverridableCategories == (OverridableCategories{}) {
		return org, nil
	}
	own, ok, err := resource.Load(ctx, v, sc, KindOverrides, OverridesID, DecodeOverrides)
	if err != nil || !ok {
		return org, err
	}
	return own.ApplyTo(org)
}

// FetchSettings is LoadSettings for callers that need the latest settings: it reads the store.
func FetchSettings(ctx context.Context, r *resource.Resources, sc store.Scope) (of *Organisation, err error) {
	rec, ok, err := r.Get(ctx, sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return nil, err
	}
	if of = defaultOrganisation; ok {
		if of, err = DecodeOrganisation(rec); err != nil {
			return nil, err
		}
	}
	if sc.Workspace == "" || of.Settings.OverridableCategories == (OverridableCategories{}) {
		return of, nil
	}
	if rec, ok, err = r.Get(ctx, sc, KindOverrides, OverridesID); err != nil || !ok {
		return of, err
	}
	own, err := DecodeOverrides(rec)
	if err != nil {
		return nil, err
	}
	return own.ApplyTo(of)
}

// ReadSettings is LoadSettings within a transaction; it reads the store.
func ReadSettings(tx *resource.Tx, sc store.Scope) (*Organisation, error) {
	rec, ok, err := tx.Get(sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return nil, err
	}
	org := defaultOrganisation
	if ok {
		if org, err = DecodeOrganisation(rec); err != nil {
			return nil, err
		}
	}
	if sc.Workspace == "" || org.Settings.OverridableCategories == (OverridableCategories{}) {
		return org, nil
	}
	if rec, ok, err = tx.Get(sc, KindOverrides, OverridesID); err != nil || !ok {
		return org, err
	}
	own, err := DecodeOverrides(rec)
	if err != nil {
		return nil, err
	}
	return own.ApplyTo(org)
}

// KindOrganisation is the resource kind of the organization itself: one row with the
// organization's id.
const KindOrganisation resource.Kind = "ORGANISATION"

// Request logging modes.
const (
	LogFull    = "full"    // metrics and bodies
	LogMetrics = "metrics" // metrics only
)

// Handling of models without a price.
const (
	UnpricedRefuse = "refuse"
	UnpricedAllow  = "allow"
)

// Handling of requests with a cost that cannot be limited in advance.
const (
	UnboundedRefuse = "refuse"
	UnboundedAllow  = "allow"
)

// Organisation is the stored form of an organization: the body of its resource.
type Organisation struct {
	Settings Settings `json:"settings"`
	// Ids of guardrails for the requests of every workspace that is not excluded; see
	// Effective.Guardrails.
	InputGuardrails  []string `json:"input_guardrails,omitempty" max:"100"`
	OutputGuardrails []string `json:"output_guardrails,omitempty" max:"100"`

	prices *pricing.Overrides // from the settings
}

// Prices returns the organization's prices and multipliers, or nil. They are shared and must
// not be changed.
func (o *Organisation) Prices() *pricing.Overrides { return o.prices }

// CacheAge returns how long a cached response may be used for a config with the requested time;
// zero requests the organization's time. A result of zero means the cache's default.
func (s *Settings) CacheAge(requested time.Duration) time.Duration {
	own := time.Duration(s.CacheMaxAge) * time.Second
	if own == 0 || requested > 0 && requested < own {
		return requested
	}
	return own
}

// DecodeOrganisation decodes an organization resource for requests.
func DecodeOrganisation(rec resource.Record) (*Organisation, error) {
	var o Organisation
	if err := json.Unmarshal(rec.Body, &o); err != nil {
		return nil, fmt.Errorf("tenant: organization %s: %w", rec.ID, err)
	}
	var bad []fault.Detail
	if o.prices, bad = pricing.ParseOverrides(o.Settings.ModelPrices, o.Settings.PriceMultiplier); len(bad) > 0 {
		return nil, fmt.Errorf("tenant: prices of organization %s: %s %s", rec.ID, bad[0].Field, bad[0].Message)
	}
	return &o, nil
}

// AmendOrganisation changes the record of an organization within a transaction. If nothing is
// stored yet, it starts from the defaults.
func AmendOrganisation(tx *resource.Tx, sc store.Scope, actor string, f func(o *Organisation) error) error {
	rec, ok, err := tx.Get(sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return err
	}
	o := *defaultOrganisation
	if ok {
		stored, err := DecodeOrganisation(rec)
		if err != nil {
			return err
		}
		o = *stored
	} else {
		rec = resource.Record{Scope: sc.Organisation(), Kind: KindOrganisation, ID: sc.Org, Name: sc.Org, Status: StatusActive, CreatedBy: actor}
	}
	if err := f(&o); err != nil {
		return err
	}
	if rec.Body, err = json.Marshal(&o); err != nil {
		return fmt.Errorf("tenant: encode organization %s: %w", sc.Org, err)
	}
	if rec.UpdatedBy = actor; !ok {
		return tx.Create(&rec)
	}
	return tx.Update(&rec)
}
