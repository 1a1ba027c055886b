package relay

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/seal"
	"gateway/shared/tenant"
	"gateway/shared/wire"
)

// books settles the request and writes its record, once. It is called before the
// last byte of the answer goes out, or, where answers end before the process may
// be frozen, by finish.
func (c *call) books() {
	if c.inBooks || c.RecordAfterBody {
		return
	}
	c.writeBooks()
}

// finish ends the walk: whatever happened, the request is settled and recorded.
func (c *call) finish() {
	if c.RecordAfterBody {
		c.flushTail()
		// A cut answer must not end as if it were whole: the host breaks it off.
		if e, ok := c.w.(interface{ EndBody() }); ok && !c.broken {
			e.EndBody()
		}
	}
	if !c.inBooks {
		c.writeBooks()
	}
	for _, f := range c.afterwards {
		f()
	}
}

// refusedByLimit tells whether a fault is that of a limit.
func refusedByLimit(code string) bool {
	switch fault.Code(code) {
	case fault.RateLimited, fault.BudgetExhausted, fault.UnpricedModel:
		return true
	}
	return false
}

func (c *call) writeBooks() {
	c.inBooks = true
	c.settleBreakers()
	c.describe()
	ctx := c.base
	c.settleTarget()
	if c.reserved != nil {
		var err error
		if len(c.rec.Attempts) == 0 {
			err = c.reserved.Release(ctx) // nothing was sent
		} else {
			err = c.reserved.Settle(ctx, c.rec.Cost, c.rec.Usage.TotalTokens())
		}
		if err != nil {
			c.fail("settle", err)
		}
		c.rec.SettleSubjects = append(c.rec.SettleSubjects, c.reserved.Entries()...)
	}
	if refusedByLimit(c.rec.ErrorCode) && len(c.rec.Attempts) == 0 {
		c.admitted.GiveBack(ctx)
	}
	c.admitted.SettleTokens(ctx, c.rec.Usage.TotalTokens())
	for _, a := range c.admittedTargets {
		a.SettleTokens(ctx, c.rec.Usage.TotalTokens())
	}
	if c.who == nil {
		return // an unknown caller has no books
	}
	c.rec.ClientStatus, c.rec.ClientGone = c.status, c.gone
	c.rec.ResponseBytes = c.answered
	c.rec.Duration = c.since()
	c.rec.TimeToFirstByte = c.firstByte
	if c.firstByte == 0 {
		c.rec.TimeToFirstByte = c.rec.Duration
	}
	c.rec.GatewayTime = max(c.rec.Duration-c.waited, 0)
	// A provider's answer and a path may say more than a record has room for.
	c.rec.Model, c.rec.FinishReason = clipBytes(c.rec.Model, maxModel), clipText(c.rec.FinishReason)
	c.hideInRecord()
	c.sealBodies(ctx)
	if err := c.Sink.Emit(ctx, &c.rec); err != nil {
		c.fail("usage event", err)
	}
}

// describe puts into the record what the stages before the targets learned.
func (c *call) describe() {
	r := &c.rec
	r.ID, r.Start = c.ulid, c.start
	r.Endpoint, r.Method, r.Path = c.rt.Endpoint, c.req.Method, c.req.URL.EscapedPath()
	r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName = c.ask.TraceID, c.ask.SpanID, c.ask.ParentSpanID, c.ask.SpanName
	if who := c.who; who != nil {
		r.Org, r.Workspace, r.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
		r.KeyID, r.KeyType, r.UserID = who.KeyID, string(who.Type), who.UserID
	}
	r.RequestBytes, r.Stream, r.RequestModel = c.size, c.stream, c.model
	r.Metadata, r.EndUser = c.metadata, c.metadata["_user"]
	r.ConfigID, r.ConfigSlug, r.ConfigVersion, r.Mode = c.config.ID, c.config.Slug, c.config.Version, c.config.Mode
}

// maxCharge bounds what one answer is charged: ten million dollars. Budgets and
// cubes sum thousands of these without running over.
const maxCharge pricing.NanoDollars = 10_000_000 * 1_000_000_000

// charge counts the usage of the answering attempt and prices it.
func (c *call) charge(u pricing.Usage) {
	u = u.Bounded()
	price, known := c.price(u.InputTokens())
	var cost pricing.NanoDollars
	if known {
		cost = min(price.Cost(u), maxCharge)
	}
	c.rec.Priced = known
	c.rec.Usage = c.rec.Usage.Plus(u)
	c.rec.Cost += cost
	if n := len(c.rec.Attempts); n > 0 {
		last := &c.rec.Attempts[n-1]
		last.Usage, last.Cost = last.Usage.Plus(u), last.Cost+cost
	}
}

// price finds what the target's model costs: the integration's own price before
// the book's, with the integration's adjustments.
func (c *call) price(inputTokens int64) (pricing.Price, bool) {
	if c.to.target.Provider == nil {
		return pricing.Price{}, false
	}
	o := pricing.Options{ContextTokens: inputTokens, Region: c.to.region(), Quality: c.wanted.Quality, Size: c.wanted.Size, Mode: c.wanted.Mode}
	model := c.to.model
	if s := c.to.saved; s != nil {
		if own, ok := s.prices[model]; ok {
			return s.adjust.Apply(own.Price(o)), true
		}
		if m := s.model(model); m != nil && m.BaseModelSlug != "" {
			model = m.BaseModelSlug
		}
	}
	p, ok := c.Book.Price(c.to.target.Provider.ID, model, o)
	if !ok {
		if as := c.to.target.PricedAs(c.base, model); as != model {
			p, ok = c.Book.Price(c.to.target.Provider.ID, as, o)
		}
	}
	if !ok && c.rec.Model != "" && c.rec.Model != model {
		p, ok = c.Book.Price(c.to.target.Provider.ID, c.rec.Model, o)
	}
	if ok && c.to.saved != nil {
		p = c.to.saved.adjust.Apply(p)
	}
	return p, ok
}

// tokensOfAnImage bounds what an image that is sent by address may cost, since
// its bytes do not stand in the body.
const tokensOfAnImage = 4000

// boundOf is the most that the request can cost at this target. A token is at
// least one byte of the body.
func (c *call) boundOf() ledger.Bound {
	in := int64(max(len(c.in), len(c.to.body)))
	if c.form != nil {
		in = c.form.Text()
	} else if in == 0 {
		in = max(c.req.ContentLength, 0)
	}
	in += int64(bytes.Count(c.in, []byte(`"image_url"`))+bytes.Count(c.in, []byte(`"image"`))) * tokensOfAnImage
	in += c.media.documents // what was fetched stands in no body of the client
	out := c.outBound
	price, known := c.price(in)
	b := ledger.Bound{Tokens: in + out, Priced: known, Assumed: c.outAssumed}
	if known {
		b.Cost = price.Bound(in, out) + price.Cost(c.wanted.Most)
	} else if c.org.Settings.Unpriced == "allow" {
		b.Priced = true
	}
	return b
}

// options are what the dialects write an answer with.
func (c *call) options() *chat.Options {
	c.opts = chat.Options{
		Strict: c.strict(), IncludeUsage: c.wantUsage, Model: c.to.model, ID: c.ulid,
		Created: c.start.Unix(), ProviderName: c.rec.Provider, Request: c.decoded,
	}
	if c.to.dialect != nil {
		c.opts.Origin = c.to.dialect.Name()
	}
	return &c.opts
}

// logs tells whether bodies are kept.
func (q *request) logs() bool {
	if q.org == nil {
		return false
	}
	s := &q.org.Settings
	if s.EnforceDebug != nil {
		return *s.EnforceDebug
	}
	return s.RequestLogging != tenant.LogMetrics && !q.ask.NoBodies
}

// captureAnswer keeps what the client gets for the log, and counts it.
func (c *call) captureAnswer(p []byte) {
	c.answered += int64(len(p))
	if c.outBuf == nil {
		c.outBuf = newBuffer()
	}
	if !c.outBuf.keep(p, maxLoggedBody) {
		c.bodies.Cut = true
	}
}

// keepReceived keeps the provider's own words of an answer that was translated
// or refused.
func (c *call) keepReceived(p []byte) {
	if c.receivedBuf == nil {
		c.receivedBuf = newBuffer()
	}
	c.receivedBuf.b = append(c.receivedBuf.b[:0], p[:min(len(p), maxLoggedBody)]...)
	c.bodies.Received = c.receivedBuf.b
}

// keepSent keeps what was sent where it differs from what came in. The body is
// not copied: it stands until the next attempt, which is kept in its place.
func (c *call) keepSent(h http.Header, body []byte) {
	if !c.logs() || len(body) == 0 || c.rt.Shape == Raw || c.sameDialect() {
		return
	}
	c.bodies.Sent = body[:min(len(body), maxLoggedBody)]
	names := c.ask.Sensitive
	if len(c.to.target.CustomHeaders)+len(c.to.target.Credential.CustomHeaders) > 0 {
		names = c.customNames(slices.Clone(names))
	}
	c.bodies.SentHeaders = appendHeaders(c.bodies.SentHeaders[:0], h, names)
	var room [8]string
	hide(c.bodies.SentHeaders, c.to.target.Secrets(room[:0], false))
}

// sealBodies puts the bodies that the log keeps into the record, sealed.
func (c *call) sealBodies(ctx context.Context) {
	full := c.logs()
	failed := c.status < 200 || c.status > 299
	if !full && !failed {
		return
	}
	b := &c.bodies
	if c.outBuf != nil && !(c.rt.Operation == provider.Embeddings && !failed) { // vectors are long and say nothing
		b.Response = c.outBuf.b
	}
	c.logBuf = newBuffer()
	c.logBuf.b = appendHeaders(c.logBuf.b, c.w.Header(), nil)
	b.ResponseHeaders = c.logBuf.b
	if full {
		n := len(c.logBuf.b)
		c.logBuf.b = appendHeaders(c.logBuf.b, c.req.Header, c.ask.Sensitive)
		b.RequestHeaders = c.logBuf.b[n:]
		if c.rt.Operation == provider.BatchesCreate {
			c.hideConfig()
		}
		b.Request = c.in[:min(len(c.in), maxLoggedBody)]
		b.Cut = b.Cut || len(c.in) > maxLoggedBody
	} else {
		b.Sent, b.SentHeaders = nil, nil
	}
	c.hideInLog()
	var err error
	c.sealedBuf = newBufferFor(b.Size() + sealedRoom)
	if into, ok := c.Sealer.(writtenSealer); ok {
		c.sealedBuf.b, err = into.SealWritten(ctx, c.sealedBuf.b, c.rec.BodiesBinding(), b)
		c.rec.Bodies = c.sealedBuf.b
	} else {
		c.sealedBuf.b = b.Append(c.sealedBuf.b)
		c.rec.Bodies, err = c.Sealer.Seal(ctx, c.rec.BodiesBinding(), c.sealedBuf.b)
	}
	if err != nil {
		c.fail("seal bodies", err)
		c.rec.Bodies = nil
	}
}

// sealedRoom is by how much a sealed value may be longer than its plain one; a
// wrong guess costs a copy.
const sealedRoom = 512

// writtenSealer is a Sealer that seals into memory that it is given, where the
// value has written itself.
type writtenSealer interface {
	SealWritten(ctx context.Context, dst []byte, b seal.Binding, plain seal.Writer) ([]byte, error)
}

// hides tells whether the value of a header never reaches a log, because it may
// be a credential or because the caller named it as sensitive.
func hides(name string, sensitive []string) bool {
	switch name {
	case "Authorization", "X-Gateway-Api-Key", "X-Api-Key", "Api-Key", "Cookie", "Set-Cookie",
		"Proxy-Authorization", "X-Goog-Api-Key", "X-Amz-Security-Token", headerConfig:
		return true
	case headerTrace, headerProvider, headerRetryCount, headerCacheStatus, headerOptionIndex, headerProviderReqID:
		return contains(sensitive, name) // on most requests; none of them is secret
	}
	return secretHeader(name) || contains(sensitive, name)
}

// appendHeaders writes headers as a JSON object in the order of their names;
// credentials, and what the caller named as sensitive, are masked.
func appendHeaders(dst []byte, h http.Header, sensitive []string) []byte {
	var room [32]headerLine // most requests have fewer headers; more are sorted in the heap
	lines := room[:0]
	for name, values := range h {
		lines = append(lines, headerLine{name, values[0]})
	}
	slices.SortFunc(lines, func(a, b headerLine) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i := range lines {
		name, value := lines[i].name, lines[i].value
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendJSONString(dst, name)
		dst = append(dst, ':')
		withPassword := name == headerCustomHost && strings.Contains(value, "@")
		if withPassword || hides(name, sensitive) {
			dst = append(dst, `"*****"`...)
			continue
		}
		dst = wire.AppendJSONString(dst, value)
	}
	return append(dst, '}')
}

// headerLine is a header with its first value.
type headerLine struct{ name, value string }
