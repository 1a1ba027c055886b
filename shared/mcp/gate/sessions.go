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

// sessions serves a client with a session.
func sessions(v *visit) error {
	if v.req.Method == "initialize" {
		return initialize(v)
	}
	s, done, err := resume(v)
	if done || err != nil {
		return err
	}
	v.opens = answerable(s.Abilities) != nil
	w, err := stand(v)
	if err != nil {
		return err
	}
	chooseBridge(v, w, s)
	w.level = v.host.settings.level(sessionKey(v))
	if !v.req.IsRequest() {
		return pass(v, w)
	}
	if _, lists := listed[v.req.Method]; lists {
		err = serveList(v, w)
	} else {
		err = inSession(v, w)
	}
	if errors.Is(err, errSessionOver) {
		return over(v)
	}
	return err
}

// resume finds the session of a request. done: it has been answered.
func resume(v *visit) (s *session, done bool, err error) {
	if v.req.Session == "" {
		refuseAs(v, http.StatusBadRequest, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "mcp-session-id is missing: begin with initialize"})
		return nil, true, nil
	}
	s, ok := sessionOf(v, v.req.Session)
	switch {
	case !ok:
		return nil, true, over(v)
	case v.req.Method == "ping" && v.req.IsRequest():
		sendResult(v, json.RawMessage("{}"))
		return s, true, nil
	case !v.req.IsRequest() && s.Speaks == "":
		cancelled(v)
		answeredQuestion(v)
		accepted(v) // nobody waits for it
		return s, true, nil
	}
	return s, false, nil
}

// over tells the client to begin anew.
func over(v *visit) error {
	return fault.New(fault.NotFound, "mcp-session-id", "The session is over or was never there: begin with initialize")
}

// chooseBridge chooses the bridge for a client with a session.
func chooseBridge(v *visit, w *way, s *session) {
	w.session = s
	w.client = s.Client
	switch modern, _ := w.peer.eras(); {
	case s.Speaks != "":
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

// declare sets what the server is told that the client of a session can be asked.
func declare(v *visit, w *way, s *session) {
	w.carried = askableCapabilities(v, s.Abilities)
	if w.kind != toStateless {
		return
	}
	if w.abilities = w.carried; w.abilities == nil {
		w.abilities = answerable(s.Abilities)
	}
}

// answerable are those abilities of a client that the gateway can use on behalf of a server
// without sessions: it can send the user to an address, and needs nothing back.
func answerable(abilities json.RawMessage) json.RawMessage {
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

// inSession serves the requests that are no lists.
func inSession(v *visit, w *way) error {
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

// negotiatedVersion is that of a session which initialize begins; false where it was refused.
func negotiatedVersion(v *visit) (version string, ok bool) {
	if json.Unmarshal(v.req.Members["protocolVersion"], &version) != nil || !v.req.IsRequest() {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "initialize must be a request, and params.protocolVersion a text"})
		return "", false
	}
	if !slices.Contains(mcp.Versions, version) {
		version = mcp.Versions[0]
	}
	v.note.Version = version
	return version, true
}

// initialize begins a session.
func initialize(v *visit) error {
	version, ok := negotiatedVersion(v)
	if !ok {
		return nil
	}
	v.opens = answerable(v.req.Members["capabilities"]) != nil
	w, err := stand(v)
	if err != nil && (!errors.Is(err, mcp.ErrSignIn) || !v.opens || v.call.Caller.UserID == "") {
		return err
	}
	s := &session{Version: version, Abilities: v.req.Members["capabilities"], Client: v.req.Members["clientInfo"], Print: v.facts.Print(), Expires: v.call.Now().Add(sessionLife).Unix()}
	if err != nil { // the user is sent to sign in by the session's next request
		return begin(v, &way{kind: toPooled}, s, unmet(v))
	}
	var hello map[string]json.RawMessage
	if _, legacy := w.peer.eras(); legacy && w.up.Transport != mcp.TransportSSE {
		hello, err = introduce(v, w, s)
		if w.peer.onlyStateless(err) {
			err = nil
		}
	}
	if err == nil && hello == nil {
		chooseBridge(v, w, s)
		if err = greet(v, w); err == nil {
			_ = json.Unmarshal(w.peer.greeting(), &hello) // another form says nothing
		}
	}
	if err != nil {
		return err
	}
	return begin(v, w, s, hello)
}

// onlyStateless tells whether a server refused to begin a session because it speaks
// without, and notes it. Some servers name versions that they do not serve at this address.
func (p *peer) onlyStateless(err error) bool {
	var failed *upstream.Failure
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.modern || !errors.As(err, &failed) || failed.Status/100 != 4 || failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden {
		return false
	}
	p.known, p.legacy = true, false
	return true
}

// introduce begins the session at the server too, with what the client says of itself.
func introduce(v *visit, w *way, s *session) (hello map[string]json.RawMessage, err error) {
	w.kind, w.session = toRelayed, &session{}
	params := map[string]json.RawMessage{}
	for name, raw := range v.req.Members {
		params[name] = raw
	}
	params["protocolVersion"], _ = json.Marshal(mcp.Versions[0]) // a text
	result, err := w.ask(&outgoing{req: v.req, params: params, id: v.req.ID})
	if err != nil {
		return nil, err
	}
	var said string
	if json.Unmarshal(result, &hello) != nil || json.Unmarshal(hello["protocolVersion"], &said) != nil || said == "" {
		return nil, upstream.Fail(http.StatusOK, "the server's answer to initialize names no version of the protocol")
	}
	s.Speaks, s.Upstream = said, w.given
	return hello, nil
}

// begin answers initialize.
func begin(v *visit, w *way, s *session, hello map[string]json.RawMessage) error {
	id, err := sealValue(v, binding(v, sealSession), s)
	if err != nil {
		return err
	}
	var can map[string]json.RawMessage
	_ = json.Unmarshal(hello["capabilities"], &can) // another form has none
	relayed := w.kind == toRelayed
	told := w.kind == toStateless && !v.call.Buffered
	offer := offered(can, relayed && !v.call.Buffered || told)
	if (relayed || told) && can["logging"] != nil {
		offer["logging"] = can["logging"]
	}
	answer := map[string]any{"protocolVersion": s.Version, "capabilities": offer, "serverInfo": serverInfo(hello, v.facts.Server.Record.Slug)}
	if hello["instructions"] != nil {
		answer["instructions"] = hello["instructions"]
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	v.call.Header()[mcp.HeaderSession] = []string{id}
	sendResult(v, raw)
	return nil
}

// serverInfo is what a server calls itself, in either era's place for it.
func serverInfo(hello map[string]json.RawMessage, slug string) any {
	if hello["serverInfo"] != nil {
		return hello["serverInfo"]
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(hello["_meta"], &meta) // another form says nothing
	if meta[mcp.MetaServer] != nil {
		return meta[mcp.MetaServer]
	}
	return map[string]string{"name": slug, "version": "1"}
}

// pass hands a notification or an answer of the client on.
func pass(v *visit, w *way) error {
	ctx := patient(v.call.Context, v.host.Timeout)
	defer ctx.end()
	x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(w.session.Upstream, w.session.Speaks), spelt(v))
	if err != nil {
		return err
	}
	defer x.Close()
	switch {
	case x.Status == http.StatusNotFound && w.session.Upstream != "":
		return over(v)
	case x.Status/100 != 2:
		return upstream.Fail(x.Status, "the server answers with status %d", x.Status)
	}
	accepted(v)
	return nil
}

// spelt is the client's message with the members that were read and no others.
func spelt(v *visit) []byte {
	if v.req.Method != "" {
		return encode(v.req, nil, v.req.Members)
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), v.req.ID...)
	if v.req.Error != nil {
		raw, _ := json.Marshal(v.req.Error) // was JSON
		return append(append(append(out, `,"error":`...), raw...), '}')
	}
	return append(append(append(out, `,"result":`...), v.req.Result...), '}')
}

// endSession ends a session at the client's word.
func endSession(v *visit) error {
	id := v.call.Request.Header.Get(mcp.HeaderSession)
	if v.call.Request.Header.Get(mcp.HeaderVersion) >= protocolversion.Version || id == "" {
		return only(v, "POST")
	}
	s, ok := sessionOf(v, id)
	if !ok {
		return over(v)
	}
	if s.Upstream == "" {
		return only(v, "POST")
	}
	up, err := openUpstream(v)
	if err != nil {
		return err
	}
	ctx := patient(v.call.Context, v.host.Timeout)
	defer ctx.end()
	w := way{v: v, up: up}
	x, err := up.Send(ctx, http.MethodDelete, w.sessionHeaders(s.Upstream, s.Speaks), nil)
	if err != nil {
		return err
	}
	defer x.Close()
	switch {
	case x.Status == http.StatusNotFound:
		return over(v)
	case x.Status/100 != 2:
		return only(v, "POST")
	}
	v.call.Send(http.StatusNoContent, "", nil, nil)
	return nil
}

// listen holds the stream of what a server says by itself, where it can be held.
func listen(v *visit) error {
	id := v.call.Request.Header.Get(mcp.HeaderSession)
	if v.call.Buffered || v.call.Request.Header.Get(mcp.HeaderVersion) >= protocolversion.Version || id == "" {
		return only(v, "POST")
	}
	s, ok := sessionOf(v, id)
	if !ok {
		return over(v)
	}
	if s.Speaks == "" {
		return feed(v, s)
	}
	return hold(v, s)
}
