package relay

import (
	"io"
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// maxPrefix limits the bytes held before the first content.
const maxPrefix = 256 << 10

// streamChunk is the size of one read of a stream.
const streamChunk = 32 << 10

// open reads a stream until its first content, its end or an error. An error before any content
// becomes the response, with its own status, unless the head was already sent: see hold and
// passesEvents.
func open(c *call, a *targetResult) {
	hold := c.target.Choice.Leaf.Hold
	if hold <= 0 {
		return // nothing is held back: the head is sent immediately
	}
	if c.stream.prefixBuf == nil {
		c.stream.prefixBuf = buffer.New()
	}
	held := c.stream.prefixBuf // an aborted attempt leaves only stale bytes in it
	held.B = held.B[:0]
	chunk := buffer.For(streamChunk) // a fast stream is forwarded in few pieces
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	h := holdHead(c, a, hold)
	defer h.End()
	for {
		t := c.relay.Now()
		n, err := h.Read(a.resp.Body, p)
		c.log.Wait(c.relay.Now().Sub(t))
		if n > 0 {
			out, ferr := pass(&c.target, &c.guards, &c.cache, &c.stream, a, p[:n])
			held.Reserve(len(out))
			held.B = append(held.B, out...)
			m := a.stream.Meter()
			c.out.patience.PartArrived(m.Started || m.Withheld)
			if ferr != nil || m.Err != nil {
				mask.Bytes(held.B, c.mask.Secrets())
				if !m.Started && !c.reply.headSent {
					firstEventFailed(c, a, m, ferr)
					return
				}
				a.broken = ferr
				break
			}
			if m.Started || m.Complete || len(held.B) > maxPrefix || c.reply.headSent && err == nil || len(held.B) > 0 && passesEvents(&c.target) {
				break
			}
		}
		if err == io.EOF {
			a.ended = true
			break
		}
		if err != nil && c.reply.headSent {
			a.broken = cut(&c.out, err)
			break
		}
		if err != nil {
			firstEventFailed(c, a, a.stream.Meter(), err)
			return
		}
	}
	if a.ended && !a.stream.Meter().Started && !a.stream.Meter().Complete && !c.reply.headSent {
		firstEventFailed(c, a, a.stream.Meter(), io.ErrUnexpectedEOF)
		return
	}
	a.prefix = held.B
}

// passesEvents reports whether each event is sent before the next is read. Agents that use the
// Messages API with a provider of that dialect rely on it, and holding the first event has no
// use if no other target would be tried.
func passesEvents(tg *target.Target) bool {
	leaf := tg.Choice.Leaf
	return tg.SameDialect() && tg.Choice.Dialect.Name() == provider.AnthropicMessages &&
		leaf.Retry == nil && leaf.FirstToken == 0 && (tg.Plan.Traversal == nil || tg.Plan.Traversal.IsSingle())
}

// firstEventFailed turns a stream that never started into a fault.
func firstEventFailed(c *call, a *targetResult, m chat.Meter, err error) {
	f := m.Err
	late := c.out.patience.TimeoutFault()
	switch {
	case fault.ByGuardrail(err), fault.Is(err, fault.ServiceUnavailable):
		// The gateway itself ends it: the owner of its items could not be stored, for example.
		// The provider completes the response anyway.
		drain(&c.target, &c.guards, &c.cache, &c.stream, a)
		accounting.RecordUsage(&c.bill, a.stream.Meter())
		c.out.patience.Stop()
		a.failed = a.resp.Header
		a.drop()
		a.fault = fault.From(err)
		return
	case f != nil:
		f.Source = fault.SourceProvider
	case late != nil:
		f = late
	default:
		f = fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s ended before its first content", c.target.Choice.Target.Provider.ID).WithCause(err)
		f.Source = fault.SourceProvider
	}
	c.out.patience.Stop()
	switch {
	case m.Usage.IsReported():
		c.bill.Reported.Observe(m)
		c.bill.Charge(m.Usage)
	case m.Err == nil && endedByGateway(&c.req, &c.out):
		accounting.RecordUsage(&c.bill, m) // the provider has read the request, and had no time to report it
	}
	a.failed = a.resp.Header
	a.drop()
	a.fault = f
}

// sendStream forwards a stream as it arrives. Its end is held until the record is written.
func sendStream(c *call, a *targetResult) error {
	err := target.RecordCreated(&c.target, nil, a.stream.Meter().ID)
	if err != nil { // the provider completes the response anyway
		drain(&c.target, &c.guards, &c.cache, &c.stream, a)
	}
	if err != nil && !c.reply.headSent {
		accounting.RecordUsage(&c.bill, a.stream.Meter())
		return err
	}
	streamHead(c, a)
	c.reply.flushWhenWaiting(a.resp.Body)
	if len(a.prefix) > 0 {
		piece(&c.reply, &c.log, a, a.prefix)
	}
	if err == nil {
		err = a.broken
	}
	if err == nil && a.stream.Meter().Err == nil && !a.ended {
		err = pump(c, a)
	}
	return closeStream(c, a, err)
}

// pump reads the response to its end.
func pump(c *call, a *targetResult) error {
	chunk := buffer.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	for {
		t := c.relay.Now()
		n, err := a.resp.Body.Read(p)
		c.log.Wait(c.relay.Now().Sub(t))
		if n > 0 {
			out, ferr := pass(&c.target, &c.guards, &c.cache, &c.stream, a, p[:n])
			m := a.stream.Meter()
			c.out.patience.PartArrived(m.Started || m.Withheld)
			if a.stream.Meter().Err != nil {
				mask.Bytes(out, c.mask.Secrets())
			}
			piece(&c.reply, &c.log, a, out)
			if ferr != nil {
				return ferr
			}
			if a.stream.Meter().Err != nil {
				return a.stream.Meter().Err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return cut(&c.out, err)
		}
	}
}

// piece forwards a part of a stream, or holds it if it contains the stream's end.
func piece(rw *reply, log *record.Log, a *targetResult, out []byte) {
	if len(out) == 0 {
		return
	}
	log.Body(record.Response, out)
	if len(rw.tail) > 0 || a.stream.Meter().Complete {
		rw.tail = append(rw.tail, out...)
		return
	}
	rw.write(out)
	rw.flushSoon()
}

// closeStream settles a stream and sends its end: the terminal event if it is complete, an error
// event without one if it is not.
func closeStream(c *call, a *targetResult, err error) error {
	var last []byte
	m := a.stream.Meter()
	c.out.patience.Stop()
	if fault.ByGuardrail(err) {
		return denyStream(c, a, fault.From(err))
	}
	if err == nil && m.Err == nil {
		if last, err = a.stream.End(); fault.ByGuardrail(err) {
			return denyStream(c, a, fault.From(err))
		}
	}
	m = a.stream.Meter()
	c.target.StoreReasoning(a.stream.Signed())
	accounting.RecordUsage(&c.bill, m)
	if err == nil && m.Err == nil {
		c.log.Body(record.Response, last)
		c.reply.tail = append(c.reply.tail, last...)
		judgeEnd(&c.target, &c.reply, &c.log, &c.guards, a)
		keepStream(&c.target, &c.cache, a)
		settleAndRecord(c)
		flushTail(c.relay, &c.reply)
		return nil
	}
	f := m.Err
	if f == nil {
		f = c.target.Choice.TruncatedFault(err)
	}
	f.Source = fault.SourceProvider
	c.mask.Fault(f)
	c.log.EndedBy(f)
	c.log.Reject(f)
	if ended, ok := a.stream.AppendError(last[:0], f); ok {
		last = ended
	} else if !a.stream.ForwardedError() {
		// A provider's own error event has already been forwarded.
		o := target.Options(&c.target)
		if o.NextEvent = m.NextEvent; m.ID != "" {
			o.ID = m.ID
		}
		last = c.req.Route.Client.AppendStreamError(last[:0], f, o)
	}
	c.log.Body(record.Response, last)
	c.reply.tail = append(c.reply.tail[:0], last...)
	settleAndRecord(c)
	flushTail(c.relay, &c.reply)
	breakConnection(&c.reply)
	return nil
}

// breakConnection aborts the connection after the error event of a stream if the clients of its
// dialect need that.
func breakConnection(r *reply) {
	if b, ok := r.from.Route.Client.(chat.Breaker); ok && b.BreaksConnection() {
		r.flush()
		r.broken = true
	}
}

// cut returns the error of a failed read of a stream: the gateway's own timeout if it has
// expired.
func cut(up *outbound, err error) error {
	if f := up.patience.TimeoutFault(); f != nil {
		return f
	}
	return err
}

// endedByGateway reports whether the gateway itself has ended the attempt, because its client is
// gone or a timeout has expired.
func endedByGateway(q *admission.Request, up *outbound) bool {
	return q.Ctx.Err() != nil || up.patience.TimeoutFault() != nil
}

// Values of headers are shared between requests and must not be modified.
var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
)

// flushTail sends the bytes held until the record is written.
func flushTail(r *Relay, rw *reply) {
	rw.write(rw.tail)
	rw.tail = rw.tail[:0]
	if r.RecordAfterBody {
		rw.flush() // otherwise the server sends it together with the end of the body
	}
}

// holdHead holds the head of a's stream back until its first content, so that an error before it
// gets its own status and other targets can still be tried. The time is limited, whatever the
// provider does.
func holdHead(c *call, a *targetResult, most time.Duration) *plan.Hold {
	return plan.NewHold(most, func() {
		// Only one attempt of a race may send, and the second one only after it was chosen.
		if c.race == nil || c == c.race.first && c.race.claim(c) {
			showSign(c, a)
		}
	})
}

// showSign sends the head and the held bytes, and a keep-alive.
func showSign(c *call, a *targetResult) {
	streamHead(c, a)
	if held := c.stream.prefixBuf; len(held.B) > 0 {
		c.log.Body(record.Response, held.B)
		c.reply.write(held.B)
		held.B = held.B[:0]
	}
	sign := signOfLife(&c.req)
	c.log.Body(record.Response, sign)
	c.reply.write(sign)
	c.reply.flush()
}

var (
	commentSign = []byte(": keep-alive\n\n")
	pingSign    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
)

// signOfLife returns bytes that clients of the route's dialect ignore: a comment, or the ping
// event if the dialect has one.
func signOfLife(q *admission.Request) []byte {
	if q.Route.Client.Name() == "anthropic.messages" {
		return pingSign
	}
	if _, framed := q.Route.Client.(chat.FramedWriter); framed {
		return nil // such streams have no place for one
	}
	return commentSign
}

// streamHead sends the head of a stream.
func streamHead(c *call, a *targetResult) {
	if c.reply.headSent {
		return
	}
	h := c.reply.w.Header()
	h["Content-Type"] = eventStream
	if own, ok := c.req.Route.Client.(chat.FramedWriter); ok {
		h["Content-Type"] = own.StreamType()
	}
	h["Cache-Control"] = noCache
	setResponseHeaders(c, a.resp.Header)
	c.reply.head(c.guards.Verdict.Status(http.StatusOK))
	if told := c.guards.FirstEvent(c.req.Route.Endpoint, c.target.StrictOpenAI()); len(told) > 0 {
		c.log.Body(record.Response, told)
		c.reply.write(told)
	}
}
