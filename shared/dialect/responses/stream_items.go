package responses

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/wire"
)

// text writes a piece of a message. Another block, or a refusal beside a text, begins
// another part of the message.
func (s *streamEncoder) text(dst []byte, d *chat.Delta, refusal bool) []byte {
	if len(d.JSON) <= 2 && d.Logprobs == nil {
		return dst
	}
	it := s.last()
	if it == nil || it.kind != messageItem || it.whole != nil {
		it = &openItem{kind: messageItem}
		dst = s.open(dst, it, "msg")
	}
	if it.partOpen && (it.block != d.Block || it.refusal != refusal) {
		dst = endPart(s, dst, it)
	}
	if !it.partOpen {
		dst = beginPart(s, dst, it, d.Block, refusal)
	}
	it.text = append(it.text, d.JSON[1:len(d.JSON)-1]...)
	kind := "response.output_text.delta"
	if refusal {
		kind = "response.refusal.delta"
	}
	dst = s.event(dst, kind)
	dst = it.part(of(dst, it))
	dst = append(dst, `,"delta":`...)
	dst = append(dst, d.JSON...)
	if !refusal {
		var list []byte
		if d.Logprobs != nil {
			list = oneLine(bytes.Clone(logprobsOf(d.Logprobs)))
		}
		dst = append(dst, `,"logprobs":`...)
		if len(list) <= 2 {
			dst = append(dst, "[]"...)
		} else {
			dst = append(dst, list...)
			if len(it.logprobs) > 0 {
				it.logprobs = append(it.logprobs, ',')
			}
			it.logprobs = append(it.logprobs, list[1:len(list)-1]...)
		}
	}
	return append(dst, "}\n\n"...)
}

// part writes the index of the message part that an event is about.
func (it *openItem) part(dst []byte) []byte {
	dst = append(dst, `,"content_index":`...)
	return strconv.AppendInt(dst, int64(it.count), 10)
}

// streamCite returns a source of the open text: at once if its place is known, otherwise
// at the end of the part.
func streamCite(s *streamEncoder, dst []byte, d *chat.Delta) []byte {
	c := citation.Read(d.JSON)
	it := s.last()
	if it == nil || it.kind != messageItem || it.whole != nil || !it.partOpen || it.refusal || it.block != d.Block {
		if c.URL != "" { // its text may still come
			if s.early == nil {
				s.early = map[int][]citation.Citation{}
			}
			s.early[d.Block] = append(s.early[d.Block], c)
		}
		return dst
	}
	if c.URL != "" && !c.Placed {
		it.cited = append(it.cited, c)
		return dst
	}
	return s.annotation(dst, it, &c)
}

// lateSources writes a message without text for sources of texts that had already ended,
// because a message that was sent cannot be opened again. It writes none if the texts must
// be JSON, because an empty text is not JSON.
func lateSources(s *streamEncoder, dst []byte) []byte {
	if len(s.early) == 0 || s.o.Request != nil && s.o.Request.Format.Kind != chat.FormatText {
		return dst
	}
	blocks := slices.Sorted(maps.Keys(s.early))
	it := &openItem{kind: messageItem}
	dst = s.open(dst, it, "msg")
	dst = beginPart(s, dst, it, blocks[0], false)
	for _, block := range blocks[1:] {
		it.cited = append(it.cited, s.early[block]...)
	}
	s.early = nil
	return dst
}

// beginPart opens a part of a message.
func beginPart(s *streamEncoder, dst []byte, it *openItem, block int, refusal bool) []byte {
	it.partOpen, it.block, it.refusal = true, block, refusal
	it.cited = s.early[block]
	delete(s.early, block)
	dst = s.event(dst, "response.content_part.added")
	dst = it.part(of(dst, it))
	dst = append(dst, `,"part":`...)
	dst = appendContent(dst, refusal, []byte(`""`), nil, nil)
	return append(dst, "}\n\n"...)
}

// annotation writes one annotation of the open part.
func (s *streamEncoder) annotation(dst []byte, it *openItem, c *citation.Citation) []byte {
	note := c.AppendFlat(nil, 0, citation.Length(it.text))
	if note == nil {
		return dst
	}
	dst = s.event(dst, "response.output_text.annotation.added")
	dst = it.part(of(dst, it))
	dst = strconv.AppendInt(append(dst, `,"annotation_index":`...), int64(it.noted), 10)
	dst = append(append(append(dst, `,"annotation":`...), note...), "}\n\n"...)
	if it.noted++; it.noted > 1 {
		it.notes = append(it.notes, ',')
	}
	it.notes = append(it.notes, note...)
	return dst
}

// endPart closes the open part of a message.
func endPart(s *streamEncoder, dst []byte, it *openItem) []byte {
	if !it.partOpen {
		return dst
	}
	for i := range it.cited {
		dst = s.annotation(dst, it, &it.cited[i])
	}
	raw := append(append([]byte{'"'}, it.text...), '"')
	logprobs := append(append([]byte{'['}, it.logprobs...), ']')
	kind, member := "response.output_text.done", `,"text":`
	if it.refusal {
		kind, member = "response.refusal.done", `,"refusal":`
	}
	dst = s.event(dst, kind)
	dst = it.part(of(dst, it))
	dst = append(append(dst, member...), raw...)
	if !it.refusal {
		dst = append(append(dst, `,"logprobs":`...), logprobs...)
	}
	dst = append(dst, "}\n\n"...)
	if len(it.parts) > 0 {
		it.parts = append(it.parts, ',')
	}
	start := len(it.parts)
	it.parts = appendContent(it.parts, it.refusal, raw, logprobs, it.notes)
	dst = s.event(dst, "response.content_part.done")
	dst = it.part(of(dst, it))
	dst = append(dst, `,"part":`...)
	dst = append(append(dst, it.parts[start:]...), "}\n\n"...)
	it.partOpen, it.text, it.logprobs = false, it.text[:0], it.logprobs[:0]
	it.cited, it.notes, it.noted = nil, it.notes[:0], 0
	it.count++
	return dst
}

// thinking writes a piece of reasoning; each block is an item.
func (s *streamEncoder) thinking(dst []byte, d *chat.Delta) []byte {
	it := s.last()
	if it == nil || it.kind != reasoningItem || it.whole != nil || it.block != d.Block || it.ended {
		if len(d.JSON) <= 2 {
			return dst
		}
		it = &openItem{kind: reasoningItem, block: d.Block}
		dst = s.open(dst, it, "rs")
	}
	switch d.Kind {
	case chat.DeltaSignature:
		it.signature = wire.AppendUnquoted(it.signature, d.JSON)
		return dst
	case chat.DeltaRedacted:
		it.data = wire.AppendUnquoted(it.data, d.JSON)
		return dst
	}
	if len(d.JSON) <= 2 {
		return dst
	}
	if !it.partOpen {
		it.partOpen = true
		dst = s.event(dst, "response.reasoning_summary_part.added")
		dst = append(of(dst, it), `,"summary_index":0,"part":{"type":"summary_text","text":""}}`...)
		dst = append(dst, "\n\n"...)
	}
	it.text = append(it.text, d.JSON[1:len(d.JSON)-1]...)
	dst = s.event(dst, "response.reasoning_summary_text.delta")
	dst = append(of(dst, it), `,"summary_index":0,"delta":`...)
	return append(append(dst, d.JSON...), "}\n\n"...)
}

// endSummary closes the summary of reasoning.
func endSummary(s *streamEncoder, dst []byte, it *openItem) []byte {
	if !it.partOpen {
		return dst
	}
	it.partOpen = false
	dst = s.event(dst, "response.reasoning_summary_text.done")
	dst = append(of(dst, it), `,"summary_index":0,"text":"`...)
	dst = append(append(dst, it.text...), "\"}\n\n"...)
	dst = s.event(dst, "response.reasoning_summary_part.done")
	dst = append(of(dst, it), `,"summary_index":0,"part":{"type":"summary_text","text":"`...)
	return append(append(dst, it.text...), "\"}}\n\n"...)
}

// foreign writes an item that is sent as the provider wrote it. The item is complete in both
// of its events, so that clients that build their output from the first event have all of it.
func foreign(s *streamEncoder, dst, raw []byte) []byte {
	it := &openItem{kind: foreignItem, whole: oneLine(bytes.Clone(raw)), ended: true}
	dst = s.open(dst, it, "")
	return s.itemEvent(dst, "response.output_item.done", it.index, it.whole)
}

func (s *streamEncoder) toolStart(dst []byte, d *chat.Delta) []byte {
	dst = s.release(dst)
	it := &openItem{kind: callItem, block: d.Block, call: d.Call, callID: d.ID, tool: s.o.ToolName(d.Name)}
	prefix := "fc"
	if s.o.Request.CustomTool(it.tool) {
		it.kind, prefix = customItem, "ctc"
	}
	if isShell(s.o.Request, it.tool) {
		if s.shells == nil {
			s.shells = make(map[int]*openItem)
		}
		s.shells[d.Call] = it
		return dst
	}
	return s.open(dst, it, prefix)
}

func (s *streamEncoder) toolArgs(dst []byte, d *chat.Delta) []byte {
	if it := localShellCall(s, d); it != nil {
		it.text = append(it.text, d.JSON[1:len(d.JSON)-1]...)
		return dst
	}
	for i := len(s.items) - 1; i >= 0; i-- {
		it := s.items[i]
		if it.call != d.Call || it.kind != callItem && it.kind != customItem || it.whole != nil {
			continue
		}
		piece := d.JSON[1 : len(d.JSON)-1]
		it.text = append(it.text, piece...)
		if it.kind == customItem || len(piece) == 0 {
			return dst // it is given at the end, because the text is inside of the arguments
		}
		return callDelta(s, dst, it, piece)
	}
	return dst
}

func callDelta(s *streamEncoder, dst []byte, it *openItem, piece []byte) []byte {
	dst = s.event(dst, "response.function_call_arguments.delta")
	dst = append(of(dst, it), `,"delta":"`...)
	return append(append(dst, piece...), "\"}\n\n"...)
}

// endCustom returns the text of a call with arguments sent as JSON.
func endCustom(s *streamEncoder, dst []byte, it *openItem) []byte {
	args := wire.AppendUnquoted(nil, append(append([]byte{'"'}, it.text...), '"'))
	raw := wire.AppendJSONString(nil, chat.UnwrapText(string(args)))
	it.text = raw[1 : len(raw)-1]
	dst = s.event(dst, "response.custom_tool_call_input.delta")
	dst = append(of(dst, it), `,"delta":`...)
	dst = append(append(dst, raw...), "}\n\n"...)
	dst = s.event(dst, "response.custom_tool_call_input.done")
	dst = append(of(dst, it), `,"input":`...)
	return append(append(dst, raw...), "}\n\n"...)
}
