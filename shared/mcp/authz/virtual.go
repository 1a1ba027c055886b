package authz

import (
	"context"

	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

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
