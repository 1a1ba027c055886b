package cohere

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
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
	e.Str("id", o.ResponseID(r.ID, ""))
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
	if r.Usage.IsReported() {
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

// Chat is the dialect of POST /v2/chat.
type Chat struct{}

var _ chat.TwoWayDialect = Chat{}

// name is the dialect's name.
const name = "cohere"

// Name implements chat.Dialect.
func (Chat) Name() string { return name }

// Check implements chat.RequestReader.
func (Chat) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Chat) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.ResponseWriter.
func (Chat) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Chat) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return &streamEncoder{o: *o} }

// AppendError implements chat.ErrorWriter.
func (Chat) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter.
func (Chat) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.RequestWriter.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Chat) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(streamDecoder) }

// DecodeError implements chat.ErrorReader.
func (Chat) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// NewStreamFilter implements chat.Passer.
func (Chat) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return upstream.NewFilter(new(streamDecoder))
}

// Support implements chat.ResponseWriter.
func (Chat) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{Features: chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsCalls | chat.HoldsMoreCalls, Content: "message.content"}
}

var keys = wire.NewKeySet("model", "messages", "stream", "max_tokens", "temperature")

// check tests that a body is an object with a model and messages.
func check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, want := range [...]wire.Kind{wire.KindString, wire.KindArray, wire.KindBool, wire.KindNumber, wire.KindNumber} {
		key, span := keys.Keys()[i], c.Walk.Spans[i]
		switch {
		case !span.Present(body) && i < 2:
			return fault.Invalid(key, "%s is required", key)
		case span.Present(body) && wire.KindOf(span.Of(body)) != want:
			return fault.Invalid(key, "%s must be %s, not %s", key, want, wire.KindOf(span.Of(body)))
		}
	}
	return nil
}

// decodeError reads {message}, with an id that names the request.
func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	return upstream.DecodeError(status, h, body)
}

// Failure is the fault for a finish reason that means failure: the response is incomplete.
func Failure(native, message string) *fault.Fault {
	status := http.StatusBadGateway
	if native == "TIMEOUT" {
		status = http.StatusGatewayTimeout
	}
	if message == "" {
		message = "The model ended its answer with " + native
	}
	return upstream.Failed(status, "", message)
}

// Failed reports whether a finish reason means that the response failed.
func Failed(native string) bool {
	return native == "ERROR" || native == "TIMEOUT" || native == "USER_CANCEL"
}

// appendError writes {"id":...,"message":...}.
func appendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, o.ID)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendJSONString(dst, f.Sentence())
	return append(dst, '}')
}

// appendStreamError writes the end of a response that failed.
func appendStreamError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	data := append([]byte(nil), `{"type":"message-end","delta":{"error":`...)
	data = wire.AppendJSONString(data, f.Sentence())
	data = append(data, `,"finish_reason":"ERROR"}}`...)
	return wire.AppendSSE(dst, "message-end", data)
}

// MeterResponse implements chat.Passer. Responses of the provider's other operations and
// of its first version are passed through too. Their meta contains the billed units:
// embeddings, rankings, texts. The last object of a stream of the first version contains
// such a response as response.
func (c Chat) MeterResponse(body []byte) chat.Meter {
	m := upstream.Meter(c, body)
	if m.Usage.IsReported() {
		return m
	}
	var u counts
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return m
	}
	each(d, u.ofResponse(d, true))
	if d.End() != nil {
		return m
	}
	native := u.bill()
	if u.searches.Set {
		native.Set(pricing.Pages, u.searches.Value)
	}
	if u.images.Set {
		native.Set(pricing.InputImages, u.images.Value)
	}
	if !native.IsReported() {
		native = u.tokens()
	}
	if !native.IsReported() {
		return m
	}
	return chat.Meter{Usage: native, Started: true, Complete: true}
}

// ofResponse reads the fields of a response that concern usage.
func (c *counts) ofResponse(d *wire.Decoder, outermost bool) func(string) {
	return func(key string) {
		switch {
		case key == "meta" || key == "usage":
			c.read(d)
		case key == "response" && outermost:
			each(d, c.ofResponse(d, false))
		}
	}
}
