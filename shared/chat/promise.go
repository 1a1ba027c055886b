package chat

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// A model without a mode for JSON is asked for JSON in words, or may call a hidden tool.
// Neither binds the model, so its response is checked before the client gets it: a response
// that ended normally but is not JSON is a failure of the provider. White space and a code
// fence around the JSON are removed. Answers that were cut or refused, or that call the
// client's tools, say so by their stop reason and stay as they are.

// errNoJSON returns the fault for a response that is not the JSON that was asked for.
func errNoJSON(hidden bool) *fault.Fault {
	message := "The model was asked for one JSON object and gave something else"
	if hidden {
		message = "The model was asked for JSON of a schema and gave something else"
	}
	f := fault.New(fault.InvalidProviderResponse, "", message)
	f.Source = fault.SourceProvider
	return f
}

// ended reports whether a response with this stop claims to be complete.
func (s StopReason) ended() bool {
	return s == StopUnknown || s == StopEnd || s == StopSequence || s == StopPause
}

// Promised checks a whole response against the JSON that r asked for, see Request.UnboundJSON.
func (r *Request) Promised(answer *Response) error {
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

// schemaHolds reports whether a response that was asked for in words matches its schema.
func (r *Request) schemaHolds(object []byte) bool {
	return r.HiddenAnswer || r.Format.Kind != FormatSchema || r.Fits == nil || r.Fits(r.Format.Schema, object)
}

// replaceText puts text in the place of all texts of the choice.
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

// jsonText finds one JSON object in a text that comes in pieces.
type jsonText struct {
	head     []byte // what stands before the object
	object   []byte
	depth    int
	text     bool // inside of a string
	escaped  bool
	finished bool // the object is closed
}

// maxFence is the longest text that may come before the object.
const maxFence = 64

// add takes the next piece; false when the text cannot be one JSON object.
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

// beginsFence reports whether head is white space, or the beginning of a code fence that
// may name JSON. If all is set, head must be a whole one, because the object follows.
func beginsFence(head []byte, all bool) bool {
	s := strings.ToLower(strings.TrimSpace(string(head)))
	for _, fence := range []string{"", "```", "```json"} {
		if s == fence || !all && strings.HasPrefix(fence, s) {
			return true
		}
	}
	return false
}

// whole reports whether the object is there and is JSON.
func (j *jsonText) whole() bool {
	if !j.finished {
		return false
	}
	d := wire.NewDecoder(j.object)
	d.Skip()
	return d.End() == nil
}

// Promised returns a decoder that checks its response against the JSON that r asked for, or dec
// itself where there is nothing to check. Text is forwarded as it comes, unless the client's
// own tools may be called: then it is kept until it is known whether it is the response.
func Promised(r *Request, dec StreamDecoder) StreamDecoder {
	if r == nil || !r.UnboundJSON {
		return dec
	}
	p := &promised{dec: dec, r: r, keeps: r.wantsTools() || r.HiddenAnswer}
	p.give = p.delta
	return p
}

// promised is a StreamDecoder in front of another.
type promised struct {
	dec   StreamDecoder
	r     *Request
	keeps bool
	emit  func(*Delta) error
	give  func(*Delta) error
	fault *fault.Fault

	kept     []Delta
	json     jsonText
	answered bool // the hidden tool gave the response
	excused  bool // a tool was called, or the response refused
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
	return p.dec.Event(event, data, p.give)
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

// delta looks at one step of the response.
func (p *promised) delta(d *Delta) error {
	switch {
	case d.Kind == DeltaToolStart || d.Kind == DeltaRefusal:
		p.excused = true
		return p.pass(d)
	case d.Kind == DeltaStop:
		return p.stop(d)
	case p.excused || d.Kind == DeltaStart || d.Kind == DeltaUsage || d.Kind == DeltaPing:
		return p.emit(d)
	case d.Kind == DeltaText && d.Answer:
		p.answered = true
		return p.pass(d)
	case d.Kind == DeltaText && p.answered:
		return p.emit(d)
	case p.keeps && (d.Kind == DeltaText || len(p.kept) > 0):
		k := *d
		k.JSON, k.Logprobs = bytes.Clone(d.JSON), bytes.Clone(d.Logprobs)
		p.kept = append(p.kept, k)
		return nil
	case d.Kind == DeltaText:
		return p.text(d)
	}
	return p.emit(d)
}

// pass returns on what was kept, verbatim, and then d.
func (p *promised) pass(d *Delta) error {
	for i := range p.kept {
		if err := p.emit(&p.kept[i]); err != nil {
			return err
		}
	}
	p.kept = nil
	return p.emit(d)
}

// text returns on the part of a piece that belongs to the object.
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

// stop checks the whole response against what was asked for.
func (p *promised) stop(d *Delta) error {
	if p.excused || p.answered || !d.Stop.ended() {
		return p.pass(d)
	}
	kept := p.kept
	p.kept = nil
	for i := range kept {
		k := &kept[i]
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
