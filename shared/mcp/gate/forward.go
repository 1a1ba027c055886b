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

// way is how requests of a visit reach the server.
type way struct {
	v    *visit
	peer *peer
	up   *mcp.Upstream
	kind kind
	// Of a client with a session: what its id says; of the others what the request says.
	session   *session
	abilities json.RawMessage
	client    json.RawMessage
	carried   json.RawMessage // capabilities of the client under which a server with sessions may ask it something
	level     string          // of log messages that the client of a session wants; "": it set none
	pool      *mcp.Session    // the gateway's own session that the last request was made in
	reading   chan arrived    // the message of the exchange that is read; nil: none is
	given     string          // session id that the server gave with its answer
	sent      http.Header     // of the last request
}

// kind is which of the bridges is taken.
type kind uint8

const (
	toStateless kind = iota + 1 // the server speaks without sessions
	toRelayed                   // the client's session is the server's
	toPooled                    // the session with the server is the gateway's own
	toOldStream                 // a stream of the old transport for each request
)

// ids are those of requests in pooled sessions.
var ids atomic.Int64

// outgoing is a request on the way to the server.
type outgoing struct {
	req    *protocolversion.Request
	params map[string]json.RawMessage
	id     json.RawMessage // towards the server
	marks  []protocolversion.Mark
}

// send makes the request; the answer is read from the exchange.
func (w *way) send(ctx context.Context, o *outgoing) (*mcp.Exchange, error) {
	switch w.kind {
	case toStateless:
		o.params = statelessParams(o.params, w.abilities, w.client, w.level)
		h := statelessHeaders(o.req)
		protocolversion.SetParams(h, o.marks, o.params["arguments"])
		return w.post(ctx, h, o)
	case toRelayed:
		return w.post(ctx, w.sessionHeaders(w.session.Upstream, w.session.Speaks), o)
	case toOldStream:
		return w.throughStream(ctx, o)
	}
	o.id = json.RawMessage(strconv.FormatInt(ids.Add(1), 10))
	for again := false; ; again = true {
		s, err := pooled(w.v, ctx, w.peer, w.up, w.carried)
		if err != nil {
			return nil, err
		}
		w.pool = s
		x, err := w.post(ctx, w.sessionHeaders(s.ID, s.Version), o)
		if err != nil || x.Status != http.StatusNotFound || again {
			return x, err
		}
		x.Close()
		dropEnded(w.v, w.peer, s, w.carried)
	}
}

func (w *way) sessionHeaders(id, version string) http.Header {
	h := http.Header{}
	if version != "" {
		h[mcp.HeaderVersion] = []string{version}
	}
	if id != "" {
		h[mcp.HeaderSession] = []string{id}
	}
	return h
}

func (w *way) post(ctx context.Context, h http.Header, o *outgoing) (*mcp.Exchange, error) {
	w.sent = h
	return w.up.Send(ctx, http.MethodPost, h, encode(o.req, o.id, o.params))
}

// throughStream asks a server of the old transport, in a session of this request's own.
func (w *way) throughStream(ctx context.Context, o *outgoing) (*mcp.Exchange, error) {
	s, err := w.up.Connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.Heard = func(raw []byte) {
		if waits, ok := ctx.(*patience); ok {
			waits.heard()
		}
		if m, err := readSaid(raw); err == nil {
			w.beforehand(ctx, m, raw)
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
		return mcp.Said(append(append([]byte(`{"jsonrpc":"2.0","id":`+string(o.id)+`,"error":`), raw...), '}')), err
	case err != nil:
		return nil, err
	}
	return mcp.Said(append(append([]byte(`{"jsonrpc":"2.0","id":`+string(o.id)+`,"result":`), result...), '}')), nil
}

// patience ends a context when the server has been silent for too long.
type patience struct {
	context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	long   time.Duration
}

func patient(ctx context.Context, d time.Duration) *patience {
	ctx, cancel := context.WithCancel(ctx)
	return &patience{ctx, cancel, time.AfterFunc(d, cancel), d}
}

func (p *patience) heard() { p.timer.Reset(p.long) }

func (p *patience) end() { p.timer.Stop(); p.cancel() }

// ask sends a request and gives its result. What the server says before it goes to the
// client as it comes. A refusal of the server is an *mcp.Error; a *held means that the
// server waits for answers of the client.
func (w *way) ask(o *outgoing) (json.RawMessage, error) {
	v := w.v
	base := v.call.Context
	if v.req.Era == protocolversion.Stateless {
		base = v.call.Request.Context() // who closes the stream wants no answer
	}
	if w.holds() {
		base = context.WithoutCancel(base)
	}
	ctx := patient(base, v.host.Timeout)
	return w.under(ctx, o, func(status *int) (json.RawMessage, int, error) { return w.exchange(ctx, o, status) })
}

// goOn reads the result of a call that was held.
func (w *way) goOn(h *held) (json.RawMessage, error) {
	h.ctx.heard()
	return w.under(h.ctx, h.out, func(status *int) (json.RawMessage, int, error) {
		*status = h.x.Status
		return w.read(h.ctx, h.out, h.x)
	})
}

// under waits for a result as long as ctx, the client and the server allow.
func (w *way) under(ctx *patience, o *outgoing, wait func(status *int) (json.RawMessage, int, error)) (json.RawMessage, error) {
	v := w.v
	leaves := func() bool { return true }
	if w.holds() {
		leaves = context.AfterFunc(v.call.Request.Context(), ctx.cancel)
	}
	done := cancellable(v, w, ctx.cancel)
	v.call.Began()
	status := 0
	result, down, err := wait(&status)
	v.call.Ended(status)
	v.call.Used(len(v.call.Body), down)
	done()
	leaves()
	if h := (*held)(nil); errors.As(err, &h) {
		ctx.timer.Stop()
		return nil, err
	}
	defer ctx.end()
	if err != nil && ctx.Err() != nil {
		w.cancelUpstream(ctx, o)
		err = upstream.Fail(status, "the server did not answer in time, or the client has cancelled the request")
	}
	return result, err
}

// unauthorized tells whether a server refuses the credentials that it was sent.
func unauthorized(x *mcp.Exchange, err error) bool {
	var failed *upstream.Failure
	return x != nil && x.Status == http.StatusUnauthorized || errors.As(err, &failed) && failed.Status == http.StatusUnauthorized
}

func (w *way) exchange(ctx *patience, o *outgoing, status *int) (_ json.RawMessage, down int, _ error) {
	x, err := w.send(ctx, o)
	if unauthorized(x, err) && renew(w.v, w.up) {
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
	*status, w.given = x.Status, x.Session
	if wantsMore(w.v, x) {
		x.Close()
		return nil, 0, mcp.ErrSignIn
	}
	return w.read(ctx, o, x)
}

// renew drops fetched credentials that the server refuses; false where fetching again could
// give no others.
func renew(v *visit, up *mcp.Upstream) bool {
	i := v.facts.Integration
	if i.AuthType == mcp.AuthOAuth {
		doubt(v, up)
		v.note.Refreshed = true
		return true
	}
	if i.AuthType != mcp.AuthClientCredentials && len(i.SecretMappings) == 0 {
		return false
	}
	v.host.opener.Forget(i.Record)
	if v.call.Secrets != nil {
		v.call.Secrets.Doubt(v.call.Context, v.facts.Server.Record.Scope, i.SecretMappings)
	}
	v.note.Refreshed = true
	return true
}

// headerMarks are what headers repeat of a tool's arguments, as the server said last.
func headerMarks(v *visit, p *peer, tool string) ([]protocolversion.Mark, error) {
	p.mu.Lock()
	marks, heard := p.marks[tool]
	p.mu.Unlock()
	if heard {
		return marks, nil
	}
	c, err := v.facts.Shape(v.call.Context, v.call.View, tool)
	if err != nil || c == nil || !bytes.Contains(c.Shape, []byte(protocolversion.MarkedBy)) {
		return nil, err
	}
	var shape struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(c.Shape, &shape) // another form has no marks
	marks, _ = protocolversion.Marks(shape.Input)
	return marks, nil
}

// may tells whether the caller may use a capability, and notes the decision.
func may(v *visit, c authz.Capability) bool {
	v.note.Decision = v.facts.Decide(c)
	return v.note.Decision == authz.Allowed
}
