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

// Limits of calls that are held while a client without a session provides input for a server
// with sessions.
const (
	maxPending     = 1000                   // per process
	maxPendingOf   = 100                    // per workspace
	questionWindow = 100 * time.Millisecond // wait for further questions after the first
)

// pendingCalls stores held calls by the name that clients send back sealed.
type pendingCalls struct {
	mu    sync.Mutex
	calls map[string]*pendingCall
}

// put holds a call until the input times out. It returns false if the process or the workspace
// holds too many calls.
func (s *pendingCalls) put(name string, h *pendingCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, other := range s.calls {
		if other.scope == h.scope {
			own++
		}
	}
	if len(s.calls) >= maxPending || own >= maxPendingOf {
		return false
	}
	if s.calls == nil {
		s.calls = map[string]*pendingCall{}
	}
	s.calls[name] = h
	h.timer = time.AfterFunc(inputTimeout, func() {
		if one := s.take(name); one != nil {
			one.drop()
		}
	})
	return true
}

// take removes a call, so that only one request continues it. It returns nil if there is none.
func (s *pendingCalls) take(name string) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.calls[name]
	if h != nil {
		h.timer.Stop()
		delete(s.calls, name)
	}
	return h
}

// pendingCall is a call at a server that waits for input of the client.
type pendingCall struct {
	scope       string // workspace of the caller
	x           *mcp.Exchange
	pending     chan readResult // read in progress, or nil
	ctx         *idleTimeout
	out         *outgoing
	session     *mcp.Session // with the server
	up          *mcp.Upstream
	sentHeaders http.Header
	ids         map[string]json.RawMessage // ids of the server's requests, by the client's names
	questions   map[string]serverrequest.InputRequest
	timer       *time.Timer
}

// Error implements error: reading an exchange ends with a held call.
func (h *pendingCall) Error() string { return "gate: the server requests input of the client" }

// drop cancels the call.
func (h *pendingCall) drop() {
	w := &bridge{kind: toPooled, up: h.up, sentHeaders: h.sentHeaders}
	w.cancelUpstream(context.Background(), h.out)
	h.ctx.stop()
	h.x.Close()
}

// readResult is the result of reading a message.
type readResult struct {
	raw []byte
	err error
}

// errQuiet means that no message arrived within questionWindow.
var errQuiet = errors.New("gate: quiet")

// next returns the next message. With hurry it waits only questionWindow; a later message is
// returned by the next call.
func (w *bridge) next(ctx context.Context, x *mcp.Exchange, hurry bool) ([]byte, error) {
	if w.pending == nil {
		if !hurry {
			return x.Next()
		}
		reading := make(chan readResult, 1)
		go func() { // ends with the message or the exchange
			raw, err := x.Next()
			reading <- readResult{raw, err}
		}()
		w.pending = reading
	}
	var soon <-chan time.Time
	if hurry {
		t := time.NewTimer(questionWindow)
		defer t.Stop()
		soon = t.C
	}
	select {
	case got := <-w.pending:
		w.pending = nil
		return got.raw, got.err
	case <-soon:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// holds reports whether a call may outlive the request of its client.
func (w *bridge) holds() bool {
	return w.kind == toPooled && w.declared != nil && w.v.req.Kind == protocolversion.Stateless
}

// handleServerRequest handles a request of a server. It returns false if the client does not
// support it.
func (w *bridge) handleServerRequest(ctx *idleTimeout, m *serverMessage, requests map[string]json.RawMessage, questions map[string]serverrequest.InputRequest) bool {
	q := serverrequest.InputRequest{Method: m.Method, Params: m.Params}
	if w.kind != toPooled || w.declared == nil || !serverrequest.IsInputRequest(m.Method) || !serverrequest.Allowed(w.declared, q) {
		return false
	}
	if w.holds() {
		name := "question-" + rand.Text()
		q.Params = bytes.Clone(q.Params)
		requests[name], questions[name] = bytes.Clone(m.ID), q
		return true
	}
	ctx.timer.Stop()
	defer ctx.reset()
	result, err := requestInputGuarded(w.v, ctx, q)
	if err != nil {
		return false
	}
	w.respond(ctx, m.ID, result)
	return true
}

// respond responds to a request of a server.
func (w *bridge) respond(ctx context.Context, id, result json.RawMessage) {
	if x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(w.pooled.ID, w.pooled.Version), serverrequest.Response(id, result)); err == nil {
		x.Close() // if the server is gone, the exchange ends as well
	}
}

// holdCall holds a call and returns the result that requests input from the client.
func holdCall(v *requestState, h *pendingCall) (json.RawMessage, error) {
	name := rand.Text()
	sealed, err := sealValue(v, binding(v, sealState), &state{Held: name, Digest: digest(v), Expires: v.call.Now().Add(inputTimeout).Unix()})
	var result json.RawMessage
	if err == nil {
		result, err = serverrequest.Required(h.questions, sealed)
	}
	h.scope = v.call.Caller.Scope.Org + "/" + v.call.Caller.Scope.Workspace
	if err == nil && !v.host.pending.put(name, h) {
		err = upstream.Fail(http.StatusOK, "too many calls wait for input of their clients")
	}
	if err != nil {
		h.drop()
		return nil, err
	}
	return result, nil
}

// resumeCall continues a held call with the client's input.
func resumeCall(v *requestState, w *bridge, o *outgoing, name, tool string) error {
	h := v.host.pending.take(name)
	if h == nil {
		unable(v, "The server no longer waits for this input. Repeat the call without them.")
		return nil
	}
	o.params["inputResponses"] = v.req.Fields["inputResponses"]
	if o.params["inputResponses"] == nil {
		delete(o.params, "inputResponses")
	}
	responses := mcp.Fields(o.params["inputResponses"])
	missing, ok := serverrequest.Missing(h.ids, responses)
	if !ok || len(missing) > 0 { // input is still missing
		result, err := holdCall(v, h)
		if err == nil {
			sendResult(v, result)
		}
		return err
	}
	if stop, err := guardParams(v, tool, o); stop || err != nil {
		h.drop()
		return err
	}
	responses = mcp.Fields(o.params["inputResponses"]) // after the guardrails
	w.pooled, w.up, w.sentHeaders, w.pending = h.session, h.up, h.sentHeaders, h.pending
	for one, id := range h.ids {
		if responses[one] != nil {
			w.respond(h.ctx, id, responses[one])
		}
	}
	return conclude(v, func() (json.RawMessage, error) { return w.resumePending(h) }, func(result json.RawMessage) error { return finish(v, w, result) })
}
