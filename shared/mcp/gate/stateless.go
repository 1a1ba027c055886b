package gate

import (
	"encoding/json"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// stateless serves a client without session.
func stateless(v *visit) error {
	if v.req.IsNotification() {
		accepted(v)
		return nil
	}
	_, lists := listed[v.req.Method]
	switch v.req.Method {
	case "server/discover", "tools/call", "prompts/get", "resources/read", "completion/complete", methodListen:
	default:
		if !lists {
			unknownMethod(v)
			return nil
		}
	}
	v.opens = answerable(v.req.Meta[mcp.MetaAbilities]) != nil
	w, err := stand(v)
	if err != nil {
		return err
	}
	w.abilities, w.client = without(v.req.Meta[mcp.MetaAbilities], "extensions"), v.req.Meta[mcp.MetaClient]
	w.plain()
	w.carried = askableCapabilities(v, w.abilities)
	switch {
	case lists:
		return serveList(v, w)
	case v.req.Method == "server/discover":
		return discover(v, w)
	case v.req.Method == methodListen:
		return subscribe(v, w)
	}
	return callCapability(v, w)
}

// plain chooses the bridge for a client whose session, if it has one, is not the server's.
func (w *way) plain() {
	switch modern, _ := w.peer.eras(); {
	case modern:
		w.kind = toStateless
	case w.up.Transport == mcp.TransportSSE:
		w.kind = toOldStream
	default:
		w.kind = toPooled
	}
}

// stand finds the server and what is known of it.
func stand(v *visit) (*way, error) {
	up, err := openUpstream(v)
	if err != nil {
		return nil, err
	}
	p := peerOf(v)
	err = learn(v, p, up)
	if unauthorized(nil, err) && renew(v, up) {
		if up, err = openUpstream(v); err == nil {
			err = learn(v, p, up)
		}
		if unauthorized(nil, err) && v.facts.Integration.AuthType == mcp.AuthOAuth {
			err = mcp.ErrSignIn
		}
	}
	if err != nil {
		return nil, err
	}
	return &way{v: v, peer: p, up: up}, nil
}

// without gives an object without a member.
func without(raw json.RawMessage, name string) json.RawMessage {
	if len(raw) <= len("{}") {
		return raw
	}
	members := mcp.Members(raw)
	if members[name] == nil {
		return raw
	}
	delete(members, name)
	return mcp.AppendMembers(nil, members)
}

// discover tells what the server can do here.
func discover(v *visit, w *way) error {
	if err := greet(v, w); err != nil {
		return err
	}
	var hello map[string]json.RawMessage
	_ = json.Unmarshal(w.peer.greeting(), &hello) // another form says nothing
	answer := map[string]any{
		"resultType": "complete", "supportedVersions": append([]string{protocolversion.Version}, mcp.Versions...),
		"capabilities": offered(w.peer.capabilities(), w.kind == toStateless && !v.call.Buffered), "ttlMs": 0, "cacheScope": "private",
	}
	if age, _ := ageOf(hello); w.kind == toStateless {
		answer["ttlMs"] = min(age, maxAge).Milliseconds()
	}
	if hello["instructions"] != nil {
		answer["instructions"] = hello["instructions"]
	}
	meta := map[string]json.RawMessage{}
	_ = json.Unmarshal(hello["_meta"], &meta) // likewise
	if hello["serverInfo"] != nil {
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
		meta[mcp.MetaServer] = hello["serverInfo"]
	}
	if len(meta) > 0 {
		answer["_meta"] = meta
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	sendResult(v, raw)
	return nil
}

// greet makes sure that the server has said what it is.
func greet(v *visit, w *way) error {
	if w.peer.greeting() != nil {
		return nil
	}
	ctx := patient(v.call.Context, v.host.Timeout)
	defer ctx.end()
	if w.kind != toOldStream {
		_, err := pooled(v, ctx, w.peer, w.up, nil)
		return err
	}
	s, err := w.up.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	w.peer.mu.Lock()
	defer w.peer.mu.Unlock()
	w.peer.hello = s.Hello
	return nil
}

// greeting is what the server said of itself; nil where it was not asked yet.
func (p *peer) greeting() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello
}

// offered are the abilities that clients are told the server has: those that it names, as
// far as they are carried. held: streams for the server's own messages are held.
func offered(of map[string]json.RawMessage, held bool) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range []string{"tools", "prompts", "resources", "completions"} {
		raw := of[name]
		if raw == nil {
			continue
		}
		if !held {
			raw = without(without(raw, "subscribe"), "listChanged")
		}
		out[name] = raw
	}
	return out
}
