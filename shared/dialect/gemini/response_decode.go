package gemini

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// stopReason reads a finishReason. failed: nothing of use was made.
func stopReason(native string) (stop chat.StopReason, failed bool) {
	switch native {
	case "STOP":
		return chat.StopEnd, false
	case "MAX_TOKENS":
		return chat.StopLength, false
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return chat.StopFilter, false
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		return chat.StopUnknown, true
	}
	return chat.StopUnknown, false
}

// callStop is the stop of a choice: a turn that holds calls waits for them.
// Valid calls beside one that failed are kept.
func callStop(native string, calls int) (stop chat.StopReason, failed bool) {
	stop, failed = stopReason(native)
	switch {
	case calls > 0 && (failed || stop == chat.StopEnd):
		return chat.StopToolCalls, false
	}
	return stop, failed
}

// head is what an answer, or a chunk of one, holds around its candidates.
type head struct {
	id, model  string
	blocked    string // why the prompt was not answered
	candidates []byte
	counted    []byte // usageMetadata, not read yet
	usage      counts
	failed     bool // an error object stands inside
	known      bool // a member of an answer was seen
}

func (h *head) read(d *wire.Decoder) {
	h.candidates, h.counted = nil, nil
	for key := range d.Object {
		switch string(key) {
		case "candidates":
			h.known = true
			if d.Kind() == wire.KindArray {
				h.candidates = d.Raw()
			}
		case "promptFeedback":
			h.known = true
			if d.Kind() == wire.KindObject {
				for inner := range d.Object {
					if string(inner) == "blockReason" {
						h.blocked = optString(d)
					}
				}
			}
		case "usageMetadata":
			h.known = true
			if d.Kind() == wire.KindObject {
				h.counted = d.Raw()
			}
		case "modelVersion":
			keepString(d, &h.model)
		case "responseId":
			keepString(d, &h.id)
		case "error":
			h.failed = true
		}
	}
}

// count reads the usageMetadata that read has found. What it leaves out keeps the
// count that an earlier one told.
func (h *head) count() {
	if h.counted != nil {
		h.usage.readFrom(wire.NewDecoder(h.counted))
		h.counted = nil
	}
}

// keepString reads a string that mostly is the one that s holds already.
func keepString(d *wire.Decoder, s *string) {
	if d.Kind() != wire.KindString {
		return
	}
	if b := d.Bytes(); len(b) > 0 && string(b) != *s {
		*s = string(b)
	}
}

// part is one part of an answer; values alias the body.
type part struct {
	text       []byte // with its quotes; nil when the part is no text
	thought    bool
	signature  string
	callID     string
	callName   string
	args       []byte
	call       bool
	mime       string
	data       []byte // inline data with its quotes
	uri        string
	foreign    string // member of a part that only this dialect knows
	foreignRaw []byte
}

func (p *part) read(d *wire.Decoder) {
	*p = part{}
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "text":
			if d.Kind() == wire.KindString {
				p.text = d.RawStr()
			}
		case "thought":
			p.thought = d.Kind() == wire.KindBool && d.Bool()
		case "thoughtSignature":
			p.signature = optString(d)
		case "functionCall":
			p.call = true
			p.readCall(d)
		case "inlineData":
			p.readData(d)
		case "fileData":
			p.readData(d)
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			if d.Kind() == wire.KindObject {
				p.foreign = string(key)
				p.foreignRaw = d.Raw()
			}
		}
	}
}

func (p *part) readCall(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "id":
			p.callID = optString(d)
		case "name":
			p.callName = optString(d)
		case "args":
			if d.Kind() == wire.KindObject {
				p.args = d.Raw()
			}
		}
	}
}

func (p *part) readData(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "mimeType":
			p.mime = optString(d)
		case "data":
			if d.Kind() == wire.KindString {
				p.data = d.RawStr()
			}
		case "fileUri":
			p.uri = optString(d)
		}
	}
}

// empty reports whether the part holds nothing but perhaps a signature.
func (p *part) empty() bool {
	return !p.call && len(p.text) <= len(`""`) && p.foreign == "" && p.data == nil && p.uri == ""
}

// block is the part as a content block for lenient clients: what has no
// canonical form. Nil when the part is none of these.
func (p *part) block() json.RawMessage {
	switch {
	case p.foreign != "":
		b := wire.AppendJSONString([]byte(`{"type":`), p.foreign)
		b = append(append(append(append(b, `,"`...), p.foreign...), `":`...), compact(p.foreignRaw)...)
		return append(b, '}')
	case p.data != nil:
		url := "data:" + p.mime + ";base64," + string(wire.AppendUnquoted(nil, p.data))
		return append(wire.AppendJSONString([]byte(`{"type":"image_url","image_url":{"url":`), url), `}}`...)
	case p.uri != "":
		return append(wire.AppendJSONString([]byte(`{"type":"image_url","image_url":{"url":`), p.uri), `}}`...)
	}
	return nil
}

// arguments of the call as JSON.
func (p *part) arguments() []byte {
	if p.args == nil {
		return []byte("{}")
	}
	return compact(p.args)
}

// compact gives JSON on one line: the provider spreads plain answers over many,
// and an event of a stream must not hold a line's end.
func compact(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return []byte("null") // not reached: raw was read by the decoder
	}
	return b.Bytes()
}

// candidate is one candidate; values alias the body.
type candidate struct {
	index    int
	parts    []byte
	native   string
	message  string
	logprobs []byte
	extra    []chat.Field
	searches int64
	// grounding is groundingMetadata: what the answer rests on.
	grounding []byte
}

func (c *candidate) read(d *wire.Decoder, position int) {
	*c = candidate{index: position}
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "index":
			if d.Kind() == wire.KindNumber {
				if n := d.Int(); n >= 0 && n < maxChoices {
					c.index = int(n)
				}
			}
		case "content":
			if d.Kind() == wire.KindObject {
				for inner := range d.Object {
					if string(inner) == "parts" && d.Kind() == wire.KindArray {
						c.parts = d.Raw()
					}
				}
			}
		case "finishReason":
			if w := optString(d); w != "FINISH_REASON_UNSPECIFIED" {
				c.native = w
			}
		case "finishMessage":
			c.message = optString(d)
		case "logprobsResult":
			if d.Kind() == wire.KindObject {
				c.logprobs = d.Raw()
			}
		case "groundingMetadata":
			if d.Kind() == wire.KindObject {
				raw := d.Raw()
				c.searches, c.grounding = searches(raw), raw
				c.keep("groundingMetadata", raw)
			}
		case "safetyRatings", "citationMetadata", "urlContextMetadata", "avgLogprobs":
			field := string(key)
			c.keep(field, d.Raw())
		}
	}
}

// maxChoices bounds the index of a candidate.
const maxChoices = 128

func (c *candidate) keep(field string, raw []byte) {
	if raw != nil && !wire.IsNull(raw) {
		c.extra = append(c.extra, chat.Field{Name: field, Raw: compact(raw)})
	}
}

// searches counts the searches that an answer was grounded in.
func searches(grounding []byte) (n int64) {
	d := wire.NewDecoder(grounding)
	for key := range d.Object {
		if string(key) == "webSearchQueries" && d.Kind() == wire.KindArray {
			for range d.Array {
				d.Skip()
				n++
			}
		}
	}
	return n
}

// billed is how many searches are charged: models before Gemini 3 charge a
// grounded request once.
func billed(searches int64, t *chat.Traits) int64 {
	if searches > 1 && !t.SignedCalls {
		return 1
	}
	return searches
}

// callIDs gives ids to calls that the provider gave none, the same whenever the
// same answer is read.
type callIDs struct{ answer string }

func (c *callIDs) id(own, answer string, choice, call int) string {
	if own != "" {
		return own
	}
	if c.answer == "" {
		if c.answer = answer; answer == "" {
			c.answer = rand.Text()
		}
	}
	sum := sha256.Sum256([]byte(c.answer + "/" + strconv.Itoa(choice) + "/" + strconv.Itoa(call)))
	return "call_" + hex.EncodeToString(sum[:12])
}

func clone(raw []byte) json.RawMessage {
	if raw == nil {
		return nil
	}
	return append(json.RawMessage(nil), raw...)
}

// decodeResponse reads a whole answer.
func decodeResponse(body []byte, t *chat.Traits) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	var h head
	if d.Kind() == wire.KindObject {
		h.read(d)
	}
	err := d.End()
	switch {
	case err == nil && (h.failed || wire.KindOf(body) == wire.KindArray && readError(body) != nil):
		return nil, inBandError(body)
	case err != nil || !h.known:
		return nil, invalidAnswer(err)
	}
	r := &chat.Response{ID: h.id, Model: h.model}
	var found int64
	if h.candidates != nil {
		var c candidate
		var ids callIDs
		in := wire.NewDecoder(h.candidates)
		for i := range in.Array {
			c.read(in, i)
			choice, failed := c.choice(t, &ids, h.id)
			if failed != nil {
				return nil, failed
			}
			found += c.searches
			r.Choices = append(r.Choices, choice)
		}
	}
	if len(r.Choices) == 0 {
		// A blocked prompt, or an answer of nothing, still has one choice.
		r.Choices = []chat.Choice{{Stop: chat.StopUnknown, Native: h.blocked}}
		if h.blocked != "" {
			r.Choices[0].Stop = chat.StopFilter
		}
	}
	h.count()
	r.ReportedTotal = h.usage.classes(&r.Usage, billed(found, t))
	return r, nil
}

// choice makes the canonical choice.
func (c *candidate) choice(t *chat.Traits, ids *callIDs, answer string) (chat.Choice, *fault.Fault) {
	out := chat.Choice{Index: c.index, Native: c.native}
	calls := 0
	if c.parts != nil {
		var p part
		d := wire.NewDecoder(c.parts)
		for range d.Array {
			p.read(d)
			calls = c.add(&out, &p, t, ids, answer, calls)
		}
	}
	stop, failed := callStop(c.native, calls)
	if failed {
		return out, failedAnswer(c.native, c.message)
	}
	out.Stop = stop
	for i := range out.Parts {
		if p := &out.Parts[i]; p.Kind == chat.Text {
			p.Citations = citations(c.grounding, p.Text)
			break
		}
	}
	if c.logprobs != nil {
		out.Logprobs = appendLogprobs(nil, c.logprobs)
	}
	for _, x := range c.extra {
		out.Extra = append(out.Extra, chat.Field{Name: x.Name, Raw: clone(x.Raw)})
	}
	return out, nil
}

// add appends a part to the choice; texts that follow each other are one.
func (c *candidate) add(out *chat.Choice, p *part, t *chat.Traits, ids *callIDs, answer string, calls int) int {
	signature := mark(t, p.signature)
	thought := p.text != nil && p.thought
	if signature != "" && !(thought && len(p.text) > 2) {
		out.Parts = append(out.Parts, chat.Part{Kind: chat.Reasoned, Origin: name, Signature: signature})
	}
	switch {
	case p.call:
		id := ids.id(p.callID, answer, c.index, calls)
		out.Parts = append(out.Parts, chat.Part{Kind: chat.Call, Call: &chat.ToolCall{ID: id, Name: p.callName, Arguments: string(p.arguments()), Signature: signature}})
		return calls + 1
	case p.text != nil:
		text := string(wire.AppendUnquoted(nil, p.text))
		kind := chat.Text
		if thought {
			kind = chat.Reasoned
		}
		n := len(out.Parts)
		switch {
		case text == "":
		case n > 0 && out.Parts[n-1].Kind == kind && out.Parts[n-1].Signature == "":
			out.Parts[n-1].Text += text
			if thought {
				out.Parts[n-1].Signature = signature
			}
		case thought:
			out.Parts = append(out.Parts, chat.Part{Kind: kind, Origin: name, Text: text, Signature: signature})
		default:
			out.Parts = append(out.Parts, chat.Part{Kind: kind, Text: text})
		}
	default:
		if raw := p.block(); raw != nil {
			kind := p.foreign
			if kind == "" {
				kind = "image_url"
			}
			out.Parts = append(out.Parts, chat.Part{Kind: chat.Foreign, Type: kind, Origin: name, Raw: raw})
		}
	}
	return calls
}
