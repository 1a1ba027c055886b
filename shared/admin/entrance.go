package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

const workspaceID = "workspace_id"

// welcome authenticates the caller of a public route. An invalid credential is ignored.
func welcome(c *Call) error {
	caller, err := c.authenticate()
	if err != nil {
		if fault.From(err).Status() >= http.StatusInternalServerError {
			return err
		}
		return nil
	}
	c.Caller, c.Scope = caller, caller.Scope
	return nil
}

// locateAndCheckRole determines the scope of the call and checks the caller's role there. Faults of
// workspace_id are added to p, so that the response lists them with those of other fields; the
// call then ends before it changes anything.
func locateAndCheckRole(c *Call, raw map[string]json.RawMessage, p *problems) error {
	q := c.Request.URL.Query()
	if org, ok := raw["organisation_id"]; ok && !isText(org) {
		p.add("organisation_id", "must be a string")
	}
	if err := checkOrganisation(c, []string{q.Get("organisation_id"), textOf(raw, "organisation_id")}); err != nil {
		return err
	}
	if err := placeAsSent(c, raw, q["workspace_id"]); fault.Is(err, fault.InvalidRequest) {
		p.add(workspaceID, "%s", fault.From(err).Message)
	} else if err != nil {
		return err
	}
	if err := c.checkRole(); err != nil {
		return err
	}
	return checkRecent(c)
}

// checkOrganisation rejects a call that names another organization.
func checkOrganisation(c *Call, sent []string) error {
	for _, s := range sent {
		if s != "" && !strings.EqualFold(s, c.Caller.Scope.Org) {
			return Denied()
		}
	}
	return nil
}

func placeAsSent(c *Call, raw map[string]json.RawMessage, query []string) error {
	if ws, ok := raw[workspaceID]; ok && c.where() != Shared && !isText(ws) {
		return fault.Invalid(workspaceID, "must be a string")
	}
	if len(query) > 1 && c.where() != Shared {
		return fault.Invalid(workspaceID, "was sent %d times; send it once", len(query))
	}
	return place(c, append(query, textOf(raw, workspaceID)))
}

// maxWorkspaceName limits the id or slug of a workspace in a query or body, in characters.
const maxWorkspaceName = 255

// place finds the scope in which the call acts. sent are the workspace_id of
// query and body.
func place(c *Call, sent []string) error {
	c.Scope = c.Organisation()
	where := c.where()
	if where == Shared {
		return nil
	}
	if where == InOrganisation {
		if !c.Caller.OfOrganisation() {
			return Denied()
		}
		return nil
	}
	named := ""
	for _, s := range sent {
		if s == "" {
			continue
		}
		if named != "" && named != s {
			return fault.Invalid("workspace_id", "differs between the query and the body")
		}
		named = s
	}
	if utf8.RuneCountInString(named) > maxWorkspaceName {
		return fault.Invalid(workspaceID, "must have at most %d characters", maxWorkspaceName)
	}
	if named == "" {
		if c.Caller.several() {
			return fault.Invalid("workspace_id", "is required: the id or slug of one of your workspaces")
		}
		c.Scope.Workspace = c.Caller.Scope.Workspace
		if c.Scope.Workspace == "" && where == InWorkspace && !c.Route.OrgKeyWithoutWorkspace {
			return workspaceRequired()
		}
		return nil
	}
	return placeIn(c, named)
}

func placeIn(c *Call, named string) error {
	if named == c.Caller.Scope.Workspace {
		return settle(c, named)
	}
	rec, ok, err := c.Workspace(named)
	if err != nil {
		return err
	}
	switch {
	case !ok && c.Caller.OfOrganisation():
		return fault.New(fault.NotFound, workspaceID, "There is no such workspace in this organization")
	case !ok:
		return Denied() // also for a workspace that exists
	case rec.Archived() && c.Route.changes():
		return fault.New(fault.NotAllowed, workspaceID, "This workspace is archived")
	}
	return settle(c, rec.ID)
}

// settle makes a workspace the place of the call. A caller who is a member of several has
// there the role and scopes of that membership.
func settle(c *Call, workspace string) error {
	c.Scope.Workspace = workspace
	if c.Caller.In == nil || c.Caller.OfOrganisation() {
		return nil
	}
	caller, err := c.Caller.In(c.Context, workspace)
	if err != nil {
		return err
	}
	if c.Caller = caller; !caller.HasAny(c.Route.Scopes) {
		return lacksScope(slices.Clone(c.Route.Scopes))
	}
	return nil
}

// checkRecent rejects users who must sign in again first.
func checkRecent(c *Call) error {
	if !c.Route.Recent {
		return nil
	}
	return c.signedInLately()
}

// maxNamedWorkspaces limits the workspaces that an error lists.
const maxNamedWorkspaces = 5

// MoveByName moves a call of the organization that names no workspace to the workspace of
// the record with an id or slug. An id takes precedence over a slug. The call stays where it
// is if no workspace has the record. A slug that several workspaces have is a fault that
// names them. Calls that act in a workspace are not moved.
func MoveByName(c *Call, kind resource.Kind, name, word string) error {
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
	return col.Level == InWorkspace && (action != "create" || len(col.WorkspaceFields) > 0)
}

// place moves the call to the workspace of the record that the path names, or of one that
// body or query refer to. A create without either is a fault; a list covers all workspaces.
func (col *Collection[T]) place(c *Call, action string) error {
	if col.Level != InWorkspace || col.Parent != nil || c.Scope.Workspace != "" {
		return nil
	}
	if name := c.Param(col.param()); name != "" {
		if col.Versions != nil {
			name, _ = reference(name)
		}
		return MoveByName(c, col.Kind, name, title(col.Object))
	}
	missing := workspaceRequired()
	for field, kind := range col.WorkspaceFields {
		word := title(strings.TrimSuffix(field, "_id"))
		for _, name := range []string{c.Body.Text(field), c.Query.Text(field)} {
			if err := MoveByName(c, kind, name, word); err != nil {
				return err
			}
			if name != "" {
				missing = fault.Invalid(field, "does not match any %s of any workspace; send an id or slug", word)
			}
		}
	}
	if action == "create" && c.Scope.Workspace == "" {
		return missing
	}
	return nil
}

func workspaceRequired() error {
	return fault.Invalid(workspaceID, "is required with an organization key: the id or slug of a workspace")
}
