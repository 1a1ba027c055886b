package chat

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Translator translates one operation that is not a conversation (embeddings, images, rerank
// ...) between the client's and a provider's format. Implementations are stateless and safe for
// concurrent use. All errors are *fault.Fault.
type Translator interface {
	// Name returns the name that the catalog refers to, such as cohere.embeddings.
	Name() string
	// EncodeRequest appends the provider's body for a client's body that the route has
	// validated. It reports unsupported fields in loss and rejects what the provider would
	// reject. An empty contentType means application/json.
	EncodeRequest(dst, body []byte, a *TranslatorRequest) (out []byte, contentType string, err error)
	// DecodeResponse appends the client's response. An error body with a success status is an
	// error. An empty contentType means application/json.
	DecodeResponse(dst, answer []byte, h http.Header, a *TranslatorRequest) (out []byte, contentType string, m Meter, err error)
	// DecodeError decodes a provider's error response, like ErrorReader.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// TranslatorRequest contains the parts of the request that a Translator may use.
type TranslatorRequest struct {
	Body         []byte // the client's body, also while the response is decoded
	Model        string // as the provider names it
	Operation    string // embeddings, images_generate, rerank ...
	Traits       *Traits
	Loss         *Loss
	Field        func(name string) string // of the target's credential; never a secret
	ID           string                   // used if the provider set none
	Created      int64                    // Unix seconds, used if the provider set none
	ProviderName string
	Strict       bool
}

// EventParser splits a stream into events. *wire.SSEParser is one. Errors of emit are returned
// unchanged.
type EventParser interface {
	Feed(in []byte, emit func(event string, data []byte) error) error
	End(emit func(event string, data []byte) error) error
}

var _ EventParser = (*wire.SSEParser)(nil)

// FramedWriter is an AnswerWriter with streams that do not consist of server-sent events.
type FramedWriter interface {
	// StreamType returns the Content-Type of such a stream. Callers must not change it.
	StreamType() []string
}

// Framed is a StreamDecoder for a stream that does not consist of server-sent events.
type Framed interface {
	// Parser returns the parser that splits the stream into the decoder's events.
	Parser() EventParser
}
