package relay

import (
	"io"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/pooled"
	"gateway/shared/wire/mask"
)

// maxHeld bounds the bytes held before the first content.
const maxHeld = 256 << 10

// streamChunk is how much of a stream is read at once.
const streamChunk = 32 << 10

// open reads a stream until its first content, its end or an error. An error before any
// content becomes the answer, with its own status, unless the head has already gone out:
// see hold and passesEvents.
func (st *streams) open(a *answer) {
	hold := st.To.Leaf.Hold
	if hold <= 0 {
		return // nothing is held back: the head goes out at once
	}
	if st.heldBuf == nil {
		st.heldBuf = pooled.New()
	}
	held := st.heldBuf // an attempt that was given up leaves nothing in it that counts
	held.B = held.B[:0]
	chunk := pooled.For(streamChunk) // a stream that comes fast is sent on in few pieces
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	h := st.hold(a, hold)
	defer h.End()
	for {
		t := st.Now()
		n, err := h.Read(a.resp.Body, p)
		st.waited += st.Now().Sub(t)
		if n > 0 {
			out, ferr := st.pass(a, p[:n])
			held.Reserve(len(out))
			held.B = append(held.B, out...)
			m := a.stream.Meter()
			st.patience.Arrived(m.Started || m.Held)
			if ferr != nil || m.Err != nil {
				mask.Bytes(held.B, st.stars.Secrets())
				if !m.Started && !st.headSent {
					st.firstEventFailed(a, m, ferr)
					return
				}
				a.broken = ferr
				break
			}
			if m.Started || m.Complete || len(held.B) > maxHeld || st.headSent && err == nil || len(held.B) > 0 && st.passesEvents() {
				break
			}
		}
		if err == io.EOF {
			a.ended = true
			break
		}
		if err != nil && st.headSent {
			a.broken = st.cut(err)
			break
		}
		if err != nil {
			st.firstEventFailed(a, a.stream.Meter(), err)
			return
		}
	}
	if a.ended && !a.stream.Meter().Started && !a.stream.Meter().Complete && !st.headSent {
		st.firstEventFailed(a, a.stream.Meter(), io.ErrUnexpectedEOF)
		return
	}
	a.held = held.B
}

// passesEvents tells that each event goes out before the next is read. Agents that speak
// the Messages API to a provider of that shape rely on it, and holding the first event
// gains nothing where no other target would be tried.
func (st *streams) passesEvents() bool {
	leaf := st.To.Leaf
	return st.SameDialect() && st.To.Dialect.Name() == provider.AnthropicMessages &&
		leaf.Retry == nil && leaf.FirstToken == 0 && (st.Walker == nil || st.Walker.Alone())
}

// firstEventFailed turns a stream that never began into a refusal.
func (st *streams) firstEventFailed(a *answer, m chat.Meter, err error) {
	f := m.Err
	late := st.patience.Late()
	switch {
	case fault.ByGuardrail(err), fault.Is(err, fault.ServiceUnavailable):
		// The gateway itself ends it: the owner of its items could not be stored, for example.
		// The provider makes the rest all the same.
		st.drain(a)
		st.Learn(a.stream.Meter())
		st.patience.Stop()
		a.failed = a.resp.Header
		a.drop()
		a.fault = fault.From(err)
		return
	case f != nil:
		f.Source = fault.SourceProvider
	case late != nil:
		f = late
	default:
		f = fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s broke off before it began", st.To.Target.Provider.ID).WithCause(err)
		f.Source = fault.SourceProvider
	}
	st.patience.Stop()
	switch {
	case m.Usage.Known():
		st.Heard.Hear(m)
		st.Charge(m.Usage)
	case m.Err == nil && st.gaveUp():
		st.Learn(m) // the provider has read the request, and was not given time to say so
	}
	a.failed = a.resp.Header
	a.drop()
	a.fault = f
}

// sendStream passes a stream on as it comes. The end of it is held until the
// books are written.
func (s *sender) sendStream(a *answer) error {
	err := s.KeepMade(nil, a.stream.Meter().ID)
	if err != nil { // the provider makes the rest all the same
		s.drain(a)
	}
	if err != nil && !s.headSent {
		s.Learn(a.stream.Meter())
		return err
	}
	s.streamHead(a)
	s.flushWhenWaiting(a.resp.Body)
	if len(a.held) > 0 {
		s.piece(a, a.held)
	}
	if err == nil {
		err = a.broken
	}
	if err == nil && a.stream.Meter().Err == nil && !a.ended {
		err = s.pump(a)
	}
	return s.closeStream(a, err)
}

// pump reads the answer to its end.
func (s *sender) pump(a *answer) error {
	chunk := pooled.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	for {
		t := s.Now()
		n, err := a.resp.Body.Read(p)
		s.waited += s.Now().Sub(t)
		if n > 0 {
			out, ferr := s.pass(a, p[:n])
			m := a.stream.Meter()
			s.patience.Arrived(m.Started || m.Held)
			if a.stream.Meter().Err != nil {
				mask.Bytes(out, s.stars.Secrets())
			}
			s.piece(a, out)
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
			return s.cut(err)
		}
	}
}

// piece sends a part of a stream on, or keeps it when it holds the stream's end.
func (s *sender) piece(a *answer, out []byte) {
	if len(out) == 0 {
		return
	}
	s.captureAnswer(out)
	if len(s.tail) > 0 || a.stream.Meter().Complete {
		s.tail = append(s.tail, out...)
		return
	}
	s.write(out)
	s.flushSoon()
}

// closeStream settles a stream and sends its end: the terminal event when it is
// whole, an error event without one when it is not.
func (s *sender) closeStream(a *answer, err error) error {
	var last []byte
	m := a.stream.Meter()
	s.patience.Stop()
	if fault.ByGuardrail(err) {
		return s.denyStream(a, fault.From(err))
	}
	if err == nil && m.Err == nil {
		if last, err = a.stream.End(); fault.ByGuardrail(err) {
			return s.denyStream(a, fault.From(err))
		}
	}
	m = a.stream.Meter()
	s.Remember(a.stream.Signed())
	s.Learn(m)
	if err == nil && m.Err == nil {
		s.captureAnswer(last)
		s.tail = append(s.tail, last...)
		s.judgeEnd(a)
		s.keepStream(a)
		s.keepBooks()
		s.flushTail()
		return nil
	}
	f := m.Err
	if f == nil {
		f = s.To.StreamBroke(err)
	}
	f.Source = fault.SourceProvider
	s.stars.Fault(f)
	s.endFault = f
	recordFailure(s.reply, f)
	if ended, ok := a.stream.AppendError(last[:0], f); ok {
		last = ended
	} else if !a.stream.TellsError() {
		// A provider's own error event has been passed on already.
		o := s.options()
		if o.NextEvent = m.NextEvent; m.ID != "" {
			o.ID = m.ID
		}
		last = s.Route.Client.AppendStreamError(last[:0], f, o)
	}
	s.captureAnswer(last)
	s.tail = append(s.tail[:0], last...)
	s.keepBooks()
	s.flushTail()
	breakConnection(s.reply)
	return nil
}

// recordFailure records why a response whose head has gone out is not a good one. The record
// has the status of the failure: the client got no success, although the head said so.
func recordFailure(r *reply, f *fault.Fault) { r.failure, r.status = f, f.Status() }

// breakConnection has the connection cut behind the error event of a stream if the clients
// of its shape need that.
func breakConnection(r *reply) {
	if b, ok := r.from.Route.Client.(chat.Breaker); ok && b.BreaksConnection() {
		r.flush()
		r.broken = true
	}
}

// cut tells why a read of a stream failed. If the gateway's own patience ran out, that is
// the reason.
func (st *streams) cut(err error) error {
	if f := st.patience.Late(); f != nil {
		return f
	}
	return err
}

// gaveUp: the gateway itself has ended the attempt, as its client is gone or a time ran out.
func (o *outbound) gaveUp() bool { return o.Ctx.Err() != nil || o.patience.Late() != nil }

// Values of headers are shared between requests; nobody changes them in place.
var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
)

// flushTail sends what was held for the books.
func (s *sender) flushTail() {
	s.write(s.tail)
	s.tail = s.tail[:0]
	if s.RecordAfterBody {
		s.flush() // else the server sends it with the end of the body, at once
	}
}
