package cohere

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

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

// EncodeResponse implements chat.AnswerWriter.
func (Chat) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.AnswerWriter.
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

// DecodeResponse implements chat.AnswerReader.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Chat) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(streamDecoder) }

// DecodeError implements chat.ErrorReader.
func (Chat) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// NewStreamFilter implements chat.Passer.
func (Chat) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return upstream.NewFilter(new(streamDecoder))
}
