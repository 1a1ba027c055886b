// Package converse is the wire format of Amazon Bedrock's Converse and ConverseStream
// operations.
//
// Requests put the parts that are constant from turn to turn first and the messages last,
// so that a conversation's bytes only grow at their end. User and assistant alternate:
// neighbors of one role become one message, with tool results before the user's text.
//
// System prompts at the beginning of the conversation go into the field system. For later
// ones, messages have had the role system since May 2026. The API accepts this role for
// every model, but most models reject it; chat.Traits.SystemTurns lists which accept it.
// Those require one such message after a turn of the user, either last or before a turn
// of the assistant, so a prompt elsewhere moves after the user's turn. For other models,
// later prompts move in front of the conversation. Every move is in the loss report.
//
// Parameters specific to one vendor's models go into additionalModelRequestFields, by
// chat.Traits.Family.
//
// Streams are AWS event streams. The stop reason arrives before the usage.
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

// Converse is the dialect of POST /model/{id}/converse and converse-stream.
type Converse struct{}

var (
	_ chat.TwoWayDialect = Converse{}
	_ chat.FramedWriter  = Converse{}
)

// name is the dialect's name.
const name = "converse"

// messages is the origin of reasoning that Claude has signed: its signatures are valid on
// every host that serves Claude.
const messages = "anthropic.messages"

// Families that have ways of their own.
const (
	familyAnthropic = "anthropic"
	familyAmazon    = "amazon"
	familyCohere    = "cohere"
	familyAI21      = "ai21"
	familyMistral   = "mistral"
	familyOpenAI    = "openai"
)

// origin is the origin of reasoning that a model of the family has signed.
func origin(family string) string {
	if family == familyAnthropic {
		return messages
	}
	return name
}

// Name implements chat.Dialect.
func (Converse) Name() string { return name }

// EncodeRequest implements chat.RequestWriter.
func (Converse) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Converse) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body, t)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Converse) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder { return newStreamDecoder(t) }

// DecodeError implements chat.ErrorReader.
func (Converse) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// EncodeResponse implements chat.ResponseWriter.
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
	read, write := u.Cached(), u.CacheWrites()
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

// event is the name of the field of a stream for a status. A stream knows no others than
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

// MeterResponse implements chat.Passer. It also meters responses of InvokeModel, which have
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
	if m := (anthropic.Messages{}).MeterResponse(body); m.Err == nil && m.Usage.IsReported() {
		return m
	}
	return chat.Meter{Err: f}
}

// NewStreamFilter implements chat.Passer.
func (Converse) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return upstream.NewFilter(newStreamDecoder(&chat.Traits{}))
}

// Support implements chat.ResponseWriter.
func (Converse) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{
		Features: chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsImages | chat.HoldsCalls | chat.HoldsMoreCalls,
		Images:   func(m *chat.Media) bool { return imageFormat(m) != "" },
		Content:  "output.message.content",
		Broken:   chat.BrokenStop,
	}
}

var keys = wire.NewKeySet("messages", "system", "inferenceConfig", "toolConfig", "additionalModelRequestFields")

var kinds = [...]wire.Kind{wire.KindArray, wire.KindArray, wire.KindObject, wire.KindObject, wire.KindObject}

// Check implements chat.RequestReader: the fields that count have their type.
func (Converse) Check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, key := range keys.Keys() {
		span := c.Walk.Spans[i]
		switch {
		case !span.Present(body) && key == "messages":
			return fault.Invalid(key, "%s is required", key)
		case span.Present(body) && !wire.IsNull(span.Of(body)) && wire.KindOf(span.Of(body)) != kinds[i]:
			return fault.Invalid(key, "%s must be %s, not %s", key, kinds[i], wire.KindOf(span.Of(body)))
		}
	}
	return nil
}

var streamType = []string{"application/vnd.amazon.eventstream"}

// StreamType implements chat.FramedWriter.
func (Converse) StreamType() []string { return streamType }
