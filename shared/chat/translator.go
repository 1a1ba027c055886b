package chat

import (
	"net/http"
	"strings"

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

// FramedWriter is a ResponseWriter with streams that do not consist of server-sent events.
type FramedWriter interface {
	// StreamType returns the Content-Type of such a stream. Callers must not change it.
	StreamType() []string
}

// Framed is a StreamDecoder for a stream that does not consist of server-sent events.
type Framed interface {
	// Parser returns the parser that splits the stream into the decoder's events.
	Parser() EventParser
}

// An image of a response is a Part of the kind Image. In a stream it is one DeltaImage with the
// image's address as a JSON string: a data: URL, or the host's address.

// ReadImage returns the media of an image address. The content of a base64 data: URL becomes
// Data; any other address stays an address.
func ReadImage(address string) *Media {
	head, data, ok := strings.Cut(address, ",")
	mime, plain := strings.CutPrefix(head, "data:")
	mime, encoded := strings.CutSuffix(mime, ";base64")
	if !ok || !plain || !encoded {
		return &Media{URL: address}
	}
	if data, ok = CleanBase64(data); !ok {
		return &Media{URL: address}
	}
	if mime, _, _ = strings.Cut(mime, ";"); mime == "" {
		mime = imageType(data)
	}
	return &Media{MIME: mime, Data: data}
}

// Address returns the address of an image; an image with Data gets a data: URL.
func (m *Media) Address() string {
	if m.Data == "" {
		return m.URL
	}
	mime := m.MIME
	if mime == "" {
		mime = imageType(m.Data)
	}
	return "data:" + mime + ";base64," + m.Data
}

// ImageOfAssistant is the reason for the loss of an image in an earlier turn of the model, if
// the provider accepts only images of users.
const ImageOfAssistant = "the provider accepts no images in turns of the assistant"

// imageType returns the media type of a base64 image by its first bytes, image/png if they are
// unknown.
func imageType(data string) string {
	for _, t := range [...]struct{ begin, mime string }{{"/9j/", "image/jpeg"}, {"UklGR", "image/webp"}, {"R0lGOD", "image/gif"}} {
		if strings.HasPrefix(data, t.begin) {
			return t.mime
		}
	}
	return "image/png"
}

// CleanBase64 validates base64 in either alphabet, with or without padding, and returns its
// standard form. It copies only if necessary.
func CleanBase64(s string) (string, bool) {
	plain := true
	n := len(s)
	for n > 0 && s[n-1] == '=' {
		n--
	}
	for i := range n {
		if class := base64Class[s[i]]; class != 1 {
			if class == 0 {
				return "", false
			}
			plain = false
		}
	}
	if plain && len(s)%4 == 0 && len(s)-n <= 2 {
		return s, n > 0
	}
	b := make([]byte, 0, len(s)+3)
	for i := range n {
		switch c := s[i]; c {
		case '-':
			b = append(b, '+')
		case '_':
			b = append(b, '/')
		case ' ', '\n', '\r', '\t':
		default:
			b = append(b, c)
		}
	}
	if len(b)%4 == 1 || len(b) == 0 {
		return "", false
	}
	for len(b)%4 != 0 {
		b = append(b, '=')
	}
	return string(b), true
}

// base64Class is 1 for the standard alphabet, 2 for characters that are corrected, 0 for
// invalid ones.
var base64Class = func() (t [256]uint8) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = 1
	}
	for _, c := range "-_ \n\r\t" {
		t[c] = 2
	}
	return t
}()
