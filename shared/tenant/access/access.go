// Package access decides which workspaces, and which of their users, may use a shared resource.
package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// Workspaces lists the workspaces that may use a resource of the organization. A resource of a
// workspace is available to that workspace.
type Workspaces struct {
	// Global grants access to all workspaces without an entry, including later ones.
	Global bool        `json:"global,omitempty"`
	Own    []Workspace `json:"own,omitempty"`
}

// Workspace is the entry of one workspace. Times are Unix milliseconds, because a record
// may have thousands of entries.
type Workspace struct {
	ID      string `json:"id"`
	Enabled bool   `json:"on,omitempty"`
	Created int64  `json:"c"`
	Updated int64  `json:"u"`
}

// MaxWorkspaces is the number of entries of a record.
const MaxWorkspaces = 3000

// Enabled reports whether a workspace has access.
func (w *Workspaces) Enabled(workspace string) bool {
	if n := w.find(workspace); n >= 0 {
		return w.Own[n].Enabled
	}
	return w.Global
}

// OpenTo reports whether a record with these entries is available to a workspace.
func (w *Workspaces) OpenTo(rec *resource.Record, workspace string) bool {
	if rec.Scope.Workspace != "" {
		return rec.Scope.Workspace == workspace
	}
	return w.Enabled(workspace)
}

// Entry returns the entry of a workspace.
func (w *Workspaces) Entry(workspace string) (Workspace, bool) {
	if n := w.find(workspace); n >= 0 {
		return w.Own[n], true
	}
	return Workspace{ID: workspace, Enabled: w.Global}, false
}

func (w *Workspaces) find(workspace string) int {
	return slices.IndexFunc(w.Own, func(o Workspace) bool { return o.ID == workspace })
}

// Set adds or changes the entry of a workspace.
func (w *Workspaces) Set(workspace string, enabled bool, now time.Time) {
	n := w.find(workspace)
	if n < 0 {
		n = len(w.Own)
		w.Own = append(w.Own, Workspace{ID: workspace, Created: now.UnixMilli()})
	}
	w.Own[n].Enabled, w.Own[n].Updated = enabled, now.UnixMilli()
}

// Validate returns the violated limits.
func (w *Workspaces) Validate() []fault.Detail {
	if len(w.Own) > MaxWorkspaces {
		return []fault.Detail{{Field: "workspaces", Message: "too many workspaces have their own settings; use global_workspace_access"}}
	}
	return nil
}

// Defaults for users without an entry.
const (
	Allow = "allow"
	Deny  = "deny"
)

// User replaces the server's default for one user. Its id is the user's.
type User struct {
	Enabled bool `json:"enabled"`
}

// Permits reports whether a user may use something with this default. own is the user's entry,
// or nil. For callers that act for no user only the default applies.
func Permits(byDefault string, own *User) bool {
	if own != nil {
		return own.Enabled
	}
	return byDefault != Deny
}

// DecodeUser decodes the stored form.
func DecodeUser(rec resource.Record) (*User, error) {
	u := new(User)
	if err := json.Unmarshal(rec.Body, u); err != nil {
		return nil, fmt.Errorf("access: stored %s %s: %w", rec.Kind, rec.ID, err)
	}
	return u, nil
}

// KindDeployment is the kind of registered gateways of an organization.
const KindDeployment resource.Kind = "DEPLOYMENT"

// Types and states of deployments.
const (
	Production    = "production"
	NonProduction = "non-production"
	Active        = "active"
	Inactive      = "inactive"
)

// Deployment is the stored form of a gateway that an organization operates.
type Deployment struct {
	Type   string          `json:"type" enum:"production,non-production"`
	URL    string          `json:"url,omitempty" max:"2048"`
	Config json.RawMessage `json:"config,omitempty"`
	Users  []string        `json:"user_allowlist,omitempty" max:"1000" each:"min=1 max=255"`
	Access Workspaces      `json:"access"`
	// Token is the SHA-256 of the token with which the deployment authenticates.
	Token    string     `json:"token"`
	SyncedAt *time.Time `json:"last_synced_at,omitempty"`
}
