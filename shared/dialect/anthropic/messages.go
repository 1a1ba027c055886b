package anthropic

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Messages is the dialect of POST /messages.
type Messages struct{}

var (
	_ chat.TwoWayDialect = Messages{}
	_ chat.Named         = Messages{}
)

// name is the dialect's name.
const name = "anthropic.messages"

// Name implements chat.Dialect.
func (Messages) Name() string { return name }

// Check implements chat.RequestReader.
func (Messages) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Messages) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.AnswerWriter.
func (Messages) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.AnswerWriter.
func (Messages) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// AppendError implements chat.ErrorWriter.
func (Messages) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter.
func (Messages) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.RequestWriter.
func (Messages) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.AnswerReader.
func (Messages) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Messages) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(streamDecoder) }

// DecodeError implements chat.ErrorReader.
func (Messages) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Messages) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Messages) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return new(filter) }
