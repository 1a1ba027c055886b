package content

import (
	"bytes"
	"mime"
	"unicode/utf8"

	"gateway/shared/wire"
)

// Document is a body as guardrails read it.
type Document struct {
	JSON []byte // nil if the body has no text
	// Own is set if JSON is the body itself, so that changes can be written back.
	Own bool
	// Unread is set if the body contains a document or a truncated binary message that cannot
	// be read and is not in JSON.
	Unread bool
}

// Read returns the document of a body of any media type. ok is false for a body that may
// contain text and cannot be read.
func Read(contentType string, body []byte) (doc Document, ok bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return Document{}, true
	case kind == "application/vnd.amazon.eventstream":
		var j joined
		ok := readFrames(body, &j)
		return j.read(), ok
	case kind == "text/event-stream" && !isJSON(body): // no event begins like JSON
		var j joined
		ok := readEvents(body, &j)
		return j.read(), ok
	case isMedia(kind) && !isJSON(body) && (!utf8.Valid(body) || hasControls(body)):
		return Document{}, true // images and audio are not judged in conversations either
	case isJSON(body):
		if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) == wire.KindObject {
			return Document{JSON: body, Own: true}, true
		}
		var j joined
		readArray(body, &j)
		return j.read(), true
	case !utf8.Valid(body):
		return Document{}, false
	}
	var j joined
	if readLines(body, &j) {
		return j.read(), true
	}
	if hasControls(body) {
		return Document{}, false
	}
	return Document{JSON: append(wire.AppendJSONString([]byte(`{"choices":[{"text":`), body), `}]}`...)}, true
}

// IsJSON reports whether a body is one JSON value.
func IsJSON(body []byte) bool { return isJSON(body) }

// readFrames reads events in the binary framing of AWS.
func readFrames(body []byte, j *joined) (ok bool) {
	var p wire.EventStreamParser
	p.MaxMessage = len(body)
	err := p.Feed(body, func(event string, data []byte) error {
		ok = true
		return j.event(event, data)
	})
	j.unread = j.unread || p.End(nil) != nil // the text of an incomplete message
	return ok && err == nil
}

// readEvents reads server-sent events.
func readEvents(body []byte, j *joined) (ok bool) {
	p := wire.SSEParser{MaxEvent: len(body) + 1}
	err := p.Feed(body, j.event)
	if err == nil {
		err = p.End(j.event)
	}
	return err == nil
}

// readArray reads a list of events or objects, or a single value.
func readArray(body []byte, j *joined) {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindArray {
		j.add(body, origin{parent: none, end: len(body)})
		return
	}
	for range d.Array {
		raw := d.Raw()
		j.add(raw, origin{parent: none, end: d.Offset()})
	}
}

// readLines reads lines of JSON.
func readLines(body []byte, j *joined) (ok bool) {
	end := -1
	for row := range bytes.SplitSeq(body, []byte{'\n'}) {
		end += len(row) + 1
		line := bytes.TrimSpace(row)
		if len(line) == 0 {
			continue
		}
		if wire.KindOf(line) != wire.KindObject || !isJSON(line) {
			return false
		}
		j.add(line, origin{parent: none, end: end - (len(row) - len(bytes.TrimRight(row, " \t\r")))})
		for at := range j.texts {
			j.texts[at] = append(j.texts[at], '\n') // the rows are independent
		}
	}
	return true
}

// joined collects the texts of events. The texts of the same field in consecutive events are
// one text, since providers split texts anywhere.
type joined struct {
	order []fieldOf
	texts map[fieldOf][]byte
	// unread is set if an event has a document that cannot be read.
	unread bool
	// track records where the texts come from, so that changes can be written back.
	track    bool
	sources  []source
	segments map[fieldOf][]segment
	events   []int // source of each event of a framing, or none for an event without texts
}

// fieldOf identifies a field of events.
type fieldOf struct {
	path  uint64
	class class
}

// event adds an event. An event that is not JSON is a text.
func (j *joined) event(_ string, data []byte) error {
	next := none
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && string(trimmed) != "[DONE]" {
		next = len(j.sources)
		j.add(trimmed, origin{parent: none})
	}
	if j.track {
		j.events = append(j.events, next)
	}
	return nil
}

// add adds the texts of an event.
func (j *joined) add(data []byte, from origin) {
	if j.texts == nil {
		j.texts, j.segments = map[fieldOf][]byte{}, map[fieldOf][]segment{}
	}
	n := len(j.sources)
	if j.track {
		j.sources = append(j.sources, source{origin: from, raw: bytes.Clone(data)})
	}
	if !isJSON(data) {
		j.text(fieldOf{class: text}, string(data), n, piece{})
		return
	}
	r := reading{body: data, d: wire.NewDecoder(data), answer: true}
	r.value(place{root: true})
	r.dropRepeated()
	j.unread = j.unread || r.unread
	if j.track {
		j.sources[n].twice = r.twice
	}
	for i := range r.pieces {
		p := &r.pieces[i]
		switch t := p.text(data); {
		case p.class == other:
		case p.form == formBase64 && wire.KindOf([]byte(t)) == wire.KindObject && isJSON([]byte(t)):
			j.add([]byte(t), origin{parent: n, piece: *p}) // an event within the frame of another
		default:
			j.text(fieldOf{p.path, p.class}, t, n, *p)
		}
	}
}

// text adds a text, which is a piece of a source.
func (j *joined) text(at fieldOf, t string, from int, p piece) {
	if _, ok := j.texts[at]; !ok {
		j.order = append(j.order, at)
	}
	if begin := len(j.texts[at]); j.track {
		j.segments[at] = append(j.segments[at], segment{source: from, piece: p, span: wire.Span{Start: begin, End: begin + len(t)}})
	}
	j.texts[at] = append(j.texts[at], t...)
}

// read returns the collected document.
func (j *joined) read() Document { return Document{JSON: j.document(), Unread: j.unread} }

// document returns the texts in the format of chat completions.
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
