// Package body reads the body of an admitted request: JSON, a form, the query of a WebSocket, or
// the beginning of a streamed body, and its demands. Later stages read the result and do not
// change it.
//
// It fetches web addresses in requests, for hosts that accept only bytes
// (chat.Traits.NeedsMediaBytes), once per request regardless of the number of targets. A failed
// download is a 400 that names the part, before anything is sent to the provider.
//
// It computes the maximum usage of passed-through requests that are not priced by
// tokens: images, seconds of videos and of speech, characters and pages.
package body

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/prompt"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
	"gateway/shared/wire/azure"
)

// Body is the body of an admitted request, as far as it was read, and its demands. No later
// stage changes it.
type Body struct {
	path
	inMemory
	inBuf         *buffer.Buffer
	Size          int64   // bytes, as far as known
	UnknownModel  bool    // the body's model could not be read: it is not JSON, or hides it
	Model         string  // by the client's name, without @slug/
	ClientDemands Demands // of the unchanged body

	Metadata map[string]string
	merged   map[string]string                         // reused for metadata without a header
	params   func(name string) (json.RawMessage, bool) // the param method as a value, created once

	Prompt  *prompt.Rendered // the prompt that rendered the body; nil: the client wrote it
	prompts *prompt.Request  // the client's request for a saved prompt; nil: none
}

// path holds the parts of a request besides its body: its path, and those of a form.
type path struct {
	Req  *admission.Request
	ID   string     // the variable of the route's path
	Form *form.Form // of a multipart body
	Slug string     // of @slug/model in the body, or of @slug/id in the path
	// Transcribes: a socket that only transcribes audio.
	Transcribes   bool
	SecretRequest *admission.SecretRequest // the requested client secret; nil: none
	objectsRead   bool
	objects       ownership.Path // stored objects named by the path
}

// inMemory is a body in memory, with its parsed fields.
type inMemory struct {
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
		b.walk.Reset() // a partly scanned body has no fields
	}
	mergeMetadata(b)
	return err
}

// Connect sets the admitted request of a body.
func Connect(b *Body, q *admission.Request) { b.path = path{Req: q} }

// Inherit sets the metadata to that of the parent or the first attempt of the request.
func (b *Body) Inherit(metadata map[string]string) { b.Metadata = metadata }

// ReadFrom uses a unified body that no client sent.
func (b *Body) ReadFrom(body []byte) error {
	b.SetMessage(body)
	return walkBody(b)
}

// Excess returns the fields of the body that exceed the limits of the specification.
func (b *inMemory) Excess() []chat.Excess { return b.checked.Excess }

// Has reports whether a conversation's body has a field that its dialect defines.
func (b *inMemory) Has(name string) bool { return b.checked.Span(name).Present(b.In) }

// Found returns the result of the dialect's check of the body; nil if it was not checked.
func (b *inMemory) Found() *chat.Checked {
	if b.checked.Keys == nil {
		return nil
	}
	return &b.checked
}

// SetMessage replaces the body by a message of a session.
func (b *Body) SetMessage(message []byte) {
	b.inMemory = inMemory{message, b.walk, b.checked}
	b.Size = int64(len(message))
}

// AddReceived records how many bytes the client has sent, if the body is a connection.
func (b *Body) AddReceived(n int64) { b.Size = n }

// Memory is the reusable memory of a request's body.
type Memory struct {
	walk       wire.Walk
	checked    chat.Checked
	merged     map[string]string
	params     func(name string) (json.RawMessage, bool)
	afterwards []func()
}

// TakeMemory returns the memory of a finished body, cleared for the next one. spare: its bytes are
// no longer read.
func (b *Body) TakeMemory(spare bool) Memory {
	afterwards := b.Req.End()
	if spare {
		b.inBuf.Free()
	}
	b.walk.Reset()
	b.checked.Reset()
	clear(b.merged)
	return Memory{b.walk, b.checked, b.merged, b.params, afterwards}
}

// Reuse gives an empty body the memory of a finished one.
func (b *Body) Reuse(m Memory) {
	b.inMemory = inMemory{b.In, m.walk, m.checked}
	b.merged, b.params = m.merged, m.params
	b.Req.Reuse(m.afterwards)
}

// Clients of Azure name a deployment in the URL and omit the model in the body, or leave it
// empty. The deployment is then the model, at any provider.

// deployment returns the deployment in the URL; "" if there is none.
func deployment(b *Body) string {
	if b.Req.Req == nil || b.Req.Req.URL == nil || b.Req.Req.URL.RawQuery == "" || b.Req.Route.NoModel || b.Req.Route.InPath {
		return ""
	}
	return azure.Deployment(b.Req.Req.URL.RawQuery)
}

// nameDeployment writes the deployment as the model into a body without one.
func nameDeployment(b *Body) {
	name := deployment(b)
	if name == "" {
		return
	}
	var w wire.Walk
	if bodyKeys.Walk(b.In, &w) != nil {
		return // the check reports the fault
	}
	if v := w.Spans[keyModel]; !v.Present(b.In) || string(v.Of(b.In)) == `""` {
		b.In = wire.Splice(nil, b.In, SetModel(&w, wire.AppendJSONString(nil, name)))
	}
}

// formDeployment uses the deployment as the model of a form without one.
func formDeployment(b *Body) (taken bool, err error) {
	name := deployment(b)
	if name == "" {
		return false, nil
	}
	b.Form.Nameless, b.UnknownModel = true, !b.Form.Complete()
	return true, splitModel(b, name, true)
}

// StoredPath returns the stored objects named by the path.
func (b *path) StoredPath() *ownership.Path {
	if !b.objectsRead {
		b.objects, b.objectsRead = ownership.PathOf(b.RawPath()), true
	}
	return &b.objects
}

// Multipart reports whether the body is a form that is streamed through.
func (b *path) Multipart() bool {
	return strings.HasPrefix(strings.ToLower(admission.SingleHeader(b.Req.Req.Header, "Content-Type")), "multipart/form-data")
}

// Nameless reports whether the operation can be sent without a model.
func (b *path) Nameless() bool {
	return b.Req.Route.NoModel || b.Transcribes || b.Req.Route.BodyMode == routes.Resource || b.Form != nil && !b.Form.Complete()
}

// of returns the parts of the same request with other headers.
func (b path) of(q *admission.Request) path {
	b.Req = q
	return b
}

// named returns the parts with a slug, if they have none.
func (b path) named(slug string) path {
	if b.Slug == "" {
		b.Slug = slug
	}
	return b
}

// RawPath returns the path below the gateway's base, unchanged from the wire. /proxy/{anything}
// reaches paths that the gateway's own routes shadow.
func (b *path) RawPath() string {
	path := b.Req.Req.URL.EscapedPath()
	if strings.HasPrefix(b.Req.Req.RequestURI, "/") { // otherwise it is not what the route was found by
		path, _, _ = strings.Cut(b.Req.Req.RequestURI, "?")
	}
	path = strings.TrimPrefix(path, "/v1")
	if b.Slug != "" && b.Req.PathID != "" {
		if i := strings.LastIndex(path, b.Req.PathID); i >= 0 { // the saved provider was named in it
			path = path[:i] + url.PathEscape(b.ID) + path[i+len(b.Req.PathID):]
		}
	}
	if rest, ok := strings.CutPrefix(path, "/proxy/"); ok {
		return "/" + rest
	}
	return path
}

// Counterpart returns the gateway's own route for the operation of a passed-through request; nil if
// there is none.
func (b *path) Counterpart() *routes.Route {
	if b.Req.Req.Method != http.MethodPost {
		return nil
	}
	return b.Req.Route.Counterpart(b.RawPath())
}

// Endpoints returns the types of requests that a passed-through request may reach.
func (b *path) Endpoints() []string { return b.Req.Route.Endpoints(b.Req.Req.Method, b.RawPath()) }

// WithHeaders returns the body in a request with other headers, on a route that needs a provider.
func (b *Body) WithHeaders(ask admission.Headers, h http.Header) *Body {
	other := *b
	other.path = b.path.of(admission.WithHeaders(b.Req, ask, h))
	other.params = nil // of the body of this one
	return &other
}

// readPrompt reads the request on a route of saved prompts. Fill renders the body for the
// provider later: the plan may name another prompt than the path.
func readPrompt(b *Body) (err error) {
	if len(b.In) == 0 {
		b.In = []byte("{}")
	}
	if err = bodyKeys.Walk(b.In, &b.walk); err != nil {
		return err
	}
	b.prompts, err = prompt.ParseRequest(b.In)
	return err
}

// RendersPrompt reports whether a saved prompt renders the body.
func (b *Body) RendersPrompt() bool { return b.prompts != nil }

// RenderPrompt returns the prompt of a name, with or without a version, rendered with the request's
// variables.
func (b *Body) RenderPrompt(name string) (*prompt.Rendered, error) {
	return prompt.View{View: b.Req.View, Scope: b.Req.Principal.Scope, User: b.userBy}.Render(b.Req.Ctx, name, b.prompts)
}

// userBy returns the user by which experiments are divided: the value of a key of the request's
// metadata, or for "" the user of the request. A request that names none counts as a separate
// user.
func (b *Body) userBy(key string) string {
	if key == "" {
		return cmp.Or(b.Metadata["_user"], b.prompts.Text("user"), b.Req.ULID)
	}
	return cmp.Or(b.Metadata[key], b.Req.ULID)
}

// SetPrompt replaces the client's body by a rendered prompt. It completes the reading of the body:
// from here on the request is one of the route for the template's type, with the demands of the
// rendered body.
func (b *Body) SetPrompt(by *prompt.Rendered) error {
	b.Prompt = by
	as := b.Req.Route.Prompt()
	if as.Render {
		return nil
	}
	if by.Compiled.Type == prompt.Completion {
		b.Req.ServeAs(as.Completion)
	} else {
		b.Req.ServeAs(as.Chat)
	}
	if n := int64(len(by.Body)); n > egress.Uncounted {
		if err := b.Req.Lease.Reserve(b.Req.Ctx, n); err != nil {
			return err
		}
	}
	size := b.Size
	if err := b.ReadFrom(by.Body); err != nil {
		return err
	}
	b.Size = size
	b.path = b.path.named(slugOf(by))
	return nil
}

// ModelOf returns the model of a rendered prompt, and the saved provider that it names.
func ModelOf(by *prompt.Rendered) (slug, model string) {
	model = TextIn(by.Body, "model")
	if rest, ok := strings.CutPrefix(model, "@"); ok {
		if slug, name, ok := strings.Cut(rest, "/"); ok {
			return slug, name
		}
	}
	return slugOf(by), model
}

// slugOf returns the saved provider that a prompt was saved with.
func slugOf(by *prompt.Rendered) string { return strings.TrimPrefix(by.Prompt.VirtualKey, "@") }
