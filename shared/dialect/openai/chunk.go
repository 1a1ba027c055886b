package openai

import (
	"bytes"

	"gateway/shared/wire"
)

// chunk is one event of a stream, read without copies: all bytes alias the event. The
// struct is reused for the next event.
type chunk struct {
	id, model []byte // unquoted; escapes do not occur in them
	tier      []byte // the same
	created   int64
	choices   []choiceDelta
	err       []byte // error object or string; nil if none
	inside    bool   // err is the error of a choice
	usage     usageReport

	// usageAt is the position of the usage value, usageCut the field with one comma.
	usageAt, usageCut wire.Span
	// early is set if usage or an error precedes the choices, so that a chunk cannot be
	// recognized by its end.
	early bool

	room   [1]choiceDelta // most chunks have one choice
	prefix []byte         // of an earlier chunk, up to its choices; empty if unknown
}

// choiceDelta is one choice of a chunk.
type choiceDelta struct {
	index    int
	body     bool   // it has a delta, or a text
	content  []byte // JSON string; nil when absent or null
	parts    []byte // content given as an array
	thinking []byte // reasoning_content or reasoning: JSON string
	refusal  []byte // JSON string
	notes    []byte // list of annotations
	images   []byte // list of images
	calls    []callDelta
	function *callDelta // legacy function_call
	logprobs []byte     // object; nil when null
	finish   []byte     // unquoted; nil when null
	stopped  []byte     // the stop string that occurred, unquoted; few hosts report it
	err      []byte     // error object or string of the choice; nil if none

	room [1]callDelta
}

// callDelta is one piece of a tool call.
type callDelta struct {
	index    int
	hasIndex bool
	id       []byte // JSON string; nil when absent
	name     []byte // JSON string
	args     []byte // JSON string
	object   bool   // the host wrote the arguments as an object
}

// size is how much text the choice brings.
func (c *choiceDelta) size() int {
	n := inside(c.content) + inside(c.thinking) + inside(c.refusal) + len(c.parts) + len(c.images)
	for i := range c.calls {
		n += inside(c.calls[i].args) + inside(c.calls[i].name)
	}
	if c.function != nil {
		n += inside(c.function.args) + inside(c.function.name)
	}
	return n
}

// inside is the length of the text of a JSON string; 0 without one.
func inside(jsonString []byte) int {
	return wire.TextLen(jsonString)
}

// read fills c from data.
func (c *chunk) read(d *wire.Decoder, data []byte) error {
	choices := c.choices[:0]
	if choices == nil {
		choices = c.room[:0]
	}
	prefix := c.prefix
	*c = chunk{choices: choices, prefix: prefix}
	if len(prefix) > 0 && bytes.HasPrefix(data, prefix) && c.readTail(d, data) {
		return nil
	}
	c.choices = c.choices[:0]
	return c.readWhole(d, data)
}

// readTail reads a chunk that begins like the one before it: only its choices and what
// follows them. It reports false when the rest does not have one of the two usual forms.
func (c *chunk) readTail(d *wire.Decoder, data []byte) bool {
	from := len(c.prefix)
	d.Reset(data[from:])
	c.readChoices(d)
	if d.Err() != nil {
		return false
	}
	rest := data[from+d.Offset():]
	if len(rest) == 1 && rest[0] == '}' {
		return true
	}
	if len(rest) == len(nullUsage)+1 && bytes.HasPrefix(rest, nullUsage) && rest[len(rest)-1] == '}' {
		end := len(data) - 1
		c.usageCut = wire.Span{Start: end - len(nullUsage), End: end}
		c.usageAt = wire.Span{Start: end - len("null"), End: end}
		return true
	}
	return false
}

func (c *chunk) readWhole(d *wire.Decoder, data []byte) error {
	d.Reset(data)
	before := 0 // end of the field before
	first := true
	for key := range d.Object {
		start := d.Offset()
		switch string(key) {
		case "id":
			c.id = plainString(d)
		case "model":
			c.model = plainString(d)
		case "service_tier":
			c.tier = plainString(d)
		case "created":
			if d.Kind() == wire.KindNumber {
				n := d.Num()
				c.created = parseSeconds(n)
			}
		case "choices":
			if c.early = !c.usageAt.Absent() || c.err != nil; c.early {
				c.prefix = c.prefix[:0]
			} else {
				c.prefix = append(c.prefix[:0], data[:start]...)
			}
			if d.Kind() == wire.KindArray {
				c.readChoices(d)
			}
		case "error":
			if k := d.Kind(); k == wire.KindObject || k == wire.KindString {
				c.err = d.Raw()
			}
		case "x_groq":
			c.usage.readGroq(d)
		case "usage":
			d.Kind() // moves to the value
			c.usageAt.Start = skipSpace(data, start)
			if d.Kind() == wire.KindObject {
				c.usage.readTop(d)
			} else {
				d.Skip()
			}
			c.usageAt.End = d.Offset()
			c.usageCut = wire.Span{Start: before, End: d.Offset()}
			if first { // the comma after it is removed with it
				c.usageCut.Start = skipSpace(data, bytes.IndexByte(data, '{')+1)
				if next := skipSpace(data, d.Offset()); next < len(data) && data[next] == ',' {
					c.usageCut.End = next + 1
				}
			}
		}
		first = false
		if d.Offset() == start {
			d.Skip()
		}
		before = d.Offset()
	}
	return d.End()
}

// parseSeconds reads a time that some hosts write as a fraction or in
// milliseconds.
func parseSeconds(num []byte) int64 {
	n, err := wire.ScanInt(num, "")
	if err != nil {
		f, _ := wire.ScanFloat(num, "")
		n = int64(f)
	}
	if n > 1e11 {
		n /= 1000
	}
	return n
}

// plainString reads an id-like string without copying it.
func plainString(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	raw := d.RawStr()
	if len(raw) < 2 {
		return nil
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return wire.AppendUnquoted(nil, raw)
	}
	return raw[1 : len(raw)-1]
}

// stringOrNull reads a JSON string with its quotes; nil for null and other kinds.
func stringOrNull(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	return d.RawStr()
}

func (c *chunk) readChoices(d *wire.Decoder) {
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		n := len(c.choices)
		c.choices = append(c.choices, choiceDelta{index: n})
		if c.choices[n].read(d, &c.usage); c.choices[n].err != nil && c.err == nil {
			c.err, c.inside = c.choices[n].err, true
		}
	}
}

func (c *choiceDelta) read(d *wire.Decoder, u *usageReport) {
	for key := range d.Object {
		switch string(key) {
		case "index":
			if d.Kind() == wire.KindNumber {
				c.index = int(d.Int())
			}
		case "delta", "message":
			if d.Kind() == wire.KindObject {
				c.body = true
				c.readDelta(d)
			}
		case "text":
			c.body = true
			c.content = stringOrNull(d)
		case "logprobs":
			if d.Kind() == wire.KindObject {
				c.logprobs = d.Raw()
			}
		case "finish_reason":
			if d.Kind() == wire.KindString {
				if c.finish = plainString(d); len(c.finish) == 0 {
					c.finish = nil // some hosts write "" for null
				}
			}
		case "error":
			if k := d.Kind(); k == wire.KindObject || k == wire.KindString {
				c.err = d.Raw()
			}
		case "stop_reason":
			c.stopped = plainString(d)
		case "usage":
			u.readSide(d)
		}
	}
}

func (c *choiceDelta) readDelta(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "content":
			if d.Kind() == wire.KindArray {
				c.parts = d.Raw()
			} else {
				c.content = stringOrNull(d)
			}
		case "reasoning_content", "reasoning":
			if c.thinking == nil {
				c.thinking = stringOrNull(d)
			}
		case "refusal":
			c.refusal = stringOrNull(d)
		case "annotations":
			if d.Kind() == wire.KindArray {
				c.notes = d.Raw()
			}
		case "images":
			if d.Kind() == wire.KindArray {
				c.images = d.Raw()
			}
		case "tool_calls":
			if d.Kind() == wire.KindArray {
				c.readCalls(d)
			}
		case "function_call":
			if d.Kind() == wire.KindObject {
				c.function = new(callDelta)
				c.function.readFunction(d)
			}
		}
	}
}

func (c *choiceDelta) readCalls(d *wire.Decoder) {
	c.calls = c.room[:0]
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		n := len(c.calls)
		c.calls = append(c.calls, callDelta{index: n})
		c.calls[n].read(d)
	}
}

func (c *callDelta) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "index":
			if d.Kind() == wire.KindNumber {
				c.index, c.hasIndex = int(d.Int()), true
			}
		case "id":
			c.id = stringOrNull(d)
		case "function", "custom":
			if d.Kind() == wire.KindObject {
				c.readFunction(d)
			}
		}
	}
}

func (c *callDelta) readFunction(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "name":
			c.name = stringOrNull(d)
		case "arguments", "input":
			if d.Kind() == wire.KindObject { // some hosts do not quote it
				c.args, c.object = wire.AppendJSONString(nil, d.Raw()), true
			} else {
				c.args = stringOrNull(d)
			}
		}
	}
}

// pieceShape is what surrounds the text in the chunks of one stream. The next chunk of the
// same shape is measured without being decoded.
type pieceShape struct {
	at         int    // where the choices begin
	head, tail []byte // of the choices, around the text and its quotes
}

// learn takes the shape of data, which was read into c, if it only brings one text. core is
// the length of data up to the end of its choices.
func (p *pieceShape) learn(data []byte, core int, c *chunk) {
	p.tail = p.tail[:0]
	if c.early || len(c.choices) != 1 {
		return
	}
	ch := &c.choices[0]
	text := ch.content
	if len(text) <= 2 {
		text = ch.thinking
	}
	if len(text) <= 2 || ch.size() != inside(text) {
		return
	}
	p.at = len(c.prefix)
	i := bytes.Index(data[p.at:core], text)
	if i < 0 {
		return
	}
	p.head = append(p.head[:0], data[p.at:p.at+i+1]...)
	p.tail = append(p.tail, data[p.at+i+len(text)-1:core]...)
}

// text returns the length of the text in the choices that end core; ok is false if they do
// not have the shape.
func (p *pieceShape) text(core []byte) (n int, ok bool) {
	if len(p.tail) == 0 || len(core) < p.at+len(p.head)+len(p.tail) || !bytes.HasPrefix(core[p.at:], p.head) || !bytes.HasSuffix(core, p.tail) {
		return 0, false
	}
	text := core[p.at+len(p.head) : len(core)-len(p.tail)]
	if bytes.IndexByte(text, '"') >= 0 {
		return 0, false // a further field, or an escaped quote
	}
	return wire.UnescapedLen(text), true
}
