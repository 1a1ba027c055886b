package openai

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/fault"
)

// Chat is the dialect of POST /chat/completions.
type Chat struct{}

var _ chat.TwoWayDialect = Chat{}

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
func (Chat) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, err := decodeResponse(body)
	if err != nil {
		return nil, err
	}
	if mark := reasoner(t).Mark(); mark != "" {
		for i := range r.Choices {
			for j := range r.Choices[i].Parts {
				if p := &r.Choices[i].Parts[j]; p.Kind == chat.Reasoned && p.Signature == "" {
					p.Signature = mark
				}
			}
		}
	}
	return r, nil
}

// reasoner returns the row of a host that requires its reasoning back; nil if it does
// not.
func reasoner(t *chat.Traits) *hosts.Reasoner {
	if t == nil {
		return nil
	}
	return hosts.ReasonerOf(t.Provider)
}

// NewStreamDecoder implements chat.AnswerReader.
func (Chat) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	s := newStreamDecoder()
	s.mark = reasoner(t).Mark()
	return s
}

// DecodeError implements chat.ErrorReader.
func (Chat) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Chat) MeterResponse(body []byte) chat.Meter { return meterPlain(body, "choices") }

// NewStreamFilter implements chat.Passer.
func (Chat) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return newFilter(o) }

// MeterEmbeddings reads what accounting need of an answer of /embeddings.
func MeterEmbeddings(body []byte) chat.Meter { return meterPlain(body, "data") }
