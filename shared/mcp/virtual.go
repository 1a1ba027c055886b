package mcp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// SearchTool is the tool with which clients of a virtual server find other tools.
const SearchTool = "search_tools"

// Values of Server.Search: when a virtual server lists SearchTool instead of all its tools.
const (
	SearchAlways = "always"
	SearchAuto   = "auto" // with more tools than the threshold
	SearchOff    = "off"
)

// DefaultSearchThreshold applies to servers that set none.
const DefaultSearchThreshold = 40

// MaxMembers is the number of members of a virtual server.
const MaxMembers = 20

// Member is a server with tools that a virtual server exposes.
type Member struct {
	Server string            `json:"server" min:"1" max:"255" doc:"Id or slug of a server of the workspace that is not virtual. Shown as its id."`
	Tools  []string          `json:"tools,omitempty" max:"1000" each:"min=1 max=128" doc:"The included tools, by their names on the server; default: all."`
	Prefix string            `json:"prefix,omitempty" max:"64" doc:"Prefix of its tool names: letters, digits, _ - and ."`
	Rename map[string]string `json:"rename,omitempty" max:"1000" each:"min=1 max=128" doc:"Other names for individual tools, by their names on the server; without a prefix."`
}

// Virtual reports whether the server exposes tools of other servers.
func (s *Server) Virtual() bool { return len(s.Members) > 0 }

// ListsSearch reports whether a virtual server lists SearchTool instead of the given number of
// tools.
func (s *Server) ListsSearch(tools int) bool {
	limit := int(s.Threshold)
	if limit == 0 {
		limit = DefaultSearchThreshold
	}
	return s.Search == SearchAlways || s.HasSearch() && tools > limit
}

// HasSearch reports whether the server has SearchTool.
func (s *Server) HasSearch() bool { return s.Search != SearchOff }

// ExposedName returns the name under which the virtual server exposes a tool.
func (m *Member) ExposedName(tool string) string {
	if name, ok := m.Rename[tool]; ok {
		return name
	}
	return m.Prefix + tool
}

// UpstreamTool returns the tool of the member that is exposed under a name. ok is false if the
// member exposes no such tool.
func (m *Member) UpstreamTool(name string) (tool string, ok bool) {
	for tool, renamed := range m.Rename {
		if renamed == name {
			return tool, m.includes(tool)
		}
	}
	tool, ok = strings.CutPrefix(name, m.Prefix)
	if _, renamed := m.Rename[tool]; !ok || tool == "" || renamed {
		return "", false
	}
	return tool, m.includes(tool)
}

func (m *Member) includes(tool string) bool {
	return len(m.Tools) == 0 || slices.Contains(m.Tools, tool)
}

var (
	validPrefix = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
	validName   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
)

// CheckMembers validates the members of a virtual server. Valid members cannot expose two tools
// under one name, whatever tools their servers have.
func (s *Server) CheckMembers() (bad []fault.Detail) {
	names := map[string]string{} // field by exposed name
	for i := range s.Members {
		m := &s.Members[i]
		at := fmt.Sprintf("members[%d]", i)
		add := func(field, message string, args ...any) {
			bad = append(bad, fault.Detail{Field: at + field, Message: fmt.Sprintf(message, args...)})
		}
		if !validPrefix.MatchString(m.Prefix) {
			add(".prefix", "may have letters, digits, _ - and .")
		}
		for j := range s.Members[:i] {
			if m.Server == s.Members[j].Server {
				add(".server", "is also that of members[%d]", j)
			}
			if m.overlaps(&s.Members[j]) {
				add(".prefix", "must differ from that of members[%d]: neither may begin with the other if both members expose all tools", j)
			}
		}
		for _, g := range m.exposedNames(at) {
			switch of := names[g.name]; {
			case !validName.MatchString(g.name):
				bad = append(bad, fault.Detail{Field: g.field, Message: "results in an invalid tool name: use 1 to 128 letters, digits, _ - and ."})
			case g.name == SearchTool:
				bad = append(bad, fault.Detail{Field: g.field, Message: "results in the name " + SearchTool + ", which is reserved for the virtual server"})
			case of != "":
				bad = append(bad, fault.Detail{Field: g.field, Message: "results in the same name as " + of})
			default:
				names[g.name] = g.field
			}
			if j := s.overlapping(i, g.name); j >= 0 {
				bad = append(bad, fault.Detail{Field: g.field, Message: fmt.Sprintf("results in a name that a tool of members[%d] may have: it exposes all tools with that prefix", j)})
			}
		}
		for tool := range m.Rename {
			if !m.includes(tool) {
				add(".rename."+tool, "is not one of the member's tools")
			}
		}
	}
	slices.SortStableFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

// overlaps reports whether both members expose all tools and one prefix begins with the other.
func (m *Member) overlaps(o *Member) bool {
	return len(m.Tools) == 0 && len(o.Tools) == 0 && (strings.HasPrefix(m.Prefix, o.Prefix) || strings.HasPrefix(o.Prefix, m.Prefix))
}

// overlapping returns the index of another member than the i-th that exposes all tools and
// could expose one under the name, or -1.
func (s *Server) overlapping(i int, name string) int {
	return slices.IndexFunc(s.Members, func(o Member) bool {
		return o.Server != s.Members[i].Server && len(o.Tools) == 0 && strings.HasPrefix(name, o.Prefix)
	})
}

// exposedName is a configured name and its field.
type exposedName struct{ field, name string }

// exposedNames returns the names that a member configures, in a stable order.
func (m *Member) exposedNames(at string) (out []exposedName) {
	for _, tool := range slices.Sorted(maps.Keys(m.Rename)) {
		out = append(out, exposedName{at + ".rename." + tool, m.Rename[tool]})
	}
	for n, tool := range m.Tools {
		if _, renamed := m.Rename[tool]; !renamed {
			out = append(out, exposedName{fmt.Sprintf("%s.tools[%d]", at, n), m.Prefix + tool})
		}
	}
	return out
}
