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

// Invoke is the scope that callers of agents hold.
const Invoke = "agents.invoke"

// Facts are what a decision depends on. They are as fresh as the View that they were read
// by. What they point to is shared.
type Facts struct {
	Server      *Server
	Integration *Integration
	Scopes      identity.ScopeSet
	Workspace   string       // of the caller
	User        *access.User // the caller's entry at the server; nil: none
	// Of are the switches of skills at the integration and At those at the server, by the id
	// of the switch.
	Of, At map[string]bool
}

// Server is a server with its record.
type Server struct {
	*a2a.Server
	Record resource.Record
}

// Integration is an integration with its record. Print changes with how the agent is called
// and with the card that it shows.
type Integration struct {
	*a2a.Integration
	Record *resource.Record
	Print  string
}

// Decisions, as records tell them.
const (
	Allowed  = "allowed"
	NoScope  = "scope"       // the key does not hold agents.invoke
	NoServer = "server"      // it is not there or not active
	NoAccess = "integration" // it is not active, or not open to the workspace
	NoUser   = "user"        // the user has no access
	NoSkill  = "skill"       // disabled at the integration or the server
)

const active = "active"

// Decide tells whether the caller may use a skill of the agent; "" asks for the agent
// itself.
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

// enabled reports whether neither the integration nor the server has disabled a skill. As
// soon as one is disabled, only skills that the card lists under this very id, or that were
// enabled by it, are known: agents may accept other spellings.
func (f *Facts) enabled(skill string) bool {
	id := a2a.SwitchID(skill)
	if f.off(id) {
		return false
	}
	if f.Of[id] || f.At[id] || !f.restricted() {
		return true
	}
	return slices.ContainsFunc(a2a.Skills(f.Integration.Card), func(s a2a.Skill) bool { return s.ID == skill })
}

// restricted reports whether any skill is disabled.
func (f *Facts) restricted() bool {
	for _, of := range [...]map[string]bool{f.Of, f.At} {
		for _, on := range of {
			if !on {
				return true
			}
		}
	}
	return false
}

// off tells whether the integration or the server has disabled a skill. A skill without a
// switch is on.
func (f *Facts) off(id string) bool {
	of, said := f.Of[id]
	if said && !of {
		return true
	}
	at, said := f.At[id]
	return said && !at
}

// Missing is the answer for an agent that is not there, also for what another
// workspace has.
func Missing() *fault.Fault {
	return fault.New(fault.NotFound, "", "There is no such agent in the workspace of this key")
}

// Load reads what the decisions about a caller at an agent depend on. slug names the
// agent's server.
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
	if f.Of, err = resource.LoadFolded(ctx, v, of.Scope, a2a.KindIntegrationSwitch.Of(of.ID), fold); err != nil {
		return nil, err
	}
	f.At, err = resource.LoadFolded(ctx, v, server.Record.Scope, a2a.KindServerSwitch.Of(server.Record.ID), fold)
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
	mark, err := upstream.Fingerprint(called, rec.Sealed)
	return &Integration{i, &rec, mark}, err
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
