package gate

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
)

// serveSession serves a client with a session.
func serveSession(v *requestState) error {
	if v.req.Method == "initialize" {
		return initialize(v)
	}
	s, done, err := openSession(v)
	if done || err != nil {
		return err
	}
	v.urlElicitation = urlElicitation(s.Capabilities) != nil
	w, err := newBridge(v)
	if err != nil {
		return err
	}
	chooseBridge(v, w, s)
	w.level = v.host.settings.level(sessionKey(v))
	if !v.req.IsRequest() {
		return forwardMessage(v, w)
	}
	if _, lists := listMethods[v.req.Method]; lists {
		err = serveList(v, w)
	} else {
		err = serveInSession(v, w)
	}
	if errors.Is(err, errSessionEnded) {
		return sessionEnded(v)
	}
	return err
}

// openSession opens the session of a request. done is set if a response was sent.
func openSession(v *requestState) (s *session, done bool, err error) {
	if v.req.Session == "" {
		sendErrorStatus(v, http.StatusBadRequest, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "mcp-session-id is missing: begin with initialize"})
		return nil, true, nil
	}
	s, ok := sessionOf(v, v.req.Session)
	switch {
	case !ok:
		return nil, true, sessionEnded(v)
	case v.req.Method == "ping" && v.req.IsRequest():
		sendResult(v, json.RawMessage("{}"))
		return s, true, nil
	case !v.req.IsRequest() && s.UpstreamVersion == "":
		canceled(v)
		deliverResponse(v)
		sendAccepted(v) // no server waits for it
		return s, true, nil
	}
	return s, false, nil
}

// sessionEnded returns the fault that makes the client initialize again.
func sessionEnded(v *requestState) error {
	return fault.New(fault.NotFound, "mcp-session-id", "The session has ended or does not exist: begin with initialize")
}

// chooseBridge selects the bridge for a client with a session.
func chooseBridge(v *requestState, w *bridge, s *session) {
	w.session = s
	w.client = s.Client
	switch modern, _ := w.peer.versions(); {
	case s.UpstreamVersion != "":
		w.kind = toRelayed
	case modern:
		w.kind = toStateless
	case w.up.Transport == mcp.TransportSSE:
		w.kind = toOldStream
	default:
		w.kind = toPooled
	}
	declare(v, w, s)
}

// declare sets the client capabilities that the server sees.
func declare(v *requestState, w *bridge, s *session) {
	w.declared = askableCapabilities(v, s.Capabilities)
	if w.kind != toStateless {
		return
	}
	if w.capabilities = w.declared; w.capabilities == nil {
		w.capabilities = urlElicitation(s.Capabilities)
	}
}

// urlElicitation returns the client capability that the gateway can use for a stateless server:
// opening an address, which needs no response.
func urlElicitation(abilities json.RawMessage) json.RawMessage {
	if len(abilities) <= len("{}") {
		return nil
	}
	var has struct {
		Elicitation struct {
			URL json.RawMessage `json:"url"`
		} `json:"elicitation"`
	}
	if json.Unmarshal(abilities, &has) == nil && has.Elicitation.URL != nil {
		return json.RawMessage(`{"elicitation":{"url":{}}}`)
	}
	return nil
}

// serveInSession serves requests other than lists.
func serveInSession(v *requestState, w *bridge) error {
	switch v.req.Method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
		return callCapability(v, w)
	case "resources/subscribe", "resources/unsubscribe", "logging/setLevel":
		switch {
		case w.kind == toRelayed && (!v.call.Buffered || v.req.Method == "logging/setLevel"):
			return callCapability(v, w)
		case w.kind == toStateless && !v.call.Buffered:
			return set(v, w)
		}
	}
	unknownMethod(v)
	return nil
}

// negotiatedVersion returns the version of a session. ok is false if a response was sent.
func negotiatedVersion(v *requestState) (version string, ok bool) {
	if json.Unmarshal(v.req.Fields["protocolVersion"], &version) != nil || !v.req.IsRequest() {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "initialize must be a request, and params.protocolVersion a text"})
		return "", false
	}
	if !slices.Contains(mcp.Versions, version) {
		version = mcp.Versions[0]
	}
	v.record.Version = version
	return version, true
}

// initialize begins a session.
func initialize(v *requestState) error {
	version, ok := negotiatedVersion(v)
	if !ok {
		return nil
	}
	v.urlElicitation = urlElicitation(v.req.Fields["capabilities"]) != nil
	w, err := newBridge(v)
	if err != nil && (!errors.Is(err, mcp.ErrSignIn) || !v.urlElicitation || v.call.Caller.UserID == "") {
		return err
	}
	s := &session{Version: version, Capabilities: v.req.Fields["capabilities"], Client: v.req.Fields["clientInfo"], Fingerprint: v.facts.Fingerprint(), Expires: v.call.Now().Add(sessionLife).Unix()}
	if err != nil { // the next request of the session asks the user to sign in
		return sendInitialized(v, &bridge{kind: toPooled}, s, syncedHello(v))
	}
	var hello map[string]json.RawMessage
	if _, legacy := w.peer.versions(); legacy && w.up.Transport != mcp.TransportSSE {
		hello, err = beginUpstreamSession(v, w, s)
		if w.peer.onlyStateless(err) {
			err = nil
		}
	}
	if err == nil && hello == nil {
		chooseBridge(v, w, s)
		if err = fetchHello(v, w); err == nil {
			_ = json.Unmarshal(w.peer.description(), &hello) // an unexpected type counts as empty
		}
	}
	if err != nil {
		return err
	}
	return sendInitialized(v, w, s, hello)
}

// onlyStateless reports whether a server rejected a session because it is stateless, and
// records it. Some servers list versions that they do not serve at this address.
func (p *peer) onlyStateless(err error) bool {
	var failed *upstream.Failure
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stateless || !errors.As(err, &failed) || failed.Status/100 != 4 || failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden {
		return false
	}
	p.known, p.sessioned = true, false
	return true
}

// beginUpstreamSession begins the session at the server with the client's params.
func beginUpstreamSession(v *requestState, w *bridge, s *session) (hello map[string]json.RawMessage, err error) {
	w.kind, w.session = toRelayed, &session{}
	params := map[string]json.RawMessage{}
	for name, raw := range v.req.Fields {
		params[name] = raw
	}
	params["protocolVersion"], _ = json.Marshal(mcp.Versions[0]) // a string
	result, err := w.roundTrip(&outgoing{req: v.req, params: params, id: v.req.ID})
	if err != nil {
		return nil, err
	}
	var version string
	if json.Unmarshal(result, &hello) != nil || json.Unmarshal(hello["protocolVersion"], &version) != nil || version == "" {
		return nil, upstream.Fail(http.StatusOK, "the server's response to initialize has no protocolVersion")
	}
	s.UpstreamVersion, s.Upstream = version, w.newSession
	return hello, nil
}

// sendInitialized responds to initialize.
func sendInitialized(v *requestState, w *bridge, s *session, hello map[string]json.RawMessage) error {
	id, err := sealValue(v, binding(v, sealSession), s)
	if err != nil {
		return err
	}
	var can map[string]json.RawMessage
	_ = json.Unmarshal(hello["capabilities"], &can) // an unexpected type counts as empty
	relayed := w.kind == toRelayed
	notifies := w.kind == toStateless && !v.call.Buffered
	offer := offered(can, relayed && !v.call.Buffered || notifies)
	if (relayed || notifies) && can["logging"] != nil {
		offer["logging"] = can["logging"]
	}
	answer := map[string]any{"protocolVersion": s.Version, "capabilities": offer, "serverInfo": serverInfo(hello, v.facts.Server.Record.Slug)}
	if text := hello["instructions"]; text != nil {
		if text = allowedText(v, text); text != nil {
			answer["instructions"] = text
		}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	v.call.Pipeline.Header()[mcp.HeaderSession] = []string{id}
	sendResult(v, raw)
	return nil
}

// serverInfo returns the Implementation object of a server, from the place that its protocol
// version uses.
func serverInfo(hello map[string]json.RawMessage, slug string) any {
	if hello["serverInfo"] != nil {
		return hello["serverInfo"]
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(hello["_meta"], &meta) // an unexpected type counts as empty
	if meta[mcp.MetaServer] != nil {
		return meta[mcp.MetaServer]
	}
	return map[string]string{"name": slug, "version": "1"}
}

// forwardMessage forwards a notification or a response of the client.
func forwardMessage(v *requestState, w *bridge) error {
	if !judgeClientMessage(v) {
		sendAccepted(v)
		return nil
	}
	ctx := withIdleTimeout(v.call.Context, v.host.Timeout)
	defer ctx.stop()
	x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(w.session.Upstream, w.session.UpstreamVersion), encodeMessage(v))
	if err != nil {
		return err
	}
	defer x.Close()
	switch {
	case x.Status == http.StatusNotFound && w.session.Upstream != "":
		return sessionEnded(v)
	case x.Status/100 != 2:
		return upstream.Fail(x.Status, "the server responded with status %d", x.Status)
	}
	sendAccepted(v)
	return nil
}

// encodeMessage encodes the client's message with only the fields that were read.
func encodeMessage(v *requestState) []byte {
	if v.req.Method != "" {
		return encode(v.req, nil, v.req.Fields)
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), v.req.ID...)
	if v.req.Error != nil {
		raw, _ := json.Marshal(v.req.Error) // decoded from JSON
		return append(append(append(out, `,"error":`...), raw...), '}')
	}
	return append(append(append(out, `,"result":`...), v.req.Result...), '}')
}

// endSession ends a session at the client's request.
func endSession(v *requestState) error {
	id := v.call.Request.Header.Get(mcp.HeaderSession)
	if v.call.Request.Header.Get(mcp.HeaderVersion) >= protocolversion.Version || id == "" {
		return methodNotAllowed(v, "POST")
	}
	s, ok := sessionOf(v, id)
	if !ok {
		return sessionEnded(v)
	}
	if s.Upstream == "" {
		return methodNotAllowed(v, "POST")
	}
	up, err := openUpstream(v)
	if err != nil {
		return err
	}
	ctx := withIdleTimeout(v.call.Context, v.host.Timeout)
	defer ctx.stop()
	w := bridge{v: v, up: up}
	x, err := up.Send(ctx, http.MethodDelete, w.sessionHeaders(s.Upstream, s.UpstreamVersion), nil)
	if err != nil {
		return err
	}
	defer x.Close()
	switch {
	case x.Status == http.StatusNotFound:
		return sessionEnded(v)
	case x.Status/100 != 2:
		return methodNotAllowed(v, "POST")
	}
	v.call.Pipeline.Send(http.StatusNoContent, "", nil, nil)
	return nil
}

// serveGet serves the notification stream of a session, if streams are supported.
func serveGet(v *requestState) error {
	id := v.call.Request.Header.Get(mcp.HeaderSession)
	if v.call.Buffered || v.call.Request.Header.Get(mcp.HeaderVersion) >= protocolversion.Version || id == "" {
		return methodNotAllowed(v, "POST")
	}
	s, ok := sessionOf(v, id)
	if !ok {
		return sessionEnded(v)
	}
	if s.UpstreamVersion == "" {
		return serveListChanges(v, s)
	}
	return relayStream(v, s)
}
