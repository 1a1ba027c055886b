package tenant

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindWorkspace is the resource kind of workspaces. They are rows of the
// organisation; what belongs to a workspace is in the scope {Org, Workspace id}.
const KindWorkspace resource.Kind = "WORKSPACE"

// States of a workspace.
const (
	StatusActive   = "active"
	StatusArchived = "archived"
)

// Bounds of a workspace's fields.
const (
	MaxName        = 255
	MaxDescription = 1024
	MaxIcon        = 32
	MaxMetadata    = 64 // pairs
	MaxMetaValue   = 128
	MaxLimits      = 10 // entries of usage_limits and of rate_limits
)

// Workspace is the stored form of a workspace: the body of its resource.
type Workspace struct {
	Description string              `json:"description,omitempty"`
	Icon        string              `json:"icon,omitempty"` // an emoji, put before the name in display reads
	Defaults    WorkspaceDefaults   `json:"defaults"`
	UsageLimits []ledger.UsageLimit `json:"usage_limits,omitempty"`
	RateLimits  []ledger.RateLimit  `json:"rate_limits,omitempty"`
	IsDefault   bool                `json:"is_default,omitempty"` // the shared workspace, cannot be deleted
	// DefaultConfig is the id of the config of requests that name none and whose
	// key has none. It is set where configs are.
	DefaultConfig string `json:"default_config,omitempty"`
}

// WorkspaceDefaults apply to every request of the workspace.
type WorkspaceDefaults struct {
	Metadata         map[string]string `json:"metadata,omitempty"`
	InputGuardrails  []string          `json:"input_guardrails,omitempty"`
	OutputGuardrails []string          `json:"output_guardrails,omitempty"`
	UserAPIKeyConfig string            `json:"user_api_key_config,omitempty"` // config slug of keys without an own one
}

// Validate gives all errors of the workspace's own fields; the limits check
// themselves when they are decoded.
func (w *Workspace) Validate(name string) []fault.Detail {
	var d []fault.Detail
	bad := func(field, format string, args ...any) {
		d = append(d, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxName {
		bad("name", "must have 1 to %d characters", MaxName)
	}
	if utf8.RuneCountInString(w.Description) > MaxDescription {
		bad("description", "must have at most %d characters", MaxDescription)
	}
	if utf8.RuneCountInString(w.Icon) > MaxIcon {
		bad("icon", "must have at most %d characters", MaxIcon)
	}
	if len(w.Defaults.Metadata) > MaxMetadata {
		bad("defaults.metadata", "must have at most %d pairs", MaxMetadata)
	}
	for k, v := range w.Defaults.Metadata {
		if len([]rune(v)) > MaxMetaValue {
			if len(k) > 64 {
				k = k[:64] + "..."
			}
			bad("defaults.metadata."+k, "must have at most %d characters", MaxMetaValue)
		}
	}
	if len(w.UsageLimits) > MaxLimits {
		bad("usage_limits", "must have at most %d entries", MaxLimits)
	}
	if len(w.RateLimits) > MaxLimits {
		bad("rate_limits", "must have at most %d entries", MaxLimits)
	}
	return d
}

// Effective is a workspace as requests see it. It is shared and never changed.
type Effective struct {
	Scope    store.Scope
	Slug     string
	Name     string
	Status   string
	Defaults WorkspaceDefaults
	// DefaultConfig is the id of the config of requests that no other one is for.
	DefaultConfig string
	Subject       *ledger.Subject // nil without limits
}

// DecodeWorkspace reads a workspace resource for requests.
func DecodeWorkspace(rec resource.Record) (*Effective, error) {
	var w Workspace
	if err := json.Unmarshal(rec.Body, &w); err != nil {
		return nil, fmt.Errorf("tenant: workspace %s: %w", rec.ID, err)
	}
	sc := store.Scope{Org: rec.Scope.Org, Workspace: rec.ID}
	e := &Effective{Scope: sc, Slug: rec.Slug, Name: rec.Name, Status: rec.Status, Defaults: w.Defaults, DefaultConfig: w.DefaultConfig}
	e.Subject = WorkspaceSubject(sc, rec.Name, rec.Rev, &w)
	return e, nil
}

// WorkspaceSubject is the ledger subject of a workspace; nil without limits.
func WorkspaceSubject(sc store.Scope, name string, revision int64, w *Workspace) *ledger.Subject {
	if len(w.UsageLimits) == 0 && len(w.RateLimits) == 0 {
		return nil
	}
	return &ledger.Subject{Scope: sc, Kind: ledger.Workspace, ID: sc.Workspace, Label: name, Rates: w.RateLimits, Budgets: w.UsageLimits, Revision: revision}
}
