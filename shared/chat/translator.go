package chat

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Translator carries one operation that is no conversation (embeddings, images,
// rerank ...) between the shape in which clients ask and a provider's own.
// Implementations are stateless and safe for concurrent use. All errors are
// *fault.Fault.
type Translator interface {
	// Name is what the catalogue's rows refer to, e.g. cohere.embeddings.
	Name() string
	// EncodeRequest appends the provider's body for a client's body that the
	// route has checked. What it cannot carry is in loss; it refuses what the
	// provider would refuse. An empty contentType is application/json.
	EncodeRequest(dst, body []byte, a *Asked) (out []byte, contentType string, err error)
	// DecodeResponse appends the client's response. An error body inside a success is an error.
	// An empty contentType is application/json.
	DecodeResponse(dst, answer []byte, h http.Header, a *Asked) (out []byte, contentType string, m Meter, err error)
	// DecodeError reads a provider's error answer, as ErrorReader does.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Asked is what a Translator may know of the request that it carries.
type Asked struct {
	Body         []byte // the client's body, also when the response is decoded
	Model        string // as the provider takes it
	Operation    string // embeddings, images_generate, rerank ...
	Traits       *Traits
	Loss         *Loss
	Field        func(name string) string // of the target's credential; never a secret
	ID           string                   // used where the provider gave none
	Created      int64                    // Unix seconds, likewise
	ProviderName string
	Strict       bool
}

// EventParser cuts a stream into its events. *wire.SSEParser is one. Errors of
// emit are returned as they are.
type EventParser interface {
	Feed(in []byte, emit func(event string, data []byte) error) error
	End(emit func(event string, data []byte) error) error
}

var _ EventParser = (*wire.SSEParser)(nil)

// FramedWriter is an AnswerWriter whose streams are not made of server-sent events.
type FramedWriter interface {
	// StreamType is the Content-Type of such a stream; nobody changes it.
	StreamType() []string
}

// Framed is a StreamDecoder whose stream is not made of server-sent events.
type Framed interface {
	// Parser makes what cuts the stream into the events that the decoder reads.
	Parser() EventParser
}
