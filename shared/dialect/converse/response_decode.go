package converse

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// refusalText is what a client reads when a response was held back.
const refusalText = "The answer was held back by a content filter."

// stopReason reads a stopReason; a fault for one that is a failure.
func stopReason(native string) (chat.StopReason, *fault.Fault) {
	switch native {
	case "end_turn":
		return chat.StopEnd, nil
	case "stop_sequence":
		return chat.StopSequence, nil
	case "max_tokens":
		return chat.StopLength, nil
	case "model_context_window_exceeded":
		return chat.StopContext, nil
	case "tool_use":
		return chat.StopToolCalls, nil
	case "guardrail_intervened", "content_filtered":
		return chat.StopFilter, nil
	case "malformed_model_output", "malformed_tool_use":
		return chat.StopUnknown, upstream.Failed(http.StatusBadGateway, native, "The model's answer could not be used: "+native)
	}
	return chat.StopUnknown, nil
}

// decodeResponse reads a response of Converse.
func decodeResponse(body []byte, t *chat.Traits) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	c := &r.Choices[0]
	var u counts
	content, other := false, false
	for key := range d.Object {
		switch string(key) {
		case "output":
			content = readOutput(d, c, t)
		case "stopReason":
			c.Native = upstream.OptString(d)
		case "usage":
			u.readFrom(d)
		case "serviceTier":
			r.ServiceTier = readType(d)
		case "additionalModelResponseFields":
			c.StopSequence = readStopSequence(d)
		case "message", "__type":
			other = true
		}
	}
	err := d.End()
	if err == nil && !content && other {
		p := readError(body)
		if p.Message != "" || p.Type != "" {
			if p.Status = http.StatusBadGateway; p.Message == "" {
				p.Message = p.Type
			}
			return nil, providerFault(p)
		}
	}
	if err != nil || !content {
		return nil, invalidResponse(err)
	}
	r.ReportedTotal = u.classes(&r.Usage)
	var f *fault.Fault
	if c.Stop, f = stopReason(c.Native); f != nil {
		return r, f // its usage was billed
	}
	if c.Stop != chat.StopSequence {
		c.StopSequence = ""
	}
	if c.Stop == chat.StopFilter && c.Text() == "" {
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Refusal, Text: refusalText})
	}
	c.ShowResponse()
	return r, nil
}

// readType reads {type}.
func readType(d *wire.Decoder) (typ string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) == "type" {
			typ = upstream.OptString(d)
		}
	}
	return typ
}

// readStopSequence finds the stop string that occurred. It is in the fields of the
// model's own response that the client requested.
func readStopSequence(d *wire.Decoder) (s string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) == "stop_sequence" {
			s = upstream.OptString(d)
		}
	}
	return s
}

// readOutput reads {message:{content:[...]}}; false when there is no message.
func readOutput(d *wire.Decoder, c *chat.Choice, t *chat.Traits) (found bool) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return false
	}
	for key := range d.Object {
		if string(key) != "message" || d.Kind() != wire.KindObject {
			continue
		}
		for key := range d.Object {
			if string(key) != "content" || d.Kind() != wire.KindArray {
				continue
			}
			found = true
			for i := range d.Array {
				if p := decodeBlock(d, t); p.Kind != 0 {
					p.At = i
					c.Parts = append(c.Parts, p)
				}
			}
		}
	}
	return found
}

// decodeBlock reads one content block of a response.
func decodeBlock(d *wire.Decoder, t *chat.Traits) chat.Part {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.Part{}
	}
	whole := *d
	var p chat.Part
	for key := range d.Object {
		switch string(key) {
		case "text":
			p = chat.Part{Kind: chat.Text, Text: upstream.OptString(d)}
		case "toolUse":
			p = decodeCall(d)
		case "reasoningContent":
			p = decodeReasoning(d, t)
		case "image":
			p = decodeImage(d)
		case "citationsContent":
			p = decodeCited(d)
		default:
			if p.Kind == 0 {
				p = chat.Part{Kind: chat.Foreign, Type: string(key), Origin: name, Raw: upstream.Clone(whole.Raw())}
			}
		}
	}
	return p
}

func decodeCall(d *wire.Decoder) chat.Part {
	c := &chat.ToolCall{Arguments: "{}"}
	if d.Kind() == wire.KindObject {
		for key := range d.Object {
			switch string(key) {
			case "toolUseId":
				c.ID = upstream.OptString(d)
			case "name":
				c.Name = upstream.OptString(d)
			case "input":
				if d.Kind() == wire.KindObject {
					c.Arguments = string(d.Raw())
				}
			}
		}
	}
	return chat.Part{Kind: chat.Call, Call: c}
}

// decodeReasoning reads {reasoningText:{text,signature}} or {redactedContent}.
func decodeReasoning(d *wire.Decoder, t *chat.Traits) chat.Part {
	p := chat.Part{Kind: chat.Reasoned, Origin: origin(t.Family)}
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.Part{}
	}
	for key := range d.Object {
		switch string(key) {
		case "reasoningText":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				switch string(key) {
				case "text":
					p.Text = upstream.OptString(d)
				case "signature":
					p.Signature = upstream.OptString(d)
				}
			}
		case "redactedContent":
			p.Kind, p.Data = chat.RedactedReasoned, upstream.OptString(d)
		}
	}
	return p
}

// decodeCited reads text that has sources.
func decodeCited(d *wire.Decoder) chat.Part {
	p := chat.Part{Kind: chat.Text}
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.Part{}
	}
	for key := range d.Object {
		switch {
		case string(key) == "content" && d.Kind() == wire.KindArray:
			for range d.Array {
				if d.Kind() != wire.KindObject {
					continue
				}
				for key := range d.Object {
					if string(key) == "text" {
						p.Text += upstream.OptString(d)
					}
				}
			}
		case string(key) == "citations" && d.Kind() == wire.KindArray:
			p.Citations = upstream.Clone(d.Raw())
		}
	}
	return p
}
