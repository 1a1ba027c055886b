package openai

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamEncoder writes the chunks of one chat stream. All chunks share one
// head, which is made once.
type streamEncoder struct {
	customs map[[2]int][]byte // arguments of calls of custom tools, by choice and call
	o       chat.Options
	head    []byte // data: {...,"choices":[{"index":
	tail    []byte // end of a chunk with a choice
	usage   pricing.Usage
	roles   uint64 // choices that have given their role, by bit; above 63 not tracked
	calls   uint64 // choices that had a call

	hidden      bool         // the response comes by a hidden tool
	answered    bool         // and has come
	pendingText []chat.Delta // text beside it, given only if that response does not come

	noted []noted // by choice
	first [1]noted
}

func newStreamEncoder(o *chat.Options) *streamEncoder {
	return &streamEncoder{o: *o, hidden: o.Request != nil && o.Request.HiddenResponse}
}

// start makes the parts that all chunks share.
func (s *streamEncoder) start(id, model string, created int64) {
	if s.head != nil {
		return
	}
	e := newEnvelope(id, chatPrefix, model, created, &s.o)
	s.head = append(make([]byte, 0, 256), "data: "...)
	s.head = e.append(s.head, chunkObject, &s.o)
	s.head = append(s.head, `,"choices":[`...)
	s.tail = append(s.tail, "]"...)
	if s.o.IncludeUsage {
		s.tail = append(s.tail, `,"usage":null`...)
	}
	s.tail = append(s.tail, "}\n\n"...)
}

// open begins a chunk for a choice, up to the inside of its delta. The first chunk of a
// choice has the role.
func (s *streamEncoder) open(dst []byte, choice int) []byte {
	s.start("", "", 0)
	bit := uint64(1) << min(choice, 63)
	if s.roles&bit == 0 {
		s.roles |= bit
		dst = s.index(dst, choice)
		dst = append(dst, `"role":"assistant","content":""`...)
		dst = s.close(dst)
	}
	return s.index(dst, choice)
}

func (s *streamEncoder) index(dst []byte, choice int) []byte {
	dst = append(dst, s.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	return append(dst, `,"delta":{`...)
}

// close ends a chunk that brings content.
func (s *streamEncoder) close(dst []byte) []byte {
	dst = append(dst, `},"logprobs":null,"finish_reason":null}`...)
	return append(dst, s.tail...)
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	switch d.Kind {
	case chat.DeltaStart:
		s.start(d.ID, d.Model, d.Created)
		if d.Usage != nil {
			s.usage = *d.Usage
		}
		// The role goes out with the first content, so that a stream that
		// begins with an error has sent nothing.
	case chat.DeltaText:
		switch {
		case !s.hidden:
			dst = s.text(dst, d)
		case d.Response:
			s.pendingText, s.answered = nil, true
			dst = s.text(dst, d)
		case !s.answered:
			s.pendingText = append(s.pendingText, chat.Delta{Choice: d.Choice, Block: d.Block, JSON: bytes.Clone(d.JSON)})
		}
	case chat.DeltaRefusal:
		dst = s.open(dst, d.Choice)
		dst = append(append(dst, `"refusal":`...), d.JSON...)
		dst = s.close(dst)
	case chat.DeltaThinking:
		dst = s.block(dst, d, "thinking")
	case chat.DeltaSignature:
		dst = s.block(dst, d, "signature")
	case chat.DeltaRedacted:
		dst = s.block(dst, d, "data")
	case chat.DeltaCitation:
		dst = s.cited(dst, d)
	case chat.DeltaBlockStop:
		dst = s.annotate(dst, d.Choice)
		if d.Call >= 0 {
			dst = s.endCustom(dst, d.Choice, d.Call)
		}
	case chat.DeltaImage:
		dst = s.image(dst, d)
	case chat.DeltaForeign:
		dst = s.block(dst, d, "block")
	case chat.DeltaToolStart:
		dst = s.toolStart(dst, d)
	case chat.DeltaToolArgs:
		dst = s.toolArgs(dst, d)
	case chat.DeltaStop:
		for call := 0; len(s.customs) > 0 && call < maxCalls; call++ {
			dst = s.endCustom(dst, d.Choice, call)
		}
		dst = s.stop(dst, d)
	case chat.DeltaUsage:
		s.usage = *d.Usage
	}
	return dst
}

func (s *streamEncoder) text(dst []byte, d *chat.Delta) []byte {
	dst = s.countText(dst, d)
	dst = s.open(dst, d.Choice)
	dst = append(append(dst, `"content":`...), d.JSON...)
	if !s.o.Strict {
		dst = append(dst, ',')
		dst = appendBlockDelta(dst, d, "text")
	}
	if d.Logprobs == nil {
		return s.close(dst)
	}
	dst = append(append(dst, `},"logprobs":`...), d.Logprobs...)
	dst = append(dst, `,"finish_reason":null}`...)
	return append(dst, s.tail...)
}

// block writes a piece that only content_blocks carry.
func (s *streamEncoder) block(dst []byte, d *chat.Delta, member string) []byte {
	if s.o.Strict {
		return dst
	}
	dst = s.open(dst, d.Choice)
	dst = appendBlockDelta(dst, d, member)
	return s.close(dst)
}

func appendBlockDelta(dst []byte, d *chat.Delta, member string) []byte {
	dst = append(dst, `"content_blocks":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(d.Block), 10)
	dst = append(dst, `,"delta":{"`...)
	dst = append(append(append(dst, member...), `":`...), d.JSON...)
	return append(dst, `}}]`...)
}

// release returns the text that was held, because no hidden answer will come.
func (s *streamEncoder) release(dst []byte) []byte {
	for i := range s.pendingText {
		dst = s.text(dst, &s.pendingText[i])
	}
	s.pendingText = nil
	return dst
}

func (s *streamEncoder) toolStart(dst []byte, d *chat.Delta) []byte {
	dst = s.release(dst)
	s.calls |= 1 << min(d.Choice, 63)
	if s.o.Legacy() {
		if d.Call > 0 {
			return dst
		}
		dst = s.open(dst, d.Choice)
		dst = append(dst, `"function_call":{"name":`...)
		dst = wire.AppendJSONString(dst, s.o.ToolName(d.Name))
		dst = append(dst, `,"arguments":""}`...)
		return s.close(dst)
	}
	dst = s.open(dst, d.Choice)
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(d.Call), 10)
	dst = append(dst, `,"id":`...)
	dst = wire.AppendJSONString(dst, d.ID)
	if tool := s.o.ToolName(d.Name); s.o.Request.CustomTool(tool) {
		if s.customs == nil {
			s.customs = make(map[[2]int][]byte)
		}
		s.customs[[2]int{d.Choice, d.Call}] = []byte{}
		dst = append(dst, `,"type":"custom","custom":{"name":`...)
		dst = wire.AppendJSONString(dst, tool)
		return s.close(append(dst, `,"input":""}}]`...))
	}
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = wire.AppendJSONString(dst, s.o.ToolName(d.Name))
	dst = append(dst, `,"arguments":""`...)
	dst = appendCallSignature(dst, d.Signature, &s.o)
	dst = append(dst, `}}]`...)
	return s.close(dst)
}

// endCustom returns the text of a call of a custom tool, which was sent inside of JSON.
func (s *streamEncoder) endCustom(dst []byte, choice, call int) []byte {
	args, ok := s.customs[[2]int{choice, call}]
	if !ok {
		return dst
	}
	delete(s.customs, [2]int{choice, call})
	dst = s.open(dst, choice)
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(call), 10)
	dst = append(dst, `,"custom":{"input":`...)
	dst = wire.AppendJSONString(dst, chat.UnwrapText(string(args)))
	return s.close(append(dst, `}}]`...))
}

func (s *streamEncoder) toolArgs(dst []byte, d *chat.Delta) []byte {
	if args, ok := s.customs[[2]int{d.Choice, d.Call}]; ok {
		s.customs[[2]int{d.Choice, d.Call}] = wire.AppendUnquoted(args, d.JSON)
		return dst
	}
	if s.o.Legacy() {
		if d.Call > 0 {
			return dst
		}
		dst = s.open(dst, d.Choice)
		dst = append(append(dst, `"function_call":{"arguments":`...), d.JSON...)
		dst = append(dst, '}')
		return s.close(dst)
	}
	dst = s.open(dst, d.Choice)
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(d.Call), 10)
	dst = append(append(dst, `,"function":{"arguments":`...), d.JSON...)
	dst = append(dst, `}}]`...)
	return s.close(dst)
}

func (s *streamEncoder) stop(dst []byte, d *chat.Delta) []byte {
	dst = s.release(dst)
	dst = s.annotate(dst, d.Choice)
	dst = s.open(dst, d.Choice)
	f := finish(d.Stop, s.calls&(1<<min(d.Choice, 63)) != 0, &s.o)
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, f...)
	dst = append(dst, '"')
	dst = appendNative(dst, d.Native, f, &s.o)
	dst = appendExtra(dst, d.Extra, &s.o)
	dst = append(dst, '}')
	return append(dst, s.tail...)
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	s.start("", "", 0)
	if s.o.IncludeUsage && s.usage.IsReported() {
		dst = append(dst, s.head...)
		dst = append(dst, `],"usage":`...)
		dst = appendUsage(dst, &s.usage, !s.o.Strict)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// Error implements chat.StreamEncoder.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return appendStreamError(dst, f, &s.o)
}

// Images of a response are in the images field of its message or delta, a list of
// {type:"image_url",image_url:{url}}: OpenAI itself has no place for them, OpenRouter and hosts
// like it do (openrouter.ai/docs/features/multimodal/image-generation, 2026-11-29).

// imageAddress returns the address of one element of images, "" if it has none.
func imageAddress(d *wire.Decoder) (address string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) != "image_url" {
			continue
		}
		if d.Kind() != wire.KindObject {
			address = upstream.OptString(d)
			continue
		}
		for key := range d.Object {
			if string(key) == "url" {
				address = upstream.OptString(d)
			}
		}
	}
	return address
}

// isImage reports whether a part is an image.
func isImage(p chat.Part) bool { return p.Kind == chat.Image }

// imageParts reads images into parts.
func imageParts(d *wire.Decoder) (parts []chat.Part) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	for range d.Array {
		if address := imageAddress(d); address != "" {
			parts = append(parts, chat.Part{Kind: chat.Image, Media: chat.ReadImage(address)})
		}
	}
	return parts
}

// images returns the images of a chunk. Each is a block.
func (s *streamDecoder) images(st *choiceState, list []byte, emit func(*chat.Delta) error) error {
	for _, p := range imageParts(wire.NewDecoder(list)) {
		s.m.Started = true
		s.m.Chunks++
		s.out = chat.Delta{Kind: chat.DeltaImage, Choice: st.index, Block: blockImages + st.images, Call: -1, JSON: wire.AppendJSONString(nil, p.Media.Address())}
		if err := emit(&s.out); err != nil {
			return err
		}
		st.images++
		s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: st.index, Block: s.out.Block, Call: -1}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	return nil
}

// appendImages writes the images field of a message after a comma; nothing if it has no image.
func appendImages(dst []byte, parts []chat.Part) []byte {
	n := 0
	for i := range parts {
		if parts[i].Kind != chat.Image {
			continue
		}
		if n++; n == 1 {
			dst = append(dst, `,"images":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendImage(dst, wire.AppendJSONString(nil, parts[i].Media.Address()))
	}
	if n > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// appendImage writes one image; address is a JSON string.
func appendImage(dst, address []byte) []byte {
	dst = append(dst, `{"type":"image_url","image_url":{"url":`...)
	return append(append(dst, address...), "}}"...)
}

// image writes an image for clients that did not request the strict format: as
// OpenRouter's, and as a block of content_blocks, which preserves its position between
// the others.
func (s *streamEncoder) image(dst []byte, d *chat.Delta) []byte {
	if s.o.Strict {
		return dst
	}
	dst = s.open(dst, d.Choice)
	whole := appendImage(nil, d.JSON)
	dst = append(append(append(dst, `"images":[`...), whole...), "],"...)
	block := *d
	block.JSON = whole
	return s.close(appendBlockDelta(dst, &block, "block"))
}
