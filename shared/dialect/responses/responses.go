// Package responses is the OpenAI Responses dialect, on the client's and on the
// provider's side, plain and streamed.
//
// A conversation is a flat list of items in this format. Consecutive items of the
// assistant (reasoning, message, calls) are one canonical message. Losses and rejections
// name positions in the client's list (see Responses.ClientPath).
//
// Some fields need a provider that stores responses: conversation, background, prompt, and
// previous_response_id and references to items of responses that were not translated, see
// Inline. They are rejected if another dialect serves the request. store is ignored and
// reported.
//
// Signed reasoning of any provider is sent to clients as encrypted_content, marked with
// its signer. So it returns unchanged on the next turn and never reaches a provider that
// did not create it, see Unmark.
package responses

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Responses is the dialect of POST /responses.
type Responses struct{}

var (
	_ chat.TwoWayDialect = Responses{}
	_ chat.Named         = Responses{}
	_ chat.Portable      = Responses{}
)

// name is the dialect's name.
const name = "openai.responses"

// Name implements chat.Dialect.
func (Responses) Name() string { return name }

// Check implements chat.RequestReader.
func (Responses) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Responses) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.ResponseWriter.
func (Responses) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Responses) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// EncodeRequest implements chat.RequestWriter.
func (Responses) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Responses) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Responses) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return newStreamDecoder() }

// DecodeError implements chat.ErrorReader.
func (Responses) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return openai.Chat{}.DecodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Responses) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Responses) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return new(filter)
}

// Support implements chat.ResponseWriter.
func (Responses) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{
		Features: chat.HoldsTier | chat.HoldsLogprobs | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted |
			chat.HoldsImages | chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		OwnDialect: name,
		Cites:      func(cite []byte) bool { c := citation.Read(cite); return c.URL != "" },
		Images:     takesImage,
		Content:    "output",
	}
}

// A canonical message may be made of several items. Part.At then holds both numbers, that
// of the item and that of the part in its content. Each is one higher, so that 0 means "the
// item itself".
const itemShift = 24

// place is the Part.At of part (-1: the item itself) of an item.
func place(item, part int) int { return (item+1)<<itemShift | min(part+1, 1<<itemShift-1) }

// itemPath is the client's path for such a place.
func itemPath(at int) string {
	path := "input[" + strconv.Itoa(at>>itemShift-1) + "]"
	if part := at & (1<<itemShift - 1); part > 0 {
		path += ".content[" + strconv.Itoa(part-1) + "]"
	}
	return path
}

// clientNames are the client's names of fields that encoders name otherwise.
var clientNames = map[string]string{
	"messages": "input", "reasoning_effort": "reasoning.effort", "thinking.display": "reasoning.summary",
	"response_format": "text.format", "verbosity": "text.verbosity", "logprobs": "include", "system": "instructions",
	"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
}

// ownTail turns the end of a path within a part into the client's form.
var ownTail = strings.NewReplacer(".image_url.detail", ".detail", ".file.filename", ".filename")

func clientName(name string) string {
	name = strings.TrimPrefix(name, ownOnly)
	if own, ok := clientNames[name]; ok {
		return own
	}
	return name
}

// ClientPath implements chat.Named: messages[3].tool_calls[p].function.arguments becomes
// input[i].arguments, where p holds the number i of the item.
func (Responses) ClientPath(path string) string {
	head, rest := path, ""
	if i := strings.IndexByte(path, '['); i > 0 {
		head, rest = path[:i], path[i:]
	}
	switch {
	case rest == "":
		return clientName(path)
	case head == "system":
		return "instructions"
	case head != "messages":
		return path
	}
	for _, list := range [...]string{"].content[", "].tool_calls["} {
		_, inner, ok := strings.Cut(rest, list)
		if !ok {
			continue
		}
		digits, tail, _ := strings.Cut(inner, "]")
		if at, err := strconv.Atoi(digits); err == nil && at >= 1<<itemShift {
			return itemPath(at) + ownTail.Replace(strings.TrimPrefix(tail, ".function"))
		}
	}
	if before, ok := strings.CutSuffix(rest, ".tool_call_id"); ok {
		rest = before + ".call_id"
	}
	return "input" + rest
}

// What precedes the value in the encrypted content of a reasoning item.
const (
	signatureOf = "s." // signature of the summary
	hiddenData  = "d." // reasoning that only its provider can read
)

// sealSigned is the encrypted content for a part of reasoning; "" when it is not signed.
// origin is the provider's dialect, which is used when the part names none.
func sealSigned(p *chat.Part, origin string) string {
	if p.Origin != "" {
		origin = p.Origin
	}
	kind, value := signatureOf, p.Signature
	if p.Kind == chat.RedactedReasoned {
		kind, value = hiddenData, p.Data
	}
	if value == "" {
		return ""
	}
	if by, own, ok := chat.UnmarkSigned(value); ok && by == name {
		_, own = cutID(own)
		return own // the provider's own, on its way back to a client of this dialect
	}
	return chat.MarkSigned(origin, kind+value)
}

// openSigned takes the encrypted content of an item apart. Content without a mark was made
// by a provider of this dialect.
func openSigned(p chat.Part, encrypted string) chat.Part {
	origin, value, ok := chat.UnmarkSigned(encrypted)
	if !ok {
		p.Origin, p.Signature = name, chat.MarkSigned(name, ":"+encrypted)
		return p
	}
	p.Origin = origin
	if data, hidden := strings.CutPrefix(value, hiddenData); hidden {
		p.Kind, p.Text, p.Data = chat.RedactedReasoned, "", data
		return p
	}
	p.Signature = strings.TrimPrefix(value, signatureOf)
	return p
}

// signItem returns the signature under which a provider's reasoning item is stored: its
// id and its encrypted content.
func signItem(id, encrypted string) string {
	if encrypted == "" {
		return ""
	}
	return chat.MarkSigned(name, id+":"+encrypted)
}

// ownItem returns id and encrypted content of a part that signItem has signed; false for
// reasoning of others.
func ownItem(p *chat.Part) (id, encrypted string, ok bool) {
	by, value, ok := chat.UnmarkSigned(p.Signature)
	if !ok || by != name {
		return "", "", false
	}
	id, encrypted = cutID(value)
	return id, encrypted, encrypted != ""
}

func cutID(value string) (id, encrypted string) {
	id, encrypted, ok := strings.Cut(value, ":")
	if !ok {
		return "", value
	}
	return id, encrypted
}

// A client that lets responses be stored, as is the default, names the items of an earlier response
// in place of sending them. A translated response is stored by the gateway under the part of its id
// that the ids of its items repeat, see envelope.itemID.

var _ chat.ReferenceReader = Responses{}

// Output implements chat.ReferenceReader.
func (Responses) Output(response []byte) (id string, items []byte) {
	d := wire.NewDecoder(response)
	if d.Kind() != wire.KindObject {
		return "", nil
	}
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = strings.TrimPrefix(optString(d), "resp_")
		case "output":
			if d.Kind() == wire.KindArray {
				items = d.Raw()
			}
		}
	}
	if d.End() != nil || len(items) <= len("[]") {
		return "", nil
	}
	return id, items
}

// responseOf returns the id of the response that an item is of; "" if the gateway did not make it.
func responseOf(item string) string {
	_, rest, _ := strings.Cut(item, "_")
	n := strings.LastIndexByte(rest, '_')
	if n < 0 {
		return ""
	}
	return rest[:n]
}

// maxReference is the length of an item in bytes up to which it may be a reference.
const maxReference = 1024

// maxInlined limits a body in which references were replaced.
const maxInlined = 20 << 20

// Input implements chat.ReferenceReader.
func (Responses) Input(body []byte) (previous string, items []byte) {
	in := readInput(body)
	return in.previous, in.items
}

// input is what a request adds to a conversation.
type input struct {
	items    []byte    // as a list
	at       wire.Span // absent if the body has none
	previous string
	member   wire.Span // previous_response_id with its name
}

func readInput(body []byte) (in input) {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return in
	}
	for key := range d.Object {
		switch string(key) {
		case "input":
			raw := d.Raw()
			in.at = wire.Span{Start: d.Offset() - len(raw), End: d.Offset()}
			switch wire.KindOf(raw) {
			case wire.KindArray:
				in.items = raw
			case wire.KindString:
				in.items = append(append([]byte(`[{"role":"user","content":`), raw...), `}]`...)
			}
		case "previous_response_id":
			start := d.KeySpan().Start
			in.previous = optString(d)
			in.member = wire.Span{Start: start, End: d.Offset()}
		}
	}
	return in
}

// Inline implements chat.ReferenceReader.
func (Responses) Inline(body []byte, stored chat.Stored) ([]byte, error) {
	in := readInput(body)
	var edits []wire.Edit
	if in.previous != "" {
		before, err := stored.Conversation(strings.TrimPrefix(in.previous, "resp_"), maxInlined)
		if err != nil {
			return nil, err
		}
		if before != nil {
			if len(before)+len(body) > maxInlined {
				return nil, fault.Newf(fault.BodyTooLarge, "previous_response_id", "previous_response_id continues a conversation of more than %d MiB; begin another one", maxInlined>>20)
			}
			in.items, edits = joined(before, in.items), append(edits, wire.Delete(in.member))
		}
	}
	list, err := inlined(in.items, len(body), stored.Output)
	switch {
	case err != nil:
		return nil, err
	case list != nil:
		in.items = list
	case edits == nil:
		return nil, nil
	}
	if in.at.Absent() { // the conversation continues without new input
		body = wire.Splice(nil, body, edits...)
		return wire.Splice(nil, body, wire.InsertAt(bytes.IndexByte(body, '{'), "input", in.items)), nil
	}
	return wire.Splice(nil, body, append(edits, wire.Replace(in.at, in.items))...), nil
}

// joined returns a list with the items of two; the second may be nil.
func joined(a, b []byte) []byte {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if len(b) == 0 || len(bytes.TrimSpace(b[1:len(b)-1])) == 0 {
		return a
	}
	if len(bytes.TrimSpace(a[1:len(a)-1])) == 0 {
		return b
	}
	list := append(make([]byte, 0, len(a)+len(b)), a[:len(a)-1]...)
	return append(append(list, ','), b[1:]...)
}

// inlined returns a list of items with the items that it names in place of references; nil if there
// are none. References to items that are not found stay.
func inlined(input []byte, length int, find func(id string) ([]byte, error)) (list []byte, err error) {
	d := wire.NewDecoder(input)
	if len(input) == 0 {
		return nil, nil
	}
	outputs := map[string][]byte{}
	list, found := []byte{'['}, false
	for range d.Array {
		raw := d.Raw()
		if id := referenced(raw); id != "" {
			of := responseOf(id)
			items, known := outputs[of]
			if of != "" && !known {
				if items, err = find(of); err != nil {
					return nil, err
				}
				outputs[of] = items
			}
			if item := itemOf(items, id); item != nil {
				raw, found = item, true
			}
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		if list = append(list, raw...); len(list)+length > maxInlined {
			return nil, fault.Newf(fault.BodyTooLarge, "input", "input refers to items of more than %d MiB together; send those that the model needs", maxInlined>>20)
		}
	}
	if !found || d.Err() != nil {
		return nil, nil
	}
	return append(list, ']'), nil
}

// referenced returns the id of the item that an item names, "" if it is no reference.
func referenced(raw []byte) string {
	if len(raw) > maxReference || wire.KindOf(raw) != wire.KindObject {
		return ""
	}
	id, kind, own := "", "", false
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = optString(d)
		case "type":
			kind = optString(d)
		case "role", "content":
			own = true
		}
	}
	if d.End() != nil || kind != "item_reference" && (kind != "" || own) {
		return ""
	}
	return id
}

// itemOf returns the item with an id in a list of items; nil if there is none.
func itemOf(items []byte, id string) []byte {
	d := wire.NewDecoder(items)
	if len(items) == 0 || d.Kind() != wire.KindArray {
		return nil
	}
	for range d.Array {
		raw := d.Raw()
		if wire.KindOf(raw) != wire.KindObject {
			continue
		}
		its := ""
		of := wire.NewDecoder(raw)
		for key := range of.Object {
			if string(key) == "id" {
				its = optString(of)
			}
		}
		if its == id && of.End() == nil {
			return raw
		}
	}
	return nil
}

var _ chat.Unmarker = Responses{}

// ownReasoning is in a body with a reasoning item: its id.
var ownReasoning = []byte(`"rs_`)

// Unmark implements chat.Unmarker. Reasoning without encrypted content that the gateway returned
// is removed too: the provider would look it up.
func (Responses) Unmark(body []byte) ([]byte, []chat.LostField) {
	if !chat.HasMarkedReasoning(body) && !bytes.Contains(body, ownReasoning) {
		return body, nil
	}
	var edits []wire.Edit
	var lost []chat.LostField
	chat.EachObject(body, wire.Span{End: len(body)}, "input", func(i int, at wire.Span) {
		kind, id, encrypted := "", "", ""
		d := wire.NewDecoder(at.Of(body))
		for key := range d.Object {
			switch string(key) {
			case "type":
				kind = optString(d)
			case "id":
				id = optString(d)
			case "encrypted_content":
				encrypted = optString(d)
			}
		}
		if _, _, marked := chat.UnmarkSigned(encrypted); kind == "reasoning" && (marked || encrypted == "" && responseOf(id) != "") {
			edits = append(edits, wire.Delete(at))
			lost = append(lost, chat.LostField{Path: "input[" + strconv.Itoa(i) + "]", Reason: chat.OfAnotherProvider})
		}
	})
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(nil, body, edits...), lost
}
