package anthropic

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/wire"
)

// encodeResponse writes a message. A client of this dialect reads one answer.
func encodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	c := &chat.Choice{}
	if len(r.Choices) > 0 {
		c = &r.Choices[0]
	}
	dst = appendHead(dst, r.ID, r.Model, o)
	dst = append(dst, `,"content":[`...)
	n, calls := 0, false
	for i := range c.Parts {
		p := &c.Parts[i]
		start := len(dst)
		if n > 0 {
			dst = append(dst, ',')
		}
		before := len(dst)
		dst = appendBlock(dst, p, o)
		if len(dst) == before {
			dst = dst[:start]
			continue
		}
		n++
		calls = calls || p.Kind == chat.Call
	}
	dst = append(dst, ']')
	dst = appendStop(dst, c.Stop, c.StopSequence, calls, o)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, &r.Usage)
	return append(dst, '}')
}

// appendHead writes {"id":...,"type":"message","role":"assistant","model":...
// without the closing brace.
func appendHead(dst []byte, id, model string, o *chat.Options) []byte {
	id = o.AnswerID(id, "msg_")
	if model == "" {
		model = o.Model
	}
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, id)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	return wire.AppendJSONString(dst, model)
}

// appendStop writes ,"stop_reason":...,"stop_sequence":... . If the provider does not
// report which stop string occurred, it must be the client's only one; if the client sent
// several, null is written.
func appendStop(dst []byte, stop chat.StopReason, sequence string, calls bool, o *chat.Options) []byte {
	switch {
	case stop == chat.StopUnknown && calls:
		stop = chat.StopToolCalls
	case stop == chat.StopToolCalls && !calls:
		stop = chat.StopEnd
	case stop == chat.StopSequence && sequence == "" && o.Request != nil:
		switch len(o.Request.Stop) {
		case 0: // a stop string of the provider's own
			stop = chat.StopEnd
		case 1:
			sequence = o.Request.Stop[0]
		}
	}
	dst = append(dst, `,"stop_reason":"`...)
	dst = append(dst, stop.Anthropic()...)
	dst = append(dst, `","stop_sequence":`...)
	if stop != chat.StopSequence || sequence == "" {
		return append(dst, "null"...)
	}
	return wire.AppendJSONString(dst, sequence)
}

// appendCitations writes the sources of a text; nothing when there is none.
func appendCitations(dst, list []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	start := len(dst)
	dst = append(dst, `,"citations":[`...)
	none := len(dst)
	if dst = citation.Join(dst, list, func(dst []byte, c *citation.Citation) []byte { return c.AppendMessages(dst) }); len(dst) == none {
		return dst[:start]
	}
	return append(dst, ']')
}

// appendBlock writes one content block; nothing for an empty one.
func appendBlock(dst []byte, p *chat.Part, o *chat.Options) []byte {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		if p.Text == "" {
			return dst
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = wire.AppendJSONString(dst, p.Text)
		dst = appendCitations(dst, p.Citations)
	case chat.Reasoned:
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = wire.AppendJSONString(dst, p.Text)
		dst = append(dst, `,"signature":`...)
		dst = wire.AppendJSONString(dst, p.Signature)
	case chat.RedactedReasoned:
		dst = append(dst, `{"type":"redacted_thinking","data":`...)
		dst = wire.AppendJSONString(dst, p.Data)
	case chat.Call:
		args := chat.ObjectArguments(p.Call.Arguments)
		if args == "" {
			return dst // an invented call would be run
		}
		dst = append(dst, `{"type":"tool_use","id":`...)
		dst = wire.AppendJSONString(dst, p.Call.ID)
		dst = append(dst, `,"name":`...)
		dst = wire.AppendJSONString(dst, o.ToolName(p.Call.Name))
		dst = append(dst, `,"input":`...)
		dst = append(dst, args...)
	case chat.Foreign:
		if p.Origin == name {
			return append(dst, p.Raw...)
		}
		return dst
	default:
		return dst
	}
	return append(dst, '}')
}
