package mcp

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckMembersRejectsAmbiguousNames(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[ab_]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		s := &Server{}
		for i := range rapid.IntRange(1, 4).Draw(t, "members") {
			m := Member{Server: fmt.Sprint(i), Prefix: rapid.StringMatching(`[ab_]{0,2}`).Draw(t, "prefix")}
			if rapid.Bool().Draw(t, "closed") {
				m.Tools = rapid.SliceOfNDistinct(name, 1, 3, rapid.ID).Draw(t, "tools")
			}
			m.Rename = rapid.MapOfN(name, name, 0, 2).Draw(t, "rename")
			s.Members = append(s.Members, m)
		}
		if bad := s.CheckMembers(); len(bad) > 0 {
			for _, d := range bad {
				if !strings.HasPrefix(d.Field, "members[") || d.Message == "" {
					t.Fatalf("%+v", d)
				}
			}
			return
		}
		for i := range s.Members {
			m := &s.Members[i]
			tool := name.Draw(t, "tool")
			exposed := m.ExposedName(tool)
			back, ok := m.UpstreamTool(exposed)
			if ok && back != tool && m.Rename[back] != exposed {
				t.Fatalf("%+v: %s is given as %s, which is %s", m, tool, exposed, back)
			}
			for j := range s.Members {
				if other, has := s.Members[j].UpstreamTool(exposed); has && j != i && ok {
					t.Fatalf("%s is %s of member %d and %s of member %d: %+v", exposed, back, i, other, j, s.Members)
				}
			}
			if !m.includes(tool) && ok && back == tool {
				t.Fatalf("%+v: %s is not taken", m, tool)
			}
		}
	})
}

func TestCheckMembersNamesCollidingMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		members []Member
		field   string
	}{
		{"one with all", []Member{{Server: "a"}}, ""},
		{"two prefixes", []Member{{Server: "a", Prefix: "a_"}, {Server: "b", Prefix: "b_"}}, ""},
		{"lists without prefix", []Member{{Server: "a", Tools: []string{"x"}}, {Server: "b", Tools: []string{"y"}}}, ""},
		{"two with all", []Member{{Server: "a"}, {Server: "b"}}, "members[1].prefix"},
		{"a prefix in another", []Member{{Server: "a", Prefix: "a_"}, {Server: "b", Prefix: "a_b_"}}, "members[1].prefix"},
		{"the same server", []Member{{Server: "a", Prefix: "a_"}, {Server: "a", Prefix: "b_"}}, "members[1].server"},
		{"the same name", []Member{{Server: "a", Tools: []string{"x"}}, {Server: "b", Tools: []string{"x"}}}, "members[1].tools[0]"},
		{"a name of another's", []Member{{Server: "a", Tools: []string{"x"}}, {Server: "b", Prefix: "b_", Rename: map[string]string{"y": "x"}}}, "members[1].rename.y"},
		{"a name of its own", []Member{{Server: "a", Tools: []string{"x", "y"}, Rename: map[string]string{"y": "x"}}}, "members[0].tools[0]"},
		{"twice the same tool", []Member{{Server: "a", Tools: []string{"x", "x"}}}, "members[0].tools[1]"},
		{"what another can have", []Member{{Server: "a", Tools: []string{"b_x"}}, {Server: "b", Prefix: "b_"}}, "members[0].tools[0]"},
		{"a rename that another can have", []Member{{Server: "a", Prefix: "a_", Rename: map[string]string{"x": "b_x"}}, {Server: "b", Prefix: "b_"}}, "members[0].rename.x"},
		{"the search", []Member{{Server: "a", Rename: map[string]string{"x": SearchTool}}}, "members[0].rename.x"},
		{"the search by its prefix", []Member{{Server: "a", Prefix: "search_", Tools: []string{"tools"}}}, "members[0].tools[0]"},
		{"no tool of it", []Member{{Server: "a", Tools: []string{"x"}, Rename: map[string]string{"y": "z"}}}, "members[0].rename.y"},
		{"a bad prefix", []Member{{Server: "a", Prefix: "a b"}}, "members[0].prefix"},
		{"a bad name", []Member{{Server: "a", Rename: map[string]string{"x": "ü"}}}, "members[0].rename.x"},
		{"a long name", []Member{{Server: "a", Prefix: strings.Repeat("p", 64), Tools: []string{strings.Repeat("t", 65)}}}, "members[0].tools[0]"},
	} {
		s := &Server{Members: c.members}
		bad := s.CheckMembers()
		if c.field == "" && len(bad) > 0 || c.field != "" && (len(bad) == 0 || bad[0].Field != c.field) {
			t.Errorf("%s: %+v", c.what, bad)
		}
	}
}

func TestUpstreamToolResolvesExposedNames(t *testing.T) {
	t.Parallel()
	m := &Member{Prefix: "git_", Rename: map[string]string{"create": "git_new", "drop": "remove"}}
	for name, want := range map[string]string{"git_list": "list", "git_new": "create", "remove": "drop", "git_create": "", "git_drop": "", "git_": "", "list": "", "": "", "GIT_list": ""} {
		if got, ok := m.UpstreamTool(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", name, got, ok)
		}
	}
	for tools, want := range map[int]bool{40: false, 41: true} {
		if (&Server{}).ListsSearch(tools) != want || (&Server{Search: SearchOff}).ListsSearch(tools) || !(&Server{Search: SearchAlways}).ListsSearch(tools) {
			t.Error(tools)
		}
	}
	if !(&Server{Threshold: 2}).ListsSearch(3) || (&Server{Threshold: 3}).ListsSearch(3) {
		t.Error("threshold")
	}
}
