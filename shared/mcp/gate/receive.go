package gate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/mcp/serverrequest"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// serverMessage is a message of a server.
type serverMessage struct {
	ID, Result json.RawMessage
	Params     json.RawMessage
	Method     string
	Error      *mcp.Error
}

func parseServerMessage(raw []byte) (*serverMessage, error) {
	m := mcp.Fields(raw)
	if m == nil {
		return nil, upstream.Fail(http.StatusOK, "the server's response is not a JSON-RPC message")
	}
	s := &serverMessage{ID: m["id"], Result: m["result"], Params: m["params"]}
	if method := m["method"]; method != nil && !mcp.ParseString(method, &s.Method) {
		return nil, upstream.Fail(http.StatusOK, "the server's response is not a JSON-RPC message")
	}
	if e := m["error"]; e != nil && (json.Unmarshal(e, &s.Error) != nil || s.Error == nil) {
		return nil, upstream.Fail(http.StatusOK, "the server's response is not a JSON-RPC message")
	}
	return s, nil
}

// read reads an exchange until the response to o, and closes it unless it is held.
func (w *bridge) read(ctx *idleTimeout, o *outgoing, x *mcp.Exchange) (_ json.RawMessage, down int, _ error) {
	holding := false
	defer func() {
		if !holding {
			x.Close()
		}
	}()
	ids, questions := map[string]json.RawMessage{}, map[string]serverrequest.InputRequest{}
	for {
		raw, err := w.next(ctx, x, len(ids) > 0)
		if errors.Is(err, errQuiet) {
			holding = true
			return nil, down, &pendingCall{x: x, pending: w.pending, ctx: ctx, out: o, session: w.pooled, up: w.up, sentHeaders: w.sentHeaders, ids: ids, questions: questions}
		}
		if err != nil {
			if next := w.resume(ctx, x); next != nil {
				x.Close()
				x = next
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, down, w.missingResponse(x)
		}
		if err != nil {
			return nil, down, err
		}
		ctx.reset()
		down += len(raw)
		m, err := parseServerMessage(raw)
		if err != nil {
			return nil, down, err
		}
		switch {
		case m.Method != "" && len(m.ID) > 0 && w.handleServerRequest(ctx, m, ids, questions):
		case m.Method != "":
			w.handleInterim(ctx, m, raw)
		case m.Error != nil && (string(m.ID) == string(o.id) || x.Status >= 400):
			return nil, down, w.clientError(x, m.Error)
		case string(m.ID) == string(o.id) && m.Result != nil && m.Result[0] == '{' && x.Status == http.StatusOK:
			return m.Result, down, nil
		case !x.Events:
			return nil, down, upstream.Fail(x.Status, "the server's response does not belong to the request")
		}
	}
}

// Waits before a stream is resumed: the minimum, and the default if the server names none.
const (
	minRetryWait     = 100 * time.Millisecond
	defaultRetryWait = time.Second
)

// resume reopens a stream that ended before the response. It returns nil if the stream cannot
// be resumed.
func (w *bridge) resume(ctx *idleTimeout, x *mcp.Exchange) *mcp.Exchange {
	after, wait, ok := x.Resumes()
	if !ok || w.kind != toRelayed && w.kind != toPooled {
		return nil
	}
	if wait == 0 {
		wait = defaultRetryWait
	}
	select {
	case <-time.After(max(wait, minRetryWait)):
	case <-ctx.Done():
		return nil
	}
	h := w.sentHeaders.Clone()
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

// errSessionEnded means that the server has ended the client's session.
var errSessionEnded = errors.New("gate: the session has ended")

// missingResponse returns the reason for a missing response.
func (w *bridge) missingResponse(x *mcp.Exchange) error {
	if w.kind == toRelayed && w.session.Upstream != "" && x.Status == http.StatusNotFound {
		return errSessionEnded
	}
	if x.Status/100 != 2 {
		resetPeer(w.v, w.peer)
		return upstream.Fail(x.Status, "the server responded with status %d", x.Status)
	}
	return upstream.Fail(x.Status, "the server ended its response without a result")
}

// clientError converts an error of the server for the client's protocol version.
func (w *bridge) clientError(x *mcp.Exchange, e *mcp.Error) error {
	if w.kind == toRelayed && w.session.Upstream != "" && x.Status == http.StatusNotFound {
		return errSessionEnded
	}
	modern := w.v.req.Kind == protocolversion.Stateless
	switch {
	case e.Code == protocolversion.CodeHeader || e.Code == protocolversion.CodeVersion:
		resetPeer(w.v, w.peer)
		return upstream.Fail(x.Status, "the server uses another protocol version than it announced")
	case modern && e.Code == protocolversion.CodeSignIn && inputMethods[w.v.req.Method]: // the client opens the address
	case modern:
		return protocolversion.WithoutSession(e)
	case w.kind == toStateless && e.Code == mcp.CodeInvalidParams && w.v.req.Method == "resources/read":
		e.Code = mcp.CodeResourceNotFound
	case w.kind == toStateless:
		return protocolversion.InSession(e)
	}
	return e
}

// handleInterim handles a message that precedes the response.
func (w *bridge) handleInterim(ctx context.Context, m *serverMessage, raw []byte) {
	v := w.v
	if listChanges[m.Method] {
		w.peer.mu.Lock()
		clear(w.peer.lists)
		w.peer.mu.Unlock()
	}
	if len(m.ID) > 0 && w.kind != toRelayed {
		w.declineRequest(ctx, m)
		return
	}
	if !v.req.Streams {
		return
	}
	if raw = w.allowed(ctx, m, raw); raw == nil {
		return
	}
	v.streaming = true
	v.call.Pipeline.Event(wire.AppendSSE(nil, "message", raw), false, nil)
}

// declineRequest declines a request of the server.
func (w *bridge) declineRequest(ctx context.Context, m *serverMessage) {
	var h http.Header
	switch {
	case w.kind == toPooled && w.pooled != nil:
		h = w.sessionHeaders(w.pooled.ID, w.pooled.Version)
	case w.session != nil && w.session.UpstreamVersion != "":
		h = w.sessionHeaders(w.session.Upstream, w.session.UpstreamVersion)
	default:
		return
	}
	if x, err := w.up.Send(ctx, http.MethodPost, h, mcp.DeclineRequest(&mcp.Message{ID: m.ID, Method: m.Method})); err == nil {
		x.Close()
	}
}
