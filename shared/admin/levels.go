package admin

import (
	"slices"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Levels says that a resource belongs to the organisation or to one workspace,
// which decides about the scope that it takes, who changes it, and who sees it.
//
// A call that names a workspace, or whose key is bound to one, acts there; with
// a key of the organisation it also finds what is the organisation's. A call of
// the organisation that names no workspace finds a resource in whichever place
// it is, and lists all of them.
type Levels[T any] struct {
	Organisation, Workspace string // families of scopes: <family>.<action>
	// Role is the least role of a user that changes what is the organisation's;
	// default Admin.
	Role Role
	// Shared lets keys of a workspace read what is the organisation's and open to
	// the workspace; without it they only list it.
	Shared bool
	// Open tells whether a workspace sees a resource of the organisation; nil:
	// every one.
	Open func(it Item[T], workspace string) bool
	// Filter adds the query parameter type to lists: workspace, organisation, all.
	Filter bool
}

// Values of the query parameter type, and of LevelOf.
const (
	ofOrganisation = "organisation"
	ofWorkspace    = "workspace"
)

// LevelOf is the level of a record: organisation or workspace.
func LevelOf(rec *resource.Record) string {
	if rec.Scope.Workspace == "" {
		return ofOrganisation
	}
	return ofWorkspace
}

// describe puts the levels into the description of their collection.
func (l *Levels[T]) describe(col *Collection[T]) {
	col.Where = InEither
	col.Scopes = func(action string) []string {
		return []string{l.Organisation + "." + action, l.Workspace + "." + action}
	}
	if l.Filter {
		col.List.Query = append(slices.Clone(col.List.Query), Field{Name: "type", Type: String,
			Enum: []string{ofWorkspace, ofOrganisation, "all"}, Default: "all", Doc: "Where they belong."})
	}
	admit := col.Admit
	col.Admit = func(c *Call, action string) error {
		if action == "list" {
			return nil // Across leaves out what the caller may not list
		}
		if action != "create" {
			if err := l.locate(c, col); err != nil {
				return err
			}
		}
		if err := l.may(c, action); err != nil || admit == nil {
			return err
		}
		if action == ofChild {
			action = "read"
		}
		return admit(c, action)
	}
	col.Across = func(c *Call) ([]store.Scope, error) { return l.across(c) }
}

// may checks the scope that the place of a resource needs. What belongs to the
// organisation is changed by its admins only.
func (l *Levels[T]) may(c *Call, action string) error {
	need, reads := l.Workspace, c.Route == nil || !c.Route.changes()
	if c.Scope.Workspace == "" {
		need = l.Organisation
		least := l.Role
		if least == "" {
			least = Admin
		}
		if !reads && (!c.Caller.AtLeast(least) || !c.Caller.OfOrganisation()) {
			return Denied()
		}
	}
	if action != ofChild && !c.Caller.HasAny([]string{need + "." + action}) {
		return Denied()
	}
	return nil
}

// locate moves the call to the scope of the resource that the path names.
func (l *Levels[T]) locate(c *Call, col *Collection[T]) error {
	name, kind := c.Param(col.param()), col.kind(c)
	if col.Versions != nil {
		name, _ = reference(name)
	}
	scopes := []store.Scope{c.Scope}
	if c.Scope.Workspace != "" && (c.Caller.OfOrganisation() || l.Shared) {
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
		if sc.Workspace == "" && !c.Caller.OfOrganisation() && l.Open != nil {
			form, err := col.decode(&rec)
			if err != nil {
				return err
			}
			if !l.Open(Item[T]{&rec, form}, c.Scope.Workspace) {
				continue
			}
		}
		c.Scope = sc
		return nil
	}
	if c.Scope.Workspace != "" {
		return nil // the family's answer for what is missing follows
	}
	return l.locateInWorkspaces(c, kind, name, title(col.Object))
}

func (l *Levels[T]) locateInWorkspaces(c *Call, kind resource.Kind, name, word string) error {
	scopes, err := WorkspaceScopes(c)
	if err != nil {
		return err
	}
	lists, err := c.Resources.ListMany(c.Context, scopes, kind, false)
	if err != nil {
		return err
	}
	var found []store.Scope
	for n, rows := range lists {
		if slices.ContainsFunc(rows, func(r resource.Row) bool { return r.ID == name || r.Slug == name }) {
			found = append(found, scopes[n])
		}
	}
	if len(found) > 1 {
		return fault.Invalid(workspaceID, "%d workspaces have this %s: name the workspace", len(found), word)
	}
	if len(found) == 1 {
		c.Scope = found[0]
	}
	return nil
}

// across are the scopes of a list that the caller may list.
func (l *Levels[T]) across(c *Call) ([]store.Scope, error) {
	wanted := c.Query.Text("type")
	shared := wanted != ofWorkspace && c.Caller.HasAny([]string{l.Organisation + ".list"})
	own := wanted != ofOrganisation && c.Caller.HasAny([]string{l.Workspace + ".list"})
	if !shared && !own {
		return nil, Denied()
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

// WorkspaceScopes are the scope of the call's workspace, or those of all live
// workspaces where the call acts in the organisation.
func WorkspaceScopes(c *Call) ([]store.Scope, error) {
	if c.Scope.Workspace != "" {
		return []store.Scope{c.Scope}, nil
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	out := make([]store.Scope, len(spaces))
	for i := range spaces {
		out[i] = store.Scope{Org: c.Scope.Org, Workspace: spaces[i].ID}
	}
	return out, nil
}
