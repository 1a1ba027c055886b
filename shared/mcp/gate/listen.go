package gate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

const (
	methodListen       = "subscriptions/listen"
	methodAcknowledged = "notifications/subscriptions/acknowledged"
	methodUpdated      = "notifications/resources/updated"

	maxSubscriptions = 1000 // resources that one stream tells of
)

// wanted is what a stream is to tell of. Members that are not known here are not asked
// for.
type wanted struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// subscribe holds the stream that a client without session asks for, at a server without
// session; the stream reports only what the caller may use. In any other case, and where no
// stream can be held, the answer is that there is no such method.
func subscribe(v *visit, w *way) error {
	if w.kind != toStateless || v.call.Buffered {
		unknownMethod(v)
		return nil
	}
	var want wanted
	if raw := v.req.Members["notifications"]; raw == nil || json.Unmarshal(raw, &want) != nil || string(raw) == "null" {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.notifications must say what to tell of: toolsListChanged, promptsListChanged and resourcesListChanged, true or false, and resourceSubscriptions, a list of addresses"})
		return nil
	}
	if len(want.URIs) > maxSubscriptions {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.notifications.resourceSubscriptions may name up to 1000 addresses"})
		return nil
	}
	want.URIs = readable(v, want.URIs)
	params := upstreamParams(v, w)
	params["notifications"], _ = json.Marshal(&want) // texts
	x, end, err := listens(v, func(ctx context.Context) (*mcp.Exchange, error) {
		return w.send(ctx, &outgoing{req: v.req, params: params, id: v.req.ID})
	})
	if err != nil {
		return err
	}
	defer end()
	if !x.Events {
		return w.declined(x)
	}
	return follow(v, x, func(m *said, raw []byte) ([]byte, bool) {
		if m.Method == "" {
			return raw, string(m.ID) == string(v.req.ID)
		}
		return filterNotification(v, m, raw), false
	})
}

// reads tells whether the caller may read a resource.
func reads(v *visit, uri string) bool {
	return v.facts.Decide(authz.Capability{Type: mcp.Resource, Key: uri}) == authz.Allowed
}

// filterNotification is a notification as the client may have it; nil: not at all. Requests have no
// place on these streams.
func filterNotification(v *visit, m *said, raw []byte) []byte {
	if len(m.ID) > 0 {
		return nil
	}
	if m.Method == methodUpdated {
		var of struct{ Params map[string]json.RawMessage }
		var uri string
		if json.Unmarshal(raw, &of) != nil || json.Unmarshal(of.Params["uri"], &uri) != nil || !reads(v, uri) {
			return nil
		}
	}
	return raw
}

// declined is why a server holds no stream.
func (w *way) declined(x *mcp.Exchange) error {
	raw, err := x.Next()
	if errors.Is(err, io.EOF) {
		return w.unanswered(x)
	}
	if err != nil {
		return err
	}
	m, err := readSaid(raw)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return w.refusal(x, m.Error)
	}
	return upstream.Fail(x.Status, "the server answers with no stream")
}

// feed holds the stream of a client's session with what a server without sessions tells
// of its lists, and of the resources that the client watches.
func feed(v *visit, s *session) error {
	w, err := stand(v)
	if err != nil {
		return err
	}
	if chooseBridge(v, w, s); w.kind != toStateless {
		return only(v, "POST")
	}
	req := &protocolversion.Request{Message: mcp.Message{Method: methodListen}}
	watched, changed := v.host.settings.watched(sessionKey(v), s.Expires, v.call.Now())
	// What the client may no longer read is left out of the messages.
	open := func(ctx context.Context, uris []string) (*mcp.Exchange, error) {
		want, _ := json.Marshal(&wanted{Tools: true, Prompts: true, Resources: true, URIs: uris}) // texts
		return w.send(ctx, &outgoing{req: req, params: map[string]json.RawMessage{"notifications": want}, id: json.RawMessage(`"listen"`)})
	}
	x, end, err := listens(v, func(ctx context.Context) (*mcp.Exchange, error) { return open(ctx, watched) })
	if err != nil {
		return err
	}
	defer end()
	if !x.Events {
		return only(v, "POST") // it does not tell
	}
	renewed := &renewing{v: v, s: s, open: open, x: x}
	defer renewed.Close()
	go renewed.wait(changed) // ends with the request
	return follow(v, renewed, func(m *said, raw []byte) ([]byte, bool) {
		if m.Method == methodUpdated {
			if raw = filterNotification(v, m, raw); raw == nil {
				return nil, false
			}
			var of struct{ URI string }
			if json.Unmarshal(m.Params, &of) != nil {
				return nil, false
			}
			return append(wire.AppendJSONString([]byte(`{"jsonrpc":"2.0","method":"`+methodUpdated+`","params":{"uri":`), of.URI), '}', '}'), false
		}
		if !changes[m.Method] {
			return nil, false
		}
		return []byte(`{"jsonrpc":"2.0","method":"` + m.Method + `"}`), false
	})
}

// renewing is a stream that is asked for again when the client watches other resources.
type renewing struct {
	v    *visit
	s    *session
	open func(ctx context.Context, uris []string) (*mcp.Exchange, error)

	mu     sync.Mutex
	x      *mcp.Exchange
	renew  bool // x was closed for another
	closed bool
}

// wait ends the current exchange when changed is closed.
func (r *renewing) wait(changed <-chan struct{}) {
	select {
	case <-changed:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renew = true
		r.x.Close()
	case <-r.v.call.Request.Context().Done():
	}
}

// Next implements source.
func (r *renewing) Next() ([]byte, error) {
	for {
		r.mu.Lock()
		x := r.x
		r.mu.Unlock()
		raw, err := x.Next()
		if err == nil {
			return raw, nil
		}
		r.mu.Lock()
		again := r.renew && !r.closed
		r.renew = false
		r.mu.Unlock()
		if !again {
			return nil, err
		}
		uris, changed := r.v.host.settings.watched(sessionKey(r.v), r.s.Expires, r.v.call.Now())
		next, err := r.open(r.v.call.Request.Context(), uris)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		if r.x = next; r.closed {
			next.Close()
		}
		r.mu.Unlock()
		go r.wait(changed) // ends with the request
	}
}

// Close implements source.
func (r *renewing) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.x.Close()
}
