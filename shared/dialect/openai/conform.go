package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"gateway/shared/dialect/hosts"
	"gateway/shared/wire"
)

// Hosts that call themselves compatible send what OpenAI's own libraries cannot read:
// content as a list, arguments as an object, pieces of calls without an index. Where the
// client gets a host's own bytes, those places are rewritten, and nothing else. If strict, so
// are finish reasons that OpenAI does not have.

// contentKey and argumentsKey are searched for before a response is traversed.
var (
	contentKey   = []byte(`"content"`)
	argumentsKey = []byte(`"arguments"`)
)

// Conform implements chat.Conformer.
func (Chat) Conform(body []byte, finish string, strict bool) []byte {
	if (!strict || ownFinish([]byte(finish))) && !anyValue(body, contentKey, '[') && !anyValue(body, argumentsKey, '{') {
		return body
	}
	c := conformer{strict: strict}
	return c.rewrite(body)
}

// ownFinish reports whether OpenAI has the finish reason.
func ownFinish(finish []byte) bool {
	switch string(finish) {
	case "", "stop", "length", "tool_calls", "content_filter", "function_call":
		return true
	}
	return false
}

// anyValue reports whether the value of a field key begins with first anywhere in body.
// The quotes of a key in a JSON string are escaped, so a match is a key.
func anyValue(body, key []byte, first byte) bool {
	for {
		n := bytes.Index(body, key)
		if n < 0 {
			return false
		}
		body = body[n+len(key):]
		if i := skipSpace(body, 0); at(body, i) == ':' && nextByte(body, i+1) == first {
			return true
		}
	}
}

// conformer rewrites the choices of a response, or of the chunks of one stream.
type conformer struct {
	strict bool
	stream bool
	rename bool // name is in the place of the call's name
	name   string
	calls  []conformedCall // of a stream: calls without an index
	body   []byte
	edits  []edit
}

// conformedCall is a call to which the host gave no index.
type conformedCall struct {
	choice int
	id     string
}

// edit puts text in the place of a part of the body.
type edit struct {
	at   wire.Span
	text []byte
}

// rewrite returns body with what OpenAI's libraries can read; body itself if it cannot be
// walked.
func (c *conformer) rewrite(body []byte) []byte {
	c.body, c.edits = body, c.edits[:0]
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return body
	}
	for key := range d.Object {
		if string(key) == "choices" && d.Kind() == wire.KindArray {
			for i := range d.Array {
				if d.Kind() == wire.KindObject {
					c.choice(d, i)
				}
			}
		}
	}
	if d.End() != nil {
		return body
	}
	return c.edited()
}

// edited is the body with all edits.
func (c *conformer) edited() []byte {
	body := c.body
	if len(c.edits) == 0 {
		return body
	}
	out := make([]byte, 0, len(body)+64*len(c.edits))
	from := 0
	for _, e := range c.edits {
		out = append(append(out, body[from:e.at.Start]...), e.text...)
		from = e.at.End
	}
	return append(out, body[from:]...)
}

// value reads the value at d and returns where it is.
func (c *conformer) value(d *wire.Decoder) (raw []byte, at wire.Span) {
	d.Kind() // moves to the value
	start := skipSpace(c.body, d.Offset())
	raw = d.Raw()
	return raw, wire.Span{Start: start, End: start + len(raw)}
}

func (c *conformer) choice(d *wire.Decoder, position int) {
	for key := range d.Object {
		switch string(key) {
		case "index":
			if d.Kind() == wire.KindNumber {
				position = int(d.Int())
			}
		case "message", "delta":
			if d.Kind() == wire.KindObject {
				c.message(d, position)
			}
		case "finish_reason":
			if c.strict && d.Kind() == wire.KindString {
				raw, at := c.value(d)
				if inner := raw[1 : len(raw)-1]; !ownFinish(inner) {
					reason, _ := hosts.StopOf(inner)
					c.edits = append(c.edits, edit{at, strconv.AppendQuote(nil, reason.OpenAI())})
				} else if len(inner) == 0 {
					c.edits = append(c.edits, edit{at, []byte("null")})
				}
			}
		}
	}
}

func (c *conformer) message(d *wire.Decoder, choice int) {
	for key := range d.Object {
		switch string(key) {
		case "content":
			if d.Kind() == wire.KindArray {
				raw, at := c.value(d)
				c.edits = append(c.edits, edit{at, c.content(raw)})
			}
		case "tool_calls":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					if d.Kind() == wire.KindObject {
						c.call(d, choice)
					}
				}
			}
		case "function_call":
			if d.Kind() == wire.KindObject {
				c.function(d)
			}
		}
	}
}

// content is a list of parts as one text. Reasoning, which is beside the text at other
// hosts, is a field of no strict response.
func (c *conformer) content(list []byte) []byte {
	d := wire.NewDecoder(list)
	var text, thinking []byte
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		if s, thought := contentItem(d); thought {
			thinking = append(thinking, s...)
		} else {
			text = append(text, s...)
		}
	}
	out := wire.AppendJSONString(nil, string(text))
	if len(thinking) > 0 && !c.strict {
		out = wire.AppendJSONString(append(out, `,"reasoning_content":`...), string(thinking))
	}
	return out
}

func (c *conformer) call(d *wire.Decoder, choice int) {
	start := skipSpace(c.body, d.Offset()) + 1 // after the bracket
	before := len(c.edits)
	indexed, id := false, ""
	for key := range d.Object {
		switch string(key) {
		case "index":
			indexed = d.Kind() == wire.KindNumber
		case "id":
			if d.Kind() == wire.KindString {
				id = d.Str()
			}
		case "function":
			if d.Kind() == wire.KindObject {
				c.function(d)
			}
		}
	}
	if c.stream && !indexed {
		text := append(strconv.AppendInt([]byte(`"index":`), int64(c.index(choice, id)), 10), ',')
		c.edits = append(c.edits, edit{})
		copy(c.edits[before+1:], c.edits[before:])
		c.edits[before] = edit{wire.Span{Start: start, End: start}, text}
	}
}

// index is the index of a call that has none: that of its id, or of the last call.
func (c *conformer) index(choice int, id string) int {
	n := -1
	for i := range c.calls {
		if c.calls[i].choice != choice {
			continue
		}
		if n++; c.calls[i].id == id {
			return n
		}
	}
	if id == "" && n >= 0 {
		return n
	}
	if len(c.calls) < maxCalls {
		c.calls = append(c.calls, conformedCall{choice, id})
	}
	return n + 1
}

func (c *conformer) function(d *wire.Decoder) {
	for key := range d.Object {
		switch {
		case string(key) == "arguments" && d.Kind() == wire.KindObject:
			raw, at := c.value(d)
			c.edits = append(c.edits, edit{at, wire.AppendJSONString(nil, string(raw))})
		case string(key) == "name" && c.rename:
			_, at := c.value(d)
			c.edits = append(c.edits, edit{at, wire.AppendJSONString(nil, c.name)})
		}
	}
}

// Many hosts ignore encoding_format: they send lists of numbers to a client that
// requested base64, as OpenAI's library for Node does by default, or the reverse. The
// client then reads an empty or a wrong vector.

var (
	embeddingKey        = []byte(`"embedding"`)
	embeddingFormatKeys = wire.NewKeySet("encoding_format", "output_dtype")
)

// ConformEmbeddings returns a response of /embeddings with its vectors in the encoding
// that request specifies. It returns body itself if they have it already, if the client
// specified an encoding that OpenAI does not have, or if a vector is unreadable.
func ConformEmbeddings(body, request []byte) []byte {
	lists, strings := anyValue(body, embeddingKey, '['), anyValue(body, embeddingKey, '"')
	if !lists && !strings {
		return body
	}
	packed, ok := wantsBase64(request)
	if !ok || packed && !lists || !packed && !strings {
		return body
	}
	c := conformer{body: body}
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if string(key) != "data" || d.Kind() != wire.KindArray {
			continue
		}
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "embedding" && !c.vector(d, packed) {
					return body
				}
			}
		}
	}
	if d.End() != nil {
		return body
	}
	return c.edited()
}

// wantsBase64 reports whether the client wants base64; ok is false if it wants something
// that is neither that nor numbers.
func wantsBase64(request []byte) (packed, ok bool) {
	var w wire.Walk
	if embeddingFormatKeys.Walk(request, &w) != nil {
		return false, false
	}
	if kind := string(w.Spans[1].Of(request)); kind != "" && kind != "null" && kind != `"float"` {
		return false, false
	}
	switch string(w.Spans[0].Of(request)) {
	case `"base64"`:
		return true, true
	case "", "null", `"float"`:
		return false, true
	}
	return false, false
}

// vector rewrites the vector at d; false if it cannot be read.
func (c *conformer) vector(d *wire.Decoder, packed bool) bool {
	kind := d.Kind()
	raw, at := c.value(d)
	switch {
	case kind == wire.KindArray && packed:
		var floats []byte
		in := wire.NewDecoder(raw)
		for range in.Array {
			if in.Kind() != wire.KindNumber {
				return false
			}
			floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(in.Float())))
		}
		if in.End() != nil {
			return false
		}
		text := base64.StdEncoding.AppendEncode([]byte{'"'}, floats)
		c.edits = append(c.edits, edit{at, append(text, '"')})
	case kind == wire.KindString && !packed:
		floats, err := base64.StdEncoding.DecodeString(string(wire.AppendUnquoted(nil, raw)))
		if err != nil || len(floats)%4 != 0 {
			return false
		}
		list := []byte{'['}
		for ; len(floats) > 0; floats = floats[4:] {
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(floats)))
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendFloat(list, f, 'g', -1, 32)
		}
		c.edits = append(c.edits, edit{at, append(list, ']')})
	}
	return true
}
