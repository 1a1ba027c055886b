package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/form"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// clientBody is what was read of an admitted request behind its head: the body or
// the part of it that is held, and what it asks for. No later stage changes it.
type clientBody struct {
	admitted.Request
	id      string     // the variable of the route's path
	form    *form.Form // of a multipart body
	in      []byte     // the body, when it is in memory
	inBuf   *pooled.Buffer
	size    int64 // bytes, as far as they are known
	walk    wire.Walk
	checked chat.Checked
	unread  bool    // the body's model could not be read: it is not JSON, or hides it
	model   string  // as the client named it, without @slug/
	slug    string  // of @slug/model in the body, or of @slug/id in the path
	own     demands // of the body as it came

	metadata map[string]string
	merged   map[string]string                         // memory of metadata that no header brought
	params   func(name string) (json.RawMessage, bool) // param as a value, made once
	keptRead bool
	kept     kept.Path // what the path says of things that providers keep
}

// demands are what a body asks for, as far as routing and money go by it. What a
// target's config makes of a body may ask for other things than the client's own.
type demands struct {
	stream, wantUsage bool          // wantUsage: the stream shall tell its usage
	outBound          int64         // most output tokens, times n
	outAssumed        bool          // the request states no bound
	wanted            routes.Demand // what the price depends on besides tokens
}

// Keys of a JSON body that decide anything here. The dialect checks the rest.
var bodyKeys = wire.NewKeySet("model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "user", "input")

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
)

// readBody takes the body into memory and walks it, where the route has a JSON
// body. Pass-through bodies that are large or not JSON stay in the request.
func (b *clientBody) readBody() error {
	if err := b.readID(); err != nil {
		return err
	}
	switch b.Route.Shape {
	case routes.Resource:
		return nil
	case routes.Multipart:
		b.size = max(b.Req.ContentLength, 0)
		return b.readForm()
	}
	kind, err := b.contentType()
	if err != nil {
		return err
	}
	if enc := asked.One(b.Req.Header, "Content-Encoding"); enc != "" && enc != "identity" && b.Route.Shape == routes.Unified {
		return fault.Invalid("content-encoding", "must be identity or left out: this route takes bodies as they are")
	}
	b.size = max(b.Req.ContentLength, 0)
	if b.bodiless() {
		return nil
	}
	limit := b.bodyLimit()
	if b.Route.Shape == routes.Raw && kind != "application/json" {
		b.unread = b.Req.ContentLength != 0
		return nil // streamed through
	}
	b.inBuf = pooled.For(int(min(b.Req.ContentLength, limit)) + 1)
	err = b.inBuf.ReadAll(b.Ctx, b.Lease, b.Req.Body, b.Req.ContentLength, limit)
	switch {
	case err == nil:
	case errors.Is(err, pooled.ErrTooLarge):
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	case fault.Is(err, fault.ServiceUnavailable):
		return err
	default:
		return unreadable(err)
	}
	b.in = b.inBuf.B
	b.size = int64(len(b.in))
	if b.Route.Shape == routes.Raw {
		return b.walkRaw()
	}
	return b.walkBody()
}

// bodiless tells whether there is no body to read: operations that read or delete
// have none, but a provider's own path may.
func (b *clientBody) bodiless() bool {
	switch b.Req.Method {
	case http.MethodGet, http.MethodDelete, http.MethodHead:
		return b.Route.Shape != routes.Raw || b.Req.ContentLength == 0
	}
	return false
}

// bodyLimit is the most bytes that a body may have.
func (b *clientBody) bodyLimit() int64 {
	if b.Route.MaxBody > 0 {
		return b.Route.MaxBody
	}
	return routes.DefaultMaxBody
}

// unreadable says why a client's body did not arrive whole.
func unreadable(err error) *fault.Fault {
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

// walkBody finds what the walk needs in a unified body and checks its bounds.
func (b *clientBody) walkBody() error {
	err := wire.CheckUTF8(b.in)
	if err != nil {
		return err
	}
	if b.Route.Client != nil {
		// The dialect's check walks the body: what it found is found.
		b.checked.ByTarget = true
		if err = b.Route.Client.Check(b.in, &b.checked); err == nil {
			b.takeWalk()
		}
	} else if err = bodyKeys.Walk(b.in, &b.walk); err == nil && b.Route.Check != nil {
		err = b.Route.Check(b.in)
	}
	if err != nil {
		return err
	}
	if err := b.readModel(true); err != nil {
		return err
	}
	if b.model == "" && b.Route.DefaultModel != "" {
		b.model = b.Route.DefaultModel
	}
	if v := b.walk.Spans[keyStream]; v.Present(b.in) {
		if _, err = wire.ScanBool(v.Of(b.in), "stream"); err != nil {
			return err
		}
	}
	b.own = b.demandsOf(b.in, &b.walk, b.Route.Demand)
	return nil
}

// demandsOf reads what a JSON body asks for.
func (b *clientBody) demandsOf(src []byte, w *wire.Walk, demand func(routes.Get, int64) routes.Demand) (d demands) {
	if v := w.Spans[keyStream]; v.Present(src) {
		d.stream, _ = wire.ScanBool(v.Of(src), "stream")
	}
	d.wantUsage = usageAsked(src, w)
	d.outBound, d.outAssumed = b.outputBound(src, w)
	if demand != nil {
		d.wanted = demand(func(name string) string { return textIn(src, name) }, int64(len(src)))
	}
	return d
}

// takeWalk takes over what the dialect's check found of the members that are
// read here. Those that the dialect does not know do not count.
func (b *clientBody) takeWalk() {
	from, w := &b.checked.Walk, &b.walk
	w.ObjectStart, w.ObjectEnd, w.Empty = from.ObjectStart, from.ObjectEnd, from.Empty
	w.Spans, w.Keys = append(w.Spans[:0], noSpans[:]...), append(w.Keys[:0], noSpans[:]...)
	for i, at := range b.checked.Keys.Places(bodyKeys) {
		if at >= 0 {
			w.Spans[i], w.Keys[i] = from.Spans[at], from.Keys[at]
		}
	}
}

var noSpans [keyInput + 1]wire.Span

// walkRaw looks at a pass-through body only for routing and accounting: what is
// not a well-formed object is the provider's to refuse. An object is read here,
// and is refused where another reader could find other text in it.
func (b *clientBody) walkRaw() error {
	if wire.KindOf(bytes.TrimLeft(b.in, " \t\r\n")) == wire.KindObject {
		if err := wire.CheckUTF8(b.in); err != nil {
			return err
		}
	}
	if len(b.in) == 0 || bodyKeys.Walk(b.in, &b.walk) != nil {
		b.walk.Spans = b.walk.Spans[:0]
		b.unread = len(b.in) > 0
		return nil
	}
	if b.readModel(false) != nil {
		b.model = ""
	}
	like, demand := b.like(), b.Route.Demand
	if like != nil {
		demand = like.Demand
	}
	b.own = b.demandsOf(b.in, &b.walk, demand)
	if like != nil && like.NoOutput {
		b.own.outBound = 0
	}
	return nil
}

// readModel splits "@slug/model".
func (b *clientBody) readModel(required bool) error {
	v := b.walk.Spans[keyModel]
	if !v.Present(b.in) {
		return nil // the target may set it; dispatch refuses a body without one
	}
	name, err := wire.ScanString(v.Of(b.in), "model")
	if err != nil {
		return err
	}
	if required && name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return b.splitModel(name, required)
}

// splitModel takes a model apart that may name its saved provider.
func (b *clientBody) splitModel(name string, required bool) error {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			if required {
				return fault.Invalid("model", "a saved provider is named as @slug/model")
			}
			return nil
		}
		b.slug, name = slug, model
	}
	if len(name) > maxModel {
		return fault.Invalid("model", "must have at most %d bytes", maxModel)
	}
	b.model = name
	return nil
}

// usageAsked reads stream_options.include_usage.
func usageAsked(src []byte, w *wire.Walk) bool {
	v := w.Spans[keyStreamOptions]
	if !v.Present(src) {
		return false
	}
	var inner wire.Walk
	raw := v.Of(src)
	if includeUsage.Walk(raw, &inner) != nil || inner.Spans[0].Absent() {
		return false
	}
	asked, _ := wire.ScanBool(inner.Spans[0].Of(raw), "stream_options.include_usage")
	return asked
}

var includeUsage = wire.NewKeySet("include_usage")

// outputBound is the most output tokens that a body may cost: what it says, else
// the reserve, times n.
func (b *clientBody) outputBound(src []byte, w *wire.Walk) (bound int64, assumed bool) {
	if b.Route.NoOutput {
		return 0, false
	}
	bound, assumed = routes.DefaultReserveOutput, true
	for _, k := range [...]int{keyMaxCompletionTokens, keyMaxTokens, keyMaxOutputTokens} {
		if v := w.Spans[k]; v.Present(src) {
			if n, err := wire.ScanInt(v.Of(src), ""); err == nil && n >= 0 {
				bound, assumed = n, false
				break
			}
		}
	}
	if v := w.Spans[keyN]; v.Present(src) {
		if n, err := wire.ScanInt(v.Of(src), "n"); err == nil && n > 1 && n <= 128 {
			bound *= n
		}
	}
	return bound, assumed
}

// contentType gives the media type of the body. Unified routes take JSON; an
// absent type counts as JSON. Pass-through takes any.
func (b *clientBody) contentType() (string, error) {
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
func (b *clientBody) mergeMetadata() {
	m := b.Ask.Metadata
	keyed, spaced := b.Who.Defaults.Metadata, b.WS.Defaults.Metadata
	var user string
	if len(b.walk.Spans) > keyUser && b.walk.Spans[keyUser].Present(b.in) {
		user, _ = wire.ScanString(b.walk.Spans[keyUser].Of(b.in), "user")
	}
	if m == nil && len(keyed) == 0 && len(spaced) == 0 && user == "" && b.Who.UserID == "" {
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
			user = b.Who.UserID
		}
		if user != "" {
			m["_user"] = clipRunes(user, 128)
		}
	}
	b.metadata = m
}
