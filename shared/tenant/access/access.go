// Package access tells which workspaces, and which of their users, may use something that
// is shared.
package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// Workspaces are the workspaces that may use a resource of the organisation. A resource
// that belongs to a workspace is open to that workspace.
type Workspaces struct {
	// Global opens it to all workspaces without an entry, including later ones.
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

// MaxWorkspaces is how many entries a record may have; they are stored in it.
const MaxWorkspaces = 3000

// Enabled reports whether a workspace has access.
func (w *Workspaces) Enabled(workspace string) bool {
	if n := w.find(workspace); n >= 0 {
		return w.Own[n].Enabled
	}
	return w.Global
}

// OpenTo reports whether a record with these entries is open to a workspace.
func (w *Workspaces) OpenTo(rec *resource.Record, workspace string) bool {
	if rec.Scope.Workspace != "" {
		return rec.Scope.Workspace == workspace
	}
	return w.Enabled(workspace)
}

// A workspace's own entry, if it has one.
func (w *Workspaces) Entry(workspace string) (Workspace, bool) {
	if n := w.find(workspace); n >= 0 {
		return w.Own[n], true
	}
	return Workspace{ID: workspace, Enabled: w.Global}, false
}

func (w *Workspaces) find(workspace string) int {
	return slices.IndexFunc(w.Own, func(o Workspace) bool { return o.ID == workspace })
}

// Set gives a workspace an entry, or changes it.
func (w *Workspaces) Set(workspace string, enabled bool, now time.Time) {
	n := w.find(workspace)
	if n < 0 {
		n = len(w.Own)
		w.Own = append(w.Own, Workspace{ID: workspace, Created: now.UnixMilli()})
	}
	w.Own[n].Enabled, w.Own[n].Updated = enabled, now.UnixMilli()
}

// Validate returns what is out of bounds.
func (w *Workspaces) Validate() []fault.Detail {
	if len(w.Own) > MaxWorkspaces {
		return []fault.Detail{{Field: "workspaces", Message: "more workspaces have settings of their own than can be kept; use global_workspace_access"}}
	}
	return nil
}

// Defaults for users without an entry of their own.
const (
	Allow = "allow"
	Deny  = "deny"
)

// User is what applies to one user of a server, in place of the server's default. Its id is
// the user's.
type User struct {
	Enabled bool `json:"enabled"`
}

// Permits reports whether a user may use something with this default. own is the user's entry;
// nil for none. For callers that act for no user only the default counts.
func Permits(byDefault string, own *User) bool {
	if own != nil {
		return own.Enabled
	}
	return byDefault != Deny
}

// DecodeUser reads the stored form.
func DecodeUser(rec resource.Record) (*User, error) {
	u := new(User)
	if err := json.Unmarshal(rec.Body, u); err != nil {
		return nil, fmt.Errorf("access: stored %s %s: %w", rec.Kind, rec.ID, err)
	}
	return u, nil
}
