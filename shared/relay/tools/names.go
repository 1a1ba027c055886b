package tools

import (
	"encoding/json"
	"strconv"
	"strings"

	"gateway/shared/mcp/protocolversion"
)

// tool is one tool of a server.
type tool struct {
	of          *server
	name        string // at the server
	as          string // for the model
	description string
	schema      json.RawMessage // of its arguments, an object
	annotations json.RawMessage
	readOnly    bool
	marks       []protocolversion.HeaderParam
}

// maxFunction is the longest function name that every provider accepts.
const maxFunction = 64

// names assigns names to tools that no other function of the request has.
type names struct {
	taken map[string]bool  // by the client's own functions
	tools map[string]*tool // by the name for the model
}

func newNames(own []string) *names { return &names{set(own), map[string]*tool{}} }

// give assigns names to the tools of a server: their own names if possible, else prefixed with
// the server's slug, else with a number appended.
func (n *names) give(s *server) {
	for _, t := range s.tools {
		t.as = n.free(spelled(t.name), spelled(s.slug+"_"+t.name))
		n.tools[t.as] = t
	}
}

func (n *names) free(wanted ...string) string {
	for _, name := range wanted {
		if n.isFree(name) {
			return name
		}
	}
	last := wanted[len(wanted)-1]
	for i := 2; ; i++ {
		number := "_" + strconv.Itoa(i)
		name := last[:min(len(last), maxFunction-len(number))] + number
		if n.isFree(name) {
			return name
		}
	}
}

func (n *names) isFree(name string) bool { return !n.taken[name] && n.tools[name] == nil }

// spelled returns a name in the characters that every provider accepts.
func spelled(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxFunction)]
}

// of finds a tool by the client's name for it; nil if it is not offered now.
func (n *names) of(label, name string) *tool {
	for _, t := range n.tools {
		if t.name == name && t.of.label == label {
			return t
		}
	}
	return nil
}

// as returns the model's name for a tool, which may no longer be offered.
func (n *names) as(label, name string) string {
	if t := n.of(label, name); t != nil {
		return t.as
	}
	return spelled(name)
}
