package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// candidate is one candidate; values alias the body.
type candidate struct {
	index    int
	parts    []byte
	native   string
	message  string
	logprobs []byte
	extra    []chat.Field
	searches int64
	// grounding is groundingMetadata: what the response rests on.
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
				c.storeField("groundingMetadata", raw)
			}
		case "safetyRatings", "citationMetadata", "urlContextMetadata", "avgLogprobs":
			field := string(key)
			c.storeField(field, d.Raw())
		}
	}
}

// maxChoices bounds the index of a candidate.
const maxChoices = 128

func (c *candidate) storeField(field string, raw []byte) {
	if raw != nil && !wire.IsNull(raw) {
		c.extra = append(c.extra, chat.Field{Name: field, Raw: compact(raw)})
	}
}

// searches counts the searches that a response is based on.
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

// eachSearch reports whether a model charges each search, judged by its name alone: those
// from Gemini 3 on do.
func eachSearch(model string) bool {
	version, ok := strings.CutPrefix(model, "gemini-")
	return ok && version != "" && version[0] >= '3' && version[0] <= '9'
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
		return out, failedResponse(c.native, c.message)
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
	case p.image() != "":
		out.Parts = append(out.Parts, chat.Part{Kind: chat.Image, Media: chat.ReadImage(p.image())})
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

// token is one token of a logprobsResult.
type token struct {
	text    string
	logprob []byte
}

func readToken(d *wire.Decoder) (t token) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return t
	}
	for key := range d.Object {
		switch string(key) {
		case "token":
			t.text = optString(d)
		case "logProbability":
			if d.Kind() == wire.KindNumber {
				t.logprob = d.Num()
			}
		}
	}
	return t
}

// appendLogprobs turns a logprobsResult into the logprobs object of the OpenAI
// shape: chosenCandidates are the tokens, topCandidates their alternatives.
func appendLogprobs(dst, raw []byte) []byte {
	var selected []token
	var top [][]token
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		switch {
		case string(key) == "chosenCandidates" && d.Kind() == wire.KindArray:
			for range d.Array {
				selected = append(selected, readToken(d))
			}
		case string(key) == "topCandidates" && d.Kind() == wire.KindArray:
			for range d.Array {
				top = append(top, readTop(d))
			}
		}
	}
	dst = append(dst, `{"content":[`...)
	for i, t := range selected {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendToken(dst, t)
		dst = append(dst, `,"top_logprobs":[`...)
		if i < len(top) {
			for j, alternative := range top[i] {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = append(appendToken(dst, alternative), '}')
			}
		}
		dst = append(dst, `]}`...)
	}
	return append(dst, `],"refusal":null}`...)
}

func readTop(d *wire.Decoder) (ts []token) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return nil
	}
	for key := range d.Object {
		if string(key) == "candidates" && d.Kind() == wire.KindArray {
			for range d.Array {
				ts = append(ts, readToken(d))
			}
		}
	}
	return ts
}

// appendToken writes a token, but leaves its brace open.
func appendToken(dst []byte, t token) []byte {
	dst = append(dst, `{"token":`...)
	dst = wire.AppendJSONString(dst, t.text)
	dst = append(dst, `,"logprob":`...)
	if json.Valid(t.logprob) {
		dst = append(dst, t.logprob...)
	} else {
		dst = append(dst, '0')
	}
	dst = append(dst, `,"bytes":[`...)
	for i := range len(t.text) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(t.text[i]), 10)
	}
	return append(dst, ']')
}
