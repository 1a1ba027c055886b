package responses

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamEncoder writes the events of one stream. Items begin in the order of their first
// piece. Items of tool calls may overlap, because their pieces do.
type streamEncoder struct {
	o    chat.Options
	e    *envelope
	seq  int
	head struct {
		id, model string
		created   int64
	}
	shells map[int]*openItem // calls of local_shell that are incomplete, by canonical call
	items  []*openItem       // all items, by output_index
	shown  int               // at least the first so many items have had their end written
	usage  pricing.Usage

	stop   chat.StopReason
	native string

	hidden      bool         // the response comes by a hidden tool
	answered    bool         // and has come
	pendingText []chat.Delta // text beside it, given only if that response does not come

	early map[int][]citation.Citation // sources of a block with a text that is not open
}

// itemKind is the kind of an output item.
type itemKind uint8

const (
	messageItem itemKind = iota
	reasoningItem
	callItem
	customItem
	imageItem
	shellItem
	foreignItem // an item of this dialect that has no canonical form
)

// openItem is one output item.
type openItem struct {
	kind  itemKind
	index int
	id    string
	block int // canonical block of the open part, or of the reasoning
	call  int // canonical call

	callID, tool string
	text         []byte              // inside of a JSON string: of the open part, the summary, the arguments
	logprobs     []byte              // of the open part: elements with commas
	cited        []citation.Citation // of the open part: sources that wait for its end
	notes        []byte              // of the open part: annotations with commas
	noted        int                 // how many
	partOpen     bool                // a part is open
	refusal      bool                // it is a refusal
	parts        []byte              // parts of a message that have ended, with commas
	count        int
	signature    []byte      // text
	data         []byte      // text of hidden reasoning
	ended        bool        // no more pieces will come
	action       []byte      // of a call of local_shell
	media        *chat.Media // of an image that is complete
	whole        []byte      // the item as it was written at its end
}

func newStreamEncoder(o *chat.Options) *streamEncoder {
	return &streamEncoder{o: *o, hidden: o.Request != nil && o.Request.HiddenResponse}
}

// event begins an event, up to its sequence number.
func (s *streamEncoder) event(dst []byte, kind string) []byte {
	dst = append(append(dst, "event: "...), kind...)
	dst = append(append(dst, "\ndata: {\"type\":\""...), kind...)
	dst = append(dst, `","sequence_number":`...)
	dst = strconv.AppendInt(dst, int64(s.seq), 10)
	s.seq++
	return dst
}

// of writes the fields that specify which item an event is about.
func of(dst []byte, it *openItem) []byte {
	dst = append(dst, `,"item_id":`...)
	dst = wire.AppendJSONString(dst, it.id)
	dst = append(dst, `,"output_index":`...)
	return strconv.AppendInt(dst, int64(it.index), 10)
}

func (s *streamEncoder) begin(dst []byte) []byte {
	if s.e != nil {
		return dst
	}
	s.e = newEnvelope(s.head.id, s.head.model, s.head.created, &s.o)
	running := outcome{status: "in_progress"}
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		dst = s.event(dst, kind)
		dst = append(dst, `,"response":`...)
		dst = s.e.append(dst, nil, &running)
		dst = append(dst, "}\n\n"...)
	}
	return dst
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	if d.Choice > 0 {
		return dst // a client of this dialect reads one response
	}
	switch d.Kind {
	case chat.DeltaStart:
		s.head.id, s.head.model, s.head.created = d.ID, d.Model, d.Created
		if d.Usage != nil {
			s.usage = *d.Usage
		}
		// The first events go out with the first content, so that a stream that
		// begins with an error has sent nothing.
	case chat.DeltaText:
		switch {
		case !s.hidden:
			dst = s.text(dst, d, false)
		case d.Response:
			s.pendingText, s.answered = nil, true
			dst = s.text(dst, d, false)
		case !s.answered:
			s.pendingText = append(s.pendingText, chat.Delta{Block: d.Block, JSON: bytes.Clone(d.JSON)})
		}
	case chat.DeltaRefusal:
		dst = s.text(dst, d, true)
	case chat.DeltaCitation:
		dst = streamCite(s, dst, d)
	case chat.DeltaThinking, chat.DeltaSignature, chat.DeltaRedacted:
		dst = s.thinking(dst, d)
	case chat.DeltaToolStart:
		dst = s.toolStart(dst, d)
	case chat.DeltaToolArgs:
		dst = s.toolArgs(dst, d)
	case chat.DeltaImage:
		dst = s.image(dst, d)
	case chat.DeltaForeign:
		if s.o.Origin == name {
			dst = foreign(s, dst, d.JSON)
		}
	case chat.DeltaBlockStop:
		if s.blockStop(d); d.Call >= 0 {
			dst = giveShell(s, dst, d.Call)
		}
	case chat.DeltaStop:
		dst = giveShells(s, dst)
		dst = s.release(dst)
		dst = s.begin(dst)
		s.stop, s.native = d.Stop, d.Native
	case chat.DeltaUsage:
		s.usage = *d.Usage
	}
	return dst
}

// release returns the text that was held, because no hidden answer will come.
func (s *streamEncoder) release(dst []byte) []byte {
	held := s.pendingText
	s.pendingText = nil
	for i := range held {
		dst = s.text(dst, &held[i], false)
	}
	return dst
}

// blockStop notes that no more pieces of a call or of reasoning will come. The end is
// written when the next item begins or the response ends, because only then it is known
// whether the item is complete.
func (s *streamEncoder) blockStop(d *chat.Delta) {
	for _, it := range s.items {
		switch it.kind {
		case callItem, customItem:
			it.ended = it.ended || d.Call >= 0 && it.call == d.Call && it.block == d.Block
		case reasoningItem:
			it.ended = it.ended || d.Call < 0 && it.block == d.Block
		}
	}
}

// last is the item that was begun last; nil if there is none.
func (s *streamEncoder) last() *openItem {
	if len(s.items) == 0 {
		return nil
	}
	return s.items[len(s.items)-1]
}

// open begins an item, after writing the ends of finished ones.
func (s *streamEncoder) open(dst []byte, it *openItem, prefix string) []byte {
	dst = s.begin(dst)
	for _, other := range s.items[s.shown:] {
		if other.whole == nil && (other.ended || other.kind == messageItem || other.kind == reasoningItem) {
			dst = s.end(dst, other, "completed")
		}
	}
	for s.shown < len(s.items) && s.items[s.shown].whole != nil {
		s.shown++
	}
	it.index = len(s.items)
	it.id = s.e.itemID(prefix, it.index)
	s.items = append(s.items, it)
	return s.itemEvent(dst, "response.output_item.added", it.index, s.item(nil, it, "in_progress"))
}

// itemEvent writes an event about a complete item.
func (s *streamEncoder) itemEvent(dst []byte, kind string, index int, item []byte) []byte {
	dst = s.event(dst, kind)
	dst = append(dst, `,"output_index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"item":`...)
	return append(append(dst, item...), "}\n\n"...)
}

// item writes an item in its present state. An item in progress has no text.
func (s *streamEncoder) item(dst []byte, it *openItem, status string) []byte {
	if it.kind == foreignItem {
		return append(dst, it.whole...)
	}
	running := status == "in_progress"
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, it.id)
	dst = append(dst, `,"type":"`...)
	switch it.kind {
	case messageItem:
		dst = append(dst, `message","status":"`...)
		dst = append(append(dst, status...), `","role":"assistant","content":[`...)
		dst = append(append(dst, it.parts...), ']')
	case reasoningItem:
		dst = append(dst, `reasoning"`...)
		var raw []byte
		if !running && len(it.text) > 0 {
			raw = append(append([]byte{'"'}, it.text...), '"')
		}
		dst = appendReasoning(dst, raw, it.encrypted(s.o.Origin))
	case imageItem:
		dst = appendImage(append(dst, `image_generation_call"`...), it.media)
	case shellItem:
		dst = append(append(append(dst, `local_shell_call","status":"`...), status...), '"')
		dst = appendShell(dst, it.action, it.callID)
	default:
		if it.kind == callItem {
			dst = append(dst, `function_call","status":"`...)
			dst = append(append(dst, status...), `","arguments":"`...)
		} else {
			dst = append(dst, `custom_tool_call","status":"`...)
			dst = append(append(dst, status...), `","input":"`...)
		}
		if !running {
			dst = append(dst, it.text...)
		}
		dst = append(dst, `","call_id":`...)
		dst = wire.AppendJSONString(dst, it.callID)
		dst = appendToolName(dst, s.o.Request, it.tool)
	}
	return append(dst, '}')
}

// encrypted is the encrypted content of a reasoning item so far.
func (it *openItem) encrypted(origin string) string {
	p := chat.Part{Kind: chat.Reasoned, Signature: string(it.signature)}
	if len(it.data) > 0 {
		p = chat.Part{Kind: chat.RedactedReasoned, Data: string(it.data)}
	}
	return sealSigned(&p, origin)
}

// end writes the events that close an item.
func (s *streamEncoder) end(dst []byte, it *openItem, status string) []byte {
	switch it.kind {
	case messageItem:
		dst = endPart(s, dst, it)
	case reasoningItem:
		dst = endSummary(s, dst, it)
	case callItem:
		if len(it.text) == 0 {
			it.text = append(it.text, "{}"...)
			dst = callDelta(s, dst, it, it.text)
		}
		dst = s.event(dst, "response.function_call_arguments.done")
		dst = of(dst, it)
		dst = appendToolName(dst, s.o.Request, it.tool)
		dst = append(dst, `,"arguments":"`...)
		dst = append(append(dst, it.text...), "\"}\n\n"...)
	case customItem:
		dst = endCustom(s, dst, it)
	}
	it.whole = s.item(nil, it, status)
	return s.itemEvent(dst, "response.output_item.done", it.index, it.whole)
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	dst = giveShells(s, dst)
	dst = s.release(dst)
	dst = s.begin(dst)
	dst = lateSources(s, dst)
	o := outcomeOf(s.stop, s.native)
	dst = s.endAll(dst, o.status)
	o.usage = &s.usage
	dst = s.event(dst, "response."+o.status)
	dst = append(dst, `,"response":`...)
	dst = s.e.append(dst, s.output(), &o)
	return append(dst, "}\n\n"...)
}

// endAll ends everything that is open. If the response is not complete, neither is its last
// item.
func (s *streamEncoder) endAll(dst []byte, status string) []byte {
	for i, it := range s.items {
		if it.whole != nil {
			continue
		}
		own := "completed"
		if status != "completed" && i == len(s.items)-1 {
			own = "incomplete"
		}
		dst = s.end(dst, it, own)
	}
	return dst
}

// output is the list of all items that have ended, in their order.
func (s *streamEncoder) output() []byte {
	var out []byte
	for _, it := range s.items {
		if it.whole == nil {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, it.whole...)
	}
	return out
}

// Error implements chat.StreamEncoder. It writes an error event, and the failed response
// for clients that wait for that as the last event.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	dst = appendErrorEvent(dst, f, &s.o, s.seq)
	s.seq++
	return s.failed(dst, f)
}
