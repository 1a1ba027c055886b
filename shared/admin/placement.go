package admin

import (
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// maxNamedWorkspaces limits the workspaces that an error lists.
const maxNamedWorkspaces = 5

// PlaceByName moves a call of the organization that names no workspace to the workspace of
// the record with an id or slug. An id takes precedence over a slug. The call stays where it
// is if no workspace has the record. A slug that several workspaces have is a fault that
// names them. Calls that act in a workspace are not moved.
func PlaceByName(c *Call, kind resource.Kind, name, word string) error {
	if c.Scope.Workspace != "" || name == "" {
		return nil
	}
	workspaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return err
	}
	scopes := scopesOf(c.Scope.Org, workspaces)
	var holders []int
	for _, archived := range []bool{false, true} {
		lists, err := c.Resources.ListMany(c.Context, scopes, kind, archived)
		if err != nil {
			return err
		}
		for n, rows := range lists {
			for i := range rows {
				if rows[i].ID == name {
					c.Scope = scopes[n]
					return nil
				}
				if rows[i].Slug == name && !archived {
					holders = append(holders, n)
				}
			}
		}
	}
	switch len(holders) {
	case 0:
	case 1:
		c.Scope = scopes[holders[0]]
	default:
		slugs := make([]string, 0, maxNamedWorkspaces)
		for _, n := range holders[:min(len(holders), maxNamedWorkspaces)] {
			slugs = append(slugs, workspaces[n].Slug)
		}
		return fault.Invalid(workspaceID, "%d workspaces have a %s %q: send the %s of one of them, such as %s", len(holders), word, clip(name), workspaceID, strings.Join(slugs, ", "))
	}
	return nil
}

// WorkspaceScopes returns the scope of the call's workspace, or those of all active
// workspaces if the call acts in the organization.
func WorkspaceScopes(c *Call) ([]store.Scope, error) {
	if c.Scope.Workspace != "" {
		return []store.Scope{c.Scope}, nil
	}
	workspaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	return scopesOf(c.Scope.Org, workspaces), err
}

func scopesOf(org string, workspaces []resource.Row) []store.Scope {
	out := make([]store.Scope, len(workspaces))
	for i := range workspaces {
		out[i] = store.Scope{Org: org, Workspace: workspaces[i].ID}
	}
	return out
}

// ByScope calls f once for each scope of items, with the positions of its items.
func ByScope[T any](items []Item[T], f func(sc store.Scope, at []int) error) error {
	var order []store.Scope
	positions := make(map[store.Scope][]int, 1)
	for i, it := range items {
		if positions[it.Scope] == nil {
			order = append(order, it.Scope)
		}
		positions[it.Scope] = append(positions[it.Scope], i)
	}
	for _, sc := range order {
		if err := f(sc, positions[sc]); err != nil {
			return err
		}
	}
	return nil
}

// unplaced reports whether organization keys may call the collection's routes without
// naming a workspace: the record, a record that it refers to, or all workspaces decide.
func (col *Collection[T]) unplaced(action string) bool {
	return col.Where == InWorkspace && (action != "create" || len(col.PlacedBy) > 0)
}

// place moves the call to the workspace of the record that the path names, or of one that
// body or query refer to. A create without either is a fault; a list covers all workspaces.
func (col *Collection[T]) place(c *Call, action string) error {
	if col.Where != InWorkspace || col.Parent != nil || c.Scope.Workspace != "" {
		return nil
	}
	if name := c.Param(col.param()); name != "" {
		if col.Versions != nil {
			name, _ = reference(name)
		}
		return PlaceByName(c, col.Kind, name, title(col.Object))
	}
	missing := workspaceRequired()
	for field, kind := range col.PlacedBy {
		word := title(strings.TrimSuffix(field, "_id"))
		for _, name := range []string{c.Body.Text(field), c.Query.Text(field)} {
			if err := PlaceByName(c, kind, name, word); err != nil {
				return err
			}
			if name != "" {
				missing = fault.Invalid(field, "names no %s of any workspace; send the id or slug of one", word)
			}
		}
	}
	if action == "create" && c.Scope.Workspace == "" {
		return missing
	}
	return nil
}

func workspaceRequired() error {
	return fault.Invalid(workspaceID, "is required with an organisation key: the id or slug of a workspace")
}
