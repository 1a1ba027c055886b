package gate

import (
	"encoding/json"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// serveStateless serves a client without a session.
func serveStateless(v *requestState) error {
	if v.req.IsNotification() {
		sendAccepted(v)
		return nil
	}
	_, lists := listMethods[v.req.Method]
	switch v.req.Method {
	case "server/discover", "tools/call", "prompts/get", "resources/read", "completion/complete", methodListen:
	default:
		if !lists {
			unknownMethod(v)
			return nil
		}
	}
	v.urlElicitation = urlElicitation(v.req.Meta[mcp.MetaCapabilities]) != nil
	w, err := newBridge(v)
	if err != nil {
		return err
	}
	w.capabilities, w.client = withoutField(v.req.Meta[mcp.MetaCapabilities], "extensions"), v.req.Meta[mcp.MetaClient]
	w.chooseWithoutSession()
	w.declared = askableCapabilities(v, w.capabilities)
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

// chooseWithoutSession selects the bridge for a client with no session, or with one that is not
// the server's.
func (w *bridge) chooseWithoutSession() {
	switch modern, _ := w.peer.versions(); {
	case modern:
		w.kind = toStateless
	case w.up.Transport == mcp.TransportSSE:
		w.kind = toOldStream
	default:
		w.kind = toPooled
	}
}

// newBridge connects to the server and detects its protocol versions.
func newBridge(v *requestState) (*bridge, error) {
	up, err := openUpstream(v)
	if err != nil {
		return nil, err
	}
	p := peerOf(v)
	err = detectVersions(v, p, up)
	if unauthorized(nil, err) && refreshCredentials(v, up) {
		if up, err = openUpstream(v); err == nil {
			err = detectVersions(v, p, up)
		}
		if unauthorized(nil, err) && v.facts.Integration.AuthType == mcp.AuthOAuth {
			err = mcp.ErrSignIn
		}
	}
	if err != nil {
		return nil, err
	}
	return &bridge{v: v, peer: p, up: up}, nil
}

// withoutField returns an object without a field.
func withoutField(raw json.RawMessage, name string) json.RawMessage {
	if len(raw) <= len("{}") {
		return raw
	}
	members := mcp.Fields(raw)
	if members[name] == nil {
		return raw
	}
	delete(members, name)
	return mcp.AppendFields(nil, members)
}

// discover responds with the server's self-description.
func discover(v *requestState, w *bridge) error {
	if err := fetchHello(v, w); err != nil {
		return err
	}
	var hello map[string]json.RawMessage
	_ = json.Unmarshal(w.peer.description(), &hello) // an unexpected type counts as empty
	answer := map[string]any{
		"resultType": "complete", "supportedVersions": append([]string{protocolversion.Version}, mcp.Versions...),
		"capabilities": offered(w.peer.capabilities(), w.kind == toStateless && !v.call.Buffered), "ttlMs": 0, "cacheScope": "private",
	}
	if age, _ := cacheAge(hello); w.kind == toStateless {
		answer["ttlMs"] = min(age, maxAge).Milliseconds()
	}
	if text := hello["instructions"]; text != nil {
		if text = allowedText(v, text); text != nil {
			answer["instructions"] = text
		}
	}
	meta := map[string]json.RawMessage{}
	_ = json.Unmarshal(hello["_meta"], &meta) // an unexpected type counts as empty
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

// fetchHello ensures that the server's self-description is known.
func fetchHello(v *requestState, w *bridge) error {
	if w.peer.description() != nil {
		return nil
	}
	ctx := withIdleTimeout(v.call.Context, v.host.Timeout)
	defer ctx.stop()
	if w.kind != toOldStream {
		_, err := pooledSession(v, ctx, w.peer, w.up, nil)
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

// description returns the server's self-description, or nil if it is not known.
func (p *peer) description() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello
}

// offered returns the server capabilities that clients see. held states whether notification
// streams are supported.
func offered(of map[string]json.RawMessage, held bool) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range []string{"tools", "prompts", "resources", "completions"} {
		raw := of[name]
		if raw == nil {
			continue
		}
		if !held {
			raw = withoutField(withoutField(raw, "subscribe"), "listChanged")
		}
		out[name] = raw
	}
	return out
}
