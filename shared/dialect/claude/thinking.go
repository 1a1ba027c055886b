package claude

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Thinking is the thinking setting of a request.
type Thinking struct {
	Mode   chat.Thinking // ThinkingUnset: nothing is written
	Budget int64
	Effort string // empty: nothing is written
}

// On reports whether the model thinks.
func (t Thinking) On() bool { return t.Mode >= chat.ThinkingBudget }

// Turns are the turns of a conversation, with the signed reasoning in them.
type Turns struct {
	Request *chat.Request
	// Signed reports whether the model takes a part back.
	Signed func(*chat.Part) bool
	// Loaded is what LoadReasoning found, by the part of the call.
	Loaded map[*chat.Part][]chat.Part
}

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// LoadReasoning looks up the stored reasoning of calls that the client sent without it, newest
// first.
func (t *Turns) LoadReasoning() {
	if t.Request.LoadReasoning == nil {
		return
	}
	left := maxRecalls
	ms := t.Request.Messages
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.Assistant || t.anySigned(&ms[i]) {
			continue
		}
		for j := range ms[i].Parts {
			p := &ms[i].Parts[j]
			if p.Call == nil {
				continue
			}
			if left--; left < 0 {
				return
			}
			t.recall(p)
		}
	}
}

func (t *Turns) recall(p *chat.Part) {
	for _, q := range t.Request.LoadReasoning(p.Call.ID) {
		if !t.Signed(&q) {
			continue
		}
		if t.Loaded == nil {
			t.Loaded = make(map[*chat.Part][]chat.Part)
		}
		t.Loaded[p] = append(t.Loaded[p], q)
	}
}

func (t *Turns) anySigned(m *chat.Message) bool {
	for i := range m.Parts {
		if t.Signed(&m.Parts[i]) {
			return true
		}
	}
	return false
}

// StartsSigned reports whether the turn that the tool results answer begins with signed reasoning.
// The provider demands that when the model thinks.
func (t *Turns) StartsSigned() bool {
	ms := t.Request.Messages
	last := LastNonSystem(ms)
	for last > 0 && ms[last].Role == chat.User && LastNonSystem(ms[:last]) >= 0 && ms[LastNonSystem(ms[:last])].Role == chat.ToolRole {
		last = LastNonSystem(ms[:last]) // results are no new turn, whatever is beside them
	}
	if last < 0 || ms[last].Role != chat.ToolRole {
		return true
	}
	for i := last; i >= 0; i-- {
		switch ms[i].Role {
		case chat.User:
			return true
		case chat.Assistant:
			return t.begins(&ms[i])
		}
	}
	return true
}

func (t *Turns) begins(m *chat.Message) bool {
	for i := range m.Parts {
		p := &m.Parts[i]
		if t.Signed(p) || len(t.Loaded[p]) > 0 {
			return true
		}
		if p.Call != nil {
			return false
		}
	}
	return true
}

// Check rejects or removes what is incompatible with thinking. field is the field by
// which the client requested thinking.
func (t *Turns) Check(think *Thinking, traits *chat.Traits, field string, loss *chat.Loss) error {
	if !think.On() {
		return nil
	}
	if t.Request.ToolChoice.Forced() {
		if !traits.DowngradeToolChoice {
			return fault.Invalid("tool_choice", "tool_choice cannot force a tool while %s is on: this provider accepts auto or none with it", field)
		}
		loss.Add("tool_choice", "auto: a tool cannot be forced with thinking")
	}
	t.LoadReasoning()
	if think.Mode == chat.ThinkingBudget && !t.StartsSigned() {
		loss.Add(field, "the signed reasoning of the tool call of this result is not known")
		*think = Thinking{}
	}
	return nil
}

// LastNonSystem is the index of the last message that is not a system prompt, -1 for
// none.
func LastNonSystem(ms []chat.Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.System && ms[i].Role != chat.Developer {
			return i
		}
	}
	return -1
}

var (
	markerKey   = []byte(`"cache_control"`)
	markable    = map[string]bool{"text": true, "image": true, "document": true, "tool_use": true, "tool_result": true, "search_result": true}
	shortMarker = []byte(`{"type":"ephemeral"}`)
	hourMarker  = []byte(`{"type":"ephemeral","ttl":"1h"}`)
	topKeys     = wire.NewKeySet("system", "tools", "messages", "cache_control")
)

// AddCacheMarkers adds two cache markers to a Messages body: one at the end of the part that is
// constant in a conversation (the system prompt, or else the tools), and one at its last
// block. If the client has markers, they determine the constant part: then only the last
// block gets one, up to MaxMarkers in total. A body that lets the provider place the
// markers is unchanged. If hour is set, the markers last an hour, otherwise five minutes.
// The result is body itself if nothing was added. body is a checked JSON object.
func AddCacheMarkers(body []byte, hour bool) []byte {
	var w wire.Walk
	if topKeys.Walk(body, &w) != nil || !w.Spans[3].Absent() {
		return body
	}
	own := bytes.Count(body, markerKey) // counts keys; the word in a text, which is rare, counts as one too many
	marker := shortMarker
	if own == 0 && hour {
		marker = hourMarker
	}
	var edits []wire.Edit
	add := func(e wire.Edit, ok bool) {
		if ok && own+len(edits) < MaxMarkers {
			edits = append(edits, e)
		}
	}
	if own == 0 {
		e, ok := markLast(body, w.Spans[0], marker)
		if !ok {
			e, ok = markTool(body, w.Spans[1], marker)
		}
		add(e, ok)
	}
	add(markMessage(body, w.Spans[2], marker))
	if len(edits) == 0 {
		return body
	}
	return wire.Splice(make([]byte, 0, len(body)+256), body, edits...)
}

// last returns the last element of an array that is in span.
func last(body []byte, span wire.Span) (at wire.Span, ok bool) {
	d := wire.NewDecoder(span.Of(body))
	for range d.Array {
		d.Kind() // skips the white space before the element
		raw := d.Raw()
		end := span.Start + d.Offset()
		at, ok = wire.Span{Start: end - len(raw), End: end}, true
	}
	return at, ok && d.Err() == nil
}

// markLast marks the last block of a content, which may also be a text.
func markLast(body []byte, content wire.Span, marker []byte) (e wire.Edit, ok bool) {
	if !content.Present(body) {
		return e, false
	}
	switch raw := content.Of(body); wire.KindOf(raw) {
	case wire.KindString:
		if len(raw) <= len(`""`) {
			return e, false
		}
		block := append([]byte(`[{"type":"text","text":`), raw...)
		block = append(append(block, `,"cache_control":`...), marker...)
		return wire.Replace(content, append(block, `}]`...)), true
	case wire.KindArray:
		at, found := last(body, content)
		if !found || !takesMarker(at.Of(body)) {
			return e, false
		}
		return wire.InsertAt(at.Start, "cache_control", marker), true
	}
	return e, false
}

var blockKeys = wire.NewKeySet("type", "text", "cache_control", "defer_loading")

// takesMarker reports whether a block may get a marker and has none yet.
func takesMarker(block []byte) bool {
	var w wire.Walk
	if wire.KindOf(block) != wire.KindObject || blockKeys.Walk(block, &w) != nil || !w.Spans[2].Absent() || !w.Spans[0].Present(block) {
		return false
	}
	kind, err := wire.ScanString(w.Spans[0].Of(block), "type")
	if err != nil || !markable[kind] {
		return false
	}
	return kind != "text" || len(w.Spans[1].Of(block)) > len(`""`)
}

// markTool marks the last tool, unless it is loaded later: such a tool is not part of the
// prefix.
func markTool(body []byte, tools wire.Span, marker []byte) (e wire.Edit, ok bool) {
	if !tools.Present(body) || wire.KindOf(tools.Of(body)) != wire.KindArray {
		return e, false
	}
	at, found := last(body, tools)
	var w wire.Walk
	if !found || wire.KindOf(at.Of(body)) != wire.KindObject || blockKeys.Walk(at.Of(body), &w) != nil || !w.Spans[3].Absent() {
		return e, false
	}
	return wire.InsertAt(at.Start, "cache_control", marker), true
}

var messageKeys = wire.NewKeySet("content")

// markMessage marks the last block of the last message.
func markMessage(body []byte, messages wire.Span, marker []byte) (e wire.Edit, ok bool) {
	if !messages.Present(body) || wire.KindOf(messages.Of(body)) != wire.KindArray {
		return e, false
	}
	at, found := last(body, messages)
	var w wire.Walk
	if !found || wire.KindOf(at.Of(body)) != wire.KindObject || messageKeys.Walk(at.Of(body), &w) != nil || w.Spans[0].Absent() {
		return e, false
	}
	content := w.Spans[0]
	content.Start, content.End = content.Start+at.Start, content.End+at.Start
	return markLast(body, content, marker)
}
