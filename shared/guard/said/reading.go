package said

import (
	"gateway/shared/wire"
)

// reading collects the pieces of a body.
type reading struct {
	body   []byte
	d      *wire.Decoder
	answer bool
	flat   bool // an answer with one choice, whose parts are the items
	tools  bool // a tool call by itself: only its arguments and result count
	pieces []piece
	last   int
	twice  []wire.Span // members that repeat the texts of others
}

// add notes the next value as a piece.
func (r *reading) add(message int, system bool, c class) {
	kind := r.d.Kind()
	raw := r.d.Raw()
	if raw == nil || kind == wire.KindNull {
		return
	}
	end := r.d.Offset()
	if kind != wire.KindString && (c != arguments && !(r.tools && c == result) || kind != wire.KindObject) {
		return
	}
	r.pieces = append(r.pieces, piece{message, system, c, wire.Span{Start: end - len(raw), End: end}})
}

// none notes a part that is not text.
func (r *reading) none(message int) {
	r.pieces = append(r.pieces, piece{message: message, class: other})
}

// plain reads a body whose texts are one member: a string, or a list of strings.
func (r *reading) plain(name string) {
	for key := range r.d.Object {
		if string(key) != name {
			continue
		}
		if r.d.Kind() != wire.KindArray {
			r.add(0, false, text)
			continue
		}
		for range r.d.Array {
			if r.d.Kind() == wire.KindString {
				r.add(0, false, text)
			} else {
				r.none(0)
			}
		}
	}
}

// conversation reads the bodies of chat completions and messages.
func (r *reading) conversation() {
	for key := range r.d.Object {
		switch string(key) {
		case "system":
			r.content(-1, true, text)
		case "messages":
			if r.d.Kind() != wire.KindArray {
				continue
			}
			for i := range r.d.Array {
				r.last = i
				r.message(i, false)
			}
		}
	}
}

// responses reads the items of a body of responses, or of its answer.
func (r *reading) responses(list string) {
	r.flat = r.answer
	for key := range r.d.Object {
		switch {
		case string(key) == "instructions" && !r.answer:
			r.content(-1, true, text)
		case string(key) == list:
			if r.d.Kind() == wire.KindString {
				r.add(0, false, text)
			}
			if r.d.Kind() != wire.KindArray {
				continue
			}
			for i := range r.d.Array {
				r.last = i
				r.message(i, false)
			}
		}
	}
}

// choices reads the answers of chat and text completions.
func (r *reading) choices() {
	for key := range r.d.Object {
		if string(key) != "choices" || r.d.Kind() != wire.KindArray {
			continue
		}
		for i := range r.d.Array {
			if r.d.Kind() != wire.KindObject {
				continue
			}
			for key := range r.d.Object {
				switch string(key) {
				case "message":
					r.message(i, false)
				case "text":
					r.add(i, false, text)
				}
			}
		}
	}
}

// message reads one message: of a conversation, of a choice, or one item of a list of
// items. Its role may come after its content.
func (r *reading) message(at int, system bool) {
	if r.d.Kind() != wire.KindObject {
		return
	}
	from := len(r.pieces)
	var role, kind string
	for key := range r.d.Object {
		switch string(key) {
		case "role":
			role = r.word()
		case "type":
			kind = r.word()
		case "content":
			r.content(at, system, text)
		case "output":
			r.content(at, false, result)
		case "tool_calls":
			r.calls(at)
		case "function_call":
			r.call(at)
		case "arguments", "input":
			if kind != "" || r.d.Kind() == wire.KindString { // the item is a call
				r.add(at, false, arguments)
			}
		case "reasoning", "reasoning_content":
			r.add(at, false, thought)
		case "summary":
			r.content(at, false, thought)
		case "content_blocks":
			if !r.answer {
				r.content(at, system, text)
				continue
			}
			start := r.d.KeySpan().Start
			if r.d.Raw() != nil {
				r.twice = append(r.twice, wire.Span{Start: start, End: r.d.Offset()})
			}
		}
	}
	for i := from; i < len(r.pieces); i++ {
		p := &r.pieces[i]
		switch {
		case (role == "tool" || role == "function") && p.class == text:
			p.class = result
		case kind == "reasoning" && p.class == text:
			p.class = thought
		case role == "system" || role == "developer":
			p.system = true
		}
	}
}

// word reads a short text; "" for another value.
func (r *reading) word() string {
	if r.d.Kind() != wire.KindString {
		return ""
	}
	return string(r.d.Bytes())
}

// content reads a text, or a list of parts.
func (r *reading) content(at int, system bool, c class) {
	switch r.d.Kind() {
	case wire.KindString:
		r.add(at, system, c)
	case wire.KindArray:
		for range r.d.Array {
			switch r.d.Kind() {
			case wire.KindString:
				r.add(at, system, c)
			case wire.KindObject:
				r.part(at, system, c)
			}
		}
	}
}

// part reads one part of a content. Its type may come after its text.
func (r *reading) part(at int, system bool, c class) {
	from, kind := len(r.pieces), ""
	for key := range r.d.Object {
		switch string(key) {
		case "type":
			kind = r.word()
		case "text", "refusal":
			r.add(at, system, c)
		case "thinking":
			r.add(at, system, thought)
		case "content": // of the result of a tool
			r.content(at, system, result)
		case "input":
			r.add(at, system, arguments)
		}
	}
	if len(r.pieces) == from && kind != "" {
		r.none(at)
	}
}

// calls reads a list of tool calls.
func (r *reading) calls(at int) {
	if r.d.Kind() != wire.KindArray {
		return
	}
	for range r.d.Array {
		if r.d.Kind() != wire.KindObject {
			continue
		}
		for key := range r.d.Object {
			switch string(key) {
			case "function", "custom":
				r.call(at)
			}
		}
	}
}

// call reads the name and the arguments of a call.
func (r *reading) call(at int) {
	if r.d.Kind() != wire.KindObject {
		return
	}
	for key := range r.d.Object {
		switch string(key) {
		case "arguments", "input":
			r.add(at, false, arguments)
		}
	}
}

// toolCall reads the params of a tool call.
func (r *reading) toolCall() {
	for key := range r.d.Object {
		if string(key) == "arguments" {
			r.add(0, false, arguments)
		}
	}
}

// toolResult reads what a tool returned: its parts, including embedded resources, and its
// structured content.
func (r *reading) toolResult() {
	for key := range r.d.Object {
		switch {
		case string(key) == "structuredContent":
			r.add(0, false, result)
		case string(key) == "content" && r.d.Kind() == wire.KindArray:
			for range r.d.Array {
				if r.d.Kind() == wire.KindObject {
					r.toolPart()
				}
			}
		}
	}
}

func (r *reading) toolPart() {
	for key := range r.d.Object {
		switch {
		case string(key) == "text":
			r.add(0, false, result)
		case string(key) == "resource" && r.d.Kind() == wire.KindObject:
			r.toolPart()
		}
	}
}

// agent reads what is said to or by an agent.
func (r *reading) agent() {
	r.tools = true
	r.parts(false)
}

// parts looks for lists of parts at any depth, except in metadata, which nobody says.
func (r *reading) parts(inList bool) {
	switch r.d.Kind() {
	case wire.KindArray:
		for range r.d.Array {
			r.parts(inList)
		}
	case wire.KindObject:
		for key := range r.d.Object {
			switch name := string(key); {
			case name == "metadata":
				r.d.Skip()
			case inList && name == "text":
				r.add(0, false, text)
			case inList && name == "data":
				r.data()
			default:
				r.parts(name == "parts" || name == "content")
			}
		}
	default:
		r.d.Skip()
	}
}

// data reads a structure that takes the place of a text: as a whole, or a list entry by
// entry.
func (r *reading) data() {
	if r.d.Kind() != wire.KindArray {
		r.add(0, false, result)
		return
	}
	for range r.d.Array {
		r.data()
	}
}
