package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/mcp/serverrequest"
	"gateway/shared/tenant/upstream"
)

// Calls that are held while clients without sessions answer questions of servers with
// sessions.
const (
	maxHeld   = 1000                   // of one process
	maxHeldOf = 100                    // of one workspace
	gather    = 100 * time.Millisecond // how long more questions are waited for after one
)

// shelf has the calls that are held, by the names that clients bring back sealed.
type shelf struct {
	mu    sync.Mutex
	calls map[string]*held
}

// put keeps a call for as long as a client may take; false if there are too many of the
// workspace or together.
func (s *shelf) put(name string, h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, other := range s.calls {
		if other.scope == h.scope {
			own++
		}
	}
	if len(s.calls) >= maxHeld || own >= maxHeldOf {
		return false
	}
	if s.calls == nil {
		s.calls = map[string]*held{}
	}
	s.calls[name] = h
	h.timer = time.AfterFunc(questionTime, func() {
		if one := s.take(name); one != nil {
			one.drop()
		}
	})
	return true
}

// take removes a call, so that one client goes on with it; nil if it is not there.
func (s *shelf) take(name string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.calls[name]
	if h != nil {
		h.timer.Stop()
		delete(s.calls, name)
	}
	return h
}

// held is a call at a server that waits for answers of the client.
type held struct {
	scope     string // workspace of the caller
	x         *mcp.Exchange
	reading   chan arrived // the message that is read; nil: none is
	ctx       *patience
	out       *outgoing
	session   *mcp.Session // with the server
	up        *mcp.Upstream
	sent      http.Header
	ids       map[string]json.RawMessage // of the server's requests, by the names that the client has
	questions map[string]serverrequest.Question
	timer     *time.Timer
}

// Error implements error: reading an exchange ends with it.
func (h *held) Error() string { return "gate: the server asks something of the client" }

// drop gives the call up.
func (h *held) drop() {
	w := &way{kind: toPooled, up: h.up, sent: h.sent}
	w.cancelUpstream(context.Background(), h.out)
	h.ctx.end()
	h.x.Close()
}

// arrived is what reading the next message gave.
type arrived struct {
	raw []byte
	err error
}

// errQuiet means that nothing came for a moment.
var errQuiet = errors.New("gate: quiet")

// next returns the next message. With hurry it waits a moment only; what comes later is
// returned by the call after it.
func (w *way) next(ctx context.Context, x *mcp.Exchange, hurry bool) ([]byte, error) {
	if w.reading == nil {
		if !hurry {
			return x.Next()
		}
		reading := make(chan arrived, 1)
		go func() { // ends with the message, or with the exchange
			raw, err := x.Next()
			reading <- arrived{raw, err}
		}()
		w.reading = reading
	}
	var soon <-chan time.Time
	if hurry {
		t := time.NewTimer(gather)
		defer t.Stop()
		soon = t.C
	}
	select {
	case got := <-w.reading:
		w.reading = nil
		return got.raw, got.err
	case <-soon:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// holds reports whether a call may outlive the request of its client.
func (w *way) holds() bool {
	return w.kind == toPooled && w.carried != nil && w.v.req.Era == protocolversion.Stateless
}

// asked takes a request of a server. It reports false if the client cannot be asked.
func (w *way) asked(ctx *patience, m *said, asking map[string]json.RawMessage, questions map[string]serverrequest.Question) bool {
	q := serverrequest.Question{Method: m.Method, Params: m.Params}
	if w.kind != toPooled || w.carried == nil || !serverrequest.Known(m.Method) || !serverrequest.Allowed(w.carried, q) {
		return false
	}
	if w.holds() {
		name := "question-" + rand.Text()
		q.Params = bytes.Clone(q.Params)
		asking[name], questions[name] = bytes.Clone(m.ID), q
		return true
	}
	ctx.timer.Stop()
	defer ctx.heard()
	result, err := judgedQuestion(w.v, ctx, q)
	if err != nil {
		return false
	}
	w.respond(ctx, m.ID, result)
	return true
}

// respond answers a request of a server.
func (w *way) respond(ctx context.Context, id, result json.RawMessage) {
	if x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(w.pool.ID, w.pool.Version), serverrequest.Response(id, result)); err == nil {
		x.Close() // a server that is gone ends the exchange too
	}
}

// keep holds a call and returns the result that asks its client.
func keep(v *visit, h *held) (json.RawMessage, error) {
	name := rand.Text()
	sealed, err := sealValue(v, binding(v, sealState), &state{Held: name, Digest: digest(v), Expires: v.call.Now().Add(questionTime).Unix()})
	var result json.RawMessage
	if err == nil {
		result, err = serverrequest.Required(h.questions, sealed)
	}
	h.scope = v.call.Caller.Scope.Org + "/" + v.call.Caller.Scope.Workspace
	if err == nil && !v.host.held.put(name, h) {
		err = upstream.Fail(http.StatusOK, "too many calls wait for answers of their clients")
	}
	if err != nil {
		h.drop()
		return nil, err
	}
	return result, nil
}

// answersHeld goes on with a call that waits for what the client brings.
func answersHeld(v *visit, w *way, o *outgoing, name, tool string) error {
	h := v.host.held.take(name)
	if h == nil {
		unable(v, "The server no longer waits for these answers. Repeat the call without them.")
		return nil
	}
	o.params["inputResponses"] = v.req.Members["inputResponses"]
	if o.params["inputResponses"] == nil {
		delete(o.params, "inputResponses")
	}
	responses := mcp.Members(o.params["inputResponses"])
	missing, ok := serverrequest.Missing(h.ids, responses)
	if !ok || len(missing) > 0 { // asked again
		result, err := keep(v, h)
		if err == nil {
			sendResult(v, result)
		}
		return err
	}
	if stop, err := guard(v, tool, o); stop || err != nil {
		h.drop()
		return err
	}
	responses = mcp.Members(o.params["inputResponses"]) // as the guardrails left them
	w.pool, w.up, w.sent, w.reading = h.session, h.up, h.sent, h.reading
	for one, id := range h.ids {
		if responses[one] != nil {
			w.respond(h.ctx, id, responses[one])
		}
	}
	return conclude(v, func() (json.RawMessage, error) { return w.goOn(h) }, func(result json.RawMessage) error { return finish(v, w, result) })
}
