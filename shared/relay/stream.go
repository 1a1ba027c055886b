package relay

import (
	"errors"
	"io"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxHeld bounds the bytes held before the first content.
const maxHeld = 256 << 10

// streamChunk is how much of a stream is read at once.
const streamChunk = 32 << 10

// turn translates a stream: provider events to canonical deltas to the client's
// events.
type turn struct {
	parser chat.EventParser
	dec    chat.StreamDecoder
	enc    chat.StreamEncoder
	out    []byte
	began  bool
	gather *gathering // nil: the answer is not kept

	// The two methods as values, made once and not for every event.
	onEvent func(name string, data []byte) error
	onDelta func(*chat.Delta) error
}

func newTurn(dec chat.StreamDecoder, enc chat.StreamEncoder) *turn {
	t := &turn{dec: dec, enc: enc}
	if framed, ok := dec.(chat.Framed); ok {
		t.parser = framed.Parser()
	} else {
		t.parser = new(wire.SSEParser)
	}
	t.onEvent, t.onDelta = t.event, t.delta
	return t
}

// feed translates what arrived; the result is valid until the next call.
func (t *turn) feed(in []byte) ([]byte, error) {
	t.out = t.out[:0]
	err := t.parser.Feed(in, t.onEvent)
	return t.out, err
}

// event gives one event of the provider to the decoder.
func (t *turn) event(name string, data []byte) error { return t.dec.Event(name, data, t.onDelta) }

func (t *turn) delta(d *chat.Delta) error {
	t.began = t.began || d.HasContent()
	if t.gather != nil {
		t.gather.add(d)
	}
	t.out = t.enc.Append(t.out, d)
	return nil
}

// end closes a translated stream.
func (t *turn) end() ([]byte, error) {
	t.out = t.out[:0]
	if err := t.parser.End(t.onEvent); err != nil {
		return t.out, err
	}
	if err := t.dec.End(); err != nil {
		return t.out, err
	}
	t.out = t.enc.Finish(t.out)
	return t.out, nil
}

// pass gives the next bytes of the answer to whatever handles the stream.
func (a *answer) pass(in []byte) ([]byte, error) {
	if a.turn != nil {
		return a.turn.feed(in)
	}
	if a.gather != nil {
		a.gather.feed(in) // before the filter, which may change the bytes
	}
	return a.filter.Feed(in)
}

func (a *answer) meter() chat.Meter {
	if a.turn != nil {
		return a.turn.dec.Meter()
	}
	return a.filter.Meter()
}

// open reads a stream until its first content, its end or an error. An error
// before any content becomes the answer, with its own status, unless the head
// has gone out: see headHold.
func (c *call) open(a *answer) {
	hold := c.to.leaf.Hold
	if hold <= 0 {
		return // nothing is held: the head goes out as it comes
	}
	if c.heldBuf == nil {
		c.heldBuf = newBuffer()
	}
	held := c.heldBuf // an attempt that was given up leaves nothing in it that counts
	held.b = held.b[:0]
	chunk := newBufferFor(streamChunk) // a stream that comes fast is sent on in few pieces
	defer chunk.free()
	p := chunk.b[:cap(chunk.b)]
	h := c.hold(a, hold)
	defer h.end()
	for {
		t := c.Now()
		n, err := h.read(p)
		c.waited += c.Now().Sub(t)
		if n > 0 {
			out, ferr := c.pass(a, p[:n])
			held.reserve(len(out))
			held.b = append(held.b, out...)
			m := a.meter()
			c.patience.Arrived(m.Started)
			if ferr != nil || m.Err != nil {
				hide(held.b, c.secrets())
				if !m.Started && !c.headSent {
					c.firstEventFailed(a, m, ferr)
					return
				}
				a.broken = ferr
				break
			}
			if m.Started || m.Complete || len(held.b) > maxHeld || c.headSent && err == nil {
				break
			}
		}
		if err == io.EOF {
			a.ended = true
			break
		}
		if err != nil && c.headSent {
			a.broken = c.cut(err)
			break
		}
		if err != nil {
			c.firstEventFailed(a, a.meter(), err)
			return
		}
	}
	if a.ended && !a.meter().Started && !a.meter().Complete && !c.headSent {
		c.firstEventFailed(a, a.meter(), io.ErrUnexpectedEOF)
		return
	}
	a.held = held.b
}

// firstEventFailed turns a stream that never began into a refusal.
func (c *call) firstEventFailed(a *answer, m chat.Meter, err error) {
	f := m.Err
	late := c.patience.Late()
	switch {
	case f != nil:
		f.Source = fault.SourceProvider
	case late != nil:
		f = late
	default:
		f = fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s broke off before it began", c.to.target.Provider.ID).WithCause(err)
		f.Source = fault.SourceProvider
	}
	c.patience.Stop()
	if m.Usage.Known() {
		c.charge(m.Usage)
	}
	a.failed = a.resp.Header
	a.drop()
	a.fault = f
}

// sendStream passes a stream on as it comes. The end of it is held until the
// books are written.
func (c *call) sendStream(a *answer) error {
	err := c.keepMade(nil, a.meter().ID)
	if err != nil && !c.headSent {
		return err
	}
	c.streamHead(a)
	c.flushWhenWaiting(a.resp.Body)
	if len(a.held) > 0 {
		c.piece(a, a.held)
	}
	if err == nil {
		err = a.broken
	}
	if err == nil && a.meter().Err == nil && !a.ended {
		err = c.pump(a)
	}
	return c.closeStream(a, err)
}

// pump reads the answer to its end.
func (c *call) pump(a *answer) error {
	chunk := newBufferFor(streamChunk)
	defer chunk.free()
	p := chunk.b[:cap(chunk.b)]
	for {
		t := c.Now()
		n, err := a.resp.Body.Read(p)
		c.waited += c.Now().Sub(t)
		if n > 0 {
			out, ferr := c.pass(a, p[:n])
			c.patience.Arrived(a.meter().Started)
			if a.meter().Err != nil {
				hide(out, c.secrets())
			}
			c.piece(a, out)
			if ferr != nil {
				return ferr
			}
			if a.meter().Err != nil {
				return a.meter().Err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.cut(err)
		}
	}
}

// piece sends a part of a stream on, or keeps it when it holds the stream's end.
func (c *call) piece(a *answer, out []byte) {
	if len(out) == 0 {
		return
	}
	c.captureAnswer(out)
	if len(c.tail) > 0 || a.meter().Complete {
		c.tail = append(c.tail, out...)
		return
	}
	c.write(out)
	c.flushSoon()
}

// closeStream settles a stream and sends its end: the terminal event when it is
// whole, an error event without one when it is not.
func (c *call) closeStream(a *answer, err error) error {
	var last []byte
	m := a.meter()
	c.patience.Stop()
	if err == nil && m.Err == nil {
		if a.turn != nil {
			last, err = a.turn.end()
		} else {
			last = a.filter.End()
			if !a.filter.Meter().Complete {
				err = io.ErrUnexpectedEOF
			}
		}
	}
	m = a.meter()
	if a.turn != nil {
		c.remember(a.turn.dec.Signed())
	}
	c.learn(m)
	if err == nil && m.Err == nil {
		c.captureAnswer(last)
		c.tail = append(c.tail, last...)
		c.keepStream(a)
		c.books()
		c.flushTail()
		return nil
	}
	f := m.Err
	if f == nil {
		f = c.streamBroke(err)
	}
	f.Source = fault.SourceProvider
	c.hideInFault(f)
	c.endFault = f
	c.rec.ErrorCode, c.rec.ErrorMessage = string(f.Code), recorded(f)
	if a.turn != nil {
		last = a.turn.enc.Error(last[:0], f)
	} else if !a.filter.Passed() {
		// A provider's own error event has been passed on already.
		o := c.options()
		o.NextEvent = m.NextEvent
		last = c.rt.Client.AppendStreamError(last[:0], f, o)
	}
	c.captureAnswer(last)
	c.tail = append(c.tail[:0], last...)
	c.books()
	c.flushTail()
	return nil
}

// cut says why a read of a stream failed: the gateway's own patience comes first.
func (c *call) cut(err error) error {
	if f := c.patience.Late(); f != nil {
		return f
	}
	return err
}

// Values of headers are shared between requests; nobody changes them in place.
var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
)

func (c *call) streamBroke(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	return fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s broke off", c.to.target.Provider.ID).WithCause(err)
}

// flushTail sends what was held for the books.
func (c *call) flushTail() {
	c.write(c.tail)
	c.tail = c.tail[:0]
	if c.RecordAfterBody {
		c.flush() // else the server sends it with the end of the body, at once
	}
}
