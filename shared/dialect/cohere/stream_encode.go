package cohere

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamEncoder writes the events of one stream. Content blocks are numbered from 0 in
// the order of their start; so are tool calls, separately.
type streamEncoder struct {
	o     chat.Options
	id    string
	began bool
	usage pricing.Usage
	stop  chat.StopReason

	kind  blockKind // of the content block that is open; 0 if there is none
	block int       // of its delta
	next  int       // its number is next - 1
	open  []int     // calls that have started and not ended
	calls bool
}

func (s *streamEncoder) emit(dst []byte, kind string, e *upstream.Object) []byte {
	e.Close('}')
	return wire.AppendSSE(dst, kind, e.B)
}

func event0(kind string) *upstream.Object {
	e := upstream.Begin(nil)
	e.Str("type", kind)
	return e
}

// begin writes message-start once.
func (s *streamEncoder) begin(dst []byte) []byte {
	if s.began {
		return dst
	}
	s.began = true
	e := event0("message-start")
	e.Str("id", s.o.ResponseID(s.id, ""))
	e.Raw("delta", []byte(`{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}`))
	return s.emit(dst, "message-start", e)
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	if d.Choice > 0 {
		return dst // a client of this dialect reads one response
	}
	switch d.Kind {
	case chat.DeltaStart:
		s.id = d.ID
		if d.Usage != nil {
			s.usage = *d.Usage
		}
	case chat.DeltaText, chat.DeltaRefusal:
		return s.content(dst, blockText, d)
	case chat.DeltaThinking:
		return s.content(dst, blockThinking, d)
	case chat.DeltaToolStart:
		return s.toolStart(dst, d)
	case chat.DeltaToolArgs:
		e := event0("tool-call-delta")
		e.Int("index", int64(d.Call))
		e.Raw("delta", []byte(`{"message":{"tool_calls":{"function":{"arguments":`))
		e.B = append(append(e.B, d.JSON...), `}}}}`...)
		return s.emit(s.begin(dst), "tool-call-delta", e)
	case chat.DeltaBlockStop:
		if d.Call >= 0 {
			return s.toolEnd(dst, d.Call)
		}
	case chat.DeltaStop:
		s.stop = d.Stop
	case chat.DeltaUsage:
		s.usage = *d.Usage
	}
	return dst
}

// content writes a piece of a text or a thought.
func (s *streamEncoder) content(dst []byte, kind blockKind, d *chat.Delta) []byte {
	member, empty := "text", `{"message":{"content":{"type":"text","text":""}}}`
	if kind == blockThinking {
		member, empty = "thinking", `{"message":{"content":{"type":"thinking","thinking":""}}}`
	}
	dst = s.begin(dst)
	if s.kind != kind || s.block != d.Block {
		dst = s.closeContent(dst)
		s.kind, s.block = kind, d.Block
		e := event0("content-start")
		e.Int("index", int64(s.next))
		e.Raw("delta", []byte(empty))
		dst = s.emit(dst, "content-start", e)
		s.next++
	}
	e := event0("content-delta")
	e.Int("index", int64(s.next-1))
	e.Raw("delta", []byte(`{"message":{"content":{"`+member+`":`))
	e.B = append(append(e.B, d.JSON...), `}}}`...)
	return s.emit(dst, "content-delta", e)
}

func (s *streamEncoder) closeContent(dst []byte) []byte {
	if s.kind == 0 {
		return dst
	}
	s.kind = 0
	e := event0("content-end")
	e.Int("index", int64(s.next-1))
	return s.emit(dst, "content-end", e)
}

func (s *streamEncoder) toolStart(dst []byte, d *chat.Delta) []byte {
	s.calls = true
	dst = s.closeContent(s.begin(dst))
	s.open = append(s.open, d.Call)
	e := event0("tool-call-start")
	e.Int("index", int64(d.Call))
	e.Key("delta")
	e.B = append(e.B, `{"message":{"tool_calls":{`...)
	e.Str("id", d.ID)
	e.Str("type", "function")
	e.Key("function")
	e.Open('{')
	e.Str("name", s.o.ToolName(d.Name))
	e.Str("arguments", "")
	e.B = append(e.B, `}}}}`...)
	return s.emit(dst, "tool-call-start", e)
}

func (s *streamEncoder) toolEnd(dst []byte, call int) []byte {
	for i, c := range s.open {
		if c != call {
			continue
		}
		s.open = append(s.open[:i], s.open[i+1:]...)
		e := event0("tool-call-end")
		e.Int("index", int64(call))
		return s.emit(dst, "tool-call-end", e)
	}
	return dst
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	dst = s.closeContent(s.begin(dst))
	for len(s.open) > 0 {
		dst = s.toolEnd(dst, s.open[0])
	}
	e := event0("message-end")
	e.Key("delta")
	e.Open('{')
	e.Str("finish_reason", finishReason(s.stop, s.calls))
	if s.usage.IsReported() {
		e.Key("usage")
		e.B = appendUsage(e.B, &s.usage)
	}
	e.Close('}')
	return s.emit(dst, "message-end", e)
}

// Error implements chat.StreamEncoder.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return appendStreamError(dst, f, &s.o)
}
