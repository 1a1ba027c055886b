package gate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

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

	maxSubscriptions = 1000 // resources per stream
)

// subscription is the filter of a stream. Unknown fields are not forwarded.
type subscription struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// subscribe serves a notification stream of a stateless server to a client without a session.
// The stream contains only what the caller may use. If no stream can be held, the method is
// unknown.
func subscribe(v *requestState, w *bridge) error {
	if w.kind != toStateless || v.call.Buffered {
		unknownMethod(v)
		return nil
	}
	var want subscription
	if raw := v.req.Fields["notifications"]; raw == nil || json.Unmarshal(raw, &want) != nil || string(raw) == "null" {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.notifications must be an object with toolsListChanged, promptsListChanged and resourcesListChanged (booleans) and resourceSubscriptions (a list of URIs)"})
		return nil
	}
	if len(want.URIs) > maxSubscriptions {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.notifications.resourceSubscriptions may have up to 1000 entries"})
		return nil
	}
	want.URIs = readable(v, want.URIs)
	params := upstreamParams(v, w)
	params["notifications"], _ = json.Marshal(&want) // only strings
	x, end, err := openServerStream(v, func(ctx context.Context) (*mcp.Exchange, error) {
		return w.send(ctx, &outgoing{req: v.req, params: params, id: v.req.ID})
	})
	if err != nil {
		return err
	}
	defer end()
	if !x.Events {
		return w.streamDeclined(x)
	}
	return forwardStream(v, x, func(m *serverMessage, raw []byte) ([]byte, bool) {
		if m.Method == "" {
			return raw, string(m.ID) == string(v.req.ID)
		}
		if raw = filterNotification(v, m, raw); raw != nil {
			raw = w.allowed(v.call.Context, m, raw)
		}
		return raw, false
	})
}

// mayRead reports whether the caller may read a resource.
func mayRead(v *requestState, uri string) bool {
	return v.facts.Decide(authz.Capability{Type: mcp.Resource, Key: uri}) == authz.Allowed
}

// filterNotification returns a notification that the client may receive, or nil. Requests are
// not allowed on these streams.
func filterNotification(v *requestState, m *serverMessage, raw []byte) []byte {
	if len(m.ID) > 0 {
		return nil
	}
	if m.Method == methodUpdated {
		var of struct{ Params map[string]json.RawMessage }
		var uri string
		if json.Unmarshal(raw, &of) != nil || json.Unmarshal(of.Params["uri"], &uri) != nil || !mayRead(v, uri) {
			return nil
		}
	}
	return raw
}

// streamDeclined returns the reason why a server opened no stream.
func (w *bridge) streamDeclined(x *mcp.Exchange) error {
	raw, err := x.Next()
	if errors.Is(err, io.EOF) {
		return w.missingResponse(x)
	}
	if err != nil {
		return err
	}
	m, err := parseServerMessage(raw)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return w.clientError(x, m.Error)
	}
	return upstream.Fail(x.Status, "the server responded without a stream")
}

// serveListChanges sends list changes and resource updates of a stateless server to the
// client's session.
func serveListChanges(v *requestState, s *session) error {
	w, err := newBridge(v)
	if err != nil {
		return err
	}
	if chooseBridge(v, w, s); w.kind != toStateless {
		return methodNotAllowed(v, "POST")
	}
	req := &protocolversion.Request{Message: mcp.Message{Method: methodListen}}
	watched, changed := v.host.settings.watched(sessionKey(v), s.Expires, v.call.Now())
	// filterNotification drops resources that the client may no longer read.
	open := func(ctx context.Context, uris []string) (*mcp.Exchange, error) {
		want, _ := json.Marshal(&subscription{Tools: true, Prompts: true, Resources: true, URIs: uris}) // only strings
		return w.send(ctx, &outgoing{req: req, params: map[string]json.RawMessage{"notifications": want}, id: json.RawMessage(`"listen"`)})
	}
	x, end, err := openServerStream(v, func(ctx context.Context) (*mcp.Exchange, error) { return open(ctx, watched) })
	if err != nil {
		return err
	}
	defer end()
	if !x.Events {
		return methodNotAllowed(v, "POST") // the server sends no notifications
	}
	renewed := &renewableStream{v: v, s: s, open: open, x: x}
	defer renewed.Close()
	go renewed.wait(changed) // ends with the request
	return forwardStream(v, renewed, func(m *serverMessage, raw []byte) ([]byte, bool) {
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
		if !listChanges[m.Method] {
			return nil, false
		}
		return []byte(`{"jsonrpc":"2.0","method":"` + m.Method + `"}`), false
	})
}

// renewableStream reopens its exchange when the client subscribes to other resources.
type renewableStream struct {
	v    *requestState
	s    *session
	open func(ctx context.Context, uris []string) (*mcp.Exchange, error)

	mu     sync.Mutex
	x      *mcp.Exchange
	renew  bool // x was closed to be reopened
	closed bool
}

// wait closes the current exchange when changed is closed.
func (r *renewableStream) wait(changed <-chan struct{}) {
	select {
	case <-changed:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renew = true
		r.x.Close()
	case <-r.v.call.Request.Context().Done():
	}
}

// Next implements messageSource.
func (r *renewableStream) Next() ([]byte, error) {
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

// Close implements messageSource.
func (r *renewableStream) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.x.Close()
}

// Limits of session settings.
const (
	maxSettingsOf = 1000   // sessions of one workspace
	maxSettings   = 20_000 // sessions of one process
)

// settings stores what clients with sessions set for stateless servers: the log level and the
// subscribed resources. They are sent with each request and exist only in this process.
type settings struct {
	mu       sync.Mutex
	sessions map[settingsKey]*setting
}

type settingsKey struct{ scope, session string }

// setting is the setting of one session.
type setting struct {
	level   string
	uris    []string
	changed chan struct{} // closed when uris changes
	expires int64         // Unix seconds
}

// change updates the setting of a session. It returns false if there are too many sessions.
func (s *settings) change(k settingsKey, expires int64, now time.Time, do func(*setting)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sessions[k]
	if at == nil {
		own := 0
		for other, o := range s.sessions {
			if o.expires < now.Unix() {
				delete(s.sessions, other)
			} else if other.scope == k.scope {
				own++
			}
		}
		if own >= maxSettingsOf || len(s.sessions) >= maxSettings {
			return false
		}
		if s.sessions == nil {
			s.sessions = map[settingsKey]*setting{}
		}
		at = &setting{changed: make(chan struct{}), expires: expires}
		s.sessions[k] = at
	}
	do(at)
	return true
}

// level returns the log level of a session, or "".
func (s *settings) level(k settingsKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.sessions[k]; at != nil {
		return at.level
	}
	return ""
}

// watched returns the subscribed resources and a channel that is closed when they change.
func (s *settings) watched(k settingsKey, expires int64, now time.Time) (uris []string, changed <-chan struct{}) {
	s.change(k, expires, now, func(at *setting) { uris, changed = at.uris, at.changed })
	return uris, changed
}

// watch adds or removes a resource. It returns false if there are too many.
func (at *setting) watch(uri string, on bool) bool {
	has := slices.Contains(at.uris, uri)
	switch {
	case has == on:
		return true
	case on && len(at.uris) >= maxSubscriptions:
		return false
	case on:
		at.uris = append(slices.Clip(at.uris), uri)
	default:
		at.uris = slices.DeleteFunc(slices.Clone(at.uris), func(u string) bool { return u == uri })
	}
	close(at.changed)
	at.changed = make(chan struct{})
	return true
}

// levels are the log levels of the protocol.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// sessionKey identifies the session of the request.
func sessionKey(v *requestState) settingsKey {
	return settingsKey{v.call.Caller.Scope.Org + "/" + v.call.Caller.Scope.Workspace, v.call.Request.Header.Get(mcp.HeaderSession)}
}

// set serves logging/setLevel, resources/subscribe and resources/unsubscribe for a client with
// a session and a stateless server.
func set(v *requestState, w *bridge) error {
	about, ok := capabilityOf(v)
	if updateRecord(v, about.Key); ok && !authorize(v, about) {
		sendError(v, unknown(v, about))
		return nil
	}
	level := v.req.Text("level")
	if v.req.Method == "logging/setLevel" {
		ok = slices.Contains(levels, level)
	}
	if !ok {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must have a uri, or a level of debug, info, notice, warning, error, critical, alert or emergency"})
		return nil
	}
	watched := true
	fits := v.host.settings.change(sessionKey(v), w.session.Expires, v.call.Now(), func(at *setting) {
		if about.Type == mcp.Resource {
			watched = at.watch(about.Key, v.req.Method == "resources/subscribe")
			return
		}
		at.level = level
	})
	if !fits || !watched {
		sendError(v, &mcp.Error{Code: mcp.CodeInternal, Message: "too many resource subscriptions or sessions with settings"})
		return nil
	}
	sendResult(v, json.RawMessage("{}"))
	return nil
}

// readable returns the resources that the caller may read.
func readable(v *requestState, uris []string) (out []string) {
	for _, uri := range uris {
		if mayRead(v, uri) {
			out = append(out, uri)
		}
	}
	return out
}
