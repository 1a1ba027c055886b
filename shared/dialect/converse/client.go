package converse

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// EncodeResponse implements chat.AnswerWriter.
func (Converse) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	c := &chat.Choice{}
	if len(r.Choices) > 0 {
		c = &r.Choices[0]
	}
	w := upstream.Begin(dst)
	w.B = append(w.B, `"output":{"message":{"role":"assistant","content":[`...)
	calls := false
	for i := range c.Parts {
		calls = appendBlock(w, &c.Parts[i], o) || calls
	}
	w.B = append(w.B, `]}}`...)
	w.Str("stopReason", nativeStop(c.Stop, calls))
	appendUsage(w, &r.Usage)
	w.Close('}')
	return w.B
}

// nativeStop is the stop reason in this wire's words.
func nativeStop(stop chat.StopReason, calls bool) string {
	switch {
	case stop == chat.StopToolCalls || stop == chat.StopUnknown && calls:
		return "tool_use"
	case stop == chat.StopFilter:
		return "content_filtered"
	case stop == chat.StopMalformed:
		return "malformed_tool_use"
	case stop == chat.StopPause || stop == chat.StopUnknown:
		return "end_turn"
	}
	return stop.Anthropic() // the words are the same
}

// appendBlock writes one content block and reports whether it is a call.
func appendBlock(w *upstream.Object, p *chat.Part, o *chat.Options) bool {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		if p.Text != "" {
			w.Open('{')
			w.Str("text", p.Text)
			w.Close('}')
		}
	case chat.Reasoned, chat.RedactedReasoned:
		w.Open('{')
		w.Key("reasoningContent")
		w.Open('{')
		if p.Kind == chat.RedactedReasoned {
			w.Str("redactedContent", p.Data)
		} else {
			w.Key("reasoningText")
			w.Open('{')
			w.Str("text", p.Text)
			w.StrIf("signature", p.Signature)
			w.Close('}')
		}
		w.B = append(w.B, "}}"...)
	case chat.Image:
		appendImage(w, p.Media)
	case chat.Call:
		args := chat.ObjectArguments(p.Call.Arguments)
		if args == "" {
			return false // an invented call would be run
		}
		w.Open('{')
		w.Key("toolUse")
		w.Open('{')
		w.Str("toolUseId", p.Call.ID)
		w.Str("name", o.ToolName(p.Call.Name))
		w.Raw("input", []byte(args))
		w.B = append(w.B, "}}"...)
		return true
	}
	return false
}

func appendUsage(w *upstream.Object, u *pricing.Usage) {
	read, write := u.Cached(), u.Written()
	w.Key("usage")
	w.Open('{')
	w.Int("inputTokens", u.InputTokens()-read-write)
	w.Int("outputTokens", u.OutputTokens())
	w.Int("totalTokens", u.InputTokens()+u.OutputTokens())
	w.Int("cacheReadInputTokens", read)
	w.Int("cacheWriteInputTokens", write)
	w.Close('}')
}

// AppendError implements chat.ErrorWriter.
func (Converse) AppendError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	w := upstream.Begin(dst)
	w.Str("__type", exception(f.Status()))
	w.Str("message", f.Sentence())
	w.Close('}')
	return w.B
}

// Challenge implements routes.Challenger: the SDK of AWS finds the type of an error in this
// header (AWS restJson1 protocol, operation error serialization).
func (Converse) Challenge(h http.Header, _ *http.Request, f *fault.Fault) {
	h.Set("X-Amzn-Errortype", exception(f.Status()))
}

// exception is the name of the exception for a status, as the Bedrock runtime's model has it.
func exception(status int) string {
	switch {
	case status == 401 || status == 403:
		return "AccessDeniedException"
	case status == 404:
		return "ResourceNotFoundException"
	case status == 412:
		return "ServiceQuotaExceededException"
	case status == 408 || status == 504:
		return "ModelTimeoutException"
	case status == 429:
		return "ThrottlingException"
	case status == 503 || status == 529:
		return "ServiceUnavailableException"
	case status >= 500:
		return "InternalServerException"
	}
	return "ValidationException"
}

// event is the name of the member of a stream for a status. A stream knows no others than
// these and modelStreamErrorException.
func event(status int) string {
	switch {
	case status == 429:
		return "throttlingException"
	case status == 503 || status == 529:
		return "serviceUnavailableException"
	case status >= 500:
		return "internalServerException"
	}
	return "validationException"
}

// AppendStreamError implements chat.ErrorWriter. The event's name is the type of the error.
func (Converse) AppendStreamError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	w := upstream.Begin(nil)
	w.Str("message", f.Sentence())
	w.Close('}')
	return wire.AppendEventStream(dst, wire.EventStreamException+event(f.Status()), w.B)
}

// MeterResponse implements chat.Passer. It also meters answers of InvokeModel, which have
// the shape of their model; only Claude's shape is known.
func (c Converse) MeterResponse(body []byte) chat.Meter {
	r, f := decodeResponse(body, &chat.Traits{})
	if f == nil {
		return r.Meter()
	}
	if r != nil {
		m := r.Meter()
		m.Complete, m.Err = false, f
		return m
	}
	if m := (anthropic.Messages{}).MeterResponse(body); m.Err == nil && m.Usage.Known() {
		return m
	}
	return chat.Meter{Err: f}
}

// NewStreamFilter implements chat.Passer.
func (Converse) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return upstream.NewFilter(newStreamDecoder(&chat.Traits{}))
}
