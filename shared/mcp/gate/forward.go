package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
)

// bridge forwards the requests of a client to the server.
type bridge struct {
	v    *requestState
	peer *peer
	up   *mcp.Upstream
	kind kind
	// Set from the session id, or from the request of a client without a session.
	session      *session
	capabilities json.RawMessage
	client       json.RawMessage
	declared     json.RawMessage // client capabilities that a server with sessions may use to request input
	level        string          // log level that the client of a session set
	pooled       *mcp.Session    // the gateway's session of the last request
	pending      chan readResult // read in progress, or nil
	newSession   string          // session id in the server's response
	sentHeaders  http.Header     // headers of the last request
}

// kind is the kind of a bridge.
type kind uint8

const (
	toStateless kind = iota + 1 // the server is stateless
	toRelayed                   // the client's session is the server's
	toPooled                    // the session with the server belongs to the gateway
	toOldStream                 // one SSE stream for each request
)

// ids are the request ids of pooled sessions.
var ids atomic.Int64

// outgoing is a request to the server.
type outgoing struct {
	req          *protocolversion.Request
	params       map[string]json.RawMessage
	id           json.RawMessage // the id at the server
	headerParams []protocolversion.HeaderParam
}

// send makes the request; the response is read from the exchange.
func (w *bridge) send(ctx context.Context, o *outgoing) (*mcp.Exchange, error) {
	switch w.kind {
	case toStateless:
		o.params = statelessParams(o.params, w.capabilities, w.client, w.level)
		h := statelessHeaders(o.req)
		protocolversion.SetParams(h, o.headerParams, o.params["arguments"])
		return w.post(ctx, h, o)
	case toRelayed:
		return w.post(ctx, w.sessionHeaders(w.session.Upstream, w.session.UpstreamVersion), o)
	case toOldStream:
		return w.throughStream(ctx, o)
	}
	o.id = json.RawMessage(strconv.FormatInt(ids.Add(1), 10))
	for again := false; ; again = true {
		s, err := pooledSession(w.v, ctx, w.peer, w.up, w.declared)
		if err != nil {
			return nil, err
		}
		w.pooled = s
		x, err := w.post(ctx, w.sessionHeaders(s.ID, s.Version), o)
		if err != nil || x.Status != http.StatusNotFound || again {
			return x, err
		}
		x.Close()
		dropEnded(w.v, w.peer, s, w.declared)
	}
}

func (w *bridge) sessionHeaders(id, version string) http.Header {
	h := http.Header{}
	if version != "" {
		h[mcp.HeaderVersion] = []string{version}
	}
	if id != "" {
		h[mcp.HeaderSession] = []string{id}
	}
	return h
}

func (w *bridge) post(ctx context.Context, h http.Header, o *outgoing) (*mcp.Exchange, error) {
	w.sentHeaders = h
	return w.up.Send(ctx, http.MethodPost, h, encode(o.req, o.id, o.params))
}

// throughStream calls a server of the SSE transport in a new session.
func (w *bridge) throughStream(ctx context.Context, o *outgoing) (*mcp.Exchange, error) {
	s, err := w.up.Connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.OnNotification = func(raw []byte) {
		if waits, ok := ctx.(*idleTimeout); ok {
			waits.reset()
		}
		if m, err := parseServerMessage(raw); err == nil {
			w.handleInterim(ctx, m, raw)
		}
	}
	params, err := json.Marshal(o.params)
	if err != nil {
		return nil, err
	}
	if o.params == nil {
		params = nil
	}
	result, err := s.Call(ctx, o.req.Method, params)
	var refused *mcp.Error
	switch {
	case errors.As(err, &refused):
		raw, err := json.Marshal(refused)
		return mcp.SingleMessage(append(append([]byte(`{"jsonrpc":"2.0","id":`+string(o.id)+`,"error":`), raw...), '}')), err
	case err != nil:
		return nil, err
	}
	return mcp.SingleMessage(append(append([]byte(`{"jsonrpc":"2.0","id":`+string(o.id)+`,"result":`), result...), '}')), nil
}

// idleTimeout cancels a context when the server was silent for too long.
type idleTimeout struct {
	context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	limit  time.Duration
}

func withIdleTimeout(ctx context.Context, d time.Duration) *idleTimeout {
	ctx, cancel := context.WithCancel(ctx)
	return &idleTimeout{ctx, cancel, time.AfterFunc(d, cancel), d}
}

func (p *idleTimeout) reset() { p.timer.Reset(p.limit) }

func (p *idleTimeout) stop() { p.timer.Stop(); p.cancel() }

// roundTrip sends a request and returns its result. Earlier messages of the server are
// forwarded to the client. It returns an *mcp.Error for an error of the server and a *heldCall
// if the server waits for input of the client.
func (w *bridge) roundTrip(o *outgoing) (json.RawMessage, error) {
	v := w.v
	base := v.call.Context
	if v.req.Kind == protocolversion.Stateless {
		base = v.call.Request.Context() // a client cancels by closing the stream
	}
	if w.holds() {
		base = context.WithoutCancel(base)
	}
	ctx := withIdleTimeout(base, v.host.Timeout)
	return w.await(ctx, o, func(status *int) (json.RawMessage, int, error) { return w.roundTripOnce(ctx, o, status) })
}

// resumePending reads the result of a held call.
func (w *bridge) resumePending(h *pendingCall) (json.RawMessage, error) {
	h.ctx.reset()
	return w.await(h.ctx, h.out, func(status *int) (json.RawMessage, int, error) {
		*status = h.x.Status
		return w.read(h.ctx, h.out, h.x)
	})
}

// await waits for a result until ctx, the client or the server ends the request.
func (w *bridge) await(ctx *idleTimeout, o *outgoing, wait func(status *int) (json.RawMessage, int, error)) (json.RawMessage, error) {
	v := w.v
	leaves := func() bool { return true }
	if w.holds() {
		leaves = context.AfterFunc(v.call.Request.Context(), ctx.cancel)
	}
	done := cancellable(v, w, ctx.cancel)
	v.call.Pipeline.StartResponse()
	status := 0
	result, down, err := wait(&status)
	v.call.Pipeline.Ended(status)
	v.call.Pipeline.RecordSizes(len(v.call.Body), down)
	done()
	leaves()
	if h := (*pendingCall)(nil); errors.As(err, &h) {
		ctx.timer.Stop()
		return nil, err
	}
	defer ctx.stop()
	if err != nil && ctx.Err() != nil {
		w.cancelUpstream(ctx, o)
		err = upstream.Fail(status, "the server did not respond in time, or the client canceled the request")
	}
	return result, err
}

// unauthorized reports whether a server rejected its credentials.
func unauthorized(x *mcp.Exchange, err error) bool {
	var failed *upstream.Failure
	return x != nil && x.Status == http.StatusUnauthorized || errors.As(err, &failed) && failed.Status == http.StatusUnauthorized
}

func (w *bridge) roundTripOnce(ctx *idleTimeout, o *outgoing, status *int) (_ json.RawMessage, down int, _ error) {
	x, err := w.send(ctx, o)
	if unauthorized(x, err) && refreshCredentials(w.v, w.up) {
		if x != nil {
			x.Close()
		}
		if w.up, err = openUpstream(w.v); err == nil {
			x, err = w.send(ctx, o)
		}
		if unauthorized(x, err) && w.v.facts.Integration.AuthType == mcp.AuthOAuth {
			err = mcp.ErrSignIn
		}
	}
	if err != nil {
		return nil, 0, err
	}
	*status, w.newSession = x.Status, x.Session
	if needsMoreScopes(w.v, x) {
		x.Close()
		return nil, 0, mcp.ErrSignIn
	}
	return w.read(ctx, o, x)
}

// refreshCredentials drops cached credentials that the server rejected. It returns false if
// fetching them again cannot help.
func refreshCredentials(v *requestState, up *mcp.Upstream) bool {
	i := v.facts.Integration
	if i.AuthType == mcp.AuthOAuth {
		renewUserToken(v, up)
		v.record.Refreshed = true
		return true
	}
	if i.AuthType != mcp.AuthClientCredentials && len(i.SecretMappings) == 0 {
		return false
	}
	v.host.opener.EvictToken(i.Record)
	if v.call.Secrets != nil {
		v.call.Secrets.MarkRejected(v.call.Context, v.facts.Server.Record.Scope, i.SecretMappings)
	}
	v.record.Refreshed = true
	return true
}

// headerParams returns the tool arguments that are mirrored in headers, from the latest
// definition of the tool.
func headerParams(v *requestState, p *peer, tool string) ([]protocolversion.HeaderParam, error) {
	p.mu.Lock()
	marks, known := p.marks[tool]
	p.mu.Unlock()
	if known {
		return marks, nil
	}
	c, err := v.facts.Definition(v.call.Context, v.call.View, tool)
	if err != nil || c == nil || !bytes.Contains(c.Shape, []byte(protocolversion.HeaderAnnotation)) {
		return nil, err
	}
	var shape struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(c.Shape, &shape) // an unexpected schema mirrors none
	marks, _ = protocolversion.HeaderParams(shape.Input)
	return marks, nil
}

// authorize reports whether the caller may use a capability, and records the decision.
func authorize(v *requestState, c authz.Capability) bool {
	v.record.Decision = v.facts.Decide(c)
	return v.record.Decision == authz.Allowed
}

// methodCancelled is the notification with which the sender cancels a request.
const methodCancelled = "notifications/cancelled"

// cancelTime is the timeout of that notification.
const cancelTime = time.Second

// cancelUpstream notifies a server with a session that o was canceled. A stateless server sees
// the end of the request.
func (w *bridge) cancelUpstream(ctx context.Context, o *outgoing) {
	if w.kind != toPooled && w.kind != toRelayed || w.sentHeaders == nil {
		return
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": methodCancelled, "params": map[string]any{"requestId": o.id, "reason": "the client has cancelled the request"},
	})
	if err != nil {
		return // the id was decoded from JSON
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	h := w.sentHeaders.Clone()
	h.Del(headerLastEvent)
	if x, err := w.up.Send(within, http.MethodPost, h, body); err == nil { // errors are ignored
		x.Close()
	}
}

// runningKey identifies a request in a session of the gateway.
func runningKey(v *requestState, id json.RawMessage) string {
	return v.req.Session + "\x00" + string(id)
}

// cancellable allows a notification in the same session to cancel a request until done is
// called. In relayed sessions the server receives the notification itself, and clients without
// a session close the stream.
func cancellable(v *requestState, w *bridge, cancel context.CancelFunc) (done func()) {
	if v.req.Kind == protocolversion.Stateless || w.kind == toRelayed || v.req.Session == "" {
		return func() {}
	}
	key := runningKey(v, v.req.ID)
	v.host.running.Store(key, cancel)
	return func() { v.host.running.Delete(key) }
}

// canceled cancels the request that the client's notification names.
func canceled(v *requestState) {
	if v.req.Method != methodCancelled {
		return
	}
	if cancel, ok := v.host.running.Load(runningKey(v, v.req.Fields["requestId"])); ok {
		cancel.(context.CancelFunc)()
	}
}
