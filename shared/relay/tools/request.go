package tools

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/relay/approval"
	"gateway/shared/wire"
)

// Beta is the value of the header x-gateway-beta for these requests.
const Beta = "server-side-mcp-2026-06-01"

// labelPrefix starts the labels of gateway-managed servers.
const labelPrefix = approval.LabelPrefix

// Limits of the input, with lengths in bytes.
const (
	maxDepth   = 128
	maxLabel   = 128 + len(labelPrefix)
	maxServers = 20 // of one request
	maxNames   = 1000
)

// wants reports whether a request has the header, and a tool with such a label.
func wants(h http.Header, body []byte) bool {
	asked := false
	for _, v := range h["X-Gateway-Beta"] {
		for one := range strings.SplitSeq(v, ",") {
			asked = asked || strings.TrimSpace(one) == Beta
		}
	}
	if !asked || !bytes.Contains(body, []byte("gateway-mcp")) {
		return false
	}
	var of struct {
		Tools []json.RawMessage `json:"tools"`
	}
	return json.Unmarshal(body, &of) == nil && slices.ContainsFunc(of.Tools, isOurs)
}

// isOurs reports whether a tool is a gateway-managed server.
func isOurs(raw json.RawMessage) bool {
	var t struct {
		Type  json.RawMessage `json:"type"`
		Label json.RawMessage `json:"server_label"`
	}
	if json.Unmarshal(raw, &t) != nil {
		return false
	}
	return text(t.Type) == "mcp" && strings.HasPrefix(text(t.Label), labelPrefix)
}

// text returns a JSON string; "" for other values.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // another type is ""
	return s
}

// quoted is the JSON of a text.
func quoted(s string) json.RawMessage { return wire.AppendJSONString(nil, s) }

// object are the fields of a JSON object.
type object = map[string]json.RawMessage

// server is one such tool of a request.
type server struct {
	at        int // among the tools
	label     string
	slug      string
	allowed   *filter // nil: all
	approvals *filter // tools that need the client's approval; nil: none
	never     *filter // exceptions that need no approval
	cache     json.RawMessage
	tools     []*tool
}

// filter selects tools: by name, by their read-only hint, or by both.
type filter struct {
	names    map[string]bool // nil: any
	readOnly *bool
}

func (f *filter) has(name string, readOnly bool) bool {
	return (f.names == nil || f.names[name]) && (f.readOnly == nil || readOnly == *f.readOnly)
}

// supported fields of such a tool, and those that address another server.
var (
	serverMembers  = []string{"type", "server_label", "allowed_tools", "require_approval", "server_description", "cache_control", "allowed_callers", "defer_loading"}
	elsewhere      = []string{"server_url", "connector_id", "tunnel_id", "authorization", "headers"}
	filterMembers  = []string{"tool_names", "read_only"}
	approvalTimes  = []string{"always", "never"}
	approvalAlways = "always"
)

// readServers reads such servers from the tools of a request. err lists all faults.
func readServers(tools []json.RawMessage, approves bool) (out []*server, err error) {
	var bad []fault.Detail
	seen := map[string]bool{}
	for i, raw := range tools {
		if !isOurs(raw) {
			continue
		}
		r := reader{at: "tools[" + strconv.Itoa(i) + "]"}
		s := r.server(i, raw, approves)
		if seen[s.label] {
			r.wrong("server_label", "must be unique: this server is listed twice")
		}
		seen[s.label] = true
		bad = append(bad, r.bad...)
		if out = append(out, s); len(out) > maxServers {
			return nil, fault.Invalid("tools", "must name at most %d MCP servers", maxServers)
		}
	}
	if f := fault.Invalids(bad); f != nil {
		return nil, f
	}
	return out, nil
}

// reader reads one tool, and collects its faults.
type reader struct {
	at  string
	bad []fault.Detail
}

func (r *reader) wrong(member, message string) {
	r.bad = append(r.bad, fault.Detail{Field: r.at + "." + member, Message: message})
}

// server reads the tool at an index of the list.
func (r *reader) server(at int, raw json.RawMessage, approves bool) *server {
	var of object
	_ = json.Unmarshal(raw, &of) // it has been read
	label := text(of["server_label"])
	slug := strings.TrimPrefix(label, labelPrefix)
	if slug == "" || len(label) > maxLabel || strings.ContainsAny(slug, "/?#%\x00") {
		r.wrong("server_label", "must be "+labelPrefix+" and the slug of an MCP server of the workspace")
	}
	for _, name := range elsewhere {
		if raw := of[name]; raw != nil && string(raw) != "null" {
			r.wrong(name, "must be omitted: the gateway sets the server's address and credential")
		}
	}
	for name := range of {
		if !slices.Contains(serverMembers, name) && !slices.Contains(elsewhere, name) {
			r.wrong(name, "is not known; a server of the gateway accepts "+strings.Join(serverMembers, ", "))
		}
	}
	allowed := r.filter("allowed_tools", of["allowed_tools"], true)
	asks, never := r.approval(of["require_approval"], approves)
	return &server{at: at, label: label, slug: slug, allowed: allowed, approvals: asks, never: never, cache: of["cache_control"]}
}

// filter reads a selection of tools. listed: names are allowed without an object.
func (r *reader) filter(member string, raw json.RawMessage, listed bool) *filter {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var names []string
	var selected map[string]bool
	var readOnly *bool
	var of object
	switch wire.KindOf(raw) {
	case wire.KindArray:
		if !listed || json.Unmarshal(raw, &names) != nil || len(names) > maxNames {
			r.wrong(member, "must be a list of up to 1000 names of tools, or an object with tool_names and read_only")
			return nil
		}
		return &filter{names: set(names)}
	case wire.KindObject:
		_ = json.Unmarshal(raw, &of) // an object
		for name := range of {
			if !slices.Contains(filterMembers, name) {
				r.wrong(member+"."+name, "is not known; use tool_names and read_only")
			}
		}
		if raw := of["tool_names"]; raw != nil {
			if json.Unmarshal(raw, &names) != nil || len(names) > maxNames {
				r.wrong(member+".tool_names", "must be a list of up to 1000 names of tools")
			}
			selected = set(names)
		}
		if raw := of["read_only"]; raw != nil && json.Unmarshal(raw, &readOnly) != nil {
			r.wrong(member+".read_only", "must be a boolean")
		}
		return &filter{selected, readOnly}
	}
	r.wrong(member, "must be a list of up to 1000 names of tools, or an object with tool_names and read_only")
	return nil
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// approval reads which tools need the client's approval, and which of these never do. By default
// none does.
func (r *reader) approval(raw json.RawMessage, approves bool) (asks, never *filter) {
	const member = "require_approval"
	switch {
	case raw == nil || string(raw) == "null" || text(raw) == "never":
	case !approves:
		r.wrong(member, "must be never or omitted: Messages cannot request approval")
	case text(raw) == approvalAlways:
		return new(filter), nil
	case wire.KindOf(raw) == wire.KindObject:
		var of object
		_ = json.Unmarshal(raw, &of) // an object
		for name := range of {
			if !slices.Contains(approvalTimes, name) {
				r.wrong(member+"."+name, "is not known; use always and never")
			}
		}
		asks, never = r.filter(member+".always", of[approvalAlways], false), r.filter(member+".never", of["never"], false)
		if asks == nil && never != nil {
			asks = new(filter)
		}
	default:
		r.wrong(member, "must be always, never, or an object with always and never")
	}
	return asks, never
}

// wantsApproval reports whether a tool call needs the client's approval.
func (s *server) wantsApproval(t *tool) bool {
	return s.approvals != nil && s.approvals.has(t.name, t.readOnly) && (s.never == nil || !s.never.has(t.name, t.readOnly))
}

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

// free returns a name for a tool of a server: its own if possible, else prefixed with the
// server's slug, else with a number appended.
func (n *names) free(s *server, tool string) string {
	first, last := spelled(tool), spelled(s.slug+"_"+tool)
	for _, name := range [...]string{first, last} {
		if n.isFree(name) {
			return name
		}
	}
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
