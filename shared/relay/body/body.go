package body

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/prompt"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
	"gateway/shared/wire"
)

// Body is the body of an admitted request, as far as it was read, and its demands. No later
// stage changes it.
type Body struct {
	path
	held
	inBuf  *buffer.Buffer
	Size   int64   // bytes, as far as known
	Unread bool    // the body's model could not be read: it is not JSON, or hides it
	Model  string  // by the client's name, without @slug/
	Own    Demands // of the unchanged body

	Metadata map[string]string
	merged   map[string]string                         // reused for metadata without a header
	params   func(name string) (json.RawMessage, bool) // the param method as a value, created once

	Filled  *prompt.Filled  // the prompt that rendered the body; nil: the client wrote it
	prompts *prompt.Request // the client's request for a saved prompt; nil: none
}

// path holds the parts of a request besides its body: its path, and those of a form.
type path struct {
	Req  *admission.Request
	ID   string     // the variable of the route's path
	Form *form.Form // of a multipart body
	Slug string     // of @slug/model in the body, or of @slug/id in the path
	// Transcribes: a socket that only transcribes audio.
	Transcribes bool
	Minting     *admission.SecretRequest // the requested client secret; nil: none
	keptRead    bool
	kept        ownership.Path // stored objects named by the path
}

// held is a body in memory, with its parsed fields.
type held struct {
	In      []byte // the body, when it is in memory
	walk    wire.Walk
	checked chat.Checked
}

// Keys of a JSON body that the gateway reads. The dialect checks the rest.
var bodyKeys = wire.NewKeySet("model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "user", "input", "service_tier", "speed")

const (
	keyModel = iota
	keyStream
	keyStreamOptions
	keyMaxTokens
	keyMaxCompletionTokens
	keyMaxOutputTokens
	keyN
	keyUser
	keyInput
	keyServiceTier
	keySpeed
)

// Read reads the body into memory and scans it, if the route has a JSON body. Pass-through
// bodies that are large or not JSON stay in the request. The metadata is set even if it fails,
// because the record of the rejection needs it.
func (b *Body) Read() error {
	err := take(b)
	if err != nil {
		b.walk.Spans = b.walk.Spans[:0] // a partly scanned body has no fields
	}
	mergeMetadata(b)
	return err
}

// ReadFrom uses a unified body that no client sent.
func (b *Body) ReadFrom(body []byte) error {
	b.In, b.Size = body, int64(len(body))
	return walkBody(b)
}

// Excess returns the fields of the body that exceed the limits of the specification.
func (b *held) Excess() []chat.Excess { return b.checked.Excess }

// Has reports whether a conversation's body has a field that its dialect defines.
func (b *held) Has(name string) bool { return b.checked.Span(name).Present(b.In) }

// Found returns the result of the dialect's check of the body; nil if it was not checked.
func (b *held) Found() *chat.Checked {
	if b.checked.Keys == nil {
		return nil
	}
	return &b.checked
}

// Hold replaces the body by a message of a session.
func (b *Body) Hold(message []byte) { b.In, b.Size = message, int64(len(message)) }

// Carried records how many bytes the client has sent, if the body is a connection.
func (b *Body) Carried(n int64) { b.Size = n }
