package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Long-lived streams.
const (
	keepAliveInterval = 20 * time.Second // silence after which a keep-alive comment is sent
	recheckInterval   = time.Second      // interval of authorization checks
)

// relayStream forwards the notifications of a server in a session until either side ends the
// stream.
func relayStream(v *requestState, s *session) error {
	up, err := openUpstream(v)
	if err != nil {
		return err
	}
	w := &bridge{v: v, up: up, session: s, peer: peerOf(v)}
	x, end, err := openServerStream(v, func(ctx context.Context) (*mcp.Exchange, error) {
		return up.Send(ctx, http.MethodGet, w.sessionHeaders(s.Upstream, s.UpstreamVersion), nil)
	})
	if err != nil {
		return err
	}
	defer end()
	switch {
	case x.Status == http.StatusNotFound:
		return sessionEnded(v)
	case x.Status == http.StatusMethodNotAllowed:
		return methodNotAllowed(v, "POST, DELETE")
	case !x.Events:
		return upstream.Fail(x.Status, "the server responded with status %d and no stream", x.Status)
	}
	return forwardStream(v, x, func(m *serverMessage, raw []byte) ([]byte, bool) {
		if m.Method == "" {
			return nil, false // a response has no place here
		}
		return w.allowed(v.call.Context, m, raw), false
	})
}

// openServerStream opens a stream of the server. The idle timeout applies until the stream
// begins. end closes the stream.
func openServerStream(v *requestState, open func(context.Context) (*mcp.Exchange, error)) (x *mcp.Exchange, end func(), err error) {
	ctx := withIdleTimeout(v.call.Request.Context(), v.host.Timeout)
	v.call.Pipeline.StartResponse()
	if x, err = open(ctx); err != nil {
		v.call.Pipeline.Ended(0)
		if ctx.Err() != nil && v.call.Request.Context().Err() == nil {
			err = upstream.Fail(0, "the server did not respond in time")
		}
		ctx.stop()
		return nil, nil, err
	}
	ctx.timer.Stop()
	v.call.Pipeline.Ended(x.Status)
	return x, func() { x.Close(); ctx.stop() }, nil
}

// messageSource supplies the messages of a stream.
type messageSource interface {
	Next() ([]byte, error)
	Close()
}

// forwardStream sends the messages of x to the client. take returns what the client receives
// for a message, or nil, and whether it is the last one.
func forwardStream(v *requestState, x messageSource, take func(m *serverMessage, raw []byte) (shown []byte, last bool)) error {
	ctx := v.call.Request.Context()
	v.streaming = true
	v.call.Pipeline.Event([]byte(": open\n\n"), false, nil)
	messages, left := make(chan []byte), make(chan struct{})
	var ended error
	go func() { // ends with the exchange, or when left is closed
		defer close(messages)
		for {
			raw, err := x.Next()
			if err != nil {
				ended = err
				return
			}
			select {
			case messages <- raw:
			case <-left:
				return
			}
		}
	}()
	done, err := forwardMessages(v, messages, take)
	close(left)
	x.Close()
	for range messages { // wait for the reader to exit
	}
	var failure *fault.Fault
	switch {
	case done:
		return nil
	case err != nil && v.req != nil:
		return err
	case err != nil: // no request could be answered with the error
		failure = fault.From(err)
	}
	if ended != nil && !errors.Is(ended, io.EOF) && ctx.Err() == nil {
		failure = fault.New(fault.InvalidProviderResponse, "", "The server's stream was truncated")
	}
	v.call.Pipeline.Event(nil, true, failure)
	return nil
}

// forwardMessages sends messages to the client, and keep-alive comments in between. done is set
// if the last message was sent.
func forwardMessages(v *requestState, messages <-chan []byte, take func(*serverMessage, []byte) ([]byte, bool)) (done bool, err error) {
	tick := time.NewTicker(recheckInterval)
	defer tick.Stop()
	sent := time.Now()
	for {
		select {
		case raw, more := <-messages:
			if !more {
				return false, nil
			}
			m, err := parseServerMessage(raw)
			if err != nil {
				return false, fault.New(fault.InvalidProviderResponse, "", "The server's stream contains an invalid message")
			}
			invalidateLists(v, m.Method)
			shown, last := take(m, raw)
			if shown == nil {
				continue
			}
			if sent = time.Now(); last {
				v.call.Pipeline.Event(wire.AppendSSE(nil, "message", shown), true, nil)
				return true, nil
			}
			v.call.Pipeline.Event(wire.AppendSSE(nil, "message", shown), false, nil)
		case <-tick.C:
			if err := recheckAccess(v); err != nil {
				return false, err
			}
			if time.Since(sent) > keepAliveInterval {
				sent = time.Now()
				v.call.Pipeline.Event([]byte(": here\n\n"), false, nil)
			}
		case <-v.call.Request.Context().Done():
			return false, nil
		}
	}
}

// recheckAccess authorizes the caller again, with current data.
func recheckAccess(v *requestState) error {
	who, view, err := v.call.Pipeline.Reauthenticate()
	if err != nil {
		return err
	}
	facts, err := authz.Load(v.call.Context, view, who, v.facts.Server.Record.Slug)
	if err != nil {
		return err
	}
	if v.record.Decision = facts.Decide(authz.Capability{}); v.record.Decision != authz.Allowed {
		return accessError(v.record.Decision)
	}
	if facts.Integration.Fingerprint != v.facts.Integration.Fingerprint || facts.Server.Record.ID != v.facts.Server.Record.ID {
		return fault.New(fault.Conflict, "", "The server was replaced: open the stream again")
	}
	if v.token != nil && v.token.expired(v.call.Now()) {
		return fault.New(fault.Unauthorized, "authorization", "The token has expired")
	}
	v.facts = facts
	return nil
}

// invalidateLists drops cached lists of a server that reports a change.
func invalidateLists(v *requestState, method string) {
	if !listChanges[method] {
		return
	}
	p := peerOf(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.lists)
}

// listChanges are the notifications that a list has changed.
var listChanges = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}
