package gate

import (
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/a2a/authz"
	"gateway/shared/fault"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Long-lived streams.
const (
	keepAliveInterval = 20 * time.Second // silence after which a keep-alive comment is sent
	recheckInterval   = time.Second      // interval of authorization checks
)

// forwardStream forwards the events of an agent until the agent or the client ends the stream.
func forwardStream(v *requestState, ctx *idleTimeout, body io.ReadCloser, o *outgoing) error {
	events, left := make(chan []byte), make(chan struct{})
	var readErr error
	go func() { // ends with the body, or when left is closed
		defer close(events)
		readErr = readEvents(body, func(data []byte) bool {
			select {
			case events <- data:
				return true
			case <-left:
				return false
			}
		})
	}()
	down, done, err := forwardEvents(v, ctx, events, o)
	close(left)
	body.Close()
	for range events { // wait for the reader to exit
	}
	if !done {
		v.call.RecordSizes(len(v.req.raw), down)
	}
	gone := v.call.Request.Context().Err() != nil
	switch {
	case err != nil || done:
		return err
	case ctx.Err() != nil && !gone:
		return upstream.Fail(http.StatusOK, "the agent did not continue its stream in time")
	case readErr != nil && !gone:
		return malformed(v, http.StatusOK, "broke off")
	case down == 0 && !gone:
		return malformed(v, http.StatusOK, "is an empty stream")
	}
	v.call.Event(nil, true, nil)
	return nil
}

// readEvents reads events until take returns false.
func readEvents(body io.Reader, take func([]byte) bool) error {
	parser, buf := wire.SSEParser{MaxEvent: maxEvent}, make([]byte, 16<<10)
	enough := errors.New("no receiver")
	emit := func(_ string, data []byte) error {
		if len(data) > 0 && !take(append([]byte(nil), data...)) {
			return enough
		}
		return nil
	}
	for {
		n, err := body.Read(buf)
		if fed := parser.Feed(buf[:n], emit); fed != nil {
			return fed
		}
		switch {
		case errors.Is(err, io.EOF):
			return parser.End(emit)
		case err != nil:
			return err
		}
	}
}

// forwardEvents sends events to the client, and keep-alive comments in between. done is set if
// the last event was sent.
func forwardEvents(v *requestState, ctx *idleTimeout, events <-chan []byte, o *outgoing) (received int, done bool, err error) {
	tick := time.NewTicker(recheckInterval)
	defer tick.Stop()
	sent := time.Now()
	for {
		select {
		case raw, more := <-events:
			if !more {
				return received, false, nil
			}
			ctx.reset()
			received += len(raw)
			got, err := parseReply(v, http.StatusOK, raw, o)
			if err != nil {
				return received, false, err
			}
			out, changed, last, err := clientResult(v, got)
			if err != nil {
				return received, false, err
			}
			shown := raw
			if changed || !v.agent.verbatim {
				shown = envelope(v, out)
			}
			if sent, v.streaming = time.Now(), true; last { // the last event completes the record, which needs the counts
				v.call.RecordSizes(len(v.req.raw), received)
			}
			v.call.Event(wire.AppendSSE(nil, "", shown), last, nil)
			if last {
				return received, true, nil
			}
		case <-tick.C:
			if err := recheckAccess(v); err != nil {
				return received, false, err
			}
			if time.Since(sent) > keepAliveInterval {
				sent, v.streaming = time.Now(), true
				v.call.Event([]byte(": here\n\n"), false, nil)
			}
		case <-ctx.Done():
			return received, false, nil
		}
	}
}

// recheckAccess checks that the caller may still use the agent and the skill.
func recheckAccess(v *requestState) error {
	who, view, err := v.call.Reauthenticate()
	if err != nil {
		return err
	}
	facts, err := authz.Load(v.call.Context, view, who, v.facts.Server.Record.Slug)
	if err != nil {
		return err
	}
	skill := v.record.Name
	if v.facts = facts; facts.Server.Record.ID != v.record.Server {
		return fault.New(fault.Conflict, "", "The agent was replaced: repeat the request")
	}
	return authorize(v, skill)
}
