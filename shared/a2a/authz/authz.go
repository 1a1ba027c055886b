// Package authz decides who may use which agent and which of its skills. Cards and calls use
// the same function.
package authz

import (
	"context"
	"slices"

	"gateway/shared/a2a"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Invoke is the scope that callers of agents need.
const Invoke = "agents.invoke"

// Facts are the data that an authorization decision depends on. They are as recent as the View
// that they were read from and share its memory.
type Facts struct {
	Server      *Server
	Integration *Integration
	Scopes      identity.ScopeSet
	Workspace   string       // of the caller
	User        *access.User // the caller's entry at the server, or nil
	// Skills that are switched on or off, by switch id.
	IntegrationSwitches, ServerSwitches map[string]bool
}

// Server is a server with its record.
type Server struct {
	*a2a.Server
	Record resource.Record
}

// Integration is an integration with its record. Fingerprint changes with the agent's
// connection settings and card.
type Integration struct {
	*a2a.Integration
	Record      *resource.Record
	Fingerprint string
}

// Decisions as they appear in records.
const (
	Allowed  = "allowed"
	NoScope  = "scope"       // the key lacks agents.invoke
	NoServer = "server"      // the server does not exist or is not active
	NoAccess = "integration" // the integration is not active or not available to the workspace
	NoUser   = "user"        // the user has no access
	NoSkill  = "skill"       // disabled at the integration or the server
)

const active = "active"

// Decide returns whether the caller may use the agent and, if skill is not empty, the skill.
func (f *Facts) Decide(skill string) string {
	switch {
	case !f.Scopes.Has(Invoke):
		return NoScope
	case f.Server.Record.Status != active || f.Server.Record.Scope.Workspace != f.Workspace:
		return NoServer
	case f.Integration == nil || f.Integration.Record.Status != active || !f.Integration.Access.OpenTo(f.Integration.Record, f.Workspace):
		return NoAccess
	case !access.Permits(f.Server.UserAccess, f.User):
		return NoUser
	case skill != "" && !f.enabled(skill):
		return NoSkill
	}
	return Allowed
}

// enabled reports whether neither the integration nor the server disables a skill. If any skill
// is disabled, only skills that the card lists or that have a switch are enabled, because
// agents may accept other spellings of a disabled id.
func (f *Facts) enabled(skill string) bool {
	id := a2a.SwitchID(skill)
	if f.disabled(id) {
		return false
	}
	if f.IntegrationSwitches[id] || f.ServerSwitches[id] || !f.restricted() {
		return true
	}
	return slices.ContainsFunc(a2a.Skills(f.Integration.Card), func(s a2a.Skill) bool { return s.ID == skill })
}

// restricted reports whether any skill is disabled.
func (f *Facts) restricted() bool {
	for _, of := range [...]map[string]bool{f.IntegrationSwitches, f.ServerSwitches} {
		for _, on := range of {
			if !on {
				return true
			}
		}
	}
	return false
}

// disabled reports whether the integration or the server disables a skill.
func (f *Facts) disabled(id string) bool {
	of, set := f.IntegrationSwitches[id]
	if set && !of {
		return true
	}
	at, set := f.ServerSwitches[id]
	return set && !at
}

// Missing returns the fault for an agent that does not exist in the workspace.
func Missing() *fault.Fault {
	return fault.New(fault.NotFound, "", "There is no such agent in the workspace of this key")
}

// Load reads the facts for a caller and the agent of a slug.
func Load(ctx context.Context, v *resource.View, who *identity.Principal, slug string) (*Facts, error) {
	server, ok, err := resource.Load(ctx, v, who.Scope, a2a.KindServer, slug, decodeServer)
	if err != nil {
		return nil, err
	}
	if !ok || server.Record.Slug != slug || server.Record.Archived() {
		return nil, Missing()
	}
	f := &Facts{Server: server, Scopes: who.Scopes, Workspace: who.Scope.Workspace}
	of := server.Integration(server.Record.Scope)
	integration, ok, err := resource.Load(ctx, v, of.Scope, of.Kind, of.ID, decodeIntegration)
	if err != nil {
		return nil, err
	}
	if ok {
		f.Integration = integration
	}
	if who.UserID != "" {
		if f.User, _, err = resource.Load(ctx, v, server.Record.Scope, a2a.KindUser.Of(server.Record.ID), who.UserID, access.DecodeUser); err != nil {
			return nil, err
		}
	}
	if f.IntegrationSwitches, err = resource.LoadWith(ctx, v, of.Scope, a2a.KindIntegrationSwitch.Of(of.ID), fold); err != nil {
		return nil, err
	}
	f.ServerSwitches, err = resource.LoadWith(ctx, v, server.Record.Scope, a2a.KindServerSwitch.Of(server.Record.ID), fold)
	return f, err
}

func decodeServer(rec resource.Record) (*Server, error) {
	s, err := a2a.DecodeServer(rec)
	return &Server{s, rec}, err
}

func decodeIntegration(rec resource.Record) (*Integration, error) {
	i, err := a2a.DecodeIntegration(rec)
	if err != nil {
		return nil, err
	}
	called := *i
	called.Synced, called.Access, called.Description = a2a.Synced{}, access.Workspaces{}, ""
	fingerprint, err := upstream.Fingerprint(called, rec.Sealed)
	return &Integration{i, &rec, fingerprint}, err
}

type switches = map[string]bool

func fold(recs []resource.Record) (switches, error) {
	out := make(switches, len(recs))
	for i := range recs {
		s, err := a2a.DecodeSwitch(recs[i])
		if err != nil {
			return nil, err
		}
		out[recs[i].ID] = s.Enabled
	}
	return out, nil
}
