package anthropic

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamEncoder writes the events of one stream. Blocks may not overlap on this
// wire: while a tool call is being written, pieces of other blocks wait.
type streamEncoder struct {
	o       chat.Options
	id      string
	model   string
	usage   pricing.Usage
	began   bool // message_start was written
	next    int  // index of the next block
	open    *openBlock
	current openBlock
	waiting []*waitingBlock
	calls   bool
	texts   int      // text blocks below this one have begun
	late    [][]byte // sources of text blocks that had ended

	stop     chat.StopReason
	sequence string
}

// blockID identifies a block: the kind of piece, and its call or block.
type blockID struct {
	kind blockKind
	n    int
}

// openBlock is the block that is being written.
type openBlock struct {
	blockID
	index int
}

// waitingBlock is a block that has to wait until another has ended.
type waitingBlock struct {
	blockID
	start   []byte // its content_block object
	deltas  []byte // its delta objects, ended by newlines
	stopped bool
}

func newStreamEncoder(o *chat.Options) *streamEncoder { return &streamEncoder{o: *o} }

// begin writes message_start once.
func (s *streamEncoder) begin(dst []byte) []byte {
	if s.began {
		return dst
	}
	s.began = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = appendHead(dst, s.id, s.model, &s.o)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
	var u pricing.Usage
	for c := range pricing.NumClasses {
		if n, ok := s.usage.Get(c); ok && c != pricing.Output && c != pricing.Reasoning {
			u.Set(c, n)
		}
	}
	dst = appendUsage(dst, &u)
	return append(dst, "}}\n\n"...)
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	if d.Choice > 0 {
		return dst // a client of this dialect reads one response
	}
	switch d.Kind {
	case chat.DeltaStart:
		s.id, s.model = d.ID, d.Model
		if d.Usage != nil {
			s.usage = *d.Usage
		}
	case chat.DeltaText, chat.DeltaRefusal:
		dst = s.piece(dst, blockID{blockText, d.Block}, "text_delta", "text", d.JSON)
	case chat.DeltaCitation:
		dst = s.cited(dst, d)
	case chat.DeltaThinking:
		dst = s.piece(dst, blockID{blockThinking, d.Block}, "thinking_delta", "thinking", d.JSON)
	case chat.DeltaSignature:
		dst = s.piece(dst, blockID{blockThinking, d.Block}, "signature_delta", "signature", d.JSON)
	case chat.DeltaRedacted:
		dst = s.whole(dst, d, append(append([]byte(`{"type":"redacted_thinking","data":`), d.JSON...), '}'))
	case chat.DeltaForeign:
		if s.o.Origin == name {
			dst = s.whole(dst, d, bytes.ReplaceAll(d.JSON, []byte{'\n'}, []byte{' '}))
		}
	case chat.DeltaToolStart:
		dst = s.toolStart(dst, d)
	case chat.DeltaToolArgs:
		dst = s.piece(dst, blockID{blockTool, d.Call}, "input_json_delta", "partial_json", d.JSON)
	case chat.DeltaBlockStop:
		dst = s.blockStop(dst, d)
	case chat.DeltaStop:
		dst = s.begin(dst)
		s.stop, s.sequence = d.Stop, d.StopSequence
	case chat.DeltaUsage:
		s.usage = *d.Usage
	case chat.DeltaPing:
		if s.began {
			dst = append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
		}
	}
	return dst
}

// piece writes one delta of a block, or buffers it until the block can begin.
func (s *streamEncoder) piece(dst []byte, id blockID, kind, member string, raw []byte) []byte {
	if id.kind == blockText {
		s.texts = max(s.texts, id.n+1)
	}
	if s.open != nil && s.open.blockID == id {
		dst = s.deltaHead(dst, s.open.index)
		dst = appendDelta(dst, kind, member, raw)
		return append(dst, "}\n\n"...)
	}
	if s.blocked() {
		w := s.wait(id)
		w.deltas = append(appendDelta(w.deltas, kind, member, raw), '\n')
		return dst
	}
	dst = s.begin(dst)
	dst = s.close(dst)
	dst = s.start(dst, id, emptyBlock(id.kind))
	dst = s.deltaHead(dst, s.open.index)
	dst = appendDelta(dst, kind, member, raw)
	return append(dst, "}\n\n"...)
}

// cited writes a source of a text block that is open, waiting or future. A source of a
// block that has ended goes into a separate block at the end of the response, because a
// sent block cannot be reopened. Sources that this format cannot represent are omitted.
func (s *streamEncoder) cited(dst []byte, d *chat.Delta) []byte {
	c := citation.Read(d.JSON)
	own := c.AppendMessages(nil)
	if own == nil {
		return dst
	}
	own = bytes.ReplaceAll(own, []byte{'\n'}, []byte{' '})
	id := blockID{blockText, d.Block}
	waits := len(s.waiting) > 0 && s.waiting[len(s.waiting)-1].blockID == id
	if s.open != nil && s.open.blockID == id || waits || d.Block >= s.texts {
		return s.piece(dst, id, "citations_delta", "citation", own)
	}
	s.late = append(s.late, own)
	return dst
}

// lateSources writes a block without text for the late sources.
func (s *streamEncoder) lateSources(dst []byte) []byte {
	if len(s.late) == 0 {
		return dst
	}
	dst = s.start(dst, blockID{blockText, s.texts}, emptyBlock(blockText))
	for _, own := range s.late {
		dst = s.deltaHead(dst, s.open.index)
		dst = append(appendDelta(dst, "citations_delta", "citation", own), "}\n\n"...)
	}
	return s.close(dst)
}

// emptyBlock is the content_block with which a block of text or thinking begins.
func emptyBlock(kind blockKind) []byte {
	if kind == blockThinking {
		return []byte(`{"type":"thinking","thinking":"","signature":""}`)
	}
	return []byte(`{"type":"text","text":""}`)
}

func (s *streamEncoder) deltaHead(dst []byte, index int) []byte {
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	return append(dst, `,"delta":`...)
}

func appendDelta(dst []byte, kind, member string, raw []byte) []byte {
	dst = append(append(dst, `{"type":"`...), kind...)
	dst = append(append(dst, `","`...), member...)
	dst = append(append(dst, `":`...), raw...)
	return append(dst, '}')
}

// start begins a block.
func (s *streamEncoder) start(dst []byte, id blockID, block []byte) []byte {
	s.current = openBlock{id, s.next}
	s.open = &s.current
	s.next++
	dst = append(dst, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(s.open.index), 10)
	dst = append(append(dst, `,"content_block":`...), block...)
	return append(dst, "}\n\n"...)
}

// close ends the block that is being written.
func (s *streamEncoder) close(dst []byte) []byte {
	if s.open == nil {
		return dst
	}
	dst = append(dst, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(s.open.index), 10)
	s.open = nil
	return append(dst, "}\n\n"...)
}

// wait finds the waiting block that id belongs to. Text and thinking that follow something
// else become a waiting block of their own.
func (s *streamEncoder) wait(id blockID) *waitingBlock {
	for i := len(s.waiting) - 1; i >= 0; i-- {
		w := s.waiting[i]
		if w.blockID == id && (id.kind == blockTool || i == len(s.waiting)-1) {
			return w
		}
	}
	w := &waitingBlock{blockID: id, start: emptyBlock(id.kind)}
	s.waiting = append(s.waiting, w)
	return w
}

func (s *streamEncoder) toolStart(dst []byte, d *chat.Delta) []byte {
	s.calls = true
	id := blockID{blockTool, d.Call}
	start := append([]byte(nil), `{"type":"tool_use","id":`...)
	start = wire.AppendJSONString(start, d.ID)
	start = append(start, `,"name":`...)
	start = wire.AppendJSONString(start, s.o.ToolName(d.Name))
	start = append(start, `,"input":{}}`...)
	if s.blocked() {
		s.waiting = append(s.waiting, &waitingBlock{blockID: id, start: start})
		return dst
	}
	dst = s.begin(dst)
	dst = s.close(dst)
	return s.start(dst, id, start)
}

// whole writes a complete block.
func (s *streamEncoder) whole(dst []byte, d *chat.Delta, block []byte) []byte {
	id := blockID{blockRedacted, d.Block}
	if s.blocked() {
		s.waiting = append(s.waiting, &waitingBlock{blockID: id, start: block, stopped: true})
		return dst
	}
	dst = s.begin(dst)
	dst = s.close(dst)
	dst = s.start(dst, id, block)
	return s.close(dst)
}

// blocked reports whether another block has to end before a new one may begin. Text and
// thinking can be ended at any time; a tool call ends only when its end comes or the stream
// ends.
func (s *streamEncoder) blocked() bool { return s.open != nil && s.open.kind == blockTool }

// is reports whether the block is the one that d ends.
func (id blockID) is(d *chat.Delta) bool {
	if id.kind == blockTool {
		return id.n == d.Call
	}
	return d.Call < 0 && id.n == d.Block
}

// blockStop ends the block that d names, and begins the blocks that waited for it.
func (s *streamEncoder) blockStop(dst []byte, d *chat.Delta) []byte {
	if s.open != nil && s.open.is(d) {
		dst = s.close(dst)
		return s.flush(dst, false)
	}
	for _, w := range s.waiting {
		w.stopped = w.stopped || w.is(d)
	}
	return dst
}

// flush writes the waiting blocks: up to the first tool call that has not ended, which
// stays open, or all of them.
func (s *streamEncoder) flush(dst []byte, all bool) []byte {
	for len(s.waiting) > 0 {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		dst = s.begin(dst)
		dst = s.start(dst, w.blockID, w.start)
		for rest := w.deltas; len(rest) > 0; {
			n := bytes.IndexByte(rest, '\n') // JSON strings hold no raw line end
			dst = s.deltaHead(dst, s.open.index)
			dst = append(append(dst, rest[:n]...), "}\n\n"...)
			rest = rest[n+1:]
		}
		if !all && !w.stopped && (w.kind == blockTool || len(s.waiting) == 0) {
			return dst
		}
		dst = s.close(dst)
	}
	return dst
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	dst = s.begin(dst)
	dst = s.close(dst)
	dst = s.flush(dst, true)
	dst = s.lateSources(dst)
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	n := len(dst)
	dst = appendStop(dst, s.stop, s.sequence, s.calls, &s.o)
	dst = append(dst[:n], dst[n+1:]...) // without the comma
	dst = append(dst, `},"usage":`...)
	dst = appendUsage(dst, &s.usage)
	return append(dst, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// Error implements chat.StreamEncoder.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return appendStreamError(dst, f, &s.o)
}
