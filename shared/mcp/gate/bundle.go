package gate

import (
	"encoding/json"
	"maps"

	"gateway/shared/mcp"
	"gateway/shared/mcp/entitled"
	"gateway/shared/mcp/era"
	"gateway/shared/usage"
)

// bundle is a visit to a virtual server, which is a bundle of tools of other servers. It
// answers clients of both eras itself, and calls its members as for a client without a
// session.
type bundle struct {
	*visit
	members []entitled.Member
	session *session // of the client; nil: it has none
}

// virtual answers a message to a virtual server.
func (v *visit) virtual() error {
	b := &bundle{visit: v}
	if v.req.Era != era.Stateless {
		if v.req.Method == "initialize" {
			return b.initialize()
		}
		s, done, err := v.resume()
		if done || err != nil {
			return err
		}
		b.session = s
	}
	if !v.req.IsRequest() {
		v.accepted()
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
	v.unknownMethod()
	return nil
}

// hello is what a virtual server says of itself.
func (b *bundle) hello() map[string]json.RawMessage {
	of := b.facts.Server
	out := map[string]json.RawMessage{"capabilities": json.RawMessage(`{"tools":{}}`)}
	out["serverInfo"], _ = json.Marshal(map[string]string{"name": of.Record.Slug, "title": of.Record.Name, "version": "1"}) // texts
	if of.Description != "" {
		out["instructions"], _ = json.Marshal(of.Description) // a text
	}
	return out
}

func (b *bundle) initialize() error {
	version, ok := b.version()
	if !ok {
		return nil
	}
	s := &session{Version: version, Abilities: b.req.Members["capabilities"], Client: b.req.Members["clientInfo"], Print: b.facts.Print(), Expires: b.Now().Add(sessionLife).Unix()}
	hello := b.hello()
	if b.facts.Server.Searches() {
		hello["capabilities"] = json.RawMessage(`{"tools":{"listChanged":true}}`) // by what is found
	}
	return b.begin(&way{kind: toStateless}, s, hello)
}

func (b *bundle) discover() error {
	hello := b.hello()
	meta, _ := json.Marshal(map[string]json.RawMessage{mcp.MetaServer: hello["serverInfo"]}) // raw members that were JSON
	delete(hello, "serverInfo")
	hello["_meta"], hello["resultType"], hello["ttlMs"], hello["cacheScope"] = meta, json.RawMessage(`"complete"`), json.RawMessage("0"), json.RawMessage(`"private"`)
	var err error
	if hello["supportedVersions"], err = json.Marshal(append([]string{era.Version}, mcp.Versions...)); err != nil {
		return err
	}
	raw, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	b.result(raw)
	return nil
}

// load finds the members, once.
func (b *bundle) load() (err error) {
	b.members, err = entitled.Members(b.Context, b.View, b.Caller, b.facts)
	return err
}

// to is a visit to a member that takes the place of this one.
func (b *bundle) to(m *entitled.Member, c *Call, req *era.Request) *visit {
	sub := new(visit)
	sub.Call, sub.host, sub.facts, sub.req, sub.opens = c, b.host, m.Facts, req, b.opens
	sub.trace = b.trace
	sub.note = usage.Call{Protocol: b.note.Protocol, Gateway: b.note.Gateway, Auth: b.note.Auth, Scope: b.note.Scope, Method: b.note.Method, Version: b.note.Version, Decision: b.note.Decision, Server: m.Facts.Server.Record.ID, Virtual: b.facts.Server.Record.ID}
	return sub
}

// call calls a tool at the member that has it, by its name there. To a caller who may not
// use it, the tool is unknown, whatever the reason.
func (b *bundle) call() error {
	name := b.req.Text("name")
	if name == "" {
		b.wrong(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name what is asked for"})
		return nil
	}
	b.noted(name)
	if err := b.load(); err != nil {
		return err
	}
	if b.session != nil {
		b.opens = answerable(b.session.Abilities) != nil
	} else {
		b.opens = answerable(b.req.Meta[mcp.MetaAbilities]) != nil
	}
	if name == mcp.SearchTool && b.facts.Server.Searches() {
		return b.search()
	}
	m, tool, decision := b.facts.Route(b.members, name)
	if b.note.Decision = decision; m == nil {
		b.wrong(b.unknown(entitled.Capability{Type: mcp.Tool, Key: name}))
		return nil
	}
	req := *b.req
	req.Members = maps.Clone(b.req.Members)
	req.Members["name"], _ = json.Marshal(tool) // a text
	sub := b.to(m, b.Call, &req)
	sub.noted(tool)
	if decision != entitled.Allowed {
		sub.wrong(sub.unknown(entitled.Capability{Type: mcp.Tool, Key: tool}))
		return nil
	}
	if err := sub.calledFor(b.session); err != nil {
		sub.fail(err)
	}
	return nil
}

// calledFor makes the call of a virtual server's client at the member.
func (v *visit) calledFor(s *session) error {
	if ok, err := v.proven(); !ok || err != nil {
		return err
	}
	w, err := v.stand()
	if err != nil {
		return err
	}
	w.plain()
	if s == nil {
		w.abilities, w.client = without(v.req.Meta[mcp.MetaAbilities], "extensions"), v.req.Meta[mcp.MetaClient]
		w.carried = v.carried(w.abilities)
	} else {
		w.client = s.Client
		v.declare(w, s)
	}
	return v.call(w)
}
