package responses

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
)

// Responses is the dialect of POST /responses.
type Responses struct{}

var (
	_ chat.TwoWayDialect = Responses{}
	_ chat.Named         = Responses{}
	_ chat.Portable      = Responses{}
)

// name is the dialect's name.
const name = "openai.responses"

// Name implements chat.Dialect.
func (Responses) Name() string { return name }

// Check implements chat.RequestReader.
func (Responses) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Responses) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.AnswerWriter.
func (Responses) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.AnswerWriter.
func (Responses) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// EncodeRequest implements chat.RequestWriter.
func (Responses) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.AnswerReader.
func (Responses) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Responses) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return newStreamDecoder() }

// DecodeError implements chat.ErrorReader.
func (Responses) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return openai.Chat{}.DecodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Responses) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Responses) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return new(filter)
}
