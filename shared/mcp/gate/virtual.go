package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// virtualServer serves a request to a virtual server. It answers clients of both protocol
// versions and calls its members like a client without a session.
type virtualServer struct {
	state   *requestState
	members []authz.Member
	session *session // of the client; nil if it has none
}

// serveVirtual serves a message to a virtual server.
func serveVirtual(v *requestState) error {
	b := &virtualServer{state: v}
	if v.req.Kind != protocolversion.Stateless {
		if v.req.Method == "initialize" {
			return b.initialize()
		}
		s, done, err := openSession(v)
		if done || err != nil {
			return err
		}
		b.session = s
	}
	if !v.req.IsRequest() {
		sendAccepted(v)
		return nil
	}
	switch v.req.Method {
	case "server/discover":
		if b.session == nil {
			return b.discover()
		}
	case "tools/list":
		return b.list()
	case "tools/call":
		return b.call()
	}
	unknownMethod(v)
	return nil
}

// hello returns the self-description of a virtual server.
func (b *virtualServer) hello() map[string]json.RawMessage {
	of := b.state.facts.Server
	out := map[string]json.RawMessage{"capabilities": json.RawMessage(`{"tools":{}}`)}
	out["serverInfo"], _ = json.Marshal(map[string]string{"name": of.Record.Slug, "title": of.Record.Name, "version": "1"}) // only strings
	if of.Description != "" {
		out["instructions"], _ = json.Marshal(of.Description) // a string
	}
	return out
}

func (b *virtualServer) initialize() error {
	version, ok := negotiatedVersion(b.state)
	if !ok {
		return nil
	}
	s := &session{Version: version, Capabilities: b.state.req.Fields["capabilities"], Client: b.state.req.Fields["clientInfo"], Fingerprint: b.state.facts.Fingerprint(), Expires: b.state.call.Now().Add(sessionLife).Unix()}
	hello := b.hello()
	if b.state.facts.Server.HasSearch() {
		hello["capabilities"] = json.RawMessage(`{"tools":{"listChanged":true}}`) // searches change the list
	}
	return sendInitialized(b.state, &bridge{kind: toStateless}, s, hello)
}

func (b *virtualServer) discover() error {
	hello := b.hello()
	meta, _ := json.Marshal(map[string]json.RawMessage{mcp.MetaServer: hello["serverInfo"]}) // decoded from JSON
	delete(hello, "serverInfo")
	hello["_meta"], hello["resultType"], hello["ttlMs"], hello["cacheScope"] = meta, json.RawMessage(`"complete"`), json.RawMessage("0"), json.RawMessage(`"private"`)
	var err error
	if hello["supportedVersions"], err = json.Marshal(append([]string{protocolversion.Version}, mcp.Versions...)); err != nil {
		return err
	}
	raw, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	sendResult(b.state, raw)
	return nil
}

// loadMembers loads the members that the caller may see.
func (b *virtualServer) loadMembers() (err error) {
	b.members, err = authz.Members(b.state.call.Context, b.state.call.View, b.state.call.Caller, b.state.facts)
	return err
}

// memberRequest returns the state of a request to a member.
func (b *virtualServer) memberRequest(m *authz.Member, c *Call, req *protocolversion.Request) *requestState {
	sub := new(requestState)
	sub.call, sub.host, sub.facts, sub.req, sub.urlElicitation = c, b.state.host, m.Facts, req, b.state.urlElicitation
	sub.trace = b.state.trace
	sub.record = usage.Call{Protocol: b.state.record.Protocol, Gateway: b.state.record.Gateway, Auth: b.state.record.Auth, Scope: b.state.record.Scope, Method: b.state.record.Method, Version: b.state.record.Version, Decision: b.state.record.Decision, Server: m.Facts.Server.Record.ID, Virtual: b.state.facts.Server.Record.ID}
	return sub
}

// call calls a tool at its member. A caller without access gets the same error as for an
// unknown tool.
func (b *virtualServer) call() error {
	name := b.state.req.Text("name")
	if name == "" {
		sendError(b.state, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name a tool, prompt or resource"})
		return nil
	}
	updateRecord(b.state, name)
	if err := b.loadMembers(); err != nil {
		return err
	}
	if b.session != nil {
		b.state.urlElicitation = urlElicitation(b.session.Capabilities) != nil
	} else {
		b.state.urlElicitation = urlElicitation(b.state.req.Meta[mcp.MetaCapabilities]) != nil
	}
	if name == mcp.SearchTool && b.state.facts.Server.HasSearch() {
		return b.search()
	}
	m, tool, decision := b.state.facts.Route(b.members, name)
	if b.state.record.Decision = decision; m == nil {
		sendError(b.state, unknown(b.state, authz.Capability{Type: mcp.Tool, Key: name}))
		return nil
	}
	req := *b.state.req
	req.Fields = maps.Clone(b.state.req.Fields)
	req.Fields["name"], _ = json.Marshal(tool) // a string
	sub := b.memberRequest(m, b.state.call, &req)
	updateRecord(sub, tool)
	if decision != authz.Allowed {
		sendError(sub, unknown(sub, authz.Capability{Type: mcp.Tool, Key: tool}))
		return nil
	}
	if err := callMember(sub, b.session); err != nil {
		sendFailure(sub, err)
	}
	return nil
}

// callMember calls the tool at the member.
func callMember(v *requestState, s *session) error {
	if ok, err := verifyToken(v); !ok || err != nil {
		return err
	}
	w, err := newBridge(v)
	if err != nil {
		return err
	}
	w.chooseWithoutSession()
	if s == nil {
		w.capabilities, w.client = withoutField(v.req.Meta[mcp.MetaCapabilities], "extensions"), v.req.Meta[mcp.MetaClient]
		w.declared = askableCapabilities(v, w.capabilities)
	} else {
		w.client = s.Client
		declare(v, w, s)
	}
	return callCapability(v, w)
}

// Tools that a search returned are part of tools/list for the rest of the session. They are
// stored in a row per session, so that any process can read them. The list of a client without
// a session never changes, as the protocol demands; such clients call what the search returned.

// maxStoredFound is the number of names stored per session; the latest are kept.
const maxStoredFound = 100

// partitionFound is the partition of the rows, with the id of the virtual server.
const partitionFound = "MCP_FOUND"

func (b *virtualServer) foundKey() store.Key {
	sum := sha256.Sum256([]byte(b.state.req.Session)) // the session id is bound to this caller
	return b.state.call.Caller.Scope.Partition(partitionFound, b.state.facts.Server.Record.ID).Key(hex.EncodeToString(sum[:16]))
}

// foundTools returns the names that searches of the session returned. It returns none if they
// cannot be read.
func (b *virtualServer) foundTools() (names []string) {
	if b.session == nil || b.state.call.Usage == nil {
		return nil
	}
	it, ok, err := b.state.call.Usage.Get(b.state.call.Context, b.foundKey(), true)
	if err != nil {
		slog.Warn("reading the tools that a session found failed", "trace_id", b.state.call.TraceID, "server", b.state.facts.Server.Record.ID, "error", err.Error())
	}
	if ok {
		_ = json.Unmarshal(it.Bytes("names"), &names) // written by saveFound
	}
	return names
}

// saveFound stores the tools that a search returned and notifies the client that its list has
// changed. Of two concurrent searches one may be lost from the list.
func (b *virtualServer) saveFound(offers []listedTool) {
	if b.session == nil || b.state.call.Usage == nil || len(offers) == 0 {
		return
	}
	names := b.foundTools()
	added := false
	for i := range offers {
		name := offers[i].name
		added = added || !slices.Contains(names, name)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	if !added {
		return
	}
	for i := range offers {
		names = append(names, offers[i].name)
	}
	names = names[max(0, len(names)-maxStoredFound):]
	raw, _ := json.Marshal(names) // only strings
	row := store.Row{Key: b.foundKey(), Item: store.Item{"org": b.state.call.Caller.Scope.Org, "names": raw}, Expires: time.Unix(b.session.Expires, 0)}
	if err := b.state.call.Usage.Put(b.state.call.Context, row); err != nil {
		slog.Warn("storing the tools that a session found failed", "trace_id", b.state.call.TraceID, "server", b.state.facts.Server.Record.ID, "error", err.Error())
		return
	}
	if b.state.req.Streams && !b.state.call.Buffered {
		b.state.streaming = true
		b.state.call.Pipeline.Event(wire.AppendSSE(nil, "message", []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)), false, nil)
	}
}

// searchable returns the list of a server with search: the search tool, and the tools that the
// session has found and the caller may use.
func (b *virtualServer) searchable(all []listedTool) []listedTool {
	out := []listedTool{{mcp.SearchTool, searchTool}}
	if names := b.foundTools(); len(names) > 0 {
		for _, o := range all {
			if slices.Contains(names, o.name) {
				out = append(out, o)
			}
		}
	}
	return out
}

// Limits of a search.
const (
	maxQuery     = 1000 // characters
	maxFound     = 50
	defaultFound = 10
)

// searchTool is the definition of the search tool.
var searchTool = json.RawMessage(`{"name":"` + mcp.SearchTool + `","title":"Search tools","description":"Finds tools of this server by words in their names and descriptions. The result has complete definitions of tools, which can be called immediately by their names, even if tools/list does not show them.",` +
	`"inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"Words that describe what the tool should do."},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10,"description":"How many tools at most."}},"required":["query"]},` +
	`"outputSchema":{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object"},"description":"Definitions as tools/list shows them, the best first."}},"required":["tools"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)

// search responds with the definitions of the tools that match a query. It counts as a tool
// call of the virtual server.
func (b *virtualServer) search() error {
	query, limit, bad := parseSearch(b.state.req.Fields["arguments"])
	if bad != "" {
		text, _ := json.Marshal(bad) // a string
		sendResult(b.state, b.complete(`{"content":[{"type":"text","text":`+string(text)+`}],"isError":true`))
		return nil
	}
	if err := b.state.call.Pipeline.Count(b.state.facts.Server.Record.Slug, mcp.SearchTool); err != nil {
		return err
	}
	all, gaps := b.tools()
	found := rank(all, query)
	found = found[:min(len(found), limit)]
	raws := make([]json.RawMessage, len(found))
	for i := range found {
		raws[i] = found[i].raw
	}
	structured, err := json.Marshal(map[string]any{"tools": raws})
	if err != nil {
		return err
	}
	text, _ := json.Marshal(string(structured)) // a string
	out := `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + string(structured)
	if len(gaps) > 0 {
		raw, err := json.Marshal(map[string][]missingMember{metaMissing: gaps})
		if err != nil {
			return err
		}
		out += `,"_meta":` + string(raw)
	}
	b.saveFound(found)
	return b.sendWithinLimit(b.complete(out))
}

// complete closes a result object for the client's protocol version.
func (b *virtualServer) complete(result string) []byte {
	if b.state.req.Kind == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	return []byte(result + "}")
}

// parseSearch reads the arguments of a search. bad describes invalid arguments.
func parseSearch(raw json.RawMessage) (query string, limit int, bad string) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil || json.Unmarshal(args["query"], &query) != nil || len(words(query)) == 0 || utf8.RuneCountInString(query) > maxQuery {
		return "", 0, fmt.Sprintf("query must be a text of 1 to %d characters with words in it", maxQuery)
	}
	if limit = defaultFound; args["limit"] != nil && string(args["limit"]) != "null" && (json.Unmarshal(args["limit"], &limit) != nil || limit < 1 || limit > maxFound) {
		return "", 0, fmt.Sprintf("limit must be a whole number from 1 to %d", maxFound)
	}
	return query, limit, ""
}

// words splits a text into lowercase words.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// rank returns the tools that match a query, the best first. Ties keep the order of the list.
func rank(all []listedTool, query string) []listedTool {
	queryWords := words(query)
	slices.Sort(queryWords)
	queryWords = slices.Compact(queryWords)
	type scored struct {
		listedTool
		score int
	}
	var found []scored
	for _, o := range all {
		if n := score(&o, queryWords); n > 0 {
			found = append(found, scored{o, n})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].score > found[j].score })
	out := make([]listedTool, len(found))
	for i := range found {
		out[i] = found[i].listedTool
	}
	return out
}

// score weighs a tool: words in the name count most, and whole words more than parts.
func score(o *listedTool, queryWords []string) (n int) {
	var shape struct{ Title, Description string }
	_ = json.Unmarshal(o.raw, &shape) // an unexpected type counts as empty
	for _, in := range []struct {
		text        string
		whole, part int
	}{{o.name, 8, 4}, {shape.Title, 4, 2}, {shape.Description, 2, 1}} {
		all := words(in.text)
		for _, w := range queryWords {
			switch {
			case slices.Contains(all, w):
				n += in.whole
			case strings.Contains(strings.ToLower(in.text), w):
				n += in.part
			}
		}
	}
	return n
}
