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

// said is a message of a server, member by member.
type said struct {
	ID, Result json.RawMessage
	Params     json.RawMessage
	Method     string
	Error      *mcp.Error
}

func readSaid(raw []byte) (*said, error) {
	m := mcp.Members(raw)
	if m == nil {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	s := &said{ID: m["id"], Result: m["result"], Params: m["params"]}
	if method := m["method"]; method != nil && !mcp.Text(method, &s.Method) {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	if e := m["error"]; e != nil && (json.Unmarshal(e, &s.Error) != nil || s.Error == nil) {
		return nil, upstream.Fail(http.StatusOK, "the server's answer is not a JSON-RPC message")
	}
	return s, nil
}

// read reads an exchange until the answer to o, and closes it unless it is held.
func (w *way) read(ctx *patience, o *outgoing, x *mcp.Exchange) (_ json.RawMessage, down int, _ error) {
	holding := false
	defer func() {
		if !holding {
			x.Close()
		}
	}()
	ids, questions := map[string]json.RawMessage{}, map[string]serverrequest.Question{}
	for {
		raw, err := w.next(ctx, x, len(ids) > 0)
		if errors.Is(err, errQuiet) {
			holding = true
			return nil, down, &held{x: x, reading: w.reading, ctx: ctx, out: o, session: w.pool, up: w.up, sent: w.sent, ids: ids, questions: questions}
		}
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
		case m.Method != "" && len(m.ID) > 0 && w.asked(ctx, m, ids, questions):
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
		forget(w.v, w.peer)
		return upstream.Fail(x.Status, "the server answers with status %d", x.Status)
	}
	return upstream.Fail(x.Status, "the server ended its answer without one to the request")
}

// refusal is an error of the server as the client may read it.
func (w *way) refusal(x *mcp.Exchange, e *mcp.Error) error {
	if w.kind == toRelayed && w.session.Upstream != "" && x.Status == http.StatusNotFound {
		return errSessionOver
	}
	modern := w.v.req.Era == protocolversion.Stateless
	switch {
	case e.Code == protocolversion.CodeHeader || e.Code == protocolversion.CodeVersion:
		forget(w.v, w.peer)
		return upstream.Fail(x.Status, "the server speaks another version of the protocol than it said")
	case modern && e.Code == protocolversion.CodeSignIn && asks[w.v.req.Method]: // the client is sent there
	case modern:
		return protocolversion.WithoutSession(e)
	case w.kind == toStateless && e.Code == mcp.CodeInvalidParams && w.v.req.Method == "resources/read":
		e.Code = mcp.CodeResourceNotFound
	case w.kind == toStateless:
		return protocolversion.InSession(e)
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
	v.call.Event(wire.AppendSSE(nil, "message", raw), false, nil)
}

// decline answers what a server asks for.
func (w *way) decline(ctx context.Context, m *said) {
	if w.kind != toPooled || w.pool == nil {
		return
	}
	if x, err := w.up.Send(ctx, http.MethodPost, w.sessionHeaders(w.pool.ID, w.pool.Version), mcp.Declined(&mcp.Message{ID: m.ID, Method: m.Method})); err == nil {
		x.Close()
	}
}
