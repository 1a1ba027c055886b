package mcp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// SearchTool is the tool by which clients of a virtual server find others.
const SearchTool = "search_tools"

// Values of Server.Search: when a virtual server lists SearchTool in place of all that
// it has.
const (
	SearchAlways = "always"
	SearchAuto   = "auto" // with more tools than the threshold
	SearchOff    = "off"
)

// ManyTools is the threshold of servers that name none.
const ManyTools = 40

// MaxMembers bounds the members of a virtual server.
const MaxMembers = 20

// Member is a server whose tools a virtual server has.
type Member struct {
	Server string            `json:"server" min:"1" max:"255" doc:"Id or slug of a server of the workspace that is not virtual. Shown as its id."`
	Tools  []string          `json:"tools,omitempty" max:"1000" each:"min=1 max=128" doc:"Those of its tools that are taken, by the names that it gives them; none: all."`
	Prefix string            `json:"prefix,omitempty" max:"64" doc:"Stands before the names of its tools: letters, digits, _ - and ."`
	Rename map[string]string `json:"rename,omitempty" max:"1000" each:"min=1 max=128" doc:"Other names for single tools, by the names that the server gives them; they have no prefix."`
}

// Virtual tells whether the server is a bundle of tools of others.
func (s *Server) Virtual() bool { return len(s.Members) > 0 }

// ListsSearch tells whether a virtual server with so many tools for a caller lists
// SearchTool in their place.
func (s *Server) ListsSearch(tools int) bool {
	limit := int(s.Threshold)
	if limit == 0 {
		limit = ManyTools
	}
	return s.Search == SearchAlways || s.Searches() && tools > limit
}

// Searches tells whether there is SearchTool at all.
func (s *Server) Searches() bool { return s.Search != SearchOff }

// Given is the name that a virtual server gives a tool of the member.
func (m *Member) Given(tool string) string {
	if name, ok := m.Rename[tool]; ok {
		return name
	}
	return m.Prefix + tool
}

// Real is the tool of the member that has a name at the virtual server; false where it
// can be none of the member's. A tool whose own name was given to another is not there.
func (m *Member) Real(name string) (tool string, ok bool) {
	for tool, given := range m.Rename {
		if given == name {
			return tool, m.takes(tool)
		}
	}
	tool, ok = strings.CutPrefix(name, m.Prefix)
	if _, renamed := m.Rename[tool]; !ok || tool == "" || renamed {
		return "", false
	}
	return tool, m.takes(tool)
}

func (m *Member) takes(tool string) bool { return len(m.Tools) == 0 || slices.Contains(m.Tools, tool) }

var (
	goodPrefix = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
	goodName   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
)

// CheckMembers gives what is wrong with the members of a virtual server. Members that
// pass share no name, whatever tools their servers have.
func (s *Server) CheckMembers() (bad []fault.Detail) {
	names := map[string]string{} // fields, by the names that they give
	for i := range s.Members {
		m := &s.Members[i]
		at := fmt.Sprintf("members[%d]", i)
		add := func(field, message string, args ...any) {
			bad = append(bad, fault.Detail{Field: at + field, Message: fmt.Sprintf(message, args...)})
		}
		if !goodPrefix.MatchString(m.Prefix) {
			add(".prefix", "may have letters, digits, _ - and .")
		}
		for j := range s.Members[:i] {
			if m.Server == s.Members[j].Server {
				add(".server", "is that of members[%d] too", j)
			}
			if m.openWith(&s.Members[j]) {
				add(".prefix", "must tell its tools from those of members[%d]: neither prefix may begin with the other where both have all tools", j)
			}
		}
		for _, g := range m.gives(at) {
			switch of := names[g.name]; {
			case !goodName.MatchString(g.name):
				bad = append(bad, fault.Detail{Field: g.field, Message: "makes a name that is no tool's: 1 to 128 letters, digits, _ - and ."})
			case g.name == SearchTool:
				bad = append(bad, fault.Detail{Field: g.field, Message: "makes the name " + SearchTool + ", which the virtual server has itself"})
			case of != "":
				bad = append(bad, fault.Detail{Field: g.field, Message: "makes the same name as " + of})
			default:
				names[g.name] = g.field
			}
			if j := s.openFor(i, g.name); j >= 0 {
				bad = append(bad, fault.Detail{Field: g.field, Message: fmt.Sprintf("makes a name that a tool of members[%d] can have: it has all tools, with that prefix", j)})
			}
		}
		for tool := range m.Rename {
			if !m.takes(tool) {
				add(".rename."+tool, "is none of the tools of the member")
			}
		}
	}
	slices.SortStableFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

// openWith tells whether both members have all tools of their servers, under prefixes
// that do not tell them apart.
func (m *Member) openWith(o *Member) bool {
	return len(m.Tools) == 0 && len(o.Tools) == 0 && (strings.HasPrefix(m.Prefix, o.Prefix) || strings.HasPrefix(o.Prefix, m.Prefix))
}

// openFor is another member than the i-th with all tools that may have one of a name; -1
// where there is none.
func (s *Server) openFor(i int, name string) int {
	return slices.IndexFunc(s.Members, func(o Member) bool {
		return o.Server != s.Members[i].Server && len(o.Tools) == 0 && strings.HasPrefix(name, o.Prefix)
	})
}

// gift is a name that a member gives, and the field that says so.
type gift struct{ field, name string }

// gives are the names that a member says, in a set order.
func (m *Member) gives(at string) (out []gift) {
	for _, tool := range slices.Sorted(maps.Keys(m.Rename)) {
		out = append(out, gift{at + ".rename." + tool, m.Rename[tool]})
	}
	for n, tool := range m.Tools {
		if _, renamed := m.Rename[tool]; !renamed {
			out = append(out, gift{fmt.Sprintf("%s.tools[%d]", at, n), m.Prefix + tool})
		}
	}
	return out
}
