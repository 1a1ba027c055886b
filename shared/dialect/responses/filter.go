package responses

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// filter passes a stream of this dialect on as it is and meters it. Pieces of
// content are told by the name of their event, or by their first bytes, and not
// read.
type filter struct {
	m      chat.Meter
	split  events.Splitter
	out    events.Output
	d      wire.Decoder
	ev     streamEvent
	failed bool
}

// Meter implements chat.StreamFilter.
func (f *filter) Meter() chat.Meter { return f.m }

// Passed implements chat.StreamFilter.
func (f *filter) Passed() bool { return f.failed }

// Feed implements chat.StreamFilter.
func (f *filter) Feed(in []byte) ([]byte, error) {
	if f.failed {
		return nil, nil
	}
	if err := f.split.Feed(in); err != nil {
		return nil, err
	}
	f.split.Start(&f.out)
	var e events.Event
	for !f.failed && f.split.Next(&e) {
		f.look(&e)
		f.out.Add(e.Raw)
	}
	return f.out.Bytes(), nil
}

// End implements chat.StreamFilter.
func (f *filter) End() []byte {
	var e events.Event
	if f.failed || !f.split.Last(&e) {
		return nil
	}
	f.look(&e)
	if !f.m.Complete && !f.failed {
		return nil // a piece of an event: the stream was cut
	}
	return append(bytes.TrimRight(append([]byte(nil), e.Raw...), "\r\n"), "\n\n"...)
}

// deltaOverhead is about how many bytes of a delta event are not its text.
const deltaOverhead = 190

var (
	deltaName = []byte(".delta")
	typeHead  = []byte(`{"type":"response.`)
)

// look meters one event.
func (f *filter) look(e *events.Event) {
	if e.Data == nil || f.m.Complete {
		return
	}
	f.m.NextEvent = max(f.m.NextEvent, sequence(e.Data)) + 1
	if f.piece(e) {
		f.m.Started = true
		f.m.OutputBytes += int64(max(1, len(e.Data)-deltaOverhead))
		f.m.Pieces++
		return
	}
	if f.ev.read(&f.d, e.Data) != nil {
		return // the client reads it as it would have
	}
	switch f.ev.kind {
	case "response.created":
		f.object(f.ev.response)
	case "response.output_item.added":
		f.m.Started = f.m.Started || bytes.Contains(f.ev.item, []byte(`_call"`))
	case "response.output_item.done":
		f.m.Started = true
	case "response.completed", "response.incomplete":
		end := f.object(f.ev.response)
		if f.ev.kind == "response.incomplete" {
			end.status = "incomplete"
		}
		if f.m.Err = end.fault(); f.m.Err != nil {
			f.failed = true
			return
		}
		_, f.m.Finish = end.stop(false, false)
		f.m.Started, f.m.Complete = true, true
	default:
		if kind := f.ev.kind; kind == "error" || kind == "response.failed" || kind == "response.cancelled" || f.ev.failure != nil {
			f.m.Err = failureOf(&f.ev, &f.d, &f.m.Usage)
			f.failed = true
		}
	}
}

var sequenceMember = []byte(`"sequence_number":`)

// sequence is the number that an event has in its stream; -1 when it has none.
// Inside of a string the member's name would be escaped.
func sequence(event []byte) int64 {
	at := bytes.Index(event, sequenceMember)
	if at < 0 {
		return -1
	}
	digits := bytes.TrimLeft(event[at+len(sequenceMember):], " ")
	n, read := int64(0), 0
	for ; read < len(digits) && read < 15 && '0' <= digits[read] && digits[read] <= '9'; read++ {
		n = 10*n + int64(digits[read]-'0')
	}
	if read == 0 {
		return -1
	}
	return n
}

// piece tells whether an event is a piece of content.
func (f *filter) piece(e *events.Event) bool {
	if len(e.Name) > 0 {
		return bytes.HasSuffix(e.Name, deltaName)
	}
	if !bytes.HasPrefix(e.Data, typeHead) {
		return false
	}
	kind := e.Data[len(typeHead):]
	end := bytes.IndexByte(kind, '"')
	return end > 0 && bytes.HasSuffix(kind[:end], deltaName)
}

// object reads a response object.
func (f *filter) object(raw []byte) (end ending) {
	d := &f.d
	d.Reset(raw)
	if d.Kind() != wire.KindObject {
		return end
	}
	for key := range d.Object {
		if end.member(key, d) {
			continue
		}
		switch string(key) {
		case "id":
			f.m.ID = optString(d)
		case "model":
			f.m.Model = optString(d)
		case "usage":
			if d.Kind() == wire.KindObject {
				f.m.ReportedTotal = openai.ReadUsage(d, &f.m.Usage)
			}
		}
	}
	return end
}
