package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"gateway/shared/mcp/protocolversion"
)

// methodCancelled is the notification that the sender of a request wants no result.
const methodCancelled = "notifications/cancelled"

// cancelTime bounds how long a server may take to accept that notification.
const cancelTime = time.Second

// cancelUpstream tells a server with a session that nobody waits for the result of o any
// more. For a server without sessions the end of the request says it.
func (w *way) cancelUpstream(ctx context.Context, o *outgoing) {
	if w.kind != toPooled && w.kind != toRelayed || w.sent == nil {
		return
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": methodCancelled, "params": map[string]any{"requestId": o.id, "reason": "the client has cancelled the request"},
	})
	if err != nil {
		return // the id was read as JSON
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	h := w.sent.Clone()
	h.Del(headerLastEvent)
	if x, err := w.up.Send(within, http.MethodPost, h, body); err == nil { // a server that has gone needs no word
		x.Close()
	}
}

// runningKey identifies a request of a session that the gateway keeps itself.
func runningKey(v *visit, id json.RawMessage) string { return v.req.Session + "\x00" + string(id) }

// cancellable lets a notification of the same session cancel a request; done ends that. In
// relayed sessions the server has the notification itself, and without sessions the client
// closes the stream.
func cancellable(v *visit, w *way, cancel context.CancelFunc) (done func()) {
	if v.req.Era == protocolversion.Stateless || w.kind == toRelayed || v.req.Session == "" {
		return func() {}
	}
	key := runningKey(v, v.req.ID)
	v.host.running.Store(key, cancel)
	return func() { v.host.running.Delete(key) }
}

// cancelled cancels the request that the client's notification names.
func cancelled(v *visit) {
	if v.req.Method != methodCancelled {
		return
	}
	if cancel, ok := v.host.running.Load(runningKey(v, v.req.Members["requestId"])); ok {
		cancel.(context.CancelFunc)()
	}
}
