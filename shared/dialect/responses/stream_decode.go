package responses

import (
	"bytes"
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamDecoder reads the events of a provider's stream.
type streamDecoder struct {
	m       chat.Meter
	d       wire.Decoder
	out     chat.Delta
	items   []*streamItem
	blocks  int // canonical blocks begun
	calls   int // canonical calls begun
	refused bool
	started bool
	scratch []byte
	ev      streamEvent

	pending []chat.Part // signed reasoning that no call has followed
	signed  []chat.Signed
}

// streamItem is an output item of the stream.
type streamItem struct {
	index   int
	kind    string
	part    int // the content part that block represents
	block   int // canonical block; -1: none yet
	call    int // canonical call, -1 for other items
	pieces  bool
	summary int    // part of the summary
	member  string // the delta event that brings its thoughts
	done    bool
}

// streamEvent is one event, read without copies: bytes alias the event.
type streamEvent struct {
	kind                 string
	index, part, summary int
	delta                []byte // JSON string
	note                 []byte // an annotation
	logprobs             []byte // list
	item, response       []byte
	failure              []byte // error object of an error event
	code, message        []byte // of an error event: JSON strings
}

func newStreamDecoder() *streamDecoder {
	return new(streamDecoder)
}

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter { return s.m }

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

func (e *streamEvent) read(d *wire.Decoder, data []byte) error {
	*e = streamEvent{}
	d.Reset(data)
	for key := range d.Object {
		switch string(key) {
		case "type":
			e.kind = eventKind(d.Bytes())
		case "output_index":
			e.index = position(d)
		case "content_index":
			e.part = position(d)
		case "summary_index":
			e.summary = position(d)
		case "delta", "text", "refusal", "arguments", "input":
			if d.Kind() == wire.KindString {
				e.delta = d.RawStr()
			}
		case "annotation":
			if d.Kind() == wire.KindObject {
				e.note = d.Raw()
			}
		case "logprobs":
			if d.Kind() == wire.KindArray {
				e.logprobs = d.Raw()
			}
		case "code":
			e.code = d.Raw()
		case "message":
			e.message = d.Raw()
		case "item":
			e.item = d.Raw()
		case "response":
			e.response = d.Raw()
		case "error":
			if d.Kind() == wire.KindObject {
				e.failure = d.Raw()
			}
		}
	}
	return d.End()
}

// eventKind returns the type of an event without a copy where it is a usual one.
func eventKind(b []byte) string {
	switch string(b) {
	case "response.output_text.delta":
		return "response.output_text.delta"
	case "response.function_call_arguments.delta":
		return "response.function_call_arguments.delta"
	case "response.reasoning_summary_text.delta":
		return "response.reasoning_summary_text.delta"
	}
	return string(b)
}

func position(d *wire.Decoder) int {
	if d.Kind() != wire.KindNumber {
		d.Skip()
		return 0
	}
	return int(d.Int())
}

// Event implements chat.StreamDecoder.
func (s *streamDecoder) Event(_ string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if t := bytes.TrimSpace(data); len(t) == 0 || string(t) == "[DONE]" || s.m.Complete {
		return nil
	}
	e := &s.ev
	if err := e.read(&s.d, data); err != nil {
		s.m.Err = upstream.UnreadableFault(err)
		return s.m.Err
	}
	switch e.kind {
	case "response.created", "response.in_progress", "response.queued":
		return s.start(e, emit)
	case "response.output_item.added":
		return s.itemAdded(e, emit)
	case "response.output_text.delta":
		return s.text(chat.DeltaText, e, emit)
	case "response.output_text.annotation.added":
		return s.note(e, emit)
	case "response.refusal.delta":
		s.refused = true
		return s.text(chat.DeltaRefusal, e, emit)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return s.thinking(e, emit)
	case "response.function_call_arguments.delta":
		return s.args(s.item(e.index, "function_call"), e.delta, emit)
	case "response.function_call_arguments.done":
		if it := s.item(e.index, "function_call"); !it.pieces {
			return s.args(it, e.delta, emit)
		}
	case "response.output_item.done":
		return s.itemDone(e, emit)
	case "response.completed", "response.incomplete":
		return s.end(e, emit)
	case "response.failed", "response.cancelled":
		return s.failed(e)
	default:
		if e.kind == "error" || e.failure != nil {
			return s.failed(e)
		}
	}
	return nil
}

// failed handles an error event or a response that failed. An error event has its details
// either at its top level or in its error field.
func (s *streamDecoder) failed(e *streamEvent) error {
	s.m.Err = failureOf(e, &s.d, &s.m.Usage)
	return s.m.Err
}

// failureOf is the fault of an event that ends a stream in failure.
func failureOf(e *streamEvent, d *wire.Decoder, usage *pricing.Usage) *fault.Fault {
	if e.failure != nil {
		return failed(e.failure)
	}
	if e.response == nil {
		raw := []byte(`{"code":`)
		if wire.KindOf(e.code) == wire.KindString {
			raw = append(raw, e.code...)
		} else {
			raw = append(raw, `"server_error"`...)
		}
		raw = append(raw, `,"message":`...)
		if wire.KindOf(e.message) != wire.KindString {
			return failed(append(raw, `"The provider ended the stream with an error"}`...))
		}
		return failed(append(append(raw, e.message...), '}'))
	}
	var end ending
	d.Reset(e.response)
	for key := range d.Object {
		if !end.member(key, d) && string(key) == "usage" && d.Kind() == wire.KindObject {
			openai.ReadUsage(d, usage)
		}
	}
	end.status = "failed"
	return end.fault()
}

// start returns the first delta, when the response specifies who answers.
func (s *streamDecoder) start(e *streamEvent, emit func(*chat.Delta) error) error {
	if s.started {
		return nil
	}
	s.started = true
	s.out = chat.Delta{Kind: chat.DeltaStart}
	if e != nil && e.response != nil {
		s.d.Reset(e.response)
		for key := range s.d.Object {
			switch string(key) {
			case "id":
				s.m.ID = optString(&s.d)
			case "model":
				s.m.Model = optString(&s.d)
			case "created_at":
				if s.d.Kind() == wire.KindNumber {
					s.out.Created = int64(s.d.Float())
				}
			}
		}
	}
	s.out.ID, s.out.Model = s.m.ID, s.m.Model
	return emit(&s.out)
}

// maxItems bounds the output items of a stream.
const maxItems = 4096

// item finds or makes the item at index.
func (s *streamDecoder) item(index int, kind string) *streamItem {
	for i := len(s.items) - 1; i >= 0; i-- {
		if s.items[i].index == index {
			return s.items[i]
		}
	}
	it := &streamItem{index: index, kind: kind, block: -1, call: -1}
	if len(s.items) < maxItems {
		s.items = append(s.items, it)
	}
	return it
}

func (s *streamDecoder) itemAdded(e *streamEvent, emit func(*chat.Delta) error) error {
	var o outputItem
	s.d.Reset(e.item)
	if s.d.Kind() == wire.KindObject {
		o.read(&s.d)
	}
	it := s.item(e.index, o.kind)
	if it.kind = o.kind; o.kind == "function_call" {
		return s.begin(it, &o, emit)
	}
	return s.start(nil, emit)
}

// begin returns the start of a tool call.
func (s *streamDecoder) begin(it *streamItem, o *outputItem, emit func(*chat.Delta) error) error {
	if err := s.start(nil, emit); err != nil || it.call >= 0 {
		return err
	}
	s.m.Started = true
	it.call, it.block = s.calls, s.blocks
	s.calls++
	s.blocks++
	c := o.call()
	s.m.OutputBytes += int64(len(c.Name))
	if len(s.pending) > 0 && c.ID != "" {
		s.signed = append(s.signed, chat.Signed{ToolCallID: c.ID, Parts: s.pending})
		s.pending = nil
	}
	s.out = chat.Delta{Kind: chat.DeltaToolStart, Block: it.block, Call: it.call, ID: c.ID, Name: c.Name}
	return emit(&s.out)
}

// end handles the last event of a complete response.
func (s *streamDecoder) end(e *streamEvent, emit func(*chat.Delta) error) error {
	if err := s.start(e, emit); err != nil {
		return err
	}
	var end ending
	h := newHosted()
	var usage pricing.Usage
	var total int64
	s.d.Reset(e.response)
	if s.d.Kind() == wire.KindObject {
		for key := range s.d.Object {
			if end.member(key, &s.d) || h.member(key, &s.d) {
				continue
			}
			switch string(key) {
			case "output":
				h.items(s.d.Raw())
			case "model":
				if s.m.Model == "" {
					s.m.Model = optString(&s.d)
				}
			case "usage":
				if s.d.Kind() == wire.KindObject {
					total = openai.ReadUsage(&s.d, &usage)
				}
			}
		}
	}
	if e.kind == "response.incomplete" {
		end.status = "incomplete"
	}
	if f := end.fault(); f != nil {
		s.m.Err = f
		return f
	}
	if err := s.closeCalls(emit); err != nil {
		return err
	}
	stop, native := end.stop(s.calls > 0, s.refused)
	s.m.Finish, s.m.Started, s.m.Complete = native, true, true
	s.out = chat.Delta{Kind: chat.DeltaStop, Stop: stop, Native: native}
	if err := emit(&s.out); err != nil || !usage.IsReported() {
		return err
	}
	h.bill(&usage, &s.m.PriceFacts)
	s.m.Usage, s.m.ReportedTotal = usage, total
	s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.m.Usage}
	return emit(&s.out)
}

// closeCalls ends calls without an end event.
func (s *streamDecoder) closeCalls(emit func(*chat.Delta) error) error {
	for _, it := range s.items {
		if it.call < 0 || it.done {
			continue
		}
		if !it.pieces {
			if err := s.args(it, []byte(`"{}"`), emit); err != nil {
				return err
			}
		}
		if err := s.blockStop(it, emit); err != nil {
			return err
		}
	}
	return nil
}

// End implements chat.StreamDecoder.
func (s *streamDecoder) End() error {
	switch {
	case s.m.Err != nil:
		return s.m.Err
	case !s.m.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}
