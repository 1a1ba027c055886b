package chat

import (
	"slices"
	"unicode/utf8"

	"gateway/shared/wire"
)

// replayPiece is the number of characters in one delta of a replay.
const replayPiece = 500

// Replay emits a complete response as the deltas of a stream, for a client that requested a
// stream of a cached response or of one that a provider did not stream.
func (r *Response) Replay(emit func(*Delta) error) error {
	p := replay{emit: emit}
	p.push(Delta{Kind: DeltaStart, ID: r.ID, Model: r.Model, Created: r.Created, Usage: &r.Usage})
	for i := range r.Choices {
		p.choice(&r.Choices[i])
	}
	if r.Usage.IsReported() {
		p.push(Delta{Kind: DeltaUsage, Usage: &r.Usage})
	}
	return p.err
}

type replay struct {
	emit func(*Delta) error
	err  error
	json []byte
}

func (p *replay) push(d Delta) {
	if p.err == nil {
		p.err = p.emit(&d)
	}
}

func (p *replay) choice(c *Choice) {
	calls, logprobs := 0, c.Logprobs
	for block := range c.Parts {
		part := &c.Parts[block]
		d := Delta{Choice: c.Index, Block: block, Call: -1}
		switch part.Kind {
		case Text:
			if part.Text != "" {
				d.Logprobs, logprobs = logprobs, nil // the first text carries all of them
			}
			p.text(d, DeltaText, part.Text)
			d.Logprobs = nil
			if len(part.Citations) > 0 {
				p.citations(d, part.Citations)
			}
		case Refusal:
			p.text(d, DeltaRefusal, part.Text)
		case Reasoned:
			p.text(d, DeltaThinking, part.Text)
			p.text(d, DeltaSignature, part.Signature)
		case RedactedReasoned:
			d.Kind, d.JSON = DeltaRedacted, wire.AppendJSONString(nil, part.Data)
			p.push(d)
		case Foreign:
			d.Kind, d.JSON = DeltaForeign, part.Raw
			p.push(d)
		case Image:
			d.Kind, d.JSON = DeltaImage, wire.AppendJSONString(nil, part.Media.Address())
			p.push(d)
		case Call:
			d.Call = calls
			calls++
			d.Kind, d.ID, d.Name, d.Signature = DeltaToolStart, part.Call.ID, part.Call.Name, part.Call.Signature
			p.push(d)
			args := part.Call.Arguments
			if args == "" {
				args = "{}"
			}
			d.Kind, d.ID, d.Name, d.Signature, d.JSON = DeltaToolArgs, "", "", "", wire.AppendJSONString(nil, args)
			p.push(d)
		default:
			continue
		}
		d.Kind, d.JSON = DeltaBlockStop, nil
		p.push(d)
	}
	p.push(Delta{Kind: DeltaStop, Choice: c.Index, Stop: c.Stop, Native: c.Native, StopSequence: c.StopSequence, Extra: c.Extra})
}

// text emits s in pieces, split between characters.
func (p *replay) text(d Delta, kind DeltaKind, s string) {
	d.Kind = kind
	for len(s) > 0 {
		n := 0
		for range replayPiece {
			if n == len(s) {
				break
			}
			_, size := utf8.DecodeRuneInString(s[n:])
			n += size
		}
		p.json = wire.AppendJSONString(p.json[:0], s[:n])
		d.JSON = p.json
		p.push(d)
		d.Logprobs = nil
		s = s[n:]
	}
}

// citations emits each element of a list of citations.
func (p *replay) citations(d Delta, list []byte) {
	d.Kind = DeltaCitation
	in := wire.NewDecoder(list)
	for range in.Array {
		if in.Kind() == wire.KindObject {
			d.JSON = in.Raw()
			p.push(d)
		}
	}
}

// Collector assembles the deltas of a stream into a complete response. It serves clients that
// do not stream from a provider that only streams, and creates the responses of cached streams.
// The zero Collector is ready to use.
type Collector struct {
	r        Response
	blocks   []collected
	logprobs []logprobs
}

// collected is an incomplete block.
type collected struct {
	choice, block int
	kind          PartKind
	text          []byte // text, thinking, refusal, data or arguments
	signature     []byte
	whole         []byte // foreign block, or citations without the last bracket
	id, name      string
	callSign      string // signature of a call
}

// Add processes one delta.
func (c *Collector) Add(d *Delta) {
	switch d.Kind {
	case DeltaStart:
		c.r.ID, c.r.Model, c.r.Created = d.ID, d.Model, d.Created
		if d.Usage != nil {
			c.r.Usage = *d.Usage
		}
	case DeltaText:
		c.piece(d, Text)
		if len(d.Logprobs) > 0 {
			c.tokens(d)
		}
	case DeltaRefusal:
		c.piece(d, Refusal)
	case DeltaThinking:
		c.piece(d, Reasoned)
	case DeltaRedacted:
		c.piece(d, RedactedReasoned)
	case DeltaToolArgs:
		c.piece(d, Call)
	case DeltaSignature:
		b := c.at(d, Reasoned)
		b.signature = wire.AppendUnquoted(b.signature, d.JSON)
	case DeltaForeign:
		b := c.at(d, Foreign)
		b.whole = append(b.whole[:0], d.JSON...)
	case DeltaImage: // each is a block
		c.choice(d.Choice)
		c.blocks = append(c.blocks, collected{choice: d.Choice, block: d.Block, kind: Image, text: wire.AppendUnquoted(nil, d.JSON)})
	case DeltaCitation:
		b := c.at(d, Text)
		if len(b.whole) == 0 {
			b.whole = append(b.whole, '[')
		} else {
			b.whole = append(b.whole, ',')
		}
		b.whole = append(b.whole, d.JSON...)
	case DeltaToolStart:
		b := c.at(d, Call)
		b.id, b.name, b.callSign = d.ID, d.Name, d.Signature
	case DeltaStop:
		ch := c.choice(d.Choice)
		ch.Stop, ch.Native, ch.StopSequence = d.Stop, d.Native, d.StopSequence
		for _, x := range d.Extra {
			ch.Extra = append(ch.Extra, Field{x.Name, slices.Clone(x.Raw)})
		}
	case DeltaUsage:
		c.r.Usage = *d.Usage
	}
}

func (c *Collector) piece(d *Delta, kind PartKind) {
	b := c.at(d, kind)
	if kind == Text && c.interrupted(b) { // clients received it as another text, too
		c.blocks = append(c.blocks, collected{choice: d.Choice, block: d.Block, kind: kind})
		b = &c.blocks[len(c.blocks)-1]
	}
	b.text = wire.AppendUnquoted(b.text, d.JSON)
}

// interrupted reports whether another block of the choice followed b.
func (c *Collector) interrupted(b *collected) bool {
	for i := len(c.blocks) - 1; i >= 0 && &c.blocks[i] != b; i-- {
		if c.blocks[i].choice == b.choice {
			return true
		}
	}
	return false
}

// at finds or creates the block of a delta; mostly it is the last.
func (c *Collector) at(d *Delta, kind PartKind) *collected {
	for i := len(c.blocks) - 1; i >= 0; i-- {
		if b := &c.blocks[i]; b.choice == d.Choice && b.block == d.Block && b.kind == kind {
			return b
		}
	}
	c.choice(d.Choice)
	c.blocks = append(c.blocks, collected{choice: d.Choice, block: d.Block, kind: kind})
	return &c.blocks[len(c.blocks)-1]
}

// choice finds or creates a choice; choices are ordered by index.
func (c *Collector) choice(index int) *Choice {
	at := 0
	for ; at < len(c.r.Choices) && c.r.Choices[at].Index <= index; at++ {
		if c.r.Choices[at].Index == index {
			return &c.r.Choices[at]
		}
	}
	c.r.Choices = slices.Insert(c.r.Choices, at, Choice{Index: index})
	return &c.r.Choices[at]
}

// Response returns the assembled response. No delta may be added afterwards.
func (c *Collector) Response() *Response {
	for i := range c.blocks {
		b := &c.blocks[i]
		ch := c.choice(b.choice)
		ch.Parts = append(ch.Parts, b.part())
	}
	for i := range c.logprobs {
		l := &c.logprobs[i]
		c.choice(l.choice).Logprobs = l.object()
	}
	c.blocks, c.logprobs = nil, nil
	return &c.r
}

func (b *collected) part() Part {
	p := Part{Kind: b.kind}
	switch b.kind {
	case Call:
		p.Call = &ToolCall{ID: b.id, Name: b.name, Arguments: string(b.text), Signature: b.callSign}
	case RedactedReasoned:
		p.Data = string(b.text)
	case Foreign:
		p.Raw = b.whole
	case Image:
		p.Media = ReadImage(string(b.text))
	default:
		p.Text, p.Signature = string(b.text), string(b.signature)
		if len(b.whole) > 0 {
			p.Citations = append(b.whole, ']')
		}
	}
	return p
}

// logprobs collects the log probabilities of a choice: the elements of its two lists, with
// commas.
type logprobs struct {
	choice           int
	content, refusal []byte
}

// tokens adds the logprobs of a piece of text.
func (c *Collector) tokens(d *Delta) {
	var l *logprobs
	for i := range c.logprobs {
		if c.logprobs[i].choice == d.Choice {
			l = &c.logprobs[i]
		}
	}
	if l == nil {
		c.logprobs = append(c.logprobs, logprobs{choice: d.Choice})
		l = &c.logprobs[len(c.logprobs)-1]
	}
	in := wire.NewDecoder(d.Logprobs)
	if in.Kind() != wire.KindObject {
		return
	}
	for key := range in.Object {
		switch string(key) {
		case "content":
			l.content = appendElements(l.content, in)
		case "refusal":
			l.refusal = appendElements(l.refusal, in)
		}
	}
}

// appendElements appends the elements of the list at d.
func appendElements(dst []byte, d *wire.Decoder) []byte {
	if d.Kind() != wire.KindArray {
		return dst
	}
	for range d.Array {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, d.Raw()...)
	}
	return dst
}

// object returns the complete object in the format of chat completions.
func (l *logprobs) object() []byte {
	dst := []byte(`{"content":`)
	if dst = appendList(dst, l.content); len(l.refusal) == 0 {
		return append(dst, `,"refusal":null}`...)
	}
	return append(appendList(append(dst, `,"refusal":`...), l.refusal), '}')
}

func appendList(dst, elements []byte) []byte {
	if len(elements) == 0 {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '['), elements...), ']')
}
