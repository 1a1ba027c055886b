package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// refusalText is what a client reads when the provider gave no explanation.
const refusalText = "The model refused to go on with this answer."

// stopReason reads a stop_reason.
func stopReason(native string) chat.StopReason {
	switch native {
	case "end_turn":
		return chat.StopEnd
	case "stop_sequence":
		return chat.StopSequence
	case "max_tokens":
		return chat.StopLength
	case "model_context_window_exceeded":
		return chat.StopContext
	case "tool_use":
		return chat.StopToolCalls
	case "refusal":
		return chat.StopFilter
	case "pause_turn":
		return chat.StopPause
	}
	return chat.StopUnknown
}

func invalidResponse(cause error) *fault.Fault {
	return upstream.Invalid("The provider's response is not a message", cause)
}

// decodeResponse reads a message.
func decodeResponse(body []byte) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	c := &r.Choices[0]
	var u counts
	content, failed := false, false
	explanation, category := "", ""
	for key := range d.Object {
		switch string(key) {
		case "type":
			failed = upstream.OptString(d) == "error"
		case "id":
			r.ID = upstream.OptString(d)
		case "model":
			r.Model = upstream.OptString(d)
		case "content":
			if d.Kind() == wire.KindArray {
				content = true
				for i := range d.Array {
					if p := decodeBlock(d); p.Kind != 0 {
						p.At = i
						c.Parts = append(c.Parts, p)
					}
				}
			}
		case "stop_reason":
			c.Native = upstream.OptString(d)
		case "stop_sequence":
			c.StopSequence = upstream.OptString(d)
		case "stop_details":
			explanation, category = stopDetails(d)
		case "usage":
			u.readFrom(d)
		}
	}
	err := d.End()
	switch {
	case err == nil && failed:
		return nil, inBandError(body)
	case err != nil || !content:
		return nil, invalidResponse(err)
	}
	u.classes(&r.Usage)
	var bill pricing.Usage
	u.bill(ending{c.Native, category}, &bill, &r.PriceFacts)
	if bill != r.Usage {
		r.Billed = &bill
	}
	c.Stop = stopReason(c.Native)
	if c.Stop != chat.StopSequence {
		c.StopSequence = ""
	}
	if c.Stop == chat.StopFilter {
		if explanation == "" {
			explanation = refusalText
		}
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Refusal, Text: explanation})
	}
	c.ShowResponse()
	return r, nil
}

// stopDetails reads the explanation of a refusal, and its category.
func stopDetails(d *wire.Decoder) (explanation, category string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return "", ""
	}
	for key := range d.Object {
		switch string(key) {
		case "explanation":
			explanation = upstream.OptString(d)
		case "category":
			category = upstream.OptString(d)
		}
	}
	return explanation, category
}

// decodeBlock reads one content block of a response.
func decodeBlock(d *wire.Decoder) chat.Part {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.Part{}
	}
	whole := *d
	var p chat.Part
	var id, tool string
	var input []byte
	kind := ""
	for key := range d.Object {
		switch string(key) {
		case "type":
			kind = upstream.OptString(d)
		case "text", "thinking":
			p.Text = upstream.OptString(d)
		case "signature":
			p.Signature = upstream.OptString(d)
		case "data":
			p.Data = upstream.OptString(d)
		case "id":
			id = upstream.OptString(d)
		case "name":
			tool = upstream.OptString(d)
		case "input":
			input = d.Raw()
		case "citations":
			if d.Kind() == wire.KindArray {
				p.Citations = bytes.Clone(d.Raw())
			}
		}
	}
	switch kind {
	case "text":
		p.Kind = chat.Text
	case "thinking":
		p.Kind, p.Origin = chat.Reasoned, name
	case "redacted_thinking":
		p.Kind, p.Origin = chat.RedactedReasoned, name
	case "tool_use":
		if wire.KindOf(input) != wire.KindObject {
			input = []byte("{}")
		}
		return chat.Part{Kind: chat.Call, Call: &chat.ToolCall{ID: id, Name: tool, Arguments: string(input)}}
	default:
		return chat.Part{Kind: chat.Foreign, Type: kind, Origin: name, Raw: bytes.Clone(whole.Raw())}
	}
	return p
}
