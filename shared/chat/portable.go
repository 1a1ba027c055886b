package chat

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Named is a Dialect with paths that differ from those that encoders report, which are those of
// chat completions: messages[2].content[0], reasoning_effort, response_format.
type Named interface {
	// ClientPath returns the client's path for an encoder's path.
	ClientPath(path string) string
}

// Portable is a Dialect with features that only a provider of the same dialect supports.
type Portable interface {
	// Portable rejects a request that no other dialect can serve, with a 400 that names the
	// field.
	Portable(r *Request) error
}

// ReferenceReader is a Dialect with requests that can refer to the items of an earlier response.
type ReferenceReader interface {
	// Output returns the items of an encoded response and the id under which they are stored,
	// or "" if it has none.
	Output(response []byte) (id string, items []byte)
	// Input returns the items that a request adds to the conversation, and the id of the
	// response that it continues, as it was sent, "" if it begins one.
	Input(body []byte) (previous string, items []byte)
	// Inline returns a body with the items that its references name in place of them, and with
	// those of the conversation that it continues; nil if nothing is replaced. Other references
	// stay: they are the provider's own, and Portable rejects them.
	Inline(body []byte, stored Stored) ([]byte, error)
}

// Stored finds the items that were stored under the ids of responses. Both functions return nil
// if there are none.
type Stored struct {
	Output       func(id string) ([]byte, error)           // of one response
	Conversation func(id string, most int) ([]byte, error) // up to a response, and with it
}

// Unmarker is a Dialect with bodies that may contain reasoning of another provider, which the
// gateway has marked: the provider that reads the bytes rejects it.
type Unmarker interface {
	// Unmark returns the body without that reasoning, and what it removed. Without any it
	// returns the body itself.
	Unmark(body []byte) ([]byte, []LostField)
}

// OfAnotherProvider is the reason for reasoning that is omitted.
const OfAnotherProvider = "reasoning of another provider"

// HasMarkedReasoning reports whether a body may contain marked reasoning.
func HasMarkedReasoning(body []byte) bool { return bytes.Contains(body, quotedMark) }

var quotedMark = []byte(`"` + signedMark)

// EachObject calls f with the objects of a list and their places in the body. The list is the
// given field of the object at the place in. It returns the length of the list.
func EachObject(body []byte, in wire.Span, field string, f func(i int, at wire.Span)) (n int) {
	d := wire.NewDecoder(in.Of(body))
	if d.Kind() != wire.KindObject {
		return 0
	}
	for key := range d.Object {
		if string(key) != field || d.Kind() != wire.KindArray {
			continue
		}
		n = 0
		for i := range d.Array {
			raw := d.Raw()
			if n++; wire.KindOf(raw) == wire.KindObject {
				end := in.Start + d.Offset()
				f(i, wire.Span{Start: end - len(raw), End: end})
			}
		}
	}
	return n
}

// UnmarkBlocks returns the edits that remove blocks from the messages of a body, both lists of
// objects, and what they remove. A message that has no other blocks is removed.
func UnmarkBlocks(body []byte, messages, blocks string, edit func(block []byte, at wire.Span) (wire.Edit, bool)) (edits []wire.Edit, lost []LostField) {
	EachObject(body, wire.Span{End: len(body)}, messages, func(i int, message wire.Span) {
		var of []wire.Edit
		n := EachObject(body, message, blocks, func(j int, at wire.Span) {
			if e, ok := edit(at.Of(body), at); ok {
				of = append(of, e)
				lost = append(lost, LostField{Path: messages + "[" + strconv.Itoa(i) + "]." + blocks + "[" + strconv.Itoa(j) + "]", Reason: OfAnotherProvider})
			}
		})
		if len(of) == n && n > 0 && !slices.ContainsFunc(of, wire.Edit.Retains) {
			of = []wire.Edit{wire.Delete(message)}
		}
		edits = append(edits, of...)
	})
	return edits, lost
}

// Translate appends the provider's body for r, which client has decoded. It rejects what t does
// not support, see CheckSupport. Losses and errors use the names of the client's format.
func Translate(dst []byte, client Dialect, provider RequestWriter, r *Request, t *Traits, loss *Loss) ([]byte, error) {
	if p, ok := client.(Portable); ok {
		if err := p.Portable(r); err != nil {
			return dst, err
		}
	}
	if err := r.ThreadError(client.Name() != provider.Name() || t.NoThreads); err != nil {
		return dst, err
	}
	if t.NoThinking && r.thinksByHabit() && client.Name() != provider.Name() {
		reasoning := r.Reasoning
		r.Reasoning = Reasoning{Effort: reasoning.Effort}
		defer func() { r.Reasoning = reasoning }() // another target may support thinking
		loss.Add("thinking", "this model does not think")
	}
	if err := CheckSupport(client, r, t, loss); err != nil {
		return dst, err
	}
	r.HiddenResponse, r.UnboundJSON = false, false // they may be set from another provider's body
	sent := r
	if client.Name() != provider.Name() {
		sent = r.withTexts(loss)
	}
	out, err := provider.EncodeRequest(dst, sent, t, loss)
	r.ToolNames, r.HiddenResponse, r.UnboundJSON = sent.ToolNames, sent.HiddenResponse, sent.UnboundJSON
	if r.Breakpoints {
		err = loss.renameMarkers(err)
	}
	n, ok := client.(Named)
	if !ok {
		return out, err
	}
	for i := range loss.Entries {
		loss.Entries[i].Path = n.ClientPath(loss.Entries[i].Path)
	}
	return out, renamed(err, n, loss)
}

// renameMarkers names cache markers as clients of OpenAI's format do.
func (l *Loss) renameMarkers(err error) error {
	for i := range l.Entries {
		if path, tail, found := strings.Cut(l.Entries[i].Path, "].cache_control"); found {
			l.Entries[i].Path = path + "].prompt_cache_breakpoint" + tail
		}
	}
	if err != nil && fault.From(err).Code == fault.TranslationLoss {
		return l.Err()
	}
	return err
}

// thinksByHabit reports whether thinking was requested in the Messages format. Its clients
// request it of every model and can do without; in other formats a budget is deliberate.
func (r *Request) thinksByHabit() bool {
	return r.Dialect == "anthropic.messages" && r.Reasoning.Thinking == ThinkingBudget
}

// renamed returns err with the names of the client's format.
func renamed(err error, n Named, loss *Loss) error {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Code == fault.TranslationLoss {
		if again := loss.Err(); again != nil {
			return again
		}
	}
	own := n.ClientPath(f.Field)
	if own == f.Field {
		return err
	}
	g := *f
	g.Field, g.Message = own, strings.ReplaceAll(f.Message, f.Field, own)
	return &g
}

// signedMark is the prefix of a signature that names the dialect that created it.
const signedMark = "gw1:"

// MarkSigned marks a signature, or the data of hidden reasoning, with the dialect that created
// it, for clients and stores that keep one string.
func MarkSigned(origin, value string) string { return signedMark + origin + ":" + value }

// UnmarkSigned removes the mark. ok is false if value has none.
func UnmarkSigned(marked string) (origin, value string, ok bool) {
	rest, ok := strings.CutPrefix(marked, signedMark)
	if !ok {
		return "", marked, false
	}
	origin, value, ok = strings.Cut(rest, ":")
	if !ok {
		return "", marked, false
	}
	return origin, value, true
}

// HoldsStrict reports whether hosts with strict mode accept a JSON schema: each object in it
// must require all of its properties and allow no others.
func HoldsStrict(schema []byte) bool {
	if wire.KindOf(schema) != wire.KindObject {
		return false
	}
	d := wire.NewDecoder(schema)
	return holdsStrict(d) && d.Err() == nil
}

// holdsStrict checks the schema at d.
func holdsStrict(d *wire.Decoder) bool {
	ok := true
	object, closed := false, false
	var properties, required []string
	for key := range d.Object {
		switch string(key) {
		case "type":
			switch d.Kind() {
			case wire.KindString:
				object = d.Str() == "object" || object
			case wire.KindArray:
				for range d.Array {
					object = d.Kind() == wire.KindString && string(d.Bytes()) == "object" || object
				}
			}
		case "properties":
			object = true
			if d.Kind() != wire.KindObject {
				return false
			}
			for name := range d.Object {
				properties = append(properties, string(name))
				ok = inner(d) && ok
			}
		case "required":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				required = append(required, d.Str())
			}
		case "additionalProperties":
			closed = d.Kind() == wire.KindBool && !d.Bool()
		case "items":
			ok = inner(d) && ok
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				ok = inner(d) && ok
			}
		case "$defs", "definitions":
			if d.Kind() != wire.KindObject {
				return false
			}
			for range d.Object {
				ok = inner(d) && ok
			}
		}
	}
	if !object {
		return ok
	}
	return ok && closed && all(properties, required)
}

// inner checks a nested schema; true and false are schemas too.
func inner(d *wire.Decoder) bool { return d.Kind() == wire.KindObject && holdsStrict(d) }

func all(properties, required []string) bool {
	known := make(map[string]bool, len(required))
	for _, name := range required {
		known[name] = true
	}
	for _, name := range properties {
		if !known[name] {
			return false
		}
	}
	return true
}

// WritesStrict reports whether a tool's strict is written for a host of OpenAI's format.
// Clients of other formats may use schemas with optional properties in strict mode, which such
// a host rejects with 400.
func (r *Request) WritesStrict(t *Tool) bool {
	return t.Strict.Set && (!t.Strict.Value || strings.HasPrefix(r.Dialect, "openai.") || HoldsStrict(t.Schema))
}

// rootKeys describe the values at the root of a schema.
var rootKeys = wire.NewKeySet("type", "properties", "$ref", "anyOf", "oneOf", "allOf")

// ObjectSchema returns the schema of a tool's arguments as hosts of OpenAI's format require it:
// an object with properties, even if empty. It returns other schemas unchanged.
func ObjectSchema(schema []byte) []byte {
	var w wire.Walk
	if schema == nil || rootKeys.Walk(schema, &w) != nil {
		return schema
	}
	typ, properties := w.Spans[0], w.Spans[1]
	for _, s := range w.Spans[2:] {
		if !s.Absent() {
			return schema
		}
	}
	if !typ.Absent() && string(typ.Of(schema)) != `"object"` {
		return schema
	}
	if properties.Absent() {
		schema = wire.Splice(nil, schema, wire.InsertKey(&w, "properties", []byte("{}")))
	}
	if typ.Absent() {
		if rootKeys.Walk(schema, &w) != nil {
			return schema
		}
		schema = wire.Splice(nil, schema, wire.InsertKey(&w, "type", []byte(`"object"`)))
	}
	return schema
}

// SignedBy returns the creator of a signature and its value without any marks. ok is false if
// it has no mark.
func SignedBy(signature string) (origin, value string, ok bool) {
	for {
		by, inner, marked := UnmarkSigned(signature)
		if !marked {
			return origin, value, ok
		}
		origin, value, ok, signature = by, inner, true, inner
	}
}

// NewCallID returns a unique id for a tool call without one. It has the form of OpenAI's ids,
// in letters that every format accepts.
func NewCallID() string { return "call_" + rand.Text() }
