package response

import (
	"bytes"

	"gateway/shared/chat"
)

// IsEvents tells whether the body of an answer is a stream of server-sent events.
func IsEvents(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

// Collect puts a stream together that came at once. Its meter is there also when it
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

// Replay tells a whole answer as a stream.
func Replay(r *chat.Response, enc chat.StreamEncoder) []byte {
	var out []byte
	_ = r.Replay(func(d *chat.Delta) error {
		out = enc.Append(out, d)
		return nil
	})
	return enc.Finish(out)
}

// gathering puts a stream together to the whole answer.
type gathering struct {
	// Of a stream that is passed on as it is; nil where a translation gives its deltas.
	parser  chat.EventParser
	dec     chat.StreamDecoder
	onEvent func(name string, data []byte) error
	onDelta func(*chat.Delta) error

	into   chat.Collector
	most   int // bytes
	size   int
	hidden bool // only the text of the hidden tool counts
	beside bool // there was other text
	told   bool // the hidden tool has spoken
	lost   bool // the answer cannot be kept
	ended  bool
	judged bool // it is put together whatever it has: somebody looks at it
}

// Gather begins to put the stream together, up to most bytes. dec reads a stream that is
// passed on. hidden: of a translated stream, only the text of the hidden tool counts.
// judged: even an answer that cannot be kept is put together, see Judged.
func (s *Stream) Gather(most int, hidden, judged bool, dec chat.StreamDecoder) {
	g := &gathering{most: most, judged: judged}
	if s.over != nil {
		g.hidden = hidden
		s.over.gather = g
		return
	}
	g.dec = dec
	g.parser = parserOf(g.dec)
	g.onDelta = func(d *chat.Delta) error { g.add(d); return nil }
	g.onEvent = func(name string, data []byte) error { return g.dec.Event(name, data, g.onDelta) }
	s.gather = g
}

// feed reads what arrived of a stream that is passed on.
func (g *gathering) feed(in []byte) {
	if (!g.lost || g.judged) && g.parser.Feed(in, g.onEvent) != nil {
		g.lost = true
	}
}

// add takes one delta.
func (g *gathering) add(d *chat.Delta) {
	if g.lost && !g.judged {
		return
	}
	if d.Kind == chat.DeltaText && g.hidden {
		if !d.Answer {
			g.beside = true
			return
		}
		g.told = true
	}
	g.size += len(d.JSON)
	if g.size > g.most || len(d.Logprobs) > 0 {
		g.lost = true // too large, or a part that is not put together
		if !g.judged {
			g.into = chat.Collector{}
			return
		}
	}
	g.into.Add(d)
}

// Gathered is the whole answer of a stream that has come to its end; nil where it was
// not put together, or cannot be.
func (s *Stream) Gathered() *chat.Response {
	g := s.gather
	if s.over != nil {
		g = s.over.gather
	}
	if g == nil {
		return nil
	}
	g.end()
	if g.lost || g.hidden && g.beside && !g.told {
		return nil
	}
	return g.into.Response()
}

// Judged is the answer of a stream that has come to its end, for who judges it: also
// one that cannot be kept. nil where it was not put together for that.
func (s *Stream) Judged() *chat.Response {
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

// end reads the end of a stream that is passed on.
func (g *gathering) end() {
	if g.dec != nil && !g.ended {
		g.ended = true
		g.lost = g.parser.End(g.onEvent) != nil || g.dec.End() != nil || g.lost
	}
}
