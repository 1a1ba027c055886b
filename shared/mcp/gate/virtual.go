package gate

import (
	"encoding/json"
	"maps"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/usage"
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
	if v.req.Era != protocolversion.Stateless {
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
