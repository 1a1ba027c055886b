package openai

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Chat is the dialect of POST /chat/completions.
type Chat struct{}

var _ chat.Spoken = Chat{}

// Name implements chat.Dialect.
func (Chat) Name() string { return "openai.chat" }

// Check implements chat.RequestReader.
func (Chat) Check(body []byte, c *chat.Checked) error { return chatChecker.check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Chat) DecodeRequest(body []byte) (*chat.Request, error) { return decodeChatRequest(body) }

// EncodeResponse implements chat.AnswerWriter.
func (Chat) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeChatResponse(dst, r, o)
}

// NewStreamEncoder implements chat.AnswerWriter.
func (Chat) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

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
	return encodeChatRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.AnswerReader.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, err := decodeResponse(body)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Chat) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return newStreamDecoder() }

// DecodeError implements chat.ErrorReader.
func (Chat) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Chat) MeterResponse(body []byte) chat.Meter { return meterPlain(body, "choices") }

// NewStreamFilter implements chat.Passer.
func (Chat) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return newFilter(o) }

// MeterEmbeddings reads what the books need of an answer of /embeddings.
func MeterEmbeddings(body []byte) chat.Meter { return meterPlain(body, "data") }
