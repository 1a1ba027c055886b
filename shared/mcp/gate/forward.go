package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/entitled"
	"gateway/shared/mcp/era"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// way is how requests of a visit reach the server.
type way struct {
	v    *servers
	peer *peer
	up   *mcp.Upstream
	kind kind
	// Of a client with a session: what its id says; of the others what the request says.
	session   *session
	abilities json.RawMessage
	client    json.RawMessage
	given     string      // session id that the server gave with its answer
	sent      http.Header // of the last request
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
	req    *era.Request
	params map[string]json.RawMessage
	id     json.RawMessage // towards the server
	marks  []era.Mark
}

// send makes the request; the answer is read from the exchange.
func (w *way) send(ctx context.Context, o *outgoing) (*mcp.Exchange, error) {
	switch w.kind {
	case toStateless:
		o.params = statelessParams(o.params, w.abilities, w.client)
		h := statelessHeaders(o.req)
		era.SetParams(h, o.marks, o.params["arguments"])
		return w.post(ctx, h, o)
	case toRelayed:
		return w.post(ctx, w.sessionHeaders(w.session.Upstream, w.session.Speaks), o)
	case toOldStream:
		return w.throughStream(ctx, o)
	}
	o.id = json.RawMessage(strconv.FormatInt(ids.Add(1), 10))
	for again := false; ; again = true {
		s, err := w.v.pooled(ctx, w.peer, w.up)
		if err != nil {
			return nil, err
		}
		x, err := w.post(ctx, w.sessionHeaders(s.ID, s.Version), o)
		if err != nil || x.Status != http.StatusNotFound || again {
			return x, err
		}
		x.Close()
		w.v.ended(w.peer, s)
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

// said is a message of a server, member by member.
type said struct {
	ID, Result json.RawMessage
	Method     string
	Error      *mcp.Error
}

func readSaid(raw []byte) (*said, error) {
	m := mcp.Members(raw)
	if m == nil {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	s := &said{ID: m["id"], Result: m["result"]}
	if method := m["method"]; method != nil && !mcp.Text(method, &s.Method) {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	if e := m["error"]; e != nil && (json.Unmarshal(e, &s.Error) != nil || s.Error == nil) {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	return s, nil
}

// ask sends a request and gives its result. What the server says before it goes to the
// client as it comes. A refusal of the server is an *mcp.Error.
func (w *way) ask(o *outgoing) (json.RawMessage, error) {
	v := w.v
	base := v.Context
	if v.req.Era == era.Stateless {
		base = v.Request.Context() // who closes the stream wants no answer
	}
	ctx := patient(base, v.host.Timeout)
	defer ctx.end()
	defer v.cancellable(w, ctx.cancel)()
	v.Began()
	status := 0
	result, down, err := w.exchange(ctx, o, &status)
	v.Ended(status)
	v.Used(len(v.Body), down)
	if err != nil && ctx.Err() != nil {
		w.cancelUpstream(base, o)
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
	if unauthorized(x, err) && w.v.renew(w.up) {
		if x != nil {
			x.Close()
		}
		if w.up, err = w.v.openUpstream(); err == nil {
			x, err = w.send(ctx, o)
		}
		if unauthorized(x, err) && w.v.facts.Integration.AuthType == mcp.AuthOAuth {
			err = mcp.ErrSignIn
		}
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { x.Close() }()
	*status, w.given = x.Status, x.Session
	if w.v.wantsMore(x) {
		return nil, 0, mcp.ErrSignIn
	}
	for {
		raw, err := x.Next()
		if err != nil {
			if next := w.resume(ctx, x); next != nil {
				x.Close()
				x = next
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, down, w.unanswered(x)
		}
		if err != nil {
			return nil, down, err
		}
		ctx.heard()
		down += len(raw)
		m, err := readSaid(raw)
		if err != nil {
			return nil, down, err
		}
		switch {
		case m.Method != "":
			w.beforehand(ctx, m, raw)
		case m.Error != nil && (string(m.ID) == string(o.id) || x.Status >= 400):
			return nil, down, w.refusal(x, m.Error)
		case string(m.ID) == string(o.id) && m.Result != nil && m.Result[0] == '{' && x.Status == http.StatusOK:
			return m.Result, down, nil
		case !x.Events:
			return nil, down, upstream.Fail(x.Status, "the server's answer is not that to the request")
		}
	}
}

// soonest is the shortest wait before a stream is asked for again; usual is that where
// the server names none.
const (
	soonest = 100 * time.Millisecond
	usual   = time.Second
)

// resume gives the rest of a stream that a server ended, or lost, before the answer and
// that it keeps for later; nil where there is none.
func (w *way) resume(ctx *patience, x *mcp.Exchange) *mcp.Exchange {
	after, wait, ok := x.Resumes()
	if !ok || w.kind != toRelayed && w.kind != toPooled {
		return nil
	}
	if wait == 0 {
		wait = usual
	}
	select {
	case <-time.After(max(wait, soonest)):
	case <-ctx.Done():
		return nil
	}
	h := w.sent.Clone()
	h[headerLastEvent] = []string{after}
	next, err := w.up.Send(ctx, http.MethodGet, h, nil)
	if err != nil {
		return nil
	}
	if !next.Events {
		next.Close()
		return nil
	}
	return next
}

const headerLastEvent = "Last-Event-Id" // in the spelling of net/http

// errSessionOver says that the server has ended the client's session.
var errSessionOver = errors.New("gate: the session is over")

// unanswered says why there is no answer.
func (w *way) unanswered(x *mcp.Exchange) error {
	if w.kind == toRelayed && w.session.Upstream != "" && x.Status == http.StatusNotFound {
		return errSessionOver
	}
	if x.Status/100 != 2 {
		w.v.forget(w.peer)
		return upstream.Fail(x.Status, "the server answers with status %d", x.Status)
	}
	return upstream.Fail(x.Status, "the server ended its answer without one to the request")
}

// refusal is an error of the server as the client may read it.
func (w *way) refusal(x *mcp.Exchange, e *mcp.Error) error {
	if w.kind == toRelayed && w.session.Upstream != "" && x.Status == http.StatusNotFound {
		return errSessionOver
	}
	modern := w.v.req.Era == era.Stateless
	switch {
	case e.Code == era.CodeHeader || e.Code == era.CodeVersion:
		w.v.forget(w.peer)
		return upstream.Fail(x.Status, "the server speaks another version of the protocol than it said")
	case modern && e.Code == mcp.CodeResourceNotFound:
		e.Code = mcp.CodeInvalidParams
	case !modern && w.kind == toStateless && e.Code == mcp.CodeInvalidParams && w.v.req.Method == "resources/read":
		e.Code = mcp.CodeResourceNotFound
	}
	return e
}

// beforehand takes what a server says before it answers.
func (w *way) beforehand(ctx context.Context, m *said, raw []byte) {
	v := w.v
	if changes[m.Method] {
		w.peer.mu.Lock()
		clear(w.peer.lists)
		w.peer.mu.Unlock()
	}
	if len(m.ID) > 0 && w.kind != toRelayed {
		w.decline(ctx, m)
		return
	}
	if !v.req.Streams {
		return
	}
	v.began = true
	v.Event(wire.AppendSSE(nil, "message", raw), false, nil)
}

// decline answers what a server asks for.
func (w *way) decline(ctx context.Context, m *said) {
	if w.kind != toPooled {
		return
	}
	s, err := w.v.pooled(ctx, w.peer, w.up)
	if err != nil {
		return
	}
	if x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(s.ID, s.Version), mcp.Declined(&mcp.Message{ID: m.ID, Method: m.Method})); err == nil {
		x.Close()
	}
}

// renew drops fetched credentials that the server refuses; false where fetching again could
// give no others.
func (v *servers) renew(up *mcp.Upstream) bool {
	i := v.facts.Integration
	if i.AuthType == mcp.AuthOAuth {
		v.doubt(up)
		v.note.Refreshed = true
		return true
	}
	if i.AuthType != mcp.AuthClientCredentials && len(i.SecretMappings) == 0 {
		return false
	}
	v.host.opener.Forget(i.Record)
	if v.Secrets != nil {
		v.Secrets.Doubt(v.Context, v.facts.Server.Record.Scope, i.SecretMappings)
	}
	v.note.Refreshed = true
	return true
}

// marks are what headers repeat of a tool's arguments, as the server said last.
func (v *servers) marks(p *peer, tool string) ([]era.Mark, error) {
	p.mu.Lock()
	marks, heard := p.marks[tool]
	p.mu.Unlock()
	if heard {
		return marks, nil
	}
	c, err := v.facts.Shape(v.Context, v.View, tool)
	if err != nil || c == nil || !bytes.Contains(c.Shape, []byte(era.MarkedBy)) {
		return nil, err
	}
	var shape struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(c.Shape, &shape) // another form has no marks
	marks, _ = era.Marks(shape.Input)
	return marks, nil
}

// may tells whether the caller may use a capability, and notes the decision.
func (v *servers) may(c entitled.Capability) bool {
	v.note.Decision = v.facts.Decide(c)
	return v.note.Decision == entitled.Allowed
}
