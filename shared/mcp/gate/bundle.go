package gate

import (
	"encoding/json"
	"maps"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/usage"
)

// bundle is a visit to a virtual server, which is a bundle of tools of other servers. It
// answers clients of both eras itself, and calls its members as for a client without a
// session.
type bundle struct {
	visit   *visit
	members []authz.Member
	session *session // of the client; nil: it has none
}

// virtual answers a message to a virtual server.
func virtual(v *visit) error {
	b := &bundle{visit: v}
	if v.req.Era != protocolversion.Stateless {
		if v.req.Method == "initialize" {
			return b.initialize()
		}
		s, done, err := resume(v)
		if done || err != nil {
			return err
		}
		b.session = s
	}
	if !v.req.IsRequest() {
		accepted(v)
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

// hello is what a virtual server says of itself.
func (b *bundle) hello() map[string]json.RawMessage {
	of := b.visit.facts.Server
	out := map[string]json.RawMessage{"capabilities": json.RawMessage(`{"tools":{}}`)}
	out["serverInfo"], _ = json.Marshal(map[string]string{"name": of.Record.Slug, "title": of.Record.Name, "version": "1"}) // texts
	if of.Description != "" {
		out["instructions"], _ = json.Marshal(of.Description) // a text
	}
	return out
}

func (b *bundle) initialize() error {
	version, ok := negotiatedVersion(b.visit)
	if !ok {
		return nil
	}
	s := &session{Version: version, Abilities: b.visit.req.Members["capabilities"], Client: b.visit.req.Members["clientInfo"], Print: b.visit.facts.Print(), Expires: b.visit.call.Now().Add(sessionLife).Unix()}
	hello := b.hello()
	if b.visit.facts.Server.Searches() {
		hello["capabilities"] = json.RawMessage(`{"tools":{"listChanged":true}}`) // by what is found
	}
	return begin(b.visit, &way{kind: toStateless}, s, hello)
}

func (b *bundle) discover() error {
	hello := b.hello()
	meta, _ := json.Marshal(map[string]json.RawMessage{mcp.MetaServer: hello["serverInfo"]}) // raw members that were JSON
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
	sendResult(b.visit, raw)
	return nil
}

// load finds the members, once.
func (b *bundle) load() (err error) {
	b.members, err = authz.Members(b.visit.call.Context, b.visit.call.View, b.visit.call.Caller, b.visit.facts)
	return err
}

// to is a visit to a member that takes the place of this one.
func (b *bundle) to(m *authz.Member, c *Call, req *protocolversion.Request) *visit {
	sub := new(visit)
	sub.call, sub.host, sub.facts, sub.req, sub.opens = c, b.visit.host, m.Facts, req, b.visit.opens
	sub.trace = b.visit.trace
	sub.note = usage.Call{Protocol: b.visit.note.Protocol, Gateway: b.visit.note.Gateway, Auth: b.visit.note.Auth, Scope: b.visit.note.Scope, Method: b.visit.note.Method, Version: b.visit.note.Version, Decision: b.visit.note.Decision, Server: m.Facts.Server.Record.ID, Virtual: b.visit.facts.Server.Record.ID}
	return sub
}

// call calls a tool at the member that has it, by its name there. To a caller who may not
// use it, the tool is unknown, whatever the reason.
func (b *bundle) call() error {
	name := b.visit.req.Text("name")
	if name == "" {
		wrong(b.visit, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name what is asked for"})
		return nil
	}
	noted(b.visit, name)
	if err := b.load(); err != nil {
		return err
	}
	if b.session != nil {
		b.visit.opens = answerable(b.session.Abilities) != nil
	} else {
		b.visit.opens = answerable(b.visit.req.Meta[mcp.MetaAbilities]) != nil
	}
	if name == mcp.SearchTool && b.visit.facts.Server.Searches() {
		return b.search()
	}
	m, tool, decision := b.visit.facts.Route(b.members, name)
	if b.visit.note.Decision = decision; m == nil {
		wrong(b.visit, unknown(b.visit, authz.Capability{Type: mcp.Tool, Key: name}))
		return nil
	}
	req := *b.visit.req
	req.Members = maps.Clone(b.visit.req.Members)
	req.Members["name"], _ = json.Marshal(tool) // a text
	sub := b.to(m, b.visit.call, &req)
	noted(sub, tool)
	if decision != authz.Allowed {
		wrong(sub, unknown(sub, authz.Capability{Type: mcp.Tool, Key: tool}))
		return nil
	}
	if err := calledFor(sub, b.session); err != nil {
		fail(sub, err)
	}
	return nil
}

// calledFor makes the call of a virtual server's client at the member.
func calledFor(v *visit, s *session) error {
	if ok, err := proven(v); !ok || err != nil {
		return err
	}
	w, err := stand(v)
	if err != nil {
		return err
	}
	w.plain()
	if s == nil {
		w.abilities, w.client = without(v.req.Meta[mcp.MetaAbilities], "extensions"), v.req.Meta[mcp.MetaClient]
		w.carried = askableCapabilities(v, w.abilities)
	} else {
		w.client = s.Client
		declare(v, w, s)
	}
	return callCapability(v, w)
}
