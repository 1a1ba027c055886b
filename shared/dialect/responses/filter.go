package responses

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// filter forwards a stream of this dialect unchanged and meters it. It recognizes pieces
// of content by the name of their event, or by their first bytes, and by their last byte,
// without parsing them. An unreadable event ends the stream: it is dropped, and the
// response counts as truncated. A provider's error event is followed by the failed
// response, regardless of what the provider sends after it: some clients read nothing
// else.
type filter struct {
	m      chat.Meter
	split  events.Splitter
	out    events.Output
	d      wire.Decoder
	ev     streamEvent
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
	if f.passed && f.ev.kind == "error" {
		failed := appendFailed(nil, f.m.Err, &chat.Options{ID: f.m.ID, Model: f.m.Model}, int(f.m.NextEvent))
		f.out.Grow(len(failed))
		f.out.Add(failed)
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

var (
	deltaName   = []byte(".delta")
	typeHead    = []byte(`{"type":"response.`)
	deltaMember = []byte(`"delta":`)
	audioDelta  = []byte(`audio.delta"`)
	nameMember  = []byte(`"name":`)
)

// deltaLen measures the text of a delta event. Audio is no text.
func deltaLen(event []byte) int {
	at := bytes.Index(event, deltaMember)
	if at < 0 || bytes.Contains(event[:min(len(event), len(typeHead)+len("output_audio.delta\""))], audioDelta) {
		return 0
	}
	return wire.TextLen(event[at+len(deltaMember):])
}

// nameLen measures the name of the tool that a new output item calls.
func nameLen(item []byte) int {
	if at := bytes.Index(item, nameMember); at >= 0 {
		return wire.TextLen(item[at+len(nameMember):])
	}
	return 0
}

// look meters one event and reports whether it is for the client.
func (f *filter) look(e *events.Event) bool {
	switch {
	case len(e.Data) == 0:
		return true
	case f.m.Complete: // data after a complete response that is not an event is dropped
		return e.Data[0] == '{'
	}
	f.m.NextEvent = max(f.m.NextEvent, sequence(e.Data)) + 1
	if e.Data[0] == '{' && e.Data[len(e.Data)-1] == '}' && f.piece(e) {
		f.m.Started = true
		f.m.OutputBytes += int64(deltaLen(e.Data))
		f.m.Chunks++
		return true
	}
	if err := f.ev.read(&f.d, e.Data); err != nil {
		f.m.Err, f.failed = upstream.UnreadableFault(err), true
		return false
	}
	switch f.ev.kind {
	case "response.created":
		f.object(f.ev.response)
	case "response.output_item.added":
		if bytes.Contains(f.ev.item, []byte(`_call"`)) {
			f.m.Started = true
			f.m.OutputBytes += int64(nameLen(f.ev.item))
		}
	case "response.output_item.done":
		f.m.Started = true
	case "response.completed", "response.incomplete":
		end := f.object(f.ev.response)
		if f.ev.kind == "response.incomplete" {
			end.status = "incomplete"
		}
		if f.m.Err = end.fault(); f.m.Err != nil {
			f.failed, f.passed = true, true
			return true
		}
		_, f.m.Finish = end.stop(false, false)
		f.m.Started, f.m.Complete = true, true
	default:
		if kind := f.ev.kind; kind == "error" || kind == "response.failed" || kind == "response.cancelled" || f.ev.failure != nil {
			f.m.Err = failureOf(&f.ev, &f.d, &f.m.Usage)
			f.failed, f.passed = true, true
		}
	}
	return true
}

var sequenceMember = []byte(`"sequence_number":`)

// sequence is the number of an event in its stream; -1 when it has none. A string cannot
// contain the field's name in this form, because its quotes would be escaped.
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

// piece reports whether an event is a piece of content.
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
	h := newHosted()
	defer func() {
		h.bill(&f.m.Usage, &f.m.PriceFacts)
		f.m.Items = h.sizes
	}()
	for key := range d.Object {
		if end.member(key, d) || h.member(key, d) {
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
		case "output":
			h.items(d.Raw())
		}
	}
	return end
}

// overloaded is the code of a 503 in this shape. Clients wait longer for it than for other
// server errors.
const overloaded = "server_is_overloaded"

// longestSleep is the longest Retry-After that clients of this shape may get: Codex and
// the SDKs sleep through any.
const longestSleep = time.Minute

// AppendError implements chat.ErrorWriter.
func (Responses) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	if f.Status() == http.StatusServiceUnavailable {
		again := *f
		again.Code, again.StatusCode = overloaded, http.StatusServiceUnavailable
		f = &again
	}
	return openai.Chat{}.AppendError(dst, f, o)
}

// Challenge implements routes.Challenger. A 429 with a long wait has no Retry-After; its
// message and error.limit.resets_at name the time.
func (Responses) Challenge(h http.Header, _ *http.Request, f *fault.Fault) {
	if f.Status() == http.StatusTooManyRequests && f.RetryAfter > longestSleep {
		h.Del("Retry-After")
		h.Del("Retry-After-Ms")
	}
}

// AppendStreamError implements chat.ErrorWriter: the error event, then the failed response,
// which is the only one of the two that Codex reads.
func (Responses) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = appendErrorEvent(dst, f, o, int(o.NextEvent))
	return appendFailed(dst, f, o, int(o.NextEvent)+1)
}

// AppendRefusal implements chat.RefusalWriter: one response.failed, at which Codex stops.
func (Responses) AppendRefusal(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendFailed(dst, f, o, 0)
}

// appendFailed writes the failed response of a stream of which no more is known than o.
func appendFailed(dst []byte, f *fault.Fault, o *chat.Options, seq int) []byte {
	own := *o
	own.Strict = true
	s := streamEncoder{o: own, seq: seq}
	return s.failed(dst, f)
}

// failed writes the response.failed event.
func (s *streamEncoder) failed(dst []byte, f *fault.Fault) []byte {
	if s.e == nil {
		s.e = newEnvelope(s.head.id, s.head.model, s.head.created, &s.o)
	}
	o := outcome{status: "failed", fault: f, usage: &s.usage}
	dst = s.event(dst, "response.failed")
	dst = append(dst, `,"response":`...)
	dst = s.e.append(dst, s.output(), &o)
	return append(dst, "}\n\n"...)
}

// failedCode is the code of a failed response. Clients repeat a request after every code
// but invalid_prompt.
func failedCode(f *fault.Fault) string {
	status := f.Status()
	p := chat.ProviderErrorOf(f)
	switch {
	case status < http.StatusInternalServerError && f.Final():
		return "invalid_prompt"
	case p != nil && p.Code != "" && f.Code == fault.ProviderError:
		return p.Code
	case f.Code == chat.InsufficientQuota:
		return string(f.Code)
	case status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case status == http.StatusServiceUnavailable:
		return overloaded
	case status < http.StatusInternalServerError:
		return "invalid_prompt"
	}
	return "server_error"
}

// failure returns the code and the message of an error event.
func failure(f *fault.Fault, o *chat.Options) (code, message string) {
	message = f.Message
	p := chat.ProviderErrorOf(f)
	if p != nil && o.ProviderName != "" {
		message = o.ProviderName + " error: " + message
	}
	code = string(f.Code)
	if f.Code == fault.ProviderError {
		code = failedCode(f)
	}
	return code, message
}

// appendErrorEvent writes the error event. Clients look for the details in the event itself
// or in its error field, and those of the WebSocket for the status.
func appendErrorEvent(dst []byte, f *fault.Fault, o *chat.Options, seq int) []byte {
	code, message := failure(f, o)
	typ := f.Type()
	if p := chat.ProviderErrorOf(f); p != nil && p.Type != "" {
		typ = p.Type
	}
	details := func(dst []byte) []byte {
		dst = append(dst, `"code":`...)
		dst = wire.AppendJSONString(dst, code)
		dst = append(dst, `,"message":`...)
		dst = wire.AppendJSONString(dst, message)
		dst = append(dst, `,"param":`...)
		if f.Field == "" {
			return append(dst, "null"...)
		}
		return wire.AppendJSONString(dst, f.Field)
	}
	dst = append(dst, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":"...)
	dst = append(strconv.AppendInt(dst, int64(seq), 10), `,"status":`...)
	dst = append(strconv.AppendInt(dst, int64(f.Status()), 10), ',')
	dst = details(dst)
	dst = append(dst, `,"error":{"type":`...)
	dst = append(wire.AppendJSONString(dst, typ), ',')
	return append(details(dst), "}}\n\n"...)
}
