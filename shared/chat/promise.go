package chat

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// A model without a JSON mode gets an instruction to write JSON, or a hidden tool. Neither is
// binding, so its response is checked before the client receives it: a response that ended
// normally but is not JSON is a failure of the provider. White space and a code fence around
// the JSON are removed. Responses that were truncated or refused, or that call the client's
// tools, have another stop reason and are unchanged.

// errNoJSON returns the fault for a response that is not the requested JSON.
func errNoJSON(hidden bool) *fault.Fault {
	message := "The model was asked for one JSON object and returned something else"
	if hidden {
		message = "The model was asked for JSON of a schema and returned something else"
	}
	f := fault.New(fault.InvalidProviderResponse, "", message)
	f.Source = fault.SourceProvider
	return f
}

// ended reports whether a response with this stop reason is complete.
func (s StopReason) ended() bool {
	return s == StopUnknown || s == StopEnd || s == StopSequence || s == StopPause
}

// CheckJSON checks a complete response against the JSON that r requested, see
// Request.UnboundJSON.
func (r *Request) CheckJSON(answer *Response) error {
	if r == nil || !r.UnboundJSON {
		return nil
	}
	for i := range answer.Choices {
		c := &answer.Choices[i]
		if !c.Stop.ended() || slices.ContainsFunc(c.Parts, func(p Part) bool { return p.Kind == Call || p.Kind == Refusal }) {
			continue
		}
		text := c.Text()
		var j jsonText
		if !j.add([]byte(text)) || !j.whole() || !r.schemaHolds(j.object) {
			return errNoJSON(r.Format.Kind == FormatSchema)
		}
		if len(j.object) != len(text) {
			c.replaceText(string(j.object))
		}
	}
	return nil
}

// schemaHolds reports whether a response that was requested by an instruction matches its
// schema.
func (r *Request) schemaHolds(object []byte) bool {
	return r.HiddenResponse || r.Format.Kind != FormatSchema || r.MatchSchema == nil || r.MatchSchema(r.Format.Schema, object)
}

// replaceText replaces all texts of the choice by text.
func (c *Choice) replaceText(text string) {
	first := true
	c.Parts = slices.DeleteFunc(c.Parts, func(p Part) bool {
		drop := p.Kind == Text && !first
		first = first && p.Kind != Text
		return drop
	})
	for i := range c.Parts {
		if c.Parts[i].Kind == Text {
			c.Parts[i].Text = text
		}
	}
}

// jsonText finds one JSON object in a text that arrives in pieces.
type jsonText struct {
	head     []byte // text before the object
	object   []byte
	depth    int
	text     bool // within a string
	escaped  bool
	finished bool // the object is closed
}

// maxFence is the length limit of text before the object.
const maxFence = 64

// add processes the next piece. It returns false if the text cannot be one JSON object.
func (j *jsonText) add(piece []byte) bool {
	if len(j.object) == 0 {
		at := bytes.IndexByte(piece, '{')
		before := piece
		if at >= 0 {
			before = piece[:at]
		}
		if j.head = append(j.head, before...); len(j.head) > maxFence || !beginsFence(j.head, at >= 0) {
			return false
		}
		if at < 0 {
			return true
		}
		piece = piece[at:]
	}
	if !j.finished {
		n := j.inside(piece)
		j.object = append(j.object, piece[:n]...)
		piece = piece[n:]
	}
	return len(bytes.Trim(piece, "` \t\r\n")) == 0
}

// inside returns the number of bytes of piece that belong to the object.
func (j *jsonText) inside(piece []byte) int {
	for i, c := range piece {
		switch {
		case j.escaped:
			j.escaped = false
		case j.text:
			j.escaped, j.text = c == '\\', c != '"'
		case c == '"':
			j.text = true
		case c == '{' || c == '[':
			j.depth++
		case c == '}' || c == ']':
			if j.depth--; j.depth == 0 {
				j.finished = true
				return i + 1
			}
		}
	}
	return len(piece)
}

// beginsFence reports whether head is white space, or the beginning of a code fence that may
// name JSON. If all is set, head must be complete, because the object follows.
func beginsFence(head []byte, all bool) bool {
	s := strings.ToLower(strings.TrimSpace(string(head)))
	for _, fence := range []string{"", "```", "```json"} {
		if s == fence || !all && strings.HasPrefix(fence, s) {
			return true
		}
	}
	return false
}

// whole reports whether the object is complete and valid JSON.
func (j *jsonText) whole() bool {
	if !j.finished {
		return false
	}
	d := wire.NewDecoder(j.object)
	d.Skip()
	return d.End() == nil
}

// CheckJSON returns a decoder that checks its response against the JSON that r requested, or dec
// itself if there is nothing to check. Text is forwarded on arrival, unless the client's tools
// may be called: then it is held until it is known whether it is the response.
func CheckJSON(r *Request, dec StreamDecoder) StreamDecoder {
	if r == nil || !r.UnboundJSON {
		return dec
	}
	p := &promised{dec: dec, r: r, bufferText: r.wantsTools() || r.HiddenResponse}
	p.push = p.delta
	return p
}

// promised wraps a StreamDecoder.
type promised struct {
	dec        StreamDecoder
	r          *Request
	bufferText bool
	emit       func(*Delta) error
	push       func(*Delta) error
	fault      *fault.Fault

	buffered []Delta
	json     jsonText
	answered bool // the hidden tool returned the response
	excused  bool // a tool was called, or the response was refused
	scratch  []byte
}

// Parser implements Framed.
func (p *promised) Parser() EventParser {
	if framed, ok := p.dec.(Framed); ok {
		return framed.Parser()
	}
	return new(wire.SSEParser)
}

// Event implements StreamDecoder.
func (p *promised) Event(event string, data []byte, emit func(*Delta) error) error {
	if p.fault != nil {
		return p.fault
	}
	p.emit = emit
	return p.dec.Event(event, data, p.push)
}

// End implements StreamDecoder.
func (p *promised) End() error {
	if p.fault != nil {
		return p.fault
	}
	return p.dec.End()
}

// Meter implements StreamDecoder.
func (p *promised) Meter() Meter {
	m := p.dec.Meter()
	if p.fault != nil {
		m.Err, m.Complete = p.fault, false
	}
	return m
}

// Signed implements StreamDecoder.
func (p *promised) Signed() []Signed { return p.dec.Signed() }

func (p *promised) fail() error {
	p.fault = errNoJSON(p.r.Format.Kind == FormatSchema)
	return p.fault
}

// delta processes one step of the response.
func (p *promised) delta(d *Delta) error {
	switch {
	case d.Kind == DeltaToolStart || d.Kind == DeltaRefusal:
		p.excused = true
		return p.pass(d)
	case d.Kind == DeltaStop:
		return p.stop(d)
	case p.excused || d.Kind == DeltaStart || d.Kind == DeltaUsage || d.Kind == DeltaPing:
		return p.emit(d)
	case d.Kind == DeltaText && d.Response:
		p.answered = true
		return p.pass(d)
	case d.Kind == DeltaText && p.answered:
		return p.emit(d)
	case p.bufferText && (d.Kind == DeltaText || len(p.buffered) > 0):
		k := *d
		k.JSON, k.Logprobs = bytes.Clone(d.JSON), bytes.Clone(d.Logprobs)
		p.buffered = append(p.buffered, k)
		return nil
	case d.Kind == DeltaText:
		return p.text(d)
	}
	return p.emit(d)
}

// pass forwards the held deltas and then d.
func (p *promised) pass(d *Delta) error {
	for i := range p.buffered {
		if err := p.emit(&p.buffered[i]); err != nil {
			return err
		}
	}
	p.buffered = nil
	return p.emit(d)
}

// text forwards the part of a piece that belongs to the object.
func (p *promised) text(d *Delta) error {
	before := len(p.json.object)
	if !p.json.add(wire.AppendUnquoted(nil, d.JSON)) {
		return p.fail()
	}
	if len(p.json.object) == before {
		return nil
	}
	c := *d
	p.scratch = wire.AppendJSONString(p.scratch[:0], p.json.object[before:])
	c.JSON = p.scratch
	return p.emit(&c)
}

// stop checks the complete response against the request.
func (p *promised) stop(d *Delta) error {
	if p.excused || p.answered || !d.Stop.ended() {
		return p.pass(d)
	}
	buffered := p.buffered
	p.buffered = nil
	for i := range buffered {
		k := &buffered[i]
		give := p.emit
		if k.Kind == DeltaText {
			give = p.text
		}
		if err := give(k); err != nil {
			return err
		}
	}
	if !p.json.whole() || !p.r.schemaHolds(p.json.object) {
		return p.fail()
	}
	return p.emit(d)
}
