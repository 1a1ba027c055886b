package cohere

import (
	"encoding/json"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// StopReason reads a finish_reason that is no failure.
func StopReason(native string) chat.StopReason {
	switch native {
	case "COMPLETE":
		return chat.StopEnd
	case "STOP_SEQUENCE":
		return chat.StopSequence
	case "MAX_TOKENS":
		return chat.StopLength
	case "ERROR_LIMIT":
		return chat.StopContext
	case "TOOL_CALL":
		return chat.StopToolCalls
	case "ERROR_TOXIC":
		return chat.StopFilter
	}
	return chat.StopUnknown
}

// decodeResponse reads a complete response.
func decodeResponse(body []byte) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	c := &r.Choices[0]
	var u counts
	seen := false
	var logprobs []byte
	for key := range d.Object {
		switch string(key) {
		case "id":
			r.ID = upstream.OptString(d)
		case "finish_reason":
			c.Native = upstream.OptString(d)
		case "message":
			if d.Kind() == wire.KindObject {
				seen = true
				c.Parts = decodeMessage(d)
			}
		case "usage", "meta":
			u.read(d)
		case "logprobs":
			logprobs = d.Raw()
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case Failed(c.Native):
		return nil, Failure(c.Native, "")
	case !seen:
		if p := upstream.ReadError(body); p != nil {
			return nil, upstream.InBand(body)
		}
		return nil, upstream.Invalid("The provider's response contains no message", nil)
	}
	c.Stop = StopReason(c.Native)
	addLogprobs(c, logprobs)
	bill := u.bill()
	r.Usage, r.Billed, r.ReportedTotal = u.tokens(), &bill, u.total()
	return r, nil
}

// decodeMessage reads the parts of the message that d is at: thoughts and texts, the
// plan, the calls.
func decodeMessage(d *wire.Decoder) []chat.Part {
	var texts, calls []chat.Part
	var plan string
	var citations []byte
	for key := range d.Object {
		switch string(key) {
		case "content":
			texts = decodeContent(d)
		case "tool_plan":
			plan = upstream.OptString(d)
		case "tool_calls":
			if d.Kind() != wire.KindArray {
				continue
			}
			for i := range d.Array {
				calls = append(calls, decodeCall(d, i))
			}
		case "citations":
			if d.Kind() == wire.KindArray {
				citations = upstream.Clone(d.Raw())
			}
		}
	}
	if plan != "" {
		texts = append(texts, chat.Part{Kind: chat.Text, Text: plan})
	}
	if len(citations) > len("[]") {
		cite(texts, citations)
	}
	return append(texts, calls...)
}

// cite puts the citations on the first text.
func cite(parts []chat.Part, citations json.RawMessage) {
	for i := range parts {
		if parts[i].Kind == chat.Text {
			parts[i].Citations = citations
			return
		}
	}
}

// decodeContent reads content: a list, or one text.
func decodeContent(d *wire.Decoder) []chat.Part {
	if d.Kind() == wire.KindString {
		return []chat.Part{{Kind: chat.Text, Text: d.Str()}}
	}
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	var parts []chat.Part
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		p := chat.Part{Kind: chat.Text}
		for key := range d.Object {
			switch string(key) {
			case "type":
				if upstream.OptString(d) == "thinking" {
					p.Kind, p.Origin = chat.Reasoned, name
				}
			case "text", "thinking":
				p.Text += upstream.OptString(d)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

func decodeCall(d *wire.Decoder, i int) chat.Part {
	c := &chat.ToolCall{}
	p := chat.Part{Kind: chat.Call, Call: c, At: i}
	each(d, func(key string) {
		switch key {
		case "id":
			c.ID = upstream.OptString(d)
		case "function":
			each(d, func(key string) {
				switch key {
				case "name":
					c.Name = upstream.OptString(d)
				case "arguments":
					c.Arguments = upstream.OptString(d)
				}
			})
		}
	})
	if c.ID == "" {
		c.ID = "call_" + strconv.Itoa(i)
	}
	if c.Arguments == "" || c.Arguments == "null" {
		c.Arguments = "{}" // the function takes nothing
	}
	return p
}

// counts are the units of usage or meta as the provider wrote them.
type counts struct {
	input, output, cached             chat.Opt[int64] // tokens
	billedIn, billedOut, billedImages chat.Opt[int64]
	searches                          chat.Opt[int64]
	images                            chat.Opt[int64]
}

// read reads the usage or meta object that d is at.
func (c *counts) read(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "tokens":
			each(d, func(key string) {
				switch key {
				case "input_tokens":
					upstream.Count(d, &c.input)
				case "output_tokens":
					upstream.Count(d, &c.output)
				}
			})
		case "billed_units":
			each(d, c.billed(d))
		case "cached_tokens":
			upstream.Count(d, &c.cached)
		}
	}
}

func (c *counts) billed(d *wire.Decoder) func(string) {
	return func(key string) {
		switch key {
		case "input_tokens":
			upstream.Count(d, &c.billedIn)
		case "output_tokens":
			upstream.Count(d, &c.billedOut)
		case "image_tokens":
			upstream.Count(d, &c.billedImages)
		case "images":
			upstream.Count(d, &c.images)
		case "search_units":
			upstream.Count(d, &c.searches)
		}
	}
}

// each reads the fields of an object.
func each(d *wire.Decoder, member func(key string)) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		member(string(key))
	}
}

// tokens returns the tokens for clients, in disjoint classes; the billed ones if there
// are no others.
func (c *counts) tokens() pricing.Usage {
	var u pricing.Usage
	in, out := c.input, c.output
	if !in.Set && !out.Set {
		in, out = c.billedIn, c.billedOut
	}
	if in.Set {
		n := in.Value
		if c.cached.Set {
			read := min(c.cached.Value, n)
			u.Set(pricing.CacheRead, read)
			n -= read
		}
		u.Set(pricing.Input, n)
	}
	if out.Set {
		u.Set(pricing.Output, out.Value)
	}
	return u
}

// bill returns the charged usage; unknown if the provider does not report it separately.
func (c *counts) bill() pricing.Usage {
	var u pricing.Usage
	if c.billedIn.Set {
		u.Set(pricing.Input, c.billedIn.Value)
	}
	if c.billedImages.Set {
		u.Set(pricing.ImageIn, c.billedImages.Value)
	}
	if c.billedOut.Set {
		u.Set(pricing.Output, c.billedOut.Value)
	}
	return u
}

// total is the sum of the tokens where the bill has another sum; otherwise 0.
func (c *counts) total() int64 {
	tokens, bill := c.tokens(), c.bill()
	if bill.IsReported() && tokens.TotalTokens() != bill.TotalTokens() {
		return tokens.TotalTokens()
	}
	return 0
}

// appendUsage writes a usage object.
func appendUsage(dst []byte, u *pricing.Usage) []byte {
	pair := func(dst []byte) []byte {
		dst = append(dst, `{"input_tokens":`...)
		dst = strconv.AppendInt(dst, u.InputTokens(), 10)
		dst = append(dst, `,"output_tokens":`...)
		dst = strconv.AppendInt(dst, u.OutputTokens(), 10)
		return append(dst, '}')
	}
	dst = append(dst, `{"billed_units":`...)
	dst = pair(dst)
	dst = append(dst, `,"tokens":`...)
	dst = pair(dst)
	if n, ok := u.Get(pricing.CacheRead); ok {
		dst = append(dst, `,"cached_tokens":`...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	return append(dst, '}')
}
