package bedrock

import (
	"encoding/base64"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// commandDecoder reads the stream of a Command model: messages {bytes: base64 of the
// model's own event}. An event is a piece {text, is_finished, index}, the end of a
// response {is_finished: true, finish_reason}, or a complete response {generations}; the
// last one contains the service's amazon-bedrock-invocationMetrics.
type commandDecoder struct {
	upstream.Stream
	inner   []byte
	choices int // responses that began
	ended   [maxCommandResponses]bool
}

var _ chat.Framed = (*commandDecoder)(nil)

// Parser implements chat.Framed. The end of the stream is given as an event, because the
// counts may come after the end of the last response.
func (*commandDecoder) Parser() chat.EventParser { return new(messages) }

// messages is the parser of event-stream messages. After them it gives an
// upstream.EndOfStream.
type messages struct{ wire.EventStreamParser }

// End implements chat.EventParser.
func (m *messages) End(emit func(string, []byte) error) error {
	if err := m.EventStreamParser.End(emit); err != nil {
		return err
	}
	return emit(upstream.EndOfStream, nil)
}

// Event implements chat.StreamDecoder.
func (s *commandDecoder) Event(name string, data []byte, emit func(*chat.Delta) error) error {
	if s.M.Err != nil {
		return s.M.Err
	}
	if kind, failed := strings.CutPrefix(name, wire.EventStreamException); failed {
		return s.Fail(converse.Exception(kind, data))
	}
	if name == upstream.EndOfStream && !s.M.Complete {
		return s.finish(&pricing.Usage{}, emit)
	}
	if name != "chunk" || s.M.Complete {
		return nil
	}
	s.D.Reset(data)
	var packed []byte
	for key := range s.D.Object {
		if string(key) == "bytes" {
			packed = upstream.RawString(&s.D)
		}
	}
	if err := s.D.End(); err != nil {
		return s.Unreadable(err)
	}
	var err error
	if s.inner, err = base64.StdEncoding.AppendDecode(s.inner[:0], wire.AppendUnquoted(nil, packed)); err != nil {
		return s.Unreadable(err)
	}
	return s.chunk(s.inner, emit)
}

// event is one event of the model.
type event struct {
	text, message []byte // JSON strings
	finish        string
	finished      bool
	index         chat.Opt[int64]
	whole         bool // generations are listed
	usage         pricing.Usage
}

func (e *event) read(d *wire.Decoder) error {
	for key := range d.Object {
		switch string(key) {
		case "text":
			e.text = upstream.RawString(d)
		case "is_finished":
			e.finished = d.Kind() == wire.KindBool && d.Bool()
		case "finish_reason":
			e.finish = upstream.OptString(d)
		case "index":
			upstream.Count(d, &e.index)
		case "generations":
			e.whole = true
			d.Skip()
		case "message":
			e.message = upstream.RawString(d)
		case "amazon-bedrock-invocationMetrics":
			readMetrics(d, &e.usage)
		}
	}
	return d.End()
}

// readMetrics reads what the service counted.
func readMetrics(d *wire.Decoder, u *pricing.Usage) {
	if d.Kind() != wire.KindObject {
		return
	}
	var in, out chat.Opt[int64]
	for key := range d.Object {
		switch string(key) {
		case "inputTokenCount":
			upstream.Count(d, &in)
		case "outputTokenCount":
			upstream.Count(d, &out)
		}
	}
	if in.Set {
		u.Set(pricing.Input, in.Value)
	}
	if out.Set {
		u.Set(pricing.Output, out.Value)
	}
}

func (s *commandDecoder) chunk(data []byte, emit func(*chat.Delta) error) error {
	var e event
	s.D.Reset(data)
	err := e.read(&s.D)
	switch {
	case err != nil:
		return s.Unreadable(err)
	case e.index.Value >= maxCommandResponses:
		return s.Unreadable(nil)
	case cohere.Failed(e.finish):
		return s.Fail(cohere.Failure(e.finish, string(wire.AppendUnquoted(nil, e.message))))
	}
	n := int(e.index.Value)
	if e.whole && s.choices == 0 {
		if err := s.answers(data, emit); err != nil {
			return err
		}
	}
	if len(e.text) > 2 {
		s.choices = max(s.choices, n+1)
		if err := s.Piece(chat.Delta{Kind: chat.DeltaText, Choice: n, Call: -1, JSON: e.text}, emit); err != nil {
			return err
		}
	}
	if (e.finished || e.finish != "") && !e.whole {
		s.choices = max(s.choices, n+1)
		if err := s.ends(n, e.finish, emit); err != nil {
			return err
		}
	}
	if e.usage.IsReported() {
		return s.finish(&e.usage, emit)
	}
	return nil
}

// answers forwards the responses that arrived completely.
func (s *commandDecoder) answers(data []byte, emit func(*chat.Delta) error) error {
	r, err := cohere.Generate{}.DecodeResponse(data, &chat.Traits{})
	if err != nil {
		return s.Unreadable(err)
	}
	if len(r.Choices) > maxCommandResponses {
		return s.Unreadable(nil)
	}
	s.M.ID = r.ID
	s.choices = len(r.Choices)
	for i := range r.Choices {
		c := &r.Choices[i]
		if err := s.Piece(chat.Delta{Kind: chat.DeltaText, Choice: i, Call: -1, JSON: wire.AppendJSONString(nil, c.Text())}, emit); err != nil {
			return err
		}
		if err := s.ends(i, c.Native, emit); err != nil {
			return err
		}
	}
	return nil
}

// ends returns the end of one response, once.
func (s *commandDecoder) ends(n int, native string, emit func(*chat.Delta) error) error {
	if s.ended[n] {
		return nil
	}
	s.ended[n] = true
	s.M.Started, s.M.Finish = true, native
	return s.Emit(chat.Delta{Kind: chat.DeltaStop, Choice: n, Stop: cohere.StopReason(native), Native: native}, emit)
}

// finish takes the service's counts, and marks the stream as complete if every response has
// ended. If the counts never come, the end of the stream calls it without them.
func (s *commandDecoder) finish(u *pricing.Usage, emit func(*chat.Delta) error) error {
	s.M.Complete = s.choices > 0
	for i := range s.choices {
		s.M.Complete = s.M.Complete && s.ended[i]
	}
	if !u.IsReported() {
		return nil
	}
	s.M.Usage = *u
	return s.Emit(chat.Delta{Kind: chat.DeltaUsage, Usage: &s.M.Usage}, emit)
}
