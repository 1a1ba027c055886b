package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindOverrides is the resource kind of a workspace's own settings: one record in its
// scope, whose id is OverridesID.
const KindOverrides resource.Kind = "WORKSPACE_SETTINGS"

// OverridesID is the id of that record.
const OverridesID = "settings"

// Origins of an effective value.
const (
	FromWorkspace    = "workspace"
	FromOrganisation = "organisation"
	FromStandard     = "standard"
)

// Value is a setting that applies in a workspace, and where it comes from.
type Value struct {
	Raw    json.RawMessage // nil: nobody has set it, and there is no standard
	Origin string
}

// Hold returns the one place that decides which value of a setting applies in a workspace: its
// own one if it is in Kept, or else the organisation's, or else the standard. The maps are
// members of stored settings.
func Hold(member string, kept, of, standard map[string]json.RawMessage) Value {
	if raw, ok := kept[member]; ok {
		return Value{raw, FromWorkspace}
	}
	raw, ok := of[member]
	if !ok || string(raw) == string(standard[member]) {
		return Value{standard[member], FromStandard}
	}
	return Value{raw, FromOrganisation}
}

// openings is the member of a workspace's settings that has the organisation's Openings at
// the time when they were set.
const openings = "openings"

// Kept returns the part of a workspace's own settings that still counts: nothing of a category
// that is closed, or that was closed since.
func (s *Settings) Kept(own map[string]json.RawMessage) map[string]json.RawMessage {
	var then map[string]int64
	if raw, ok := own[openings]; ok && json.Unmarshal(raw, &then) != nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(own))
	for member, raw := range own {
		if c := CategoryOf(member); s.Open.To(c) && then[c] == s.Openings[c] {
			out[member] = raw
		}
	}
	return out
}

// Mark adds to a workspace's own settings when they were set.
func (s *Settings) Mark(own map[string]json.RawMessage) error {
	delete(own, openings)
	if len(s.Openings) == 0 {
		return nil
	}
	raw, err := json.Marshal(s.Openings)
	own[openings] = raw
	return err
}

// CountOpenings counts, in the members of settings, which categories a change opens, so
// that what workspaces had set before does not count again.
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

// Overrides are a workspace's own settings, as stored.
type Overrides struct {
	own map[string]json.RawMessage
	// held keeps the effective settings beside the settings from which they were made, which
	// are shared and never change.
	held atomic.Pointer[held]
}

type held struct {
	of, settings *Organisation
}

// DecodeOverrides reads the record for requests.
func DecodeOverrides(rec resource.Record) (*Overrides, error) {
	o := &Overrides{}
	if err := json.Unmarshal(rec.Body, &o.own); err != nil {
		return nil, fmt.Errorf("tenant: settings of workspace %s: %w", rec.Scope.Workspace, err)
	}
	return o, nil
}

// Over returns the effective settings in a workspace of an organisation. The value is shared
// and must not be changed.
func (o *Overrides) Over(of *Organisation) (*Organisation, error) {
	if h := o.held.Load(); h != nil && h.of == of {
		return h.settings, nil
	}
	settings, err := o.over(of)
	if err == nil {
		o.held.Store(&held{of, settings})
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
	kept := of.Settings.Kept(o.own)
	for member := range kept {
		members[member] = Hold(member, kept, members, nil).Raw
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

// standard is an organisation of which nothing is stored.
var standard = &Organisation{Settings: Settings{BlockInlineConfig: true}}

// LoadSettings returns the organisation with the settings that apply in one of its scopes. The
// value is shared and must not be changed.
func LoadSettings(ctx context.Context, v *resource.View, sc store.Scope) (*Organisation, error) {
	org, ok, err := resource.Load(ctx, v, sc.Organisation(), KindOrganisation, sc.Org, DecodeOrganisation)
	if err != nil {
		return nil, err
	}
	if !ok {
		org = standard
	}
	if sc.Workspace == "" || org.Settings.Open == (Open{}) {
		return org, nil
	}
	own, ok, err := resource.Load(ctx, v, sc, KindOverrides, OverridesID, DecodeOverrides)
	if err != nil || !ok {
		return org, err
	}
	return own.Over(org)
}

// FetchSettings is LoadSettings for callers that need the present settings: it reads the
// store.
func FetchSettings(ctx context.Context, r *resource.Resources, sc store.Scope) (of *Organisation, err error) {
	rec, ok, err := r.Get(ctx, sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return nil, err
	}
	if of = standard; ok {
		if of, err = DecodeOrganisation(rec); err != nil {
			return nil, err
		}
	}
	if sc.Workspace == "" || of.Settings.Open == (Open{}) {
		return of, nil
	}
	if rec, ok, err = r.Get(ctx, sc, KindOverrides, OverridesID); err != nil || !ok {
		return of, err
	}
	own, err := DecodeOverrides(rec)
	if err != nil {
		return nil, err
	}
	return own.Over(of)
}

// ReadSettings is LoadSettings within a change, which reads the store.
func ReadSettings(tx *resource.Tx, sc store.Scope) (*Organisation, error) {
	rec, ok, err := tx.Get(sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return nil, err
	}
	org := standard
	if ok {
		if org, err = DecodeOrganisation(rec); err != nil {
			return nil, err
		}
	}
	if sc.Workspace == "" || org.Settings.Open == (Open{}) {
		return org, nil
	}
	if rec, ok, err = tx.Get(sc, KindOverrides, OverridesID); err != nil || !ok {
		return org, err
	}
	own, err := DecodeOverrides(rec)
	if err != nil {
		return nil, err
	}
	return own.Over(org)
}
