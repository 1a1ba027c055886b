package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/shared/fault"
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

// locate determines the scope of the call and checks the caller's role there. Faults of
// workspace_id are added to p, so that the response lists them with those of other fields; the
// call then ends before it changes anything.
func locate(c *Call, raw map[string]json.RawMessage, p *problems) error {
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

// checkOrganisation refuses a call that names another organisation.
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
		if c.Scope.Workspace == "" && where == InWorkspace && !c.Route.Unplaced {
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
		return fault.New(fault.NotFound, workspaceID, "There is no such workspace in this organisation")
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
