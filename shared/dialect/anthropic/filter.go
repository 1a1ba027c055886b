package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// filter forwards a stream of this dialect unchanged and meters it. It recognizes pieces
// of content by their first and last bytes, without parsing them. An unreadable event
// ends the stream: it is dropped, and the response counts as truncated.
type filter struct {
	m      chat.Meter
	u      counts
	end    ending
	split  events.Splitter
	out    events.Output
	d      wire.Decoder
	failed bool // an error was seen
	passed bool // and it is the provider's own, which has been given out
}

// Meter implements chat.StreamFilter.
func (f *filter) Meter() chat.Meter { return f.m }

// Passed implements chat.StreamFilter.
func (f *filter) Passed() bool { return f.passed }

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
		if f.look(&e) {
			f.out.Add(e.Raw)
		}
	}
	return f.out.Bytes(), nil
}

// End implements chat.StreamFilter.
func (f *filter) End() []byte {
	var e events.Event
	if f.failed || !f.split.Last(&e) {
		return nil
	}
	if !f.look(&e) { // a piece of an event: the stream was cut
		f.m.Err, f.failed = nil, false
		return nil
	}
	if !f.m.Complete && !f.failed {
		return nil
	}
	return append(bytes.TrimRight(append([]byte(nil), e.Raw...), "\r\n"), "\n\n"...)
}

// textMembers are the fields of a delta that are output; a signature is not.
var textMembers = [...][]byte{[]byte(`"text":`), []byte(`"partial_json":`), []byte(`"thinking":`)}

// deltaLen measures the text, tool arguments or reasoning of a delta event.
func deltaLen(event []byte) int {
	for _, member := range textMembers {
		if at := bytes.Index(event, member); at >= 0 {
			return wire.TextLen(event[at+len(member):])
		}
	}
	return 0
}

// nameLen measures the name of the tool that a new block calls.
func nameLen(event []byte) int {
	const member = `"name":`
	if at := bytes.Index(event, []byte(member)); at >= 0 {
		return wire.TextLen(event[at+len(member):])
	}
	return 0
}

// look meters one event and reports whether it is for the client.
func (f *filter) look(e *events.Event) bool {
	if len(e.Data) == 0 {
		return true
	}
	if bytes.HasPrefix(e.Data, deltaHead) && e.Data[len(e.Data)-1] == '}' {
		f.m.Started = true
		f.m.OutputBytes += int64(deltaLen(e.Data))
		f.m.Chunks++
		return true
	}
	d := &f.d
	d.Reset(e.Data)
	kind := string(e.Name)
	var message, delta []byte
	failed := false
	for key := range d.Object {
		switch string(key) {
		case "type":
			kind = eventKind(d.Bytes())
		case "message":
			message = d.Raw()
		case "delta":
			delta = d.Raw()
		case "usage":
			f.u.readFrom(d)
		case "error":
			failed = true
		}
	}
	if err := d.End(); err != nil {
		if !f.m.Complete { // data after a complete response is dropped
			f.m.Err, f.failed = upstream.UnreadableFault(err), true
		}
		return false
	}
	switch kind {
	case "message_start":
		f.start(message)
	case "content_block_delta":
		f.m.Started = true
		f.m.OutputBytes += int64(deltaLen(e.Data))
		f.m.Chunks++
	case "content_block_start":
		f.m.OutputBytes += int64(nameLen(e.Data))
		f.m.Started = f.m.Started || !bytes.Contains(e.Data, []byte(`"text"`)) && !bytes.Contains(e.Data, []byte(`"thinking"`))
	case "message_delta":
		f.delta(delta)
	case "message_stop":
		f.m.Complete = true
	default:
		if kind == "error" || failed {
			f.m.Err = inBandError(e.Data)
			f.failed, f.passed = true, true
		}
	}
	return true
}

func (f *filter) start(message []byte) {
	d := &f.d
	d.Reset(message)
	for key := range d.Object {
		switch string(key) {
		case "id":
			f.m.ID = upstream.OptString(d)
		case "model":
			f.m.Model = upstream.OptString(d)
		case "usage":
			f.u.readFrom(d)
		}
	}
	f.u.bill(f.end, &f.m.Usage, &f.m.PriceFacts)
}

func (f *filter) delta(delta []byte) {
	defer func() { f.u.bill(f.end, &f.m.Usage, &f.m.PriceFacts) }()
	if delta == nil {
		return
	}
	d := &f.d
	d.Reset(delta)
	for key := range d.Object {
		switch string(key) {
		case "stop_reason":
			if native := upstream.OptString(d); native != "" {
				f.m.Finish, f.m.Started, f.end.stop = native, true, native
			}
		case "stop_details":
			_, f.end.category = stopDetails(d)
		}
	}
}

// meterPlain reads the accounting data of a plain response. Its usage is at the end,
// after the content, which is skipped.
func meterPlain(body []byte) chat.Meter {
	m := chat.Meter{Complete: true, Started: true}
	var d wire.Decoder
	d.Reset(body)
	var u counts
	var end ending
	failed := false
	content := 0
	for key := range d.Object {
		switch string(key) {
		case "type":
			failed = string(d.Bytes()) == "error"
		case "id":
			m.ID = upstream.OptString(&d)
		case "model":
			m.Model = upstream.OptString(&d)
		case "content":
			content = len(d.Raw())
		case "stop_reason":
			m.Finish = upstream.OptString(&d)
			end.stop = m.Finish
		case "stop_details":
			_, end.category = stopDetails(&d)
		case "usage":
			u.readFrom(&d)
		}
	}
	if failed {
		return chat.Meter{Err: inBandError(body)}
	}
	m.OutputBytes = int64(content)
	u.bill(end, &m.Usage, &m.PriceFacts)
	if !m.Usage.HasOutput() {
		if r, f := decodeResponse(body); f == nil {
			m.OutputBytes = r.Meter().OutputBytes
		}
	}
	return m
}
