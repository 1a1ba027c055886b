package cohere

import (
	"encoding/json"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
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
		return nil, upstream.Invalid("The provider's answer is not JSON", d.End())
	case Failed(c.Native):
		return nil, Failure(c.Native, "")
	case !seen:
		if p := upstream.ReadError(body); p != nil {
			return nil, upstream.InBand(body)
		}
		return nil, upstream.Invalid("The provider's answer holds no message", nil)
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
	var said, calls []chat.Part
	var plan string
	var citations []byte
	for key := range d.Object {
		switch string(key) {
		case "content":
			said = decodeContent(d)
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
		said = append(said, chat.Part{Kind: chat.Text, Text: plan})
	}
	if len(citations) > len("[]") {
		cite(said, citations)
	}
	return append(said, calls...)
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
