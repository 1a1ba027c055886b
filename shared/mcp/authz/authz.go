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

// Invoke is the scope that callers of servers hold.
const Invoke = "mcp.invoke"

// Facts are what a decision is based on. They are as fresh as the View from which they were
// read. What they point to is shared.
type Facts struct {
	Server      *Server
	Integration *Integration
	Scopes      identity.ScopeSet
	Workspace   string            // of the caller
	User        *access.User      // the caller's entry at the server; nil: none
	Off         map[string]bool   // ids of capabilities that the integration disables
	Overrides   map[string]bool   // what the server says of capabilities, by id
	Templates   []Template        // of the integration
	Listed      map[string]string // types of the capabilities that the server lists, by id
}

// Server is a server with its record.
type Server struct {
	*mcp.Server
	Record resource.Record
}

// Integration is likewise. Print tells apart what it is called by.
type Integration struct {
	*mcp.Integration
	Record *resource.Record
	Print  string
}

// Template is a resource template: its id and what its addresses look like.
type Template struct {
	ID      string
	Pattern []string // literal pieces, with anything between them
}

// Decisions, as records tell them.
const (
	Allowed      = "allowed"
	NoScope      = "scope"       // the key does not hold mcp.invoke
	NoServer     = "server"      // it is not there or not active
	NoAccess     = "integration" // it is not active, or not open to the workspace
	NoUser       = "user"        // the user has no access
	NoCapability = "capability"  // disabled at the integration or the server
)

// Capability is something of a server that is to be used; the zero value is the server
// itself. Key is the name of a tool or prompt, the address of a resource or template.
type Capability struct{ Type, Key string }

const active = "active"

// Decide tells whether the caller may use the server and, of it, a capability.
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
		return NoCapability // what a virtual server has is its members': see Route
	}
	return Allowed
}

// Print changes when the way to call the server changes; a virtual server is not called.
func (f *Facts) Print() string {
	if f.Integration == nil {
		return ""
	}
	return f.Integration.Print
}

// provided tells whether the integration is active and open to the workspace.
func (f *Facts) provided() bool {
	return f.Integration != nil && f.Integration.Record.Status == active && f.Integration.Access.OpenTo(f.Integration.Record, f.Workspace)
}

// enabled reports whether neither the integration nor the server has disabled a
// capability. As soon as one of a type is disabled, only those of the type that the server
// lists under this very name are known: servers may accept other spellings of a name.
func (f *Facts) enabled(c Capability) bool {
	if len(f.Off) == 0 && len(f.Overrides) == 0 {
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
	// An address that is not listed by itself is judged by the templates that it fits.
	fits := false
	for i := range f.Templates {
		if t := &f.Templates[i]; t.fits(c.Key) {
			if !f.off(t.ID) {
				return true
			}
			fits = true
		}
	}
	return !fits && !f.restricted(mcp.Resource)
}

// Lists reports whether the server listed a capability when it was last synchronized.
func (f *Facts) Lists(c Capability) bool { return f.Listed[mcp.CapabilityID(c.Type, c.Key)] != "" }

// restricted reports whether a capability of a type is disabled.
func (f *Facts) restricted(kind string) bool {
	for id, off := range f.Off {
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
	on, said := f.Overrides[id]
	return f.Off[id] || said && !on
}

// fits tells whether an address may be one of the template.
func (t *Template) fits(uri string) bool {
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

// Missing is the answer for a server that is not there, also for what another
// workspace has.
func Missing() *fault.Fault {
	return fault.New(fault.NotFound, "", "There is no such MCP server in the workspace of this key")
}

// Load reads what a caller's decisions at a server are made of. slug names the server.
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

// load is Load of a server that has been found.
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
	known, err := resource.LoadFolded(ctx, v, of.Scope, mcp.KindCapability.Of(of.ID), foldCapabilities)
	if err != nil {
		return nil, err
	}
	own, err := resource.LoadFolded(ctx, v, server.Record.Scope, mcp.KindOverride.Of(server.Record.ID), foldOverrides)
	if err != nil {
		return nil, err
	}
	f.Off, f.Templates, f.Listed, f.Overrides = known.off, known.templates, known.listed, own
	return f, nil
}

// Shape is what the upstream said last of a tool; nil where nothing is known.
func (f *Facts) Shape(ctx context.Context, v *resource.View, tool string) (*mcp.Capability, error) {
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
	mark, err := upstream.Fingerprint(called, rec.Sealed)
	return &Integration{i, &rec, mark}, err
}

// keyOf is the address of a template, which its record may name otherwise.
func keyOf(c *mcp.Capability, name string) string {
	var shape struct {
		Template string `json:"uriTemplate"`
	}
	if json.Unmarshal(c.Shape, &shape) == nil && shape.Template != "" {
		return shape.Template
	}
	return name
}

// folded is what the capabilities of an integration say together.
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
