package gemini

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Generate is the dialect of :generateContent and :streamGenerateContent.
type Generate struct{}

var _ chat.TwoWayDialect = Generate{}

// name is the dialect's name.
const name = "gemini"

// Name implements chat.Dialect.
func (Generate) Name() string { return name }

// Check implements chat.RequestReader.
func (Generate) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Generate) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.AnswerWriter.
func (Generate) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.AnswerWriter.
func (Generate) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return &streamEncoder{o: *o} }

// AppendError implements chat.ErrorWriter.
func (Generate) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter. Google's SDK ignores named events.
func (Generate) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, "data: "...)
	dst = appendError(dst, f, o)
	return append(dst, "\r\n\r\n"...)
}

// BreaksConnection implements chat.Breaker. Gemini CLI repeats the request, and prints the
// text again, if the stream ends in order.
func (Generate) BreaksConnection() bool { return true }

// EncodeRequest implements chat.RequestWriter.
func (Generate) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.AnswerReader.
func (Generate) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body, t)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Generate) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder { return &streamDecoder{t: t} }

// DecodeError implements chat.ErrorReader.
func (Generate) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Generate) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Generate) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter { return new(filter) }

// validated is the mode of tool_choice in which calls are held to their schemas.
const validated = "validated"

// counted is the request for which :countTokens counts the tokens; without it the body
// has contents.
var counted = wire.NewKeySet("generateContentRequest")

// DecodeCounted reads a body of :countTokens.
func DecodeCounted(body []byte) (*chat.Request, error) {
	var w wire.Walk
	if err := counted.Walk(body, &w); err != nil {
		return nil, err
	}
	if s := w.Spans[0]; s.Present(body) && wire.KindOf(s.Of(body)) == wire.KindObject {
		body = s.Of(body)
	}
	return decodeRequest(body)
}
