package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"gateway/shared/mcp/protocolversion"
)

// methodCancelled is the notification with which the sender cancels a request.
const methodCancelled = "notifications/cancelled"

// cancelTime is the timeout of that notification.
const cancelTime = time.Second

// cancelUpstream notifies a server with a session that o was cancelled. A stateless server sees
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
	if v.req.Era == protocolversion.Stateless || w.kind == toRelayed || v.req.Session == "" {
		return func() {}
	}
	key := runningKey(v, v.req.ID)
	v.host.running.Store(key, cancel)
	return func() { v.host.running.Delete(key) }
}

// cancelled cancels the request that the client's notification names.
func cancelled(v *requestState) {
	if v.req.Method != methodCancelled {
		return
	}
	if cancel, ok := v.host.running.Load(runningKey(v, v.req.Fields["requestId"])); ok {
		cancel.(context.CancelFunc)()
	}
}
