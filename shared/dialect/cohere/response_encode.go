package cohere

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// finishReason is the finish_reason of a stop.
func finishReason(stop chat.StopReason, calls bool) string {
	switch {
	case stop == chat.StopToolCalls || stop == chat.StopUnknown && calls:
		return "TOOL_CALL"
	case stop == chat.StopLength || stop == chat.StopContext:
		return "MAX_TOKENS"
	case stop == chat.StopSequence:
		return "STOP_SEQUENCE"
	case stop == chat.StopFilter:
		return "ERROR_TOXIC"
	}
	return "COMPLETE"
}

// encodeResponse writes a complete response for a client of this dialect.
func encodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	c := &chat.Choice{}
	if len(r.Choices) > 0 {
		c = &r.Choices[0]
	}
	e := upstream.Begin(dst)
	e.Str("id", o.AnswerID(r.ID, ""))
	calls := 0
	for i := range c.Parts {
		if c.Parts[i].Call != nil {
			calls++
		}
	}
	e.Str("finish_reason", finishReason(c.Stop, calls > 0))
	e.Key("message")
	e.Open('{')
	e.Str("role", "assistant")
	if calls > 0 {
		e.StrIf("tool_plan", c.Text())
		encodeCalls(e, c.Parts, o)
	}
	encodeContent(e, c.Parts, calls > 0)
	e.Close('}')
	if r.Usage.Known() {
		e.Key("usage")
		e.B = appendUsage(e.B, &r.Usage)
	}
	e.Close('}')
	return e.B
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func encodeContent(e *upstream.Object, parts []chat.Part, calls bool) {
	e.Key("content")
	e.Open('[')
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == chat.Reasoned && p.Text != "":
			e.Open('{')
			e.Str("type", "thinking")
			e.Str("thinking", p.Text)
			e.Close('}')
		case (p.Kind == chat.Text || p.Kind == chat.Refusal) && p.Text != "" && !calls:
			e.Open('{')
			e.Str("type", "text")
			e.Str("text", p.Text)
			e.Close('}')
		}
	}
	e.Close(']')
}

func encodeCalls(e *upstream.Object, parts []chat.Part, o *chat.Options) {
	e.Key("tool_calls")
	e.Open('[')
	for i := range parts {
		c := parts[i].Call
		if c == nil {
			continue
		}
		e.Open('{')
		e.Str("id", c.ID)
		e.Str("type", "function")
		e.Key("function")
		e.Open('{')
		e.Str("name", o.ToolName(c.Name))
		e.Str("arguments", orElse(c.Arguments, "{}"))
		e.Close('}')
		e.Close('}')
	}
	e.Close(']')
}
