package authz

import (
	"context"

	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

// Member is one server of a virtual server, with the facts that decide about it.
type Member struct {
	*mcp.Member
	Facts *Facts
}

// Members are the members of a virtual server that exist, in its order. Each decides for
// itself who may use it: a virtual server adds no right.
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

// Route finds the tool behind a name of a virtual server, for lists and calls alike: which
// member has it, what it is called there, and whether the caller may use it. m is nil where
// no member can have it.
func (f *Facts) Route(members []Member, name string) (m *Member, tool, decision string) {
	if decision = f.Decide(Capability{}); decision != Allowed {
		return nil, "", decision
	}
	if name == mcp.SearchTool && f.Server.Searches() {
		return nil, "", NoCapability // the virtual server's own
	}
	for i := range members {
		if tool, ok := members[i].Real(name); ok {
			return &members[i], tool, members[i].Facts.Decide(Capability{mcp.Tool, tool})
		}
	}
	return nil, "", NoCapability
}
