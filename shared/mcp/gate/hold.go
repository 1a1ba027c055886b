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

// Streams that stand for long.
const (
	quiet = 20 * time.Second // how long one may stand still before a comment says that it is there
	look  = time.Second      // how often it is looked whether the caller may still listen
)

// hold passes on what a server says by itself in a session, until it or the client ends
// the stream.
func hold(v *visit, s *session) error {
	up, err := openUpstream(v)
	if err != nil {
		return err
	}
	w := &way{v: v, up: up, session: s, peer: peerOf(v)}
	x, end, err := listens(v, func(ctx context.Context) (*mcp.Exchange, error) {
		return up.Send(ctx, http.MethodGet, w.sessionHeaders(s.Upstream, s.Speaks), nil)
	})
	if err != nil {
		return err
	}
	defer end()
	switch {
	case x.Status == http.StatusNotFound:
		return over(v)
	case x.Status == http.StatusMethodNotAllowed:
		return only(v, "POST, DELETE")
	case !x.Events:
		return upstream.Fail(x.Status, "the server answers with status %d and no stream", x.Status)
	}
	return follow(v, x, func(_ *said, raw []byte) ([]byte, bool) { return raw, false })
}

// listens opens a stream of the server. Until it has begun the server may be silent as
// long as before any answer. end closes it.
func listens(v *visit, open func(context.Context) (*mcp.Exchange, error)) (x *mcp.Exchange, end func(), err error) {
	ctx := patient(v.call.Request.Context(), v.host.Timeout)
	v.call.Began()
	if x, err = open(ctx); err != nil {
		v.call.Ended(0)
		if ctx.Err() != nil && v.call.Request.Context().Err() == nil {
			err = upstream.Fail(0, "the server did not answer in time")
		}
		ctx.end()
		return nil, nil, err
	}
	ctx.timer.Stop()
	v.call.Ended(x.Status)
	return x, func() { x.Close(); ctx.end() }, nil
}

// source is where the messages of a stream come from.
type source interface {
	Next() ([]byte, error)
	Close()
}

// follow sends on what comes of an exchange. take makes of a message what the client is
// shown of it, nil for nothing, and tells whether it is the last one.
func follow(v *visit, x source, take func(m *said, raw []byte) (shown []byte, last bool)) error {
	ctx := v.call.Request.Context()
	v.began = true
	v.call.Event([]byte(": open\n\n"), false, nil)
	messages, left := make(chan []byte), make(chan struct{})
	var ended error
	go func() { // ends with the exchange, or when nobody takes its messages
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
	done, err := relay(v, messages, take)
	close(left)
	x.Close()
	for range messages { // until the reader is gone
	}
	var failure *fault.Fault
	switch {
	case done:
		return nil
	case err != nil && v.req != nil:
		return err
	case err != nil: // there is no request that an error could answer
		failure = fault.From(err)
	}
	if ended != nil && !errors.Is(ended, io.EOF) && ctx.Err() == nil {
		failure = fault.New(fault.InvalidProviderResponse, "", "The server's stream broke off")
	}
	v.call.Event(nil, true, failure)
	return nil
}

// relay sends messages on as they come, and comments while none do. done: the last one
// was sent.
func relay(v *visit, messages <-chan []byte, take func(*said, []byte) ([]byte, bool)) (done bool, err error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	sent := time.Now()
	for {
		select {
		case raw, more := <-messages:
			if !more {
				return false, nil
			}
			m, err := readSaid(raw)
			if err != nil {
				return false, fault.New(fault.InvalidProviderResponse, "", "The server's stream has what is no message")
			}
			heardChange(v, m.Method)
			shown, last := take(m, raw)
			if shown == nil {
				continue
			}
			if sent = time.Now(); last {
				v.call.Event(wire.AppendSSE(nil, "message", shown), true, nil)
				return true, nil
			}
			v.call.Event(wire.AppendSSE(nil, "message", shown), false, nil)
		case <-tick.C:
			if err := still(v); err != nil {
				return false, err
			}
			if time.Since(sent) > quiet {
				sent = time.Now()
				v.call.Event([]byte(": here\n\n"), false, nil)
			}
		case <-v.call.Request.Context().Done():
			return false, nil
		}
	}
}

// still decides again, by what is known now, whether the caller may use the server.
func still(v *visit) error {
	who, view, err := v.call.Still()
	if err != nil {
		return err
	}
	facts, err := authz.Load(v.call.Context, view, who, v.facts.Server.Record.Slug)
	if err != nil {
		return err
	}
	if v.note.Decision = facts.Decide(authz.Capability{}); v.note.Decision != authz.Allowed {
		return denied(v.note.Decision)
	}
	if facts.Integration.Print != v.facts.Integration.Print || facts.Server.Record.ID != v.facts.Server.Record.ID {
		return fault.New(fault.Conflict, "", "The server is another one by now: listen again")
	}
	if v.proof != nil && v.proof.over(v.call.Now()) {
		return fault.New(fault.Unauthorized, "authorization", "The token has expired")
	}
	v.facts = facts
	return nil
}

// heardChange drops the lists that are kept of a server that says that one has changed.
func heardChange(v *visit, method string) {
	if !changes[method] {
		return
	}
	p := peerOf(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.lists)
}

// changes are what servers say when a list is another.
var changes = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}
