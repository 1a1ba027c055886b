package converse

import (
	"io"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamDecoder reads the events of one stream.
type streamDecoder struct {
	origin string
	m      chat.Meter
	d      wire.Decoder
	out    chat.Delta
	u      counts
	blocks []block // by the provider's index, in order of their start
	calls  int     // tool calls that the client sees
	hidden bool    // the hidden tool was called
	text   bool    // some text was given
	began  bool
	failed *fault.Fault // from a stop reason that means failure; it waits for the usage that follows

	scratch []byte
	pending []chat.Part // signed reasoning since the last call
	signed  []chat.Signed
}

func newStreamDecoder(t *chat.Traits) *streamDecoder {
	return &streamDecoder{origin: origin(t.Family)}
}

var _ chat.Framed = (*streamDecoder)(nil)

// Parser implements chat.Framed.
func (s *streamDecoder) Parser() chat.EventParser { return new(wire.EventStreamParser) }

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter { return s.m }

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

// End implements chat.StreamDecoder.
func (s *streamDecoder) End() error {
	switch {
	case s.m.Err != nil:
		return s.m.Err
	case s.failed != nil:
		return s.fail(s.failed)
	case !s.m.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Event implements chat.StreamDecoder. event is the type of the message.
func (s *streamDecoder) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if kind, ok := strings.CutPrefix(event, wire.EventStreamException); ok {
		return s.fail(Exception(kind, data))
	}
	s.d.Reset(data)
	switch event {
	case "messageStart":
		return s.begin(emit)
	case "contentBlockStart":
		return s.blockStart(emit)
	case "contentBlockDelta":
		return s.blockDelta(emit)
	case "contentBlockStop":
		return s.blockStop(emit)
	case "messageStop":
		return s.stop(emit)
	case "metadata":
		return s.metadata(emit)
	case "chunk":
		return s.invoked()
	}
	return nil // an event of a later version
}

func (s *streamDecoder) fail(f *fault.Fault) error {
	s.m.Err = f
	return f
}

func (s *streamDecoder) unreadable(cause error) error {
	return s.fail(upstream.UnreadableFault(cause))
}

// begin returns the start once; a stream may lack its own.
func (s *streamDecoder) begin(emit func(*chat.Delta) error) error {
	if s.began {
		return nil
	}
	s.began = true
	s.out = chat.Delta{Kind: chat.DeltaStart}
	return emit(&s.out)
}

// stop returns the end of the response; the usage comes after it.
func (s *streamDecoder) stop(emit func(*chat.Delta) error) error {
	d := &s.d
	sequence := ""
	for key := range d.Object {
		switch string(key) {
		case "stopReason":
			s.m.Finish = upstream.OptString(d)
		case "additionalModelResponseFields":
			sequence = readStopSequence(d)
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if s.m.Complete {
		return nil
	}
	stop, f := stopReason(s.m.Finish)
	if f != nil {
		s.failed = f
		return nil
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	for i := range s.blocks {
		if !s.blocks[i].closed {
			if err := s.closeBlock(&s.blocks[i], emit); err != nil {
				return err
			}
		}
	}
	if stop == chat.StopToolCalls && s.hidden && s.calls == 0 {
		stop = chat.StopEnd
	}
	if stop == chat.StopFilter && !s.text {
		next := block{index: len(s.blocks), call: -1}
		if err := s.piece(chat.DeltaRefusal, &next, wire.AppendJSONString(nil, refusalText), emit); err != nil {
			return err
		}
	}
	s.m.Complete, s.m.Started = true, true
	s.out = chat.Delta{Kind: chat.DeltaStop, Stop: stop, Native: s.m.Finish}
	if stop == chat.StopSequence {
		s.out.StopSequence = sequence
	}
	return emit(&s.out)
}

func (s *streamDecoder) metadata(emit func(*chat.Delta) error) error {
	d := &s.d
	found := false
	for key := range d.Object {
		switch string(key) {
		case "usage":
			found = true
			s.u.readFrom(d)
		case "serviceTier":
			s.m.Mode = pricing.ModeOf(readType(d))
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if found {
		s.m.ReportedTotal = s.u.classes(&s.m.Usage)
	}
	switch {
	case s.failed != nil:
		return s.fail(s.failed)
	case !found:
		return nil
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.m.Usage}
	return emit(&s.out)
}

// statuses are the statuses of the service's exceptions inside a stream, which has none.
// Outside of a stream some exceptions have another status, which is preserved: 429 for a
// model that is not ready, 408 for one that took too long.
var statuses = map[string]int{
	"throttlingexception": 429, "toomanyrequestsexception": 429, "servicequotaexceededexception": 429, "limitexceededexception": 429,
	"validationexception": 400, "serializationexception": 400,
	"accessdeniedexception": 403, "unrecognizedclientexception": 403, "invalidsignatureexception": 403, "expiredtokenexception": 403,
	"missingauthenticationtokenexception": 403, "incompletesignatureexception": 403, "signaturedoesnotmatch": 403,
	"resourcenotfoundexception": 404, "conflictexception": 409,
	"modeltimeoutexception": 504, "modelnotreadyexception": 503, "serviceunavailableexception": 503, "serviceunavailable": 503,
	"modelerrorexception": 502, "modelstreamerrorexception": 502,
	"internalserverexception": 500, "internalfailure": 500,
}

func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		p = &chat.ProviderError{}
	}
	if typ := errorType(h.Get("X-Amzn-Errortype")); typ != "" {
		p.Type = typ
	}
	if p.Type == "" && p.Message == "" {
		return upstream.DecodeError(status, h, body)
	}
	if p.Message == "" {
		p.Message = p.Type
	}
	p.Status = status
	return chat.CompleteFault(providerFault(p), status, h)
}

// errorType is the plain name of an exception: without the namespace before it and the
// address after it.
func errorType(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return s[strings.LastIndexByte(s, '#')+1:]
}

// readError reads {message, __type}, in the spellings that the services use; nil
// when body is no object.
func readError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := new(chat.ProviderError)
	for key := range d.Object {
		switch string(key) {
		case "message", "Message", "OriginalMessage":
			if s := upstream.OptString(d); p.Message == "" {
				p.Message = s
			}
		case "__type":
			p.Type = errorType(upstream.OptString(d))
		}
	}
	if d.End() != nil {
		return nil
	}
	return p
}

// providerFault returns the fault for a provider's error.
func providerFault(p *chat.ProviderError) *fault.Fault {
	f := fault.New(fault.ProviderError, "", p.Message).WithCause(p)
	f.Source = fault.SourceProvider
	f.StatusCode = p.Status
	if status := statuses[strings.ToLower(p.Type)]; status != 0 {
		f.StatusCode = status
	}
	switch f.StatusCode {
	case http.StatusTooManyRequests:
		f.Code = fault.RateLimited
	case http.StatusServiceUnavailable:
		f.Code = chat.Overloaded
	case http.StatusBadRequest:
		if at := (chat.ProviderError{Status: f.StatusCode, Message: p.Message}); hosts.CodeOf(&at) == chat.ContextLength {
			f.Code = chat.ContextLength
		}
	}
	return f
}

// Exception makes the fault for an exception in a stream.
func Exception(kind string, data []byte) *fault.Fault {
	p := readError(data)
	if p == nil {
		p = &chat.ProviderError{}
	}
	p.Type = errorType(kind)
	if p.Message == "" {
		p.Message = "The provider ended its stream with " + p.Type
	}
	if p.Status = statuses[strings.ToLower(p.Type)]; p.Status == 0 {
		p.Status = http.StatusBadGateway
	}
	return providerFault(p)
}

func invalidResponse(cause error) *fault.Fault {
	return upstream.Invalid("The provider's response is not a message", cause)
}
