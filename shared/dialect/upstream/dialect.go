package upstream

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Wire is the provider half of a chat.Dialect. No route takes requests in its
// shape.
type Wire interface {
	// Name is the dialect's name in the catalogue.
	Name() string
	// EncodeRequest appends the body for the provider, see chat.Dialect.
	EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error)
	// DecodeResponse reads the provider's whole answer.
	DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error)
	// NewStreamDecoder reads the provider's stream.
	NewStreamDecoder(t *chat.Traits) chat.StreamDecoder
	// DecodeError reads the provider's error answer.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Dialect makes a Wire a chat.Dialect: what is passed through is metered, what a
// client would write in this shape is refused.
type Dialect struct{ Wire }

var (
	_ chat.Dialect = Dialect{}
	_ chat.Headed  = Dialect{}
)

// ReadHeader implements chat.Headed for wires that do.
func (d Dialect) ReadHeader(h http.Header, r *chat.Response) {
	if w, ok := d.Wire.(chat.Headed); ok {
		w.ReadHeader(h, r)
	}
}

// none looks for no member: the walk only checks that a body is one JSON object.
var none = wire.NewKeySet()

// Check implements chat.Dialect.
func (Dialect) Check(body []byte, c *chat.Checked) error {
	c.Keys = none
	return none.Walk(body, &c.Walk)
}

func (d Dialect) unspoken() *fault.Fault {
	return fault.Newf(fault.UnsupportedOperation, "", "The shape %s is spoken to providers only", d.Name())
}

// DecodeRequest implements chat.Dialect: it refuses.
func (d Dialect) DecodeRequest([]byte) (*chat.Request, error) { return nil, d.unspoken() }

// EncodeResponse implements chat.Dialect: it gives the refusal.
func (d Dialect) EncodeResponse(dst []byte, _ *chat.Response, o *chat.Options) []byte {
	return d.AppendError(dst, d.unspoken(), o)
}

// NewStreamEncoder implements chat.Dialect: the stream holds the refusal.
func (d Dialect) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return refusing{d, o} }

// AppendError implements chat.Dialect.
func (Dialect) AppendError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	return append(dst, f.DataBody(false)...)
}

// AppendStreamError implements chat.Dialect.
func (Dialect) AppendStreamError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	return wire.AppendSSE(dst, "error", f.DataBody(false))
}

// MeterResponse implements chat.Dialect.
func (d Dialect) MeterResponse(body []byte) chat.Meter { return Meter(d.Wire, body) }

// NewStreamFilter implements chat.Dialect.
func (d Dialect) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return NewFilter(d.NewStreamDecoder(&chat.Traits{}))
}

// refusing answers a stream with the refusal.
type refusing struct {
	d Dialect
	o *chat.Options
}

func (refusing) Append(dst []byte, _ *chat.Delta) []byte { return dst }

func (r refusing) Finish(dst []byte) []byte { return r.Error(dst, r.d.unspoken()) }

func (r refusing) Error(dst []byte, f *fault.Fault) []byte {
	return r.d.AppendStreamError(dst, f, r.o)
}

// Meter reads what the books need of a plain answer by decoding it.
func Meter(w Wire, body []byte) chat.Meter {
	r, err := w.DecodeResponse(body, &chat.Traits{})
	if err != nil {
		return chat.Meter{Err: fault.From(err)}
	}
	return r.Meter()
}

// Filter passes a stream on and meters it by the decoder of its dialect. An event
// that the decoder cannot read ends the stream: it is not given out, unless the
// stream has a framing of its own.
type Filter struct {
	dec    chat.StreamDecoder
	parser chat.EventParser // of streams that are not server-sent events
	split  events.Splitter
	out    events.Output
	began  bool
	failed bool // an error was seen
	passed bool // and it is the provider's own, which has been given out
}

// NewFilter gives a filter for the stream that dec reads.
func NewFilter(dec chat.StreamDecoder) *Filter {
	f := &Filter{dec: dec}
	if framed, ok := dec.(chat.Framed); ok {
		f.parser = framed.Parser()
	}
	return f
}

// Meter implements chat.StreamFilter.
func (f *Filter) Meter() chat.Meter { return f.dec.Meter() }

// Passed implements chat.StreamFilter.
func (f *Filter) Passed() bool { return f.passed }

func ignore(*chat.Delta) error { return nil }

func (f *Filter) event(name string, data []byte) error { return f.dec.Event(name, data, ignore) }

// fail notes the error of an event.
func (f *Filter) fail(err error) {
	if err != nil {
		f.failed, f.passed = true, fault.From(err).Code != fault.InvalidProviderResponse
	}
}

// Feed implements chat.StreamFilter.
func (f *Filter) Feed(in []byte) ([]byte, error) {
	if f.failed {
		return nil, nil
	}
	if f.parser != nil {
		from := 0
		if !f.began { // it may be the end of a binary stream, cut out anywhere
			from = max(0, wire.EventStreamStart(in))
			f.began = len(in) > 0
		}
		f.fail(f.parser.Feed(in[from:], f.event))
		return in, nil
	}
	if err := f.split.Feed(in); err != nil {
		return nil, err
	}
	f.split.Start(&f.out)
	var e events.Event
	for !f.failed && f.split.Next(&e) {
		if f.look(&e) {
			f.out.Add(e.Raw)
		}
	}
	return f.out.Bytes(), nil
}

// End implements chat.StreamFilter.
func (f *Filter) End() []byte {
	if f.failed {
		return nil
	}
	if f.parser != nil {
		f.fail(f.parser.End(f.event))
		_ = f.dec.End()
		return nil
	}
	var e events.Event
	if !f.split.Last(&e) {
		_ = f.dec.End()
		return nil
	}
	given := f.look(&e)
	defer func() { _ = f.dec.End() }()
	if given && (f.dec.Meter().Complete || f.failed) {
		return append([]byte(nil), e.Raw...)
	}
	return nil // a piece of an event: the stream was cut
}

// look meters one event and tells whether it is for the client.
func (f *Filter) look(e *events.Event) bool {
	if e.Data != nil {
		f.fail(f.event(string(e.Name), e.Data))
	}
	return !f.failed || f.passed
}
