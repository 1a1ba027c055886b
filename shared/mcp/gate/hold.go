package gate

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// quiet is how long a stream may stand still before a comment says that it is there.
const quiet = 20 * time.Second

// hold passes on what the server says by itself, until it or the client ends the
// stream.
func (v *visit) hold(s *session) error {
	up, err := v.openUpstream()
	if err != nil {
		return err
	}
	ctx := v.Request.Context()
	w := way{v: v, up: up, session: s, peer: v.peer()}
	x, err := up.Send(ctx, http.MethodGet, w.sessionHeaders(s.Upstream, s.Speaks), nil)
	if err != nil {
		return err
	}
	defer x.Close()
	switch {
	case x.Status == http.StatusNotFound:
		return v.over()
	case x.Status == http.StatusMethodNotAllowed:
		return v.only("POST, DELETE")
	case !x.Events:
		return upstream.Fail(x.Status, "the server answers with status %d and no stream", x.Status)
	}
	v.began = true
	v.Event([]byte(": open\n\n"), false, nil)
	messages := make(chan []byte)
	var ended error
	go func() { // ends with the exchange, which ends with the client's request
		defer close(messages)
		for {
			raw, err := x.Next()
			if err != nil {
				ended = err
				return
			}
			select {
			case messages <- raw:
			case <-ctx.Done():
				return
			}
		}
	}()
	v.relay(messages)
	x.Close()
	for range messages { // until the reader is gone
	}
	var failure *fault.Fault
	if ended != nil && !errors.Is(ended, io.EOF) && ctx.Err() == nil {
		failure = fault.New(fault.InvalidProviderResponse, "", "The server's stream broke off")
	}
	v.Event(nil, true, failure)
	return nil
}

// relay sends messages on as they come, and comments while none do.
func (v *visit) relay(messages <-chan []byte) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case raw, more := <-messages:
			if !more {
				return
			}
			v.Event(wire.AppendSSE(nil, "message", raw), false, nil)
			v.heardChange(raw)
		case <-tick.C:
			v.Event([]byte(": here\n\n"), false, nil)
		case <-v.Request.Context().Done():
			return
		}
	}
}

// heardChange drops the lists that are kept of a server that says that one has changed.
func (v *visit) heardChange(raw []byte) {
	var m mcp.Message
	if json.Unmarshal(raw, &m) != nil || !changes[m.Method] {
		return
	}
	p := v.peer()
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.lists)
}

// changes are what servers say when a list is another.
var changes = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}
