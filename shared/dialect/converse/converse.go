package converse

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
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

// DecodeResponse implements chat.AnswerReader.
func (Converse) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body, t)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.AnswerReader.
func (Converse) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder { return newStreamDecoder(t) }

// DecodeError implements chat.ErrorReader.
func (Converse) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
