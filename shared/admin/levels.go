package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Levels states that a resource belongs to the organization or to one workspace. That
// determines the scope that a call needs, and who may see and change the resource.
//
// A call that names a workspace, or with a key bound to one, acts there; with an organization
// key it also finds the organization's resources. A call of the organization that names no
// workspace finds a resource in any workspace, and lists all of them.
type Levels[T any] struct {
	Organisation, Workspace string // families of scopes: <family>.<action>
	// Role is the least role of a user that may change the organization's resources; default
	// Admin.
	Role Role
	// Shared lets keys of a workspace read those resources of the organization that are
	// open to the workspace; without it they can only list them.
	Shared bool
	// Open reports whether a workspace sees a resource of the organization; nil: always.
	Open func(it Item[T], workspace string) bool
	// Filter adds the query parameter type to lists: workspace, organization, all.
	Filter bool

	opened openCache[T]
}

// Values of the query parameter type, and of LevelOf.
const (
	ofOrganisation = "organisation"
	ofWorkspace    = "workspace"
)

// LevelOf is the level of a record: organization or workspace.
func LevelOf(rec *resource.Record) string {
	if rec.Scope.Workspace == "" {
		return ofOrganisation
	}
	return ofWorkspace
}

// describe puts the levels into the description of their collection.
func (l *Levels[T]) describe(col *Collection[T]) {
	p := &places{
		organisation: l.Organisation, workspace: l.Workspace, role: l.Role, shared: l.Shared,
		param: col.param(), object: col.Object, versions: col.Versions != nil, kind: col.kind,
	}
	if l.Open != nil {
		p.open = func(rec *resource.Record, workspace string) (bool, error) {
			form, err := readForm[T](col.Kind, rec)
			return err == nil && l.Open(Item[T]{rec, form}, workspace), err
		}
	}
	col.Level, col.Scopes, col.Admit, col.ListScopes = InEither, p.scopes, p.admit(col.Admit), p.across
	if l.Filter {
		col.List.Query = append(slices.Clone(col.List.Query), Field{Name: "type", Type: String,
			Enum: []string{ofWorkspace, ofOrganisation, "all"}, Default: "all", Doc: "Level of the resources: of workspaces, of the organization, or both."})
	}
}

// visible omits the organization's resources that are not open to the workspace.
func (l *Levels[T]) visible(list lister[T], c *Call, sc store.Scope, rows []resource.Row) ([]resource.Row, error) {
	if l.Open == nil || sc.Workspace != "" || c.Scope.Workspace == "" || len(rows) == 0 {
		return rows, nil
	}
	usable := make(map[string]bool, len(rows))
	judge := func(it Item[T]) { usable[it.ID] = l.Open(it, c.Scope.Workspace) }
	var unknown []placed
	for i := range rows {
		if it, ok := l.opened.get(sc, &rows[i]); ok {
			judge(it)
		} else {
			unknown = append(unknown, placed{rows[i], sc})
		}
	}
	items, err := list.items(c, unknown)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		judge(it)
		l.opened.put(it)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r resource.Row) bool { return !usable[r.ID] }), nil
}

// places are Levels for a collection of whatever type.
type places struct {
	organisation, workspace string
	role                    Role
	shared                  bool
	open                    func(rec *resource.Record, workspace string) (bool, error) // nil: all are

	param, object string
	versions      bool
	kind          func(*Call) resource.Kind
}

func (l *places) scopes(action string) []string {
	return []string{l.organisation + "." + action, l.workspace + "." + action}
}

// admit goes before the collection's own.
func (l *places) admit(own func(c *Call, action string) error) func(c *Call, action string) error {
	return func(c *Call, action string) error {
		if action == "list" {
			return nil // across omits what the caller may not list
		}
		if action != "create" {
			if err := l.locate(c); err != nil {
				return err
			}
		}
		if err := l.may(c, action); err != nil || own == nil {
			return err
		}
		if action == ofChild {
			action = "read"
		}
		return own(c, action)
	}
}

// may checks the scope that the place of a resource needs. What belongs to the
// organization is changed by its admins only.
func (l *places) may(c *Call, action string) error {
	need, reads := l.workspace, c.Route == nil || !c.Route.changes()
	if c.Scope.Workspace == "" {
		need = l.organisation
		least := l.role
		if least == "" {
			least = Admin
		}
		if !reads && (!c.Caller.AtLeast(least) || !c.Caller.OfOrganisation()) {
			return Denied()
		}
	}
	if scope := need + "." + action; action != ofChild && !c.Caller.HasAny([]string{scope}) {
		return lacksScope([]string{scope})
	}
	return nil
}

// locate moves the call to the scope of the resource that the path names.
func (l *places) locate(c *Call) error {
	name, kind := c.Param(l.param), l.kind(c)
	if l.versions {
		name, _ = reference(name)
	}
	scopes := []store.Scope{c.Scope}
	if c.Scope.Workspace != "" && (c.Caller.OfOrganisation() || l.shared) {
		scopes = append(scopes, c.Organisation())
	}
	for _, sc := range scopes {
		rec, ok, err := c.Resources.Get(c.Context, sc, kind, name)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			continue
		}
		if sc.Workspace == "" && !c.Caller.OfOrganisation() && l.open != nil {
			open, err := l.open(&rec, c.Scope.Workspace)
			if err != nil {
				return err
			}
			if !open {
				continue
			}
		}
		c.Scope = sc
		return nil
	}
	if c.Scope.Workspace != "" {
		return nil // the family's response for missing resources follows
	}
	return MoveByName(c, kind, name, title(l.object))
}

// across are the scopes of a list that the caller may list.
func (l *places) across(c *Call) ([]store.Scope, error) {
	wanted := c.Query.Text("type")
	shared := wanted != ofWorkspace && c.Caller.HasAny([]string{l.organisation + ".list"})
	own := wanted != ofOrganisation && c.Caller.HasAny([]string{l.workspace + ".list"})
	if !shared && !own {
		return nil, lacksScope(l.scopes("list"))
	}
	var scopes []store.Scope
	if shared {
		scopes = append(scopes, c.Organisation())
	}
	if own {
		in, err := WorkspaceScopes(c)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, in...)
	}
	return scopes, nil
}

// Caller is who makes a request: a valid credential with its reach.
type Caller struct {
	KeyID  string // of the API key; empty for other credentials
	UserID string // of the user that the credential belongs to; empty for service keys
	// Shared: others than the user may know the credential, as of identity.Granted. It does not
	// act for the user outside of the gateway.
	Shared bool
	Type   string // organization-service, workspace-service, workspace-user, ...
	// Scope is how far the caller reaches: Workspace is empty for organization
	// keys, which reach every workspace.
	Scope  store.Scope
	Role   Role   // in the workspace or the organization
	Scopes Scopes // what the credential was granted
	// Rank is the rank of Role. That of a key is at most its creator's, and that of a user's
	// key at most the user's own.
	Rank identity.Rank
	// Sponsor is the user whose present rights limit a service key; empty for other callers, and
	// if there is none. Reduced is set if they are less than what the key was granted.
	Sponsor string
	Reduced bool
	// Limits are those of the key or token; nil without limits.
	Limits *ledger.Subject

	// For people who have signed in. Workspaces are those that they are members of; Scope
	// is the first of them, or the one that the path names. In gives the caller as a member
	// of another one. Since is when they last showed who they are; zero for keys.
	Workspaces []string
	In         func(ctx context.Context, workspace string) (Caller, error)
	Since      time.Time
}

// MayAccess reports whether the caller may act in a workspace.
func (c *Caller) MayAccess(workspace string) bool {
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

// ResponsibleUser returns the user who answers for what the caller creates: itself, or the sponsor of
// its key.
func (c *Caller) ResponsibleUser() string { return cmp.Or(c.UserID, c.Sponsor) }

// MayAccessKeysOf reports whether the caller reaches the keys of a user: those of its own user, and
// all of them if its role manages the workspace.
func (c *Caller) MayAccessKeysOf(user string) bool {
	return c.UserID != "" && c.UserID == user || c.AtLeast(Manager)
}

// Personal returns the user to whom the caller shows what belongs to that user, or "" for service
// keys and keys that others may know, which are shown what belongs to the key.
func (c *Caller) Personal() string {
	if c.Shared {
		return ""
	}
	return c.UserID
}

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

// Role is the role of a user. Owners and admins of the organization count as
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
