package upstream

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Passer meters answers of d that are forwarded: by d itself if it can, otherwise by
// decoding. It is nil for nil.
func Passer(d chat.Provider) chat.Passer {
	if d == nil {
		return nil
	}
	if own, ok := d.(chat.Passer); ok {
		return own
	}
	return passer{d}
}

type passer struct{ d chat.AnswerReader }

// MeterResponse implements chat.Passer.
func (p passer) MeterResponse(body []byte) chat.Meter { return Meter(p.d, body) }

// NewStreamFilter implements chat.Passer.
func (p passer) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return NewFilter(p.d.NewStreamDecoder(&chat.Traits{}))
}

// Meter reads what accounting need of a plain answer by decoding it.
func Meter(d chat.AnswerReader, body []byte) chat.Meter {
	r, err := d.DecodeResponse(body, &chat.Traits{})
	if err != nil {
		return chat.Meter{Err: fault.From(err)}
	}
	return r.Meter()
}

// Filter forwards a stream and meters it with the decoder of its dialect. An event that
// the decoder cannot read ends the stream. It is dropped, unless the stream has a
// separate framing.
type Filter struct {
	dec    chat.StreamDecoder
	parser chat.EventParser // of streams that are not server-sent events
	split  events.Splitter
	out    events.Output
	began  bool
	failed bool // an error was seen
	passed bool // and it is the provider's own, which has been given out
}

// NewFilter returns a filter for the stream that dec reads.
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
		if !f.began { // it may be the end of a binary stream that was cut at any place
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

// look meters one event and reports whether it is for the client.
func (f *Filter) look(e *events.Event) bool {
	if e.Data != nil {
		f.fail(f.event(string(e.Name), e.Data))
	}
	return !f.failed || f.passed
}
