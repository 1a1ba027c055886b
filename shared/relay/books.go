package relay

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/managed"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/saved"
	"gateway/shared/usage"
)

// keepBooks settles the request and writes its record, once. It is called before the
// last byte of the answer goes out, or, where answers end before the process may
// be frozen, by finish.
func (l *logbook) keepBooks() {
	if l.inBooks || l.RecordAfterBody {
		return
	}
	l.writeBooks()
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
	c.Over()
}

func (l *logbook) writeBooks() {
	l.inBooks = true
	l.describe()
	l.settleBreakers()
	ctx := l.Base
	for _, err := range l.purse.Settle(ctx, l.failure) {
		l.Fail("settle", err)
	}
	if l.Who == nil {
		return // an unknown caller has no books
	}
	l.describeMoney()
	l.rec.ClientStatus, l.rec.ClientGone = l.status, l.gone
	l.rec.ResponseBytes = l.answered
	l.rec.Duration = l.Since()
	l.rec.TimeToFirstByte = l.firstByte
	if l.firstByte == 0 {
		l.rec.TimeToFirstByte = l.rec.Duration
	}
	l.rec.GatewayTime = max(l.rec.Duration-l.waited+l.flushing, 0)
	// A provider's answer and a path may say more than a record has room for.
	l.rec.Model, l.rec.FinishReason = fault.Clip(l.rec.Model, inbound.MaxModel), clipText(l.rec.FinishReason)
	l.hideInRecord()
	l.sealBodies(ctx)
	if err := l.Sink.Emit(ctx, &l.rec); err != nil {
		l.Fail("usage event", err)
	}
}

// describe puts into the record what the stages learned.
func (l *logbook) describe() {
	l.describeRequest()
	l.describeWalk()
	l.describeAnswer()
	l.describeCall()
}

// describeWalk tells what the walk was decided on, before it is settled.
func (l *logbook) describeWalk() {
	r := &l.rec
	r.Guards = l.guards.Notes(l.RecordAfterBody)
	if l.Walker == nil {
		return
	}
	r.Draws, r.Breakers = l.Walker.Draws(r.Draws[:0]), l.Walker.Breakers(r.Breakers[:0])
	r.Matches, r.Skips = l.Walker.Matches(r.Matches[:0]), l.Walker.Skips(r.Skips[:0])
}

// describeAnswer tells who was asked last and what came of it.
func (l *logbook) describeAnswer() {
	r, to := &l.rec, &l.To.Names
	r.OptionIndex, r.Provider, r.ProviderSlug, r.IntegrationID = to.Option, to.Provider, to.Slug, to.Integration
	r.Model, r.FinishReason = l.heardModel(), l.heard.finish
	r.RetryCount, r.CacheStatus, r.Losses = l.retries, l.reused.status, l.Loss.Paths()
	if f := l.failure; f != nil {
		r.ErrorCode, r.ErrorMessage = string(f.Code), recorded(f)
	}
}

// describeMoney tells what was called and what it cost, once it is settled.
func (l *logbook) describeMoney() {
	r, p := &l.rec, &l.purse
	r.Attempts, r.Usage, r.Cost, r.Priced, r.SettleSubjects = p.Attempts, p.Usage, p.Cost, p.Priced, p.Entries
	if r.Tariff = p.Tariff; r.Tariff != "" {
		r.Book = l.Book.Version()
	}
	r.UpstreamLatency = l.upstream
	if hit := l.reused.hit; hit != nil {
		r.CacheSaved, r.Priced = hit.Cost, true
	}
}

// heardModel is the model that answered, as it calls itself, else the one that was
// asked.
func (bk *books) heardModel() string { return cmp.Or(bk.heard.model, bk.To.Names.Model) }

// modelOf is the model that an answer is charged as.
func (bk *books) modelOf() string { return cmp.Or(bk.heard.priced, bk.To.Model) }

// describeRequest tells what the stages before the targets learned.
func (l *logbook) describeRequest() {
	r := &l.rec
	r.ID, r.Start = l.ULID, l.Start
	r.Endpoint, r.Method, r.Path = l.Route.Endpoint, l.Req.Method, l.Req.URL.EscapedPath()
	r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName = l.Ask.TraceID, l.Ask.SpanID, l.Ask.ParentSpanID, l.Ask.SpanName
	r.Agent = usage.Agent{Session: l.Ask.Session, ID: l.Ask.Agent, Parent: l.Ask.ParentAgent}
	if who := l.Who; who != nil {
		r.Org, r.Workspace, r.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
		r.KeyID, r.KeyType = who.KeyID, string(who.Type)
		if who.Type != identity.SignedToken { // whoever made the token says whose it is
			r.UserID = who.UserID
		}
	}
	r.RequestBytes, r.Stream, r.RequestModel = l.Size, l.Stream, l.Model
	r.Metadata, r.EndUser = l.Metadata, l.Metadata["_user"]
	if by := cmp.Or(l.To.Prompt, l.Filled); by != nil {
		r.PromptSlug = by.Slug
		r.SetPrompt(by.ID, by.Version, by.Experiment)
	}
	r.ConfigID, r.ConfigSlug, r.ConfigVersion, r.Mode = l.Config.ID, l.Config.Slug, l.Config.Version, l.Config.Mode
}

// charge counts the usage of the answering attempt and prices it, and what further
// models used on the same bill.
func (bk *books) charge(u pricing.Usage) {
	u = u.Bounded()
	price, known := bk.priceOf(bk.modelOf(), bk.priceOptions(u.InputTokens(), cmp.Or(bk.heard.mode, bk.heard.served.Mode, bk.Wanted.Mode)), true)
	bk.purse.Charge(u, price, known)
	for _, line := range bk.heard.served.Also {
		used := line.Usage.Bounded()
		price, known := bk.priceOf(line.Model, bk.priceOptions(used.InputTokens(), cmp.Or(bk.heard.mode, line.Mode)), false)
		bk.purse.ChargeAlso(used, price, known)
	}
	bk.heard.served.Also = nil
}

// priceOptions are the facts of the request that prices depend on.
func (bk *books) priceOptions(inputTokens int64, mode string) pricing.Options {
	s := &bk.heard.served
	return pricing.Options{ContextTokens: inputTokens, Region: cmp.Or(s.Region, bk.To.Region()), Quality: bk.Wanted.Quality, Size: bk.Wanted.Size, Mode: mode, SearchContext: s.SearchContext}
}

// priceOf finds what a model of the target costs. named: the model may go by the name
// that it gave itself, too.
func (bk *books) priceOf(model string, o pricing.Options, named bool) (pricing.Price, bool) {
	if bk.To.Target.Provider == nil {
		return pricing.Price{}, false
	}
	at := saved.Prices{Book: bk.Book, By: bk.Org.Prices(), Of: bk.To.Target.Provider.ID, Saved: bk.To.Saved}
	name, p, ok := at.Find(model, o)
	if !ok {
		if as := bk.To.Target.PricedAs(bk.Base, name); as != name {
			p, ok = at.Listed(as, o)
		}
	}
	if heard := bk.heardModel(); !ok && named && heard != "" && heard != name {
		p, ok = at.Listed(heard, o)
	}
	return p, ok
}

// tokensOfAnImage bounds what an image that is sent by address may cost, since
// its bytes do not stand in the body.
const tokensOfAnImage = 4000

// boundOf is the most that the request can cost at this target. A token is at
// least one byte of the body.
func (bk *books) boundOf() ledger.Bound {
	in := int64(max(len(bk.In), len(bk.To.Body)))
	if bk.Form != nil {
		in = bk.Form.Text()
	} else if in == 0 {
		in = max(bk.Req.ContentLength, 0)
	}
	in += int64(bytes.Count(bk.In, []byte(`"image_url"`))+bytes.Count(bk.In, []byte(`"image"`))) * tokensOfAnImage
	in = max(in, bk.InBound)
	in += bk.media.Documents // what was fetched stands in no body of the client
	out := bk.OutBound
	price, known := bk.priceOf(bk.modelOf(), bk.priceOptions(in, bk.Wanted.Mode), true)
	most := ledger.Bound{Tokens: in + out, Priced: known, Assumed: bk.OutAssumed, Rerouted: bk.rerouted}
	if known {
		most.Cost = price.Bound(in, out) + price.Cost(bk.Wanted.Most)
		if bk.Wanted.Mode != "" { // the provider may serve it as a standard one
			plain, _ := bk.priceOf(bk.modelOf(), bk.priceOptions(in, pricing.Standard), true)
			most.Cost = max(most.Cost, plain.Bound(in, out)+plain.Cost(bk.Wanted.Most))
		}
	} else if bk.Org.Settings.Unpriced == "allow" || bk.Transcribes { // what transcribes is named later
		most.Priced = true
	}
	return most
}

// options are what the dialects write an answer with.
func (bk *books) options() *chat.Options {
	bk.opts = chat.Options{
		Strict: bk.Strict(), IncludeUsage: bk.WantUsage, Model: bk.To.Model, ID: bk.ULID,
		Created: bk.Start.Unix(), ProviderName: bk.To.Names.Provider, Request: bk.Decoded,
	}
	if bk.To.Dialect != nil {
		bk.opts.Origin = bk.To.Dialect.Name()
	}
	return &bk.opts
}

// captureAnswer keeps what the client gets for the log, and counts it.
func (l *logbook) captureAnswer(p []byte) {
	l.answered += int64(len(p))
	l.bodies.Answer(p)
}

// keepReceived keeps the provider's own words of an answer that was translated
// or refused.
func (l *logbook) keepReceived(p []byte) { l.bodies.Receive(p) }

// keepSent keeps what was sent where it differs from what came in. The body is
// not copied: it stands until the next attempt, which is kept in its place.
func (l *logbook) keepSent(h http.Header, body []byte) {
	if !l.Logs() || len(body) == 0 || l.Route.Shape == routes.Raw || l.SameDialect() {
		return
	}
	names := l.Ask.Sensitive
	if len(l.To.Target.CustomHeaders)+len(l.To.Target.Credential.CustomHeaders) > 0 {
		names = l.customNames(slices.Clone(names))
	}
	var room [8]string
	l.bodies.Send(h, body, names, l.To.Target.Secrets(room[:0], false))
}

// sealBodies puts the bodies that the log keeps into the record, sealed.
func (l *logbook) sealBodies(ctx context.Context) {
	full := l.Logs()
	failed := l.status < 200 || l.status > 299
	if !full && !failed {
		return
	}
	b := &l.bodies
	b.Head(l.w.Header())
	if full {
		in := l.In
		if p := l.To.Prompt; p != l.Filled && p != nil {
			in = p.Body
		}
		if l.guards.Sent != nil {
			in = l.guards.Sent // what was taken out of it is in no log
		}
		if l.Route.Operation == provider.BatchesCreate {
			in = managed.HideConfig(in)
		}
		b.Request(l.Req.Header, l.Ask.Sensitive, in)
	} else {
		b.Unsent()
	}
	if l.Route.Operation == provider.Embeddings && !failed {
		b.Unanswered() // vectors are long and say nothing
	}
	l.hideInLog()
	var err error
	if l.rec.Bodies, err = b.Seal(ctx, l.Sealer, l.rec.BodiesBinding()); err != nil {
		l.Fail("seal bodies", err)
	}
}
