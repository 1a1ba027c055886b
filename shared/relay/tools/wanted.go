package tools

import (
	"bytes"
	"encoding/json"
	"gateway/shared/relay/approval"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
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

// object are the members of a JSON object.
type object = map[string]json.RawMessage

// server is one such tool of a request.
type server struct {
	at      int // among the tools
	label   string
	slug    string
	allowed *filter // nil: all
	asks    *filter // tools that need the client's approval; nil: none
	never   *filter // exceptions that need no approval
	cache   json.RawMessage
	tools   []*tool
}

// filter selects tools: by name, by their read-only hint, or by both.
type filter struct {
	names    map[string]bool // nil: any
	readOnly *bool
}

func (f *filter) has(t *tool) bool {
	return (f.names == nil || f.names[t.name]) && (f.readOnly == nil || t.readOnly == *f.readOnly)
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
		s := r.server(raw, approves)
		s.at = i
		if seen[s.label] {
			r.wrong("server_label", "must be unique: this server is named twice")
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

func (r *reader) server(raw json.RawMessage, approves bool) *server {
	var of object
	_ = json.Unmarshal(raw, &of) // it has been read
	s := &server{label: text(of["server_label"]), cache: of["cache_control"]}
	if s.slug = strings.TrimPrefix(s.label, labelPrefix); s.slug == "" || len(s.label) > maxLabel || strings.ContainsAny(s.slug, "/?#%\x00") {
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
	s.allowed = r.filter("allowed_tools", of["allowed_tools"], true)
	r.approval(s, of["require_approval"], approves)
	return s
}

// filter reads a selection of tools. listed: names are allowed without an object.
func (r *reader) filter(member string, raw json.RawMessage, listed bool) *filter {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var names []string
	f := new(filter)
	var of object
	switch wire.KindOf(raw) {
	case wire.KindArray:
		if !listed || json.Unmarshal(raw, &names) != nil || len(names) > maxNames {
			r.wrong(member, "must be a list of up to 1000 names of tools, or an object with tool_names and read_only")
			return nil
		}
		f.names = set(names)
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
			f.names = set(names)
		}
		if raw := of["read_only"]; raw != nil && json.Unmarshal(raw, &f.readOnly) != nil {
			r.wrong(member+".read_only", "must be a boolean")
		}
	default:
		r.wrong(member, "must be a list of up to 1000 names of tools, or an object with tool_names and read_only")
	}
	return f
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// approval reads when the client's approval is needed. By default it is not.
func (r *reader) approval(s *server, raw json.RawMessage, approves bool) {
	const member = "require_approval"
	switch {
	case raw == nil || string(raw) == "null" || text(raw) == "never":
		return
	case !approves:
		r.wrong(member, "must be never or omitted: Messages cannot request approval")
	case text(raw) == approvalAlways:
		s.asks = new(filter)
	case wire.KindOf(raw) == wire.KindObject:
		var of object
		_ = json.Unmarshal(raw, &of) // an object
		for name := range of {
			if !slices.Contains(approvalTimes, name) {
				r.wrong(member+"."+name, "is not known; use always and never")
			}
		}
		s.asks = r.filter(member+".always", of[approvalAlways], false)
		if s.never = r.filter(member+".never", of["never"], false); s.asks == nil && s.never != nil {
			s.asks = new(filter)
		}
	default:
		r.wrong(member, "must be always, never, or an object with always and never")
	}
}

// wantsApproval reports whether a tool call needs the client's approval.
func (s *server) wantsApproval(t *tool) bool {
	return s.asks != nil && s.asks.has(t) && (s.never == nil || !s.never.has(t))
}
