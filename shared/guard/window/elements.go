package window

import (
	"encoding/json"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/wire"
)

// Elements judges the parts of a delta other than text, such as citations.
type Elements struct {
	// Support is what the client's format supports; the rest is not judged. Origin is the
	// provider's dialect.
	Support chat.ResponseSupport
	Origin  string
	// Judge receives a response in the format of chat completions with the strings of the
	// delta. It returns the response to send instead, or nil to leave it unchanged.
	Judge func(body []byte) (now []byte, denied *fault.Fault)
}

// treatment is how a window handles a kind of delta.
type treatment uint8

const (
	exempt  treatment = iota + 1 // it contains no string that a window judges
	text                         // a piece of a text, which waits until enough of it has come
	element                      // its strings are judged on arrival
)

// treatments has a row for each kind of delta. Tool arguments and reasoning are exempt because
// a hook that judges them holds the stream.
var treatments = map[chat.DeltaKind]treatment{
	chat.DeltaStart:     element,
	chat.DeltaText:      text,
	chat.DeltaRefusal:   text,
	chat.DeltaThinking:  exempt,
	chat.DeltaSignature: exempt,
	chat.DeltaRedacted:  exempt,
	chat.DeltaCitation:  element,
	chat.DeltaForeign:   element,
	chat.DeltaImage:     element,
	chat.DeltaToolStart: element,
	chat.DeltaToolArgs:  exempt,
	chat.DeltaBlockStop: exempt,
	chat.DeltaStop:      element,
	chat.DeltaUsage:     exempt,
	chat.DeltaPing:      exempt,
}

// judge returns the delta to send in place of d. A change that cannot be written back into
// the delta is a denial.
func (e *Elements) judge(d *chat.Delta, deny func() *fault.Fault) (*chat.Delta, *fault.Fault) {
	body := e.response(d)
	if body == nil {
		return d, nil
	}
	switch now, denied := e.Judge(body); {
	case denied != nil:
		return nil, denied
	case now == nil:
		return d, nil
	default:
		changed, ok := withResponse(*d, now)
		if !ok {
			return nil, deny()
		}
		return &changed, nil
	}
}

// response returns a response that contains the strings of a delta; nil if it has none.
func (e *Elements) response(d *chat.Delta) []byte {
	field := func(dst []byte, name, value string) []byte {
		return wire.AppendJSONString(append(append(append(dst, '"'), name...), `":`...), value)
	}
	switch d.Kind {
	case chat.DeltaStart:
		if content.IsIdentifier(d.ID, d.Model) {
			return nil
		}
		return append(field(append(field([]byte{'{'}, "id", d.ID), ','), "model", d.Model), '}')
	case chat.DeltaCitation:
		if e.Support.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[{"type":"text","annotations":[`), d.JSON...), `]}]}}]}`...)
		}
	case chat.DeltaForeign:
		if e.Support.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[`), d.JSON...), `]}}]}`...)
		}
	case chat.DeltaImage:
		if e.Support.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[{"type":"image_url","image_url":{"url":`), d.JSON...), `}}]}}]}`...)
		}
	case chat.DeltaToolStart:
		if content.IsIdentifier(d.ID, d.Name, d.Signature) {
			return nil
		}
		out := field([]byte(`{"choices":[{"message":{"tool_calls":[{"type":"function",`), "id", d.ID)
		out = field(append(out, ','), "signature", d.Signature)
		return append(field(append(out, `,"function":{`...), "name", d.Name), `}}]}}]}`...)
	case chat.DeltaStop:
		if len(d.Extra) == 0 && content.IsIdentifier(d.Native, d.StopSequence) {
			return nil
		}
		out := field([]byte(`{"choices":[{`), "finish_reason", d.Native)
		if e.Support.Features&chat.HoldsSequence != 0 {
			out = field(append(out, ','), "stop_sequence", d.StopSequence)
		}
		for _, x := range d.Extra {
			if e.Support.Features&chat.HoldsExtra != 0 {
				out = wire.AppendJSONString(append(out, ','), x.Name)
				out = append(append(out, ':'), x.Raw...)
			}
		}
		return append(out, `}]}`...)
	}
	return nil
}

// withResponse returns a delta with the strings of a response that was created from it. ok is
// false if the response has another structure.
func withResponse(d chat.Delta, body []byte) (changed chat.Delta, ok bool) {
	var whole struct {
		ID, Model string
		Choices   []map[string]json.RawMessage
	}
	if json.Unmarshal(body, &whole) != nil {
		return d, false
	}
	if d.Kind == chat.DeltaStart {
		d.ID, d.Model = whole.ID, whole.Model
		return d, true
	}
	if len(whole.Choices) != 1 {
		return d, false
	}
	choice := whole.Choices[0]
	if d.Kind == chat.DeltaStop {
		extra := make([]chat.Field, 0, len(d.Extra))
		for _, x := range d.Extra {
			if raw := choice[x.Name]; raw != nil {
				extra = append(extra, chat.Field{Name: x.Name, Raw: raw})
			}
		}
		d.Extra = extra
		if raw := choice["stop_sequence"]; raw != nil && json.Unmarshal(raw, &d.StopSequence) != nil {
			return d, false
		}
		return d, json.Unmarshal(choice["finish_reason"], &d.Native) == nil
	}
	var message struct {
		Content   []json.RawMessage
		ToolCalls []struct {
			ID, Signature string
			Function      struct{ Name string }
		} `json:"tool_calls"`
	}
	if json.Unmarshal(choice["message"], &message) != nil {
		return d, false
	}
	switch {
	case d.Kind == chat.DeltaToolStart && len(message.ToolCalls) == 1:
		c := &message.ToolCalls[0]
		d.ID, d.Name, d.Signature = c.ID, c.Function.Name, c.Signature
		return d, true
	case d.Kind == chat.DeltaForeign && len(message.Content) == 1:
		d.JSON = message.Content[0]
		return d, wire.KindOf(d.JSON) == wire.KindObject
	case d.Kind == chat.DeltaImage && len(message.Content) == 1:
		var part struct {
			Image struct{ URL json.RawMessage } `json:"image_url"`
		}
		if json.Unmarshal(message.Content[0], &part) == nil {
			d.JSON = part.Image.URL
			return d, wire.KindOf(d.JSON) == wire.KindString
		}
	case d.Kind == chat.DeltaCitation && len(message.Content) == 1:
		var part struct{ Annotations []json.RawMessage }
		if json.Unmarshal(message.Content[0], &part) == nil && len(part.Annotations) == 1 {
			d.JSON = part.Annotations[0]
			return d, wire.KindOf(d.JSON) == wire.KindObject
		}
	}
	return d, false
}

// growthFraction is the fraction of a text's length that must arrive, beyond the window, before the text
// is judged again: each judgment costs more as the text grows.
const growthFraction = 16

// grow judges the entire text so far, and forwards the part that passed: as much as stays the
// same when it is judged separately. So everything that was sent is at any time a text that the
// judge has passed or changed, and contains nothing that the judge forbids, whatever its
// length.
func (g *texts) grow(l *line, added []byte) error {
	all := append(l.seen[:len(l.seen):len(l.seen)], added...)
	now, denied := g.judge(string(all))
	if g.denied = denied; denied != nil {
		return nil
	}
	passed := l.passed
	if l.passed = 0; now == string(all) {
		l.passed = len(all)
		// What passed separately the last time need not be judged again.
		if cut := passed - len(l.seen); cut > 0 && cut <= g.cut(added) && strings.HasPrefix(now, l.sent) {
			return g.releaseGrown(l, cut, now[:passed])
		}
	}
	for cut := g.cut(added); cut > 0; cut = g.end(added, cut/2) {
		head, denied := g.judge(string(all[:len(l.seen)+cut]))
		if denied == nil && strings.HasPrefix(now, head) && strings.HasPrefix(head, l.sent) {
			return g.releaseGrown(l, cut, head)
		}
	}
	l.next = l.count + g.step(l)
	return nil
}

// slack is how many characters beyond the window are awaited, so that the text that was judged
// last ends before the window although only complete words are judged.
const slack = 24

// step is how many characters must come before a text is judged again.
func (g *texts) step(l *line) int {
	return max(g.size+slack, (len(l.seen)+len(l.text))/growthFraction)
}

// releaseGrown passes a text on up to a place; head is all of it up to there, as it is to
// be sent.
func (g *texts) releaseGrown(l *line, cut int, head string) error {
	more, source := head[len(l.sent):], string(l.text[:cut])
	l.seen, l.sent = append(l.seen, source...), head
	var now *string
	if more != source {
		now = &more
	}
	err := g.release(l, cut, now)
	l.next = l.count + g.step(l)
	return err
}

// finishGrown judges a text that has ended, and forwards the rest of it. If the end changes how the
// beginning should have been sent, the rest is judged separately, and must be consistent with
// what was sent; otherwise it is not sent.
func (g *texts) finishGrown(l *line) error {
	now, denied := g.judge(string(l.seen) + string(l.text))
	if g.denied = denied; denied != nil {
		return nil
	}
	if strings.HasPrefix(now, l.sent) {
		return g.releaseGrown(l, len(l.text), now)
	}
	rest, denied := g.judge(string(l.text))
	if denied == nil {
		both := l.sent + rest
		if again, denied := g.judge(both); denied == nil && again == both {
			return g.releaseGrown(l, len(l.text), both)
		}
	}
	g.denied = g.deny()
	return nil
}

// Verdict decides about an entire response: it returns another one to send instead, or a denial,
// or nil for both.
type Verdict func(whole *chat.Response) (now *chat.Response, denied *fault.Fault)

// JudgeComplete returns a decoder that forwards nothing before the entire response was judged.
func JudgeComplete(dec chat.StreamDecoder, judge Verdict) chat.StreamDecoder {
	h := &whole{decoderBase: decoderBase{dec: dec}, judge: judge}
	h.push = h.delta
	return h
}

type whole struct {
	decoderBase
	judge    Verdict
	buffered []chat.Delta
	into     chat.Collector
	released bool
}

// Event implements chat.StreamDecoder.
func (h *whole) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if err := h.event(event, data, emit); err != nil {
		return err
	}
	if !h.released && h.dec.Meter().Complete {
		if err := h.release(); err != nil {
			return err
		}
	}
	return h.sendDenial()
}

// End implements chat.StreamDecoder.
func (h *whole) End() error {
	if err := h.dec.End(); err != nil || h.denialSent {
		return err
	}
	if !h.released {
		if err := h.release(); err != nil {
			return err
		}
	}
	return h.sendDenial()
}

// Meter implements chat.StreamDecoder.
func (h *whole) Meter() chat.Meter {
	m := h.dec.Meter()
	if m.Withheld = m.Started && (!h.released || h.denied != nil); m.Withheld {
		m.Started = false
	}
	return m
}

func (h *whole) delta(d *chat.Delta) error {
	switch {
	case h.denied != nil || d.Kind == chat.DeltaPing && !h.released:
		return nil
	case h.released:
		return h.emit(d)
	}
	h.into.Add(d)
	h.buffered = append(h.buffered, clone(d))
	return nil
}

// release judges the response and forwards it.
func (h *whole) release() error {
	h.released = true
	now, denied := h.judge(h.into.Response())
	buffered := h.buffered
	h.buffered = nil
	if h.denied = denied; denied != nil || h.emit == nil {
		return nil
	}
	if now != nil {
		return now.Replay(h.emit)
	}
	cited := texted(buffered)
	for i := range buffered {
		d := &buffered[i]
		if d.Kind == chat.DeltaCitation && !cited[[2]int{d.Choice, d.Block}] {
			continue // the entire response has no field for it, so it was not judged
		}
		if err := h.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// texted returns the blocks, by choice, that have a text.
func texted(deltas []chat.Delta) map[[2]int]bool {
	out := map[[2]int]bool{}
	for i := range deltas {
		if d := &deltas[i]; d.Kind == chat.DeltaText && len(d.JSON) > 2 {
			out[[2]int{d.Choice, d.Block}] = true
		}
	}
	return out
}
