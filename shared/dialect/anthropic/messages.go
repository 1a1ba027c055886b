package anthropic

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Messages is the dialect of POST /messages.
type Messages struct{}

var _ chat.Dialect = Messages{}

// name is the dialect's name.
const name = "anthropic.messages"

// Name implements chat.Dialect.
func (Messages) Name() string { return name }

// Check implements chat.Dialect.
func (Messages) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.Dialect.
func (Messages) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.Dialect.
func (Messages) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.Dialect.
func (Messages) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// AppendError implements chat.Dialect.
func (Messages) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.Dialect.
func (Messages) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.Dialect.
func (Messages) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.Dialect.
func (Messages) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.Dialect.
func (Messages) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(streamDecoder) }

// DecodeError implements chat.Dialect.
func (Messages) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Dialect.
func (Messages) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Dialect.
func (Messages) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return new(filter) }
