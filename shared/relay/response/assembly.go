package response

import (
	"bytes"

	"gateway/shared/chat"
)

// IsEvents reports whether the body of a response is a stream of server-sent events.
func IsEvents(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

// Collect assembles a stream that was received completely. Its meter is valid even if the stream
// cannot be read to its end.
func Collect(dec chat.StreamDecoder, body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	parser := parserOf(dec)
	var into chat.Collector
	onDelta := func(d *chat.Delta) error { into.Add(d); return nil }
	onEvent := func(name string, data []byte) error { return dec.Event(name, data, onDelta) }
	err := parser.Feed(body, onEvent)
	if err == nil {
		err = parser.End(onEvent)
	}
	if err == nil {
		err = dec.End()
	}
	m := dec.Meter()
	return into.Response(), m, dec.Signed(), err
}

// Replay encodes a complete response as a stream.
func Replay(r *chat.Response, enc chat.StreamEncoder) []byte {
	var out []byte
	_ = r.Replay(func(d *chat.Delta) error {
		out = enc.Append(out, d)
		return nil
	})
	return enc.Finish(out)
}

// gathering assembles a stream into the complete response.
type gathering struct {
	// Of a forwarded stream; nil if a translation provides its deltas.
	parser  chat.EventParser
	dec     chat.StreamDecoder
	onEvent func(name string, data []byte) error
	onDelta func(*chat.Delta) error

	into       chat.Collector
	most       int // bytes
	size       int
	hidden     bool // only the text of the hidden tool counts
	beside     bool // there was other text
	hiddenText bool // the hidden tool has produced text
	lost       bool // the response cannot be cached
	ended      bool
	judged     bool // it is assembled regardless of its content, for guardrails
}

// StartAssembly starts to assemble the stream, up to most bytes. dec reads a forwarded stream. hidden:
// of a translated stream, only the text of the hidden tool counts. judged: even a response that
// cannot be cached is assembled, see AssembledForGuardrails.
func (s *Stream) StartAssembly(most int, hidden, judged bool, dec chat.StreamDecoder) {
	if s.over != nil {
		s.over.gather = &gathering{most: most, hidden: hidden, judged: judged}
		return
	}
	s.gather = newGathering(most, judged, dec)
}

// newGathering assembles a stream that dec reads.
func newGathering(most int, judged bool, dec chat.StreamDecoder) *gathering {
	g := &gathering{most: most, judged: judged, dec: dec, parser: parserOf(dec)}
	g.onDelta = func(d *chat.Delta) error { g.add(d); return nil }
	g.onEvent = func(name string, data []byte) error { return dec.Event(name, data, g.onDelta) }
	return g
}

// feed reads bytes of a forwarded stream.
func (g *gathering) feed(in []byte) {
	if (!g.lost || g.judged) && g.parser.Feed(in, g.onEvent) != nil {
		g.lost = true
	}
}

// add adds one delta.
func (g *gathering) add(d *chat.Delta) {
	if g.lost && !g.judged {
		return
	}
	if d.Kind == chat.DeltaText && g.hidden {
		if !d.Response {
			g.beside = true
			return
		}
		g.hiddenText = true
	}
	g.size += len(d.JSON)
	if g.size > g.most || len(d.Logprobs) > 0 {
		g.lost = true // too large, or it has a part that is not assembled
		if !g.judged {
			g.into = chat.Collector{}
			return
		}
	}
	g.into.Add(d)
}

// Assembled returns the complete response of a finished stream; nil if it was not assembled, or
// cannot be.
func (s *Stream) Assembled() *chat.Response {
	g := s.gather
	if s.over != nil {
		g = s.over.gather
	}
	if g == nil {
		return nil
	}
	g.end()
	if g.lost || g.hidden && g.beside && !g.hiddenText {
		return nil
	}
	return g.into.Response()
}

// AssembledForGuardrails returns the response of a finished stream for guardrails, even if it cannot be cached;
// nil if it was not assembled for that.
func (s *Stream) AssembledForGuardrails() *chat.Response {
	g := s.gather
	if s.over != nil {
		g = s.over.gather
	}
	if g == nil || !g.judged {
		return nil
	}
	g.end()
	return g.into.Response()
}

// end reads the end of a forwarded stream.
func (g *gathering) end() {
	if g.dec != nil && !g.ended {
		g.ended = true
		g.lost = g.parser.End(g.onEvent) != nil || g.dec.End() != nil || g.lost
	}
}
