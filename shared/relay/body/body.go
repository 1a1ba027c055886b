package body

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/prompt"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/ephemeral"
	"gateway/shared/relay/form"
	"gateway/shared/relay/kept"
	"gateway/shared/wire"
)

// Body is what was read of an admitted request behind its head: the body or
// the part of it that is held, and what it asks for. No later stage changes it.
type Body struct {
	path
	held
	inBuf  *buffer.Buffer
	Size   int64   // bytes, as far as they are known
	Unread bool    // the body's model could not be read: it is not JSON, or hides it
	Model  string  // as the client named it, without @slug/
	Own    Demands // of the body as it came

	Metadata map[string]string
	merged   map[string]string                         // memory of metadata that no header brought
	params   func(name string) (json.RawMessage, bool) // param as a value, made once

	Filled  *prompt.Filled  // the prompt that made the body; nil: the client wrote it
	prompts *prompt.Request // what the client asked of prompts; nil: nothing
}

// path is what a request says beside its body: its path, and that of a form.
type path struct {
	Req  *admission.Request
	ID   string     // the variable of the route's path
	Form *form.Form // of a multipart body
	Slug string     // of @slug/model in the body, or of @slug/id in the path
	// Transcribes: a socket on which nothing but what is heard is written down.
	Transcribes bool
	Minting     *ephemeral.Wanted // the client secret that is asked for; nil: none is
	keptRead    bool
	kept        kept.Path // what the path says of things that providers keep
}

// held is a body in memory, and what was found in it.
type held struct {
	In      []byte // the body, when it is in memory
	walk    wire.Walk
	checked chat.Checked
}

// Keys of a JSON body that decide anything here. The dialect checks the rest.
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

// Read takes the body into memory and walks it, where the route has a JSON body.
// Pass-through bodies that are large or not JSON stay in the request. The metadata
// is there also when it fails: the record of the refusal is found by it.
func (b *Body) Read() error {
	err := take(b)
	if err != nil {
		b.walk.Spans = b.walk.Spans[:0] // the beginning of a body says nothing
	}
	mergeMetadata(b)
	return err
}

// ReadFrom takes a unified body that no client sent.
func (b *Body) ReadFrom(body []byte) error {
	b.In, b.Size = body, int64(len(body))
	return walkBody(b)
}

// Excess is what of the body passes the bounds of the specification.
func (b *held) Excess() []chat.Excess { return b.checked.Excess }

// Has tells whether a conversation's body has a member that its dialect knows.
func (b *held) Has(name string) bool { return b.checked.Span(name).Present(b.In) }

// Found is what the dialect's check found of the body; nil: there was none.
func (b *held) Found() *chat.Checked {
	if b.checked.Keys == nil {
		return nil
	}
	return &b.checked
}

// Hold puts a message of a session in the place of the body.
func (b *Body) Hold(message []byte) { b.In, b.Size = message, int64(len(message)) }

// Carried records how many bytes the client has sent, for requests whose body is a connection.
func (b *Body) Carried(n int64) { b.Size = n }
