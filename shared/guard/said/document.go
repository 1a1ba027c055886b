package said

import (
	"bytes"
	"mime"
	"unicode/utf8"

	"gateway/shared/wire"
)

// Document is a body as guardrails read it.
type Document struct {
	JSON []byte // nil: there is no text in the body
	// Own: JSON is the body itself, so that changes can be written back.
	Own bool
	// Unread: the body has a document that cannot be read, which is not in JSON.
	Unread bool
}

// Read makes a document of a body of any media type. ok is false for a body that cannot be
// read: it may contain text, and nobody knows which.
func Read(contentType string, body []byte) (doc Document, ok bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return Document{}, true
	case kind == "application/vnd.amazon.eventstream":
		return readFrames(body)
	case kind == "text/event-stream" && !isJSON(body): // no event begins like JSON
		return readEvents(body)
	case isMedia(kind) && !isJSON(body) && (!utf8.Valid(body) || hasControls(body)):
		return Document{}, true // pictures and sound are not judged in conversations either
	case isJSON(body):
		if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) == wire.KindObject {
			return Document{JSON: body, Own: true}, true
		}
		return readArray(body), true
	case !utf8.Valid(body):
		return Document{}, false
	}
	if lines, ok := readLines(body); ok {
		return lines, true
	}
	if hasControls(body) {
		return Document{}, false
	}
	return Document{JSON: append(wire.AppendJSONString([]byte(`{"choices":[{"text":`), body), `}]}`...)}, true
}

// IsJSON reports whether a body is one JSON value.
func IsJSON(body []byte) bool { return isJSON(body) }

// readFrames reads events in the binary framing of AWS.
func readFrames(body []byte) (doc Document, ok bool) {
	var p wire.EventStreamParser
	p.MaxMessage = len(body)
	var j joined
	err := p.Feed(body, func(event string, data []byte) error {
		ok = true
		return j.event(event, data)
	})
	return Document{JSON: j.document(), Unread: j.unread}, ok && err == nil
}

// readEvents reads server-sent events.
func readEvents(body []byte) (doc Document, ok bool) {
	p := wire.SSEParser{MaxEvent: len(body) + 1}
	var j joined
	err := p.Feed(body, j.event)
	if err == nil {
		err = p.End(j.event)
	}
	return Document{JSON: j.document(), Unread: j.unread}, err == nil
}

// readArray reads a list of events or objects.
func readArray(body []byte) Document {
	var j joined
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindArray {
		j.add(body)
		return Document{JSON: j.document(), Unread: j.unread}
	}
	for range d.Array {
		j.add(d.Raw())
	}
	return Document{JSON: j.document(), Unread: j.unread}
}

// readLines reads lines of JSON.
func readLines(body []byte) (doc Document, ok bool) {
	var j joined
	for line := range bytes.SplitSeq(body, []byte{'\n'}) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if wire.KindOf(line) != wire.KindObject || !isJSON(line) {
			return Document{}, false
		}
		j.add(line)
		for at := range j.texts {
			j.texts[at] = append(j.texts[at], '\n') // the rows have nothing to do with each other
		}
	}
	return Document{JSON: j.document(), Unread: j.unread}, true
}

// joined collects the texts of events. What the same field of several events contains is
// one text, since providers cut texts anywhere.
type joined struct {
	order []fieldOf
	texts map[fieldOf][]byte
	// unread: an event has a document that cannot be read.
	unread bool
}

// fieldOf is a field of events.
type fieldOf struct {
	path  uint64
	class class
}

// event adds an event. One that is no JSON is a text.
func (j *joined) event(_ string, data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && string(data) != "[DONE]" {
		j.add(data)
	}
	return nil
}

func (j *joined) add(data []byte) {
	if j.texts == nil {
		j.texts = map[fieldOf][]byte{}
	}
	if !isJSON(data) {
		j.text(fieldOf{class: text}, string(data))
		return
	}
	r := reading{body: data, d: wire.NewDecoder(data), answer: true}
	r.value(place{root: true})
	r.once()
	j.unread = j.unread || r.unread
	for i := range r.pieces {
		p := &r.pieces[i]
		switch t := p.text(data); {
		case p.class == other:
		case p.form == formBase64 && wire.KindOf([]byte(t)) == wire.KindObject && isJSON([]byte(t)):
			j.add([]byte(t)) // an event within the frame of another
		default:
			j.text(fieldOf{p.path, p.class}, t)
		}
	}
}

func (j *joined) text(at fieldOf, t string) {
	if _, ok := j.texts[at]; !ok {
		j.order = append(j.order, at)
	}
	j.texts[at] = append(j.texts[at], t...)
}

// document is a response in the shape of chat completions with the texts.
func (j *joined) document() []byte {
	var content, thoughts, calls []byte
	for _, at := range j.order {
		t := j.texts[at]
		switch at.class {
		case arguments:
			calls = append(wire.AppendJSONString(append(calls, `,{"type":"function","function":{"arguments":`...), t), `}}`...)
		case reasoned:
			thoughts = append(thoughts, t...)
		case result:
			content = append(wire.AppendJSONString(append(content, `,{"type":"tool_result","text":`...), t), '}')
		default:
			content = append(wire.AppendJSONString(append(content, `,{"type":"text","text":`...), t), '}')
		}
	}
	out := []byte(`{"choices":[{"message":{"role":"assistant","content":[`)
	out = append(out, bytes.TrimPrefix(content, []byte{','})...)
	out = append(out, `],"tool_calls":[`...)
	out = append(out, bytes.TrimPrefix(calls, []byte{','})...)
	out = append(out, `],"reasoning_content":`...)
	return append(wire.AppendJSONString(out, thoughts), `}}]}`...)
}
