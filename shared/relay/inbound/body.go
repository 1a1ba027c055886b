package inbound

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/ephemeral"
	"gateway/shared/relay/form"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Body is what was read of an admitted request behind its head: the body or
// the part of it that is held, and what it asks for. No later stage changes it.
type Body struct {
	path
	held
	inBuf  *pooled.Buffer
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
	admitted.Request
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
	err := b.take()
	if err != nil {
		b.walk.Spans = b.walk.Spans[:0] // the beginning of a body says nothing
	}
	b.mergeMetadata()
	return err
}

func (b *Body) take() error {
	if err := b.readID(); err != nil {
		return err
	}
	switch {
	case b.Route.Protocol != nil:
		if b.bodiless() {
			return nil
		}
		return b.readAll()
	case b.Route.Shape == routes.Resource:
		return nil
	case b.Route.Shape == routes.Socket:
		return b.takeSocket()
	case b.Route.Shape == routes.Multipart:
		b.Size = max(b.Req.ContentLength, 0)
		return b.readForm()
	}
	kind, err := b.contentType()
	if err != nil {
		return err
	}
	if enc := asked.One(b.Req.Header, "Content-Encoding"); enc != "" && enc != "identity" && b.Route.Shape == routes.Unified {
		return fault.Invalid("content-encoding", "must be identity or left out: this route takes bodies as they are")
	}
	b.Size = max(b.Req.ContentLength, 0)
	if b.bodiless() {
		return nil
	}
	if b.Route.Shape == routes.Raw && kind != "application/json" {
		b.Unread = b.Req.ContentLength != 0
		return nil // streamed through
	}
	if err := b.readAll(); err != nil {
		return err
	}
	switch {
	case b.Route.Shape == routes.Raw:
		return b.walkRaw()
	case b.Route.Prompt != nil:
		return b.readPrompt()
	case b.Route.Mints != 0:
		return b.readWanted()
	}
	return b.walkBody()
}

// readWanted reads which client secret is asked for.
func (b *Body) readWanted() (err error) {
	if b.Minting, err = ephemeral.Read(b.Route.Mints, b.In); err != nil {
		return err
	}
	b.Transcribes = b.Minting.Transcribes
	return b.splitModel(b.Minting.Model, true)
}

// readAll takes the whole body into memory.
func (b *Body) readAll() error {
	limit := b.BodyLimit()
	b.inBuf = pooled.For(int(min(b.Req.ContentLength, limit)) + 1)
	err := b.inBuf.ReadAll(b.Ctx, b.Lease, b.Req.Body, b.Req.ContentLength, limit)
	switch {
	case err == nil:
	case errors.Is(err, pooled.ErrTooLarge):
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	case fault.Is(err, fault.ServiceUnavailable):
		return err
	default:
		return Unreadable(err)
	}
	b.In = b.inBuf.B
	b.Size = int64(len(b.In))
	return nil
}

// bodiless tells whether there is no body to read: operations that read or delete
// have none, but a provider's own path may.
func (b *Body) bodiless() bool {
	switch b.Req.Method {
	case http.MethodGet, http.MethodDelete, http.MethodHead:
		return b.Route.Shape != routes.Raw || b.Req.ContentLength == 0
	}
	return false
}

// BodyLimit is the most bytes that a body may have.
func (b *Body) BodyLimit() int64 {
	if b.Route.MaxBody > 0 {
		return b.Route.MaxBody
	}
	return routes.DefaultMaxBody
}

// Unreadable says why a client's body did not arrive whole.
func Unreadable(err error) *fault.Fault {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", tooBig.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.RequestTimeout, "body", "The body stopped coming before its end")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("body", "ended before the announced content-length")
	}
	return fault.Invalid("body", "could not be read to its end").WithCause(err)
}

// ReadFrom takes a unified body that no client sent.
func (b *Body) ReadFrom(body []byte) error {
	b.In, b.Size = body, int64(len(body))
	return b.walkBody()
}

// walkBody finds what the walk needs in a unified body and checks its bounds.
func (b *Body) walkBody() error {
	err := wire.CheckUTF8(b.In)
	if err != nil {
		return err
	}
	b.nameDeployment()
	if b.Route.Client != nil {
		// The dialect's check walks the body: what it found is found.
		b.checked.ByTarget = true
		if err = b.Route.Client.Check(b.In, &b.checked); err == nil {
			b.takeWalk()
		}
	} else if err = bodyKeys.Walk(b.In, &b.walk); err == nil && b.Route.Check != nil {
		err = b.Route.Check(b.In)
	}
	if err != nil {
		return err
	}
	if err := b.readModel(true); err != nil {
		return err
	}
	if b.Model == "" && b.Route.DefaultModel != "" {
		b.Model = b.Route.DefaultModel
	}
	if v := b.walk.Spans[keyStream]; v.Present(b.In) {
		if _, err = wire.ScanBool(v.Of(b.In), "stream"); err != nil {
			return err
		}
	}
	b.Own = b.readDemands(b.In, &b.walk, b.Route.Demand)
	return nil
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

// takeWalk takes over what the dialect's check found of the members that are
// read here. Those that the dialect does not know do not count.
func (b *held) takeWalk() {
	from, w := &b.checked.Walk, &b.walk
	w.ObjectStart, w.ObjectEnd, w.Empty = from.ObjectStart, from.ObjectEnd, from.Empty
	w.Spans, w.Keys = append(w.Spans[:0], noSpans[:]...), append(w.Keys[:0], noSpans[:]...)
	for i, at := range b.checked.Keys.Places(bodyKeys) {
		if at >= 0 {
			w.Spans[i], w.Keys[i] = from.Spans[at], from.Keys[at]
		}
	}
}

var noSpans [keySpeed + 1]wire.Span

// walkRaw reads from a pass-through body only what routing and accounting need. What is no
// well-formed object is left to the provider to refuse; an object in which another reader
// could find other values is refused here.
func (b *Body) walkRaw() error {
	if wire.KindOf(bytes.TrimLeft(b.In, " \t\r\n")) == wire.KindObject {
		if err := wire.CheckUTF8(b.In); err != nil {
			return err
		}
	}
	if len(b.In) == 0 || bodyKeys.Walk(b.In, &b.walk) != nil {
		b.walk.Spans = b.walk.Spans[:0]
		b.Unread = len(b.In) > 0
		return nil
	}
	if b.readModel(false) != nil {
		b.Model = ""
	}
	like, demand := b.Like(), b.Route.Demand
	if like != nil {
		demand = like.Demand
	}
	b.Own = b.readDemands(b.In, &b.walk, demand)
	if like != nil && like.NoOutput {
		b.Own.OutBound = 0
	}
	return nil
}

// readModel splits "@slug/model".
func (b *Body) readModel(required bool) error {
	if b.Route.InPath {
		b.Model = b.ID // without its @slug/
		return nil
	}
	v := b.walk.Spans[keyModel]
	if !v.Present(b.In) {
		return nil // the target may set it; dispatch refuses a body without one
	}
	name, err := wire.ScanString(v.Of(b.In), "model")
	if err != nil {
		return err
	}
	if required && name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return b.splitModel(name, required)
}

// splitModel takes a model apart that may name its saved provider.
func (b *Body) splitModel(name string, required bool) error {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			if required {
				return fault.Invalid("model", "a saved provider is named as @slug/model")
			}
			return nil
		}
		b.Slug, name = slug, model
	}
	if len(name) > MaxModel {
		return fault.Invalid("model", "must have at most %d bytes", MaxModel)
	}
	b.Model = name
	return nil
}

// contentType gives the media type of the body. Unified routes take JSON; an
// absent type counts as JSON. Pass-through takes any.
func (b *Body) contentType() (string, error) {
	v := asked.One(b.Req.Header, "Content-Type")
	if v == "" || v == "application/json" {
		return "application/json", nil
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		if b.Route.Shape == routes.Raw {
			return "", nil
		}
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: it cannot be parsed; send application/json")
	}
	if kind != "application/json" && b.Route.Shape == routes.Unified && b.Req.Method == http.MethodPost {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route takes application/json")
	}
	return kind, nil
}

// mergeMetadata joins metadata: workspace over key over request; the body's user
// fills _user when nothing else does.
func (b *Body) mergeMetadata() {
	m := b.Ask.Metadata
	keyed, spaced := b.Who.Defaults.Metadata, b.WS.Defaults.Metadata
	var user string
	if len(b.walk.Spans) > keyUser && b.walk.Spans[keyUser].Present(b.In) {
		user, _ = wire.ScanString(b.walk.Spans[keyUser].Of(b.In), "user")
	}
	if m == nil && len(keyed) == 0 && len(spaced) == 0 && user == "" && b.Who.UserID == "" && b.Who.EndUser == "" {
		return
	}
	if m == nil {
		if b.merged == nil {
			b.merged = make(map[string]string)
		}
		m = b.merged
	}
	for k, v := range keyed {
		m[k] = v
	}
	for k, v := range spaced {
		m[k] = v
	}
	if _, have := m["_user"]; !have {
		if user == "" {
			user = cmp.Or(b.Who.EndUser, b.Who.UserID)
		}
		if user != "" {
			m["_user"] = clipRunes(user, 128)
		}
	}
	b.Metadata = m
}
