package relay

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/wire"
)

// admit takes the request up to the point where a target may be called: known
// caller, well-formed headers and body, a resolved route, rates counted.
func (c *call) admit() error {
	if err := c.identify(); err != nil {
		// The trace id is sent back even to callers that are refused.
		c.ask.TraceID, _ = identifier(c.req.Header, headerTrace, maxTraceID)
		c.traceID()
		return err
	}
	headerErr := c.ask.readHeaders(c.req.Header)
	c.traceID()
	if headerErr != nil {
		return headerErr
	}
	if err := c.readBody(); err != nil {
		c.walk.Spans = c.walk.Spans[:0] // half a body says nothing
		c.mergeMetadata()               // the record of the refusal is found by it
		return err
	}
	c.mergeMetadata()
	if err := c.resolve(); err != nil {
		return err
	}
	return c.countRequest()
}

func (c *call) traceID() {
	if c.ask.TraceID == "" {
		c.ask.TraceID = newTraceID()
	}
	if c.ask.Traced && c.ask.SpanName == "" {
		c.ask.SpanName = c.req.Method + " " + c.req.URL.Path
		c.ask.SpanName = strings.ToValidUTF8(c.ask.SpanName[:min(len(c.ask.SpanName), maxSpanName)], "")
	}
	c.rec.TraceID, c.rec.SpanID = c.ask.TraceID, c.ask.SpanID
	c.rec.ParentSpanID, c.rec.SpanName = c.ask.ParentSpanID, c.ask.SpanName
}

// identify finds the caller, its workspace and its organisation's settings.
func (c *call) identify() error {
	if err := c.authenticate(); err != nil {
		return err
	}
	who := c.who
	c.lease.Of(c.Memory, who.Scope.Org)
	c.rec.Org, c.rec.Workspace, c.rec.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
	c.rec.KeyID, c.rec.KeyType, c.rec.UserID = who.KeyID, string(who.Type), who.UserID
	if who.Type == identity.OrganisationService {
		return fault.New(fault.NotAllowed, "x-gateway-api-key", "An organisation key manages the gateway and cannot call models; use a workspace key")
	}
	if !who.Has(c.rt.Scope) && !slices.ContainsFunc(c.rt.OrScopes, who.Has) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", c.rt.Scope)
	}
	var err error
	if c.view, err = c.Loader.Fresh(c.ctx, who.Scope.Org); err != nil {
		return err
	}
	orgScope := store.Scope{Org: who.Scope.Org}
	ws, ok, err := resource.Load(c.ctx, c.view, orgScope, tenant.KindWorkspace, who.Scope.Workspace, tenant.DecodeWorkspace)
	if err != nil {
		return err
	}
	if !ok || ws.Status != tenant.StatusActive {
		return fault.New(fault.NotAllowed, "x-gateway-api-key", "The workspace of this API key is not active")
	}
	org, ok, err := resource.Load(c.ctx, c.view, orgScope, tenant.KindOrganisation, who.Scope.Org, tenant.DecodeOrganisation)
	if err != nil {
		return err
	}
	if !ok {
		org = &tenant.Organisation{Settings: tenant.Settings{BlockInlineConfig: true}}
	}
	c.ws, c.org = ws, org
	return nil
}

// authenticate finds the caller by the key of the request, or by the one that the
// request is made for.
func (c *call) authenticate() (err error) {
	if c.behalf != nil {
		if c.who = c.behalf.Closing; c.who != nil {
			return nil
		}
		c.who, err = c.Auth.ByHash(c.ctx, c.behalf.Key)
		return err
	}
	if c.token, c.keyInAuth, err = identity.Token(c.req.Header); err == nil {
		c.who, err = c.Auth.Authenticate(c.ctx, c.token)
	}
	return err
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
func (c *call) readBody() error {
	if err := c.readID(); err != nil {
		return err
	}
	switch c.rt.Shape {
	case Resource:
		return nil
	case Multipart:
		c.rec.RequestBytes = max(c.req.ContentLength, 0)
		return c.readForm()
	}
	kind, err := c.contentType()
	if err != nil {
		return err
	}
	if enc := one(c.req.Header, "Content-Encoding"); enc != "" && enc != "identity" && c.rt.Shape == Unified {
		return fault.Invalid("content-encoding", "must be identity or left out: this route takes bodies as they are")
	}
	c.rec.RequestBytes = max(c.req.ContentLength, 0)
	if c.bodiless() {
		return nil
	}
	limit := c.bodyLimit()
	if c.rt.Shape == Raw && kind != "application/json" {
		c.unread = c.req.ContentLength != 0
		return nil // streamed through
	}
	c.inBuf = newBufferFor(int(min(c.req.ContentLength, limit)) + 1)
	err = c.inBuf.readAll(c.ctx, &c.lease, c.req.Body, c.req.ContentLength, limit)
	switch {
	case errors.Is(err, errTooLarge):
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	case fault.Is(err, fault.ServiceUnavailable):
		return err
	case err != nil:
		return unreadable(err)
	}
	c.in = c.inBuf.b
	c.rec.RequestBytes = int64(len(c.in))
	if c.rt.Shape == Raw {
		return c.walkRaw()
	}
	return c.walkBody()
}

// bodiless tells whether there is no body to read: operations that read or delete
// have none, but a provider's own path may.
func (c *call) bodiless() bool {
	switch c.req.Method {
	case http.MethodGet, http.MethodDelete, http.MethodHead:
		return c.rt.Shape != Raw || c.req.ContentLength == 0
	}
	return false
}

// bodyLimit is the most bytes that a body may have.
func (c *call) bodyLimit() int64 {
	if c.rt.MaxBody > 0 {
		return c.rt.MaxBody
	}
	return DefaultMaxBody
}

// unreadable says why a client's body did not arrive whole.
func unreadable(err error) *fault.Fault {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", tooBig.Limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("body", "ended before the announced content-length")
	}
	return fault.Invalid("body", "could not be read to its end").WithCause(err)
}

// walkBody finds what the walk needs in a unified body and checks its bounds.
func (c *call) walkBody() error {
	err := wire.CheckUTF8(c.in)
	if err != nil {
		return err
	}
	if c.rt.Client != nil {
		// The dialect's check walks the body: what it found is found.
		c.checked.ByTarget = true
		if err = c.rt.Client.Check(c.in, &c.checked); err == nil {
			c.takeWalk()
		}
	} else if err = bodyKeys.Walk(c.in, &c.walk); err == nil && c.rt.Check != nil {
		err = c.rt.Check(c.in)
	}
	if err != nil {
		return err
	}
	if err := c.readModel(true); err != nil {
		return err
	}
	if c.model == "" && c.rt.DefaultModel != "" {
		c.model, c.rec.RequestModel = c.rt.DefaultModel, c.rt.DefaultModel
	}
	if v := c.walk.Spans[keyStream]; v.Present(c.in) {
		if c.stream, err = wire.ScanBool(v.Of(c.in), "stream"); err != nil {
			return err
		}
	}
	c.wantUsage = c.usageAsked()
	c.outBound = c.outputBound()
	c.rec.Stream = c.stream
	if c.rt.Demand != nil {
		c.wanted = c.rt.Demand(c.text, int64(len(c.in)))
	}
	return nil
}

// takeWalk takes over what the dialect's check found of the members that are
// read here. Those that the dialect does not know do not count.
func (c *call) takeWalk() {
	from, w := &c.checked.Walk, &c.walk
	w.ObjectStart, w.ObjectEnd, w.Empty = from.ObjectStart, from.ObjectEnd, from.Empty
	w.Spans, w.Keys = append(w.Spans[:0], noSpans[:]...), append(w.Keys[:0], noSpans[:]...)
	for i, at := range c.checked.Keys.Places(bodyKeys) {
		if at >= 0 {
			w.Spans[i], w.Keys[i] = from.Spans[at], from.Keys[at]
		}
	}
}

var noSpans [keyInput + 1]wire.Span

// walkRaw looks at a pass-through body only for routing and accounting: what is
// not a well-formed object is the provider's to refuse. An object is read here,
// and is refused where another reader could find other text in it.
func (c *call) walkRaw() error {
	if wire.KindOf(bytes.TrimLeft(c.in, " \t\r\n")) == wire.KindObject {
		if err := wire.CheckUTF8(c.in); err != nil {
			return err
		}
	}
	if len(c.in) == 0 || bodyKeys.Walk(c.in, &c.walk) != nil {
		c.walk.Spans = c.walk.Spans[:0]
		c.unread = len(c.in) > 0
		return nil
	}
	if c.readModel(false) != nil {
		c.model = ""
	}
	if v := c.walk.Spans[keyStream]; v.Present(c.in) {
		c.stream, _ = wire.ScanBool(v.Of(c.in), "stream")
	}
	c.outBound = c.outputBound()
	c.rawDemand()
	c.rec.Stream = c.stream
	return nil
}

// readModel splits "@slug/model".
func (c *call) readModel(required bool) error {
	v := c.walk.Spans[keyModel]
	if !v.Present(c.in) {
		return nil // the target may set it; dispatch refuses a body without one
	}
	name, err := wire.ScanString(v.Of(c.in), "model")
	if err != nil {
		return err
	}
	if required && name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return c.splitModel(name, required)
}

// splitModel takes a model apart that may name its saved provider.
func (c *call) splitModel(name string, required bool) error {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			if required {
				return fault.Invalid("model", "a saved provider is named as @slug/model")
			}
			return nil
		}
		c.slug, name = slug, model
	}
	if len(name) > maxModel {
		return fault.Invalid("model", "must have at most %d bytes", maxModel)
	}
	c.model, c.rec.RequestModel = name, name
	return nil
}

// usageAsked reads stream_options.include_usage.
func (c *call) usageAsked() bool {
	v := c.walk.Spans[keyStreamOptions]
	if !v.Present(c.in) {
		return false
	}
	var inner wire.Walk
	raw := v.Of(c.in)
	if includeUsage.Walk(raw, &inner) != nil || inner.Spans[0].Absent() {
		return false
	}
	asked, _ := wire.ScanBool(inner.Spans[0].Of(raw), "stream_options.include_usage")
	return asked
}

var includeUsage = wire.NewKeySet("include_usage")

// outputBound is the most output tokens that the request may cost: what it
// says, else the reserve, times n.
func (c *call) outputBound() int64 {
	if c.rt.NoOutput {
		return 0
	}
	bound := int64(defaultReserveOutput)
	c.outAssumed = true
	for _, k := range [...]int{keyMaxCompletionTokens, keyMaxTokens, keyMaxOutputTokens} {
		if v := c.walk.Spans[k]; v.Present(c.in) {
			if n, err := wire.ScanInt(v.Of(c.in), ""); err == nil && n >= 0 {
				bound = n
				c.outAssumed = false
				break
			}
		}
	}
	if v := c.walk.Spans[keyN]; v.Present(c.in) {
		if n, err := wire.ScanInt(v.Of(c.in), "n"); err == nil && n > 1 && n <= 128 {
			bound *= n
		}
	}
	return bound
}

// contentType gives the media type of the body. Unified routes take JSON; an
// absent type counts as JSON. Pass-through takes any.
func (c *call) contentType() (string, error) {
	v := one(c.req.Header, "Content-Type")
	if v == "" || v == "application/json" {
		return "application/json", nil
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		if c.rt.Shape == Raw {
			return "", nil
		}
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: it cannot be parsed; send application/json")
	}
	if kind != "application/json" && c.rt.Shape == Unified && c.req.Method == http.MethodPost {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route takes application/json")
	}
	return kind, nil
}

// mergeMetadata joins metadata: workspace over key over request; the body's user
// fills _user when nothing else does.
func (c *call) mergeMetadata() {
	m := c.ask.Metadata
	keyed, spaced := c.who.Defaults.Metadata, c.ws.Defaults.Metadata
	var user string
	if len(c.walk.Spans) > keyUser && c.walk.Spans[keyUser].Present(c.in) {
		user, _ = wire.ScanString(c.walk.Spans[keyUser].Of(c.in), "user")
	}
	if m == nil && len(keyed) == 0 && len(spaced) == 0 && user == "" && c.who.UserID == "" {
		return
	}
	if m == nil {
		if c.merged == nil {
			c.merged = make(map[string]string)
		}
		m = c.merged
	}
	for k, v := range keyed {
		m[k] = v
	}
	for k, v := range spaced {
		m[k] = v
	}
	if _, have := m["_user"]; !have {
		if user == "" {
			user = c.who.UserID
		}
		if user != "" {
			m["_user"] = clipRunes(user, 128)
		}
	}
	c.metadata = m
	c.rec.Metadata, c.rec.EndUser = m, m["_user"]
}

// countRequest counts the request against the rates of key and workspace.
func (c *call) countRequest() error {
	if c.who.Subject == nil && c.ws.Subject == nil {
		return nil
	}
	var subjects []*ledger.Subject
	for _, s := range []*ledger.Subject{c.who.Subject, c.ws.Subject} {
		if s != nil {
			subjects = append(subjects, s)
		}
	}
	var err error
	c.admitted, err = c.Ledger.Admit(c.ctx, subjects)
	return err
}
