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

// Times of long streams.
const (
	quiet = 20 * time.Second // after so long without an event, a comment tells the client that the stream is alive
	look  = time.Second      // how often the caller's rights are checked again
)

// stream sends on what an agent says, event by event, until the agent or the client ends
// it.
func stream(v *visit, ctx *patience, body io.ReadCloser, o *outgoing) error {
	events, left := make(chan []byte), make(chan struct{})
	var broke error
	go func() { // ends with the body, or when nobody receives its events
		defer close(events)
		broke = eventsOf(body, func(data []byte) bool {
			select {
			case events <- data:
				return true
			case <-left:
				return false
			}
		})
	}()
	down, done, err := relay(v, ctx, events, o)
	close(left)
	body.Close()
	for range events { // until the reader is gone
	}
	if !done {
		v.call.Used(len(v.req.raw), down)
	}
	gone := v.call.Request.Context().Err() != nil
	switch {
	case err != nil || done:
		return err
	case ctx.Err() != nil && !gone:
		return upstream.Fail(http.StatusOK, "the agent did not go on in time")
	case broke != nil && !gone:
		return garbage(v, http.StatusOK, "broke off")
	case down == 0 && !gone:
		return garbage(v, http.StatusOK, "is a stream of nothing")
	}
	v.call.Event(nil, true, nil)
	return nil
}

// eventsOf reads events until take returns false.
func eventsOf(body io.Reader, take func([]byte) bool) error {
	parser, buf := wire.SSEParser{MaxEvent: maxEvent}, make([]byte, 16<<10)
	enough := errors.New("nobody listens")
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

// relay sends events on as they come, and comments while there are none. done tells that
// the last event was sent.
func relay(v *visit, ctx *patience, events <-chan []byte, o *outgoing) (down int, done bool, err error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	sent := time.Now()
	for {
		select {
		case raw, more := <-events:
			if !more {
				return down, false, nil
			}
			ctx.heard()
			down += len(raw)
			got, err := hear(v, http.StatusOK, raw, o)
			if err != nil {
				return down, false, err
			}
			if got.refused != nil {
				return down, false, got.refused
			}
			out, changed, last, err := clientResult(v, got.raw)
			if err != nil {
				return down, false, err
			}
			shown := raw
			if changed || !v.up.same {
				shown = enveloped(v, out)
			}
			if sent, v.began = time.Now(), true; last { // the last event makes the record, which needs the counts
				v.call.Used(len(v.req.raw), down)
			}
			v.call.Event(wire.AppendSSE(nil, "", shown), last, nil)
			if last {
				return down, true, nil
			}
		case <-tick.C:
			if err := still(v); err != nil {
				return down, false, err
			}
			if time.Since(sent) > quiet {
				sent, v.began = time.Now(), true
				v.call.Event([]byte(": here\n\n"), false, nil)
			}
		case <-ctx.Done():
			return down, false, nil
		}
	}
}

// still checks again that the caller may use the agent and the skill of this call.
func still(v *visit) error {
	who, view, err := v.call.Still()
	if err != nil {
		return err
	}
	facts, err := authz.Load(v.call.Context, view, who, v.facts.Server.Record.Slug)
	if err != nil {
		return err
	}
	skill := v.note.Name
	if v.facts = facts; facts.Server.Record.ID != v.note.Server {
		return fault.New(fault.Conflict, "", "The agent is another one by now: ask again")
	}
	return may(v, skill)
}
