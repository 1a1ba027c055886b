package openai

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/wire"
)

// Objects of the envelope.
const (
	chatObject       = "chat.completion"
	chunkObject      = "chat.completion.chunk"
	completionObject = "text_completion"

	chatPrefix       = "chatcmpl-"
	completionPrefix = "cmpl-"
)

// envelope is what all chunks and responses of a request share.
type envelope struct {
	id, model string
	created   int64
}

// newEnvelope makes the envelope of a response; prefix is that of ids of its kind.
func newEnvelope(id, prefix, model string, created int64, o *chat.Options) envelope {
	e := envelope{o.ResponseID(id, prefix), model, created}
	if e.model == "" {
		e.model = o.Model
	}
	if e.created == 0 {
		e.created = o.Created
	}
	return e
}

// append writes {"id":...,"object":...,"created":...,"model":...,"provider":...
// without the closing brace.
func (e *envelope) append(dst []byte, object string, o *chat.Options) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, e.id)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, e.created, 10)
	dst = append(dst, `,"model":`...)
	dst = wire.AppendJSONString(dst, e.model)
	if o.ProviderName != "" {
		dst = append(dst, `,"provider":`...)
		dst = wire.AppendJSONString(dst, o.ProviderName)
	}
	return dst
}

func encodeChatResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	e := newEnvelope(r.ID, chatPrefix, r.Model, r.Created, o)
	dst = e.append(dst, chatObject, o)
	dst = append(dst, `,"choices":[`...)
	for i := range r.Choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChoice(dst, &r.Choices[i], o)
	}
	dst = append(dst, ']')
	return appendTrailer(dst, r, o)
}

// appendTrailer writes usage and what else follows the choices, and closes.
func appendTrailer(dst []byte, r *chat.Response, o *chat.Options) []byte {
	if r.Usage.IsReported() {
		dst = append(dst, `,"usage":`...)
		dst = appendUsage(dst, &r.Usage, !o.Strict)
	}
	if r.SystemFingerprint != "" {
		dst = append(dst, `,"system_fingerprint":`...)
		dst = wire.AppendJSONString(dst, r.SystemFingerprint)
	}
	if r.ServiceTier != "" {
		dst = append(dst, `,"service_tier":`...)
		dst = wire.AppendJSONString(dst, r.ServiceTier)
	}
	return append(dst, '}')
}

// finish is the finish_reason of a stop.
func finish(stop chat.StopReason, calls bool, o *chat.Options) string {
	switch {
	case stop == chat.StopUnknown && calls:
		stop = chat.StopToolCalls
	case stop == chat.StopToolCalls && !calls:
		stop = chat.StopEnd
	}
	if stop == chat.StopToolCalls && o.Legacy() {
		return "function_call"
	}
	return stop.OpenAI()
}

// appendNative shows the provider's own word for the stop if it says more.
func appendNative(dst []byte, native, finish string, o *chat.Options) []byte {
	if o.Strict || native == "" || native == finish {
		return dst
	}
	dst = append(dst, `,"native_finish_reason":`...)
	return wire.AppendJSONString(dst, native)
}

func appendChoice(dst []byte, c *chat.Choice, o *chat.Options) []byte {
	text, refusal := c.Text(), ""
	calls, blocks := 0, 0
	for i := range c.Parts {
		switch p := &c.Parts[i]; p.Kind {
		case chat.Text:
			blocks++
		case chat.Refusal:
			refusal = p.Text
		case chat.Call:
			calls++
		default:
			blocks++
		}
	}
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(c.Index), 10)
	dst = append(dst, `,"message":{"role":"assistant","content":`...)
	if text == "" && (calls > 0 || refusal != "" || c.Stop == chat.StopFilter) {
		dst = append(dst, "null"...)
	} else {
		dst = wire.AppendJSONString(dst, text)
	}
	dst = append(dst, `,"refusal":`...)
	dst = jsonfield.AppendOrNull(dst, refusal)
	dst = appendAnnotations(dst, c.Parts)
	if !o.Strict {
		dst = appendImages(dst, c.Parts)
	}
	if calls > 0 {
		dst = appendCalls(dst, c.Parts, o)
	}
	if !o.Strict && blocks > 0 {
		dst = appendBlocks(dst, c.Parts)
	}
	dst = append(dst, `},"logprobs":`...)
	if len(c.Logprobs) > 0 {
		dst = append(dst, c.Logprobs...)
	} else {
		dst = append(dst, "null"...)
	}
	f := finish(c.Stop, calls > 0, o)
	dst = append(dst, `,"finish_reason":"`...)
	dst = append(dst, f...)
	dst = append(dst, '"')
	dst = appendNative(dst, c.Native, f, o)
	dst = appendExtra(dst, c.Extra, o)
	return append(dst, '}')
}

// appendCalls writes tool_calls, or for legacy clients the one function_call.
func appendCalls(dst []byte, parts []chat.Part, o *chat.Options) []byte {
	if o.Legacy() {
		for i := range parts {
			if c := parts[i].Call; c != nil {
				dst = append(dst, `,"function_call":`...)
				return appendFunction(dst, c, o)
			}
		}
	}
	n := 0
	for i := range parts {
		c := parts[i].Call
		if c == nil {
			continue
		}
		if n++; n == 1 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = wire.AppendJSONString(dst, c.ID)
		if o.Request.CustomTool(o.ToolName(c.Name)) {
			dst = append(dst, `,"type":"custom","custom":{"name":`...)
			dst = wire.AppendJSONString(dst, o.ToolName(c.Name))
			dst = append(dst, `,"input":`...)
			dst = append(wire.AppendJSONString(dst, chat.UnwrapText(c.Arguments)), "}}"...)
			continue
		}
		dst = append(dst, `,"type":"function","function":`...)
		dst = appendFunction(dst, c, o)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendFunction(dst []byte, c *chat.ToolCall, o *chat.Options) []byte {
	args := c.Arguments
	if args == "" {
		args = "{}"
	}
	dst = append(dst, `{"name":`...)
	dst = wire.AppendJSONString(dst, o.ToolName(c.Name))
	dst = append(dst, `,"arguments":`...)
	dst = wire.AppendJSONString(dst, args)
	dst = appendCallSignature(dst, c.Signature, o)
	return append(dst, '}')
}

// appendCallSignature writes the signature of a call, which a lenient client
// gives back with the call.
func appendCallSignature(dst []byte, signature string, o *chat.Options) []byte {
	if o.Strict || signature == "" {
		return dst
	}
	dst = append(dst, `,"thought_signature":`...)
	return wire.AppendJSONString(dst, signature)
}

// appendExtra writes the provider's own fields of a choice.
func appendExtra(dst []byte, extra []chat.Field, o *chat.Options) []byte {
	if o.Strict {
		return dst
	}
	for _, x := range extra {
		dst = append(dst, ',')
		dst = wire.AppendJSONString(dst, x.Name)
		dst = append(append(dst, ':'), x.Raw...)
	}
	return dst
}

// appendBlocks writes content_blocks: all parts except calls, in order, in the form in
// which the client gives them back.
func appendBlocks(dst []byte, parts []chat.Part) []byte {
	dst = append(dst, `,"content_blocks":[`...)
	n := 0
	for i := range parts {
		p := &parts[i]
		if p.Kind == chat.Call || p.Kind == chat.Refusal {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		switch p.Kind {
		case chat.Reasoned:
			dst = append(dst, `{"type":"thinking","thinking":`...)
			dst = wire.AppendJSONString(dst, p.Text)
			if p.Signature != "" {
				dst = append(dst, `,"signature":`...)
				dst = wire.AppendJSONString(dst, p.Signature)
			}
			dst = append(dst, '}')
		case chat.RedactedReasoned:
			dst = append(dst, `{"type":"redacted_thinking","data":`...)
			dst = wire.AppendJSONString(dst, p.Data)
			dst = append(dst, '}')
		case chat.Image:
			dst = appendImage(dst, wire.AppendJSONString(nil, p.Media.Address()))
		case chat.Foreign:
			dst = append(dst, p.Raw...)
		default:
			dst = append(dst, `{"type":"text","text":`...)
			dst = wire.AppendJSONString(dst, p.Text)
			if len(p.Citations) > 0 {
				dst = append(dst, `,"citations":`...)
				dst = append(dst, p.Citations...)
			}
			dst = append(dst, '}')
		}
	}
	return append(dst, ']')
}
