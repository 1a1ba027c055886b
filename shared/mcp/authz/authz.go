// Package authz decides who may use which MCP server and which of its capabilities. Lists and
// calls use the same function.
package authz

import (
	"context"
	"encoding/json"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/tenant/access"
	"gateway/shared/tenant/upstream"
)

// Invoke is the scope that callers of servers need.
const Invoke = "mcp.invoke"

// Facts are the data that an authorization decision depends on. They are as recent as the View
// that they were read from and share its memory.
type Facts struct {
	Server      *Server
	Integration *Integration
	Scopes      identity.ScopeSet
	Workspace   string            // of the caller
	User        *access.User      // the caller's entry at the server, or nil
	DisabledIDs map[string]bool   // ids of capabilities that the integration disables
	Overrides   map[string]bool   // settings of the server, by capability id
	Templates   []Template        // of the integration
	Listed      map[string]string // types of the listed capabilities, by id
}

// Server is a server with its record.
type Server struct {
	*mcp.Server
	Record resource.Record
}

// Integration is an integration with its record. Fingerprint changes with its connection
// settings.
type Integration struct {
	*mcp.Integration
	Record      *resource.Record
	Fingerprint string
}

// Template is a resource template.
type Template struct {
	ID      string
	Pattern []string // literal parts between the expressions
}

// Decisions as they appear in records.
const (
	Allowed      = "allowed"
	NoScope      = "scope"       // the key lacks mcp.invoke
	NoServer     = "server"      // the server does not exist or is not active
	NoAccess     = "integration" // the integration is not active or not available to the workspace
	NoUser       = "user"        // the user has no access
	NoCapability = "capability"  // disabled at the integration or the server
)

// Capability identifies a capability of a server; the zero value is the server itself. Key is
// the name of a tool or prompt, the URI of a resource or template.
type Capability struct{ Type, Key string }

const active = "active"

// Decide returns whether the caller may use the server and, if c is set, the capability.
func (f *Facts) Decide(c Capability) string {
	switch {
	case !f.Scopes.Has(Invoke):
		return NoScope
	case f.Server.Record.Status != active || f.Server.Record.Scope.Workspace != f.Workspace:
		return NoServer
	case !f.Server.Virtual() && !f.provided():
		return NoAccess
	case !access.Permits(f.Server.UserAccess, f.User):
		return NoUser
	case c.Type != "" && (f.Server.Virtual() || !f.enabled(c)):
		return NoCapability // Route decides about the tools of a virtual server
	}
	return Allowed
}

// Fingerprint changes with the connection settings of the server. It is empty for a virtual
// server.
func (f *Facts) Fingerprint() string {
	if f.Integration == nil {
		return ""
	}
	return f.Integration.Fingerprint
}

// provided reports whether the integration is active and available to the workspace.
func (f *Facts) provided() bool {
	return f.Integration != nil && f.Integration.Record.Status == active && f.Integration.Access.OpenTo(f.Integration.Record, f.Workspace)
}

// enabled reports whether neither the integration nor the server disables a capability. If any
// capability of a type is disabled, only listed names of the type are enabled, because servers
// may accept other spellings of a disabled name.
func (f *Facts) enabled(c Capability) bool {
	if len(f.DisabledIDs) == 0 && len(f.Overrides) == 0 {
		return true // nothing is disabled
	}
	id := mcp.CapabilityID(c.Type, c.Key)
	if f.off(id) {
		return false
	}
	if f.Listed[id] != "" {
		return true
	}
	if c.Type != mcp.Resource {
		return !f.restricted(c.Type)
	}
	// A URI that is not listed is enabled by the templates that match it.
	matched := false
	for i := range f.Templates {
		if t := &f.Templates[i]; t.matches(c.Key) {
			if !f.off(t.ID) {
				return true
			}
			matched = true
		}
	}
	return !matched && !f.restricted(mcp.Resource)
}

// Lists reports whether the server listed a capability at the last synchronization.
func (f *Facts) Lists(c Capability) bool { return f.Listed[mcp.CapabilityID(c.Type, c.Key)] != "" }

// restricted reports whether any capability of a type is disabled.
func (f *Facts) restricted(kind string) bool {
	for id, off := range f.DisabledIDs {
		if off && mcp.IsCapability(id, kind) {
			return true
		}
	}
	for id, on := range f.Overrides {
		if !on && mcp.IsCapability(id, kind) {
			return true
		}
	}
	return false
}

func (f *Facts) off(id string) bool {
	on, set := f.Overrides[id]
	return f.DisabledIDs[id] || set && !on
}

// matches reports whether a URI may be an expansion of the template.
func (t *Template) matches(uri string) bool {
	last := len(t.Pattern) - 1
	rest, ok := strings.CutPrefix(uri, t.Pattern[0])
	if !ok || last == 0 {
		return ok && rest == ""
	}
	for _, piece := range t.Pattern[1:last] {
		if _, rest, ok = strings.Cut(rest, piece); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, t.Pattern[last])
}

// pattern splits a template at its expressions.
func pattern(template string) (pieces []string) {
	for {
		before, rest, ok := strings.Cut(template, "{")
		pieces = append(pieces, before)
		if !ok {
			return pieces
		}
		_, template, _ = strings.Cut(rest, "}")
	}
}

// Missing returns the fault for a server that does not exist in the workspace.
func Missing() *fault.Fault {
	return fault.New(fault.NotFound, "", "There is no such MCP server in the workspace of this key")
}

// Load reads the facts for a caller and the server of a slug.
func Load(ctx context.Context, v *resource.View, who *identity.Principal, slug string) (*Facts, error) {
	server, ok, err := resource.Load(ctx, v, who.Scope, mcp.KindServer, slug, decodeServer)
	if err != nil {
		return nil, err
	}
	if !ok || server.Record.Slug != slug || server.Record.Archived() {
		return nil, Missing()
	}
	if who.Audience != "" && who.Audience != server.Record.ID {
		return nil, fault.New(fault.Unauthorized, "authorization", "The access token is for another MCP server. Sign in for this one")
	}
	return load(ctx, v, who, server)
}

// load reads the facts for a server that was found.
func load(ctx context.Context, v *resource.View, who *identity.Principal, server *Server) (f *Facts, err error) {
	f = &Facts{Server: server, Scopes: who.Scopes, Workspace: who.Scope.Workspace}
	if who.UserID != "" {
		if f.User, _, err = resource.Load(ctx, v, server.Record.Scope, mcp.KindUser.Of(server.Record.ID), who.UserID, access.DecodeUser); err != nil {
			return nil, err
		}
	}
	if server.Virtual() {
		return f, nil
	}
	of := server.Integration(server.Record.Scope)
	integration, ok, err := resource.Load(ctx, v, of.Scope, of.Kind, of.ID, decodeIntegration)
	if err != nil {
		return nil, err
	}
	if ok {
		f.Integration = integration
	}
	known, err := resource.LoadWith(ctx, v, of.Scope, mcp.KindCapability.Of(of.ID), foldCapabilities)
	if err != nil {
		return nil, err
	}
	own, err := resource.LoadWith(ctx, v, server.Record.Scope, mcp.KindOverride.Of(server.Record.ID), foldOverrides)
	if err != nil {
		return nil, err
	}
	f.DisabledIDs, f.Templates, f.Listed, f.Overrides = known.off, known.templates, known.listed, own
	return f, nil
}

// Definition returns the last known definition of a tool, or nil.
func (f *Facts) Definition(ctx context.Context, v *resource.View, tool string) (*mcp.Capability, error) {
	of := f.Integration.Record
	c, _, err := resource.Load(ctx, v, of.Scope, mcp.KindCapability.Of(of.ID), mcp.CapabilityID(mcp.Tool, tool), mcp.DecodeCapability)
	return c, err
}

func decodeServer(rec resource.Record) (*Server, error) {
	s, err := mcp.DecodeServer(rec)
	return &Server{s, rec}, err
}

func decodeIntegration(rec resource.Record) (*Integration, error) {
	i, err := mcp.DecodeIntegration(rec)
	if err != nil {
		return nil, err
	}
	called := *i
	called.Synced, called.Access, called.Description = mcp.Metadata{}, access.Workspaces{}, ""
	fingerprint, err := upstream.Fingerprint(called, rec.Sealed)
	return &Integration{i, &rec, fingerprint}, err
}

// keyOf returns the URI template, which may differ from the record's name.
func keyOf(c *mcp.Capability, name string) string {
	var shape struct {
		Template string `json:"uriTemplate"`
	}
	if json.Unmarshal(c.Shape, &shape) == nil && shape.Template != "" {
		return shape.Template
	}
	return name
}

// folded summarizes the capabilities of an integration.
type folded struct {
	off       map[string]bool
	listed    map[string]string
	templates []Template
}

func foldCapabilities(recs []resource.Record) (*folded, error) {
	f := &folded{off: map[string]bool{}, listed: map[string]string{}}
	for i := range recs {
		c, err := mcp.DecodeCapability(recs[i])
		if err != nil {
			return nil, err
		}
		if !c.Enabled {
			f.off[recs[i].ID] = true
		}
		f.listed[recs[i].ID] = c.Type
		if c.Type == mcp.ResourceTemplate {
			f.templates = append(f.templates, Template{recs[i].ID, pattern(keyOf(c, recs[i].Name))})
		}
	}
	return f, nil
}

type overrides = map[string]bool

func foldOverrides(recs []resource.Record) (overrides, error) {
	out := make(overrides, len(recs))
	for i := range recs {
		o, err := mcp.DecodeOverride(recs[i])
		if err != nil {
			return nil, err
		}
		out[recs[i].ID] = o.Enabled
	}
	return out, nil
}

// Member is a member of a virtual server with the facts about its server.
type Member struct {
	*mcp.Member
	Facts *Facts
}

// Members returns the existing members of a virtual server in their order. A virtual server
// grants no access: each member makes its own decision.
func Members(ctx context.Context, v *resource.View, who *identity.Principal, f *Facts) ([]Member, error) {
	out := make([]Member, 0, len(f.Server.Members))
	for i := range f.Server.Members {
		m := &f.Server.Members[i]
		server, ok, err := resource.Load(ctx, v, f.Server.Record.Scope, mcp.KindServer, m.Server, decodeServer)
		if err != nil {
			return nil, err
		}
		if !ok || server.Record.ID != m.Server || server.Record.Archived() || server.Virtual() {
			continue
		}
		facts, err := load(ctx, v, who, server)
		if err != nil {
			return nil, err
		}
		out = append(out, Member{m, facts})
	}
	return out, nil
}

// Route resolves a tool name of a virtual server, for lists and calls. It returns the member,
// the tool's name at the member and the decision. m is nil if no member has the tool.
func (f *Facts) Route(members []Member, name string) (m *Member, tool, decision string) {
	if decision = f.Decide(Capability{}); decision != Allowed {
		return nil, "", decision
	}
	if name == mcp.SearchTool && f.Server.HasSearch() {
		return nil, "", NoCapability // a tool of the virtual server itself
	}
	for i := range members {
		if tool, ok := members[i].UpstreamTool(name); ok {
			return &members[i], tool, members[i].Facts.Decide(Capability{mcp.Tool, tool})
		}
	}
	return nil, "", NoCapability
}
