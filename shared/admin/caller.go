package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/ledger"
	"gateway/shared/store"
)

// Caller is who makes a request: a valid credential with its reach.
type Caller struct {
	KeyID  string // of the API key; empty for other credentials
	UserID string // of the user that the credential belongs to; empty for service keys
	// Shared: others than the user may know the credential, as of identity.Granted. It does not
	// act for the user outside of the gateway.
	Shared bool
	Type   string // organisation-service, workspace-service, workspace-user, ...
	// Scope is how far the caller reaches: Workspace is empty for organisation
	// keys, which reach every workspace.
	Scope  store.Scope
	Role   Role   // in the workspace or the organisation
	Scopes Scopes // what the credential was granted
	// Rank is the rank of Role. That of a key is at most its creator's, and that of a user's
	// key at most the user's own.
	Rank identity.Rank
	// Limits are those of the key or token; nil without limits.
	Limits *ledger.Subject

	// For people who have signed in. Workspaces are those that they are members of; Scope
	// is the first of them, or the one that the path names. In gives the caller as a member
	// of another one. Since is when they last showed who they are; zero for keys.
	Workspaces []string
	In         func(ctx context.Context, workspace string) (Caller, error)
	Since      time.Time
}

// Reaches reports whether the caller may act in a workspace.
func (c *Caller) Reaches(workspace string) bool {
	return c.OfOrganisation() || c.Scope.Workspace == workspace || slices.Contains(c.Workspaces, workspace)
}

// several reports whether the caller is a member of several workspaces and selected none.
func (c *Caller) several() bool { return len(c.Workspaces) > 1 && !c.OfOrganisation() }

// Scopes is a set of granted scopes, such as identity.ScopeSet.
type Scopes interface{ Has(scope string) bool }

// Authenticate finds the caller of a request; a *fault.Fault (401) when there is
// none.
type Authenticate func(ctx context.Context, r *http.Request, requestID string) (Caller, error)

// Is reports whether the caller is a user, beyond doubt.
func (c *Caller) Is(user string) bool { return user != "" && c.UserID == user && !c.Shared }

// OfOrganisation reports whether the caller can access the entire organization.
func (c *Caller) OfOrganisation() bool { return c.Scope.Workspace == "" }

// AnyScope is the scope of routes that every valid credential may call, such as those about
// the caller itself. It is not granted to keys.
const AnyScope = "any"

// HasAny reports whether the caller holds one of the scopes.
func (c *Caller) HasAny(scopes []string) bool {
	if slices.Contains(scopes, AnyScope) {
		return true
	}
	if c.Scopes == nil {
		return false
	}
	for _, s := range scopes {
		if c.Scopes.Has(s) {
			return true
		}
	}
	return false
}

// Role is the role of a user. Owners and admins of the organisation count as
// admins of every workspace.
type Role string

// The roles, from the least.
const (
	Member  Role = "member"
	Manager Role = "manager"
	Admin   Role = "admin"
	Owner   Role = "owner"
)

var rank = map[Role]int{Member: 1, Manager: 2, Admin: 3, Owner: 4}

// AtLeast reports whether the caller's role is want or more. An unknown role is less than
// any.
func (c *Caller) AtLeast(want Role) bool { return want == "" || rank[c.Role] >= rank[want] }

// As returns the caller with a rank, and the role that follows from it.
func (c Caller) As(r identity.Rank) Caller {
	c.Rank, c.Role = r, Role(r.Role())
	return c
}

// Grantor returns what bounds the rights that the caller may give to others.
func (c *Caller) Grantor() authority.Grantor {
	return authority.Grantor{Rank: c.Rank, Type: identity.KeyType(c.Type), Scopes: c.Scopes}
}

// lacksScope rejects a caller that holds none of the scopes that a call needs, and names
// them. Scopes are part of the public document, so that this reveals nothing.
func lacksScope(scopes []string) *fault.Fault {
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	word := "scope "
	if len(scopes) > 1 {
		word = "one of the scopes "
	}
	return fault.New(fault.NotAllowed, "", "You do not have enough permissions to execute this request: it needs "+word+strings.Join(scopes, ", "))
}

// Denied is the only error for authenticated callers without access. It reveals neither which
// check failed nor whether the resource exists.
func Denied() *fault.Fault {
	return fault.New(fault.NotAllowed, "", "You do not have enough permissions to execute this request")
}
