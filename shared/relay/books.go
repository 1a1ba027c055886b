package relay

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/managed"
	"gateway/shared/relay/routes"
	"gateway/shared/usage"
	"gateway/shared/wire/mask"
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
		// A cut answer must not end like a whole one: the host breaks the connection off.
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
	for _, err := range l.Purse.Settle(ctx, l.Ledger, l.failure) {
		l.Fail("settle", err)
	}
	if l.Who == nil {
		return // an unknown caller has no books
	}
	l.describeMoney()
	if u := &l.rec.Usage; u.N(pricing.CacheWrite5m)+u.N(pricing.CacheWrite1h)+u.N(pricing.CacheRead) > 0 {
		l.unread.Note(l.promptsOf(), u.Written() > 0, u.N(pricing.CacheRead) > 0)
	}
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
	if l.OnlyLooked() {
		return
	}
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
	r.Guards = l.guards.Notes.All(l.RecordAfterBody)
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
	r.Model, r.FinishReason = l.HeardModel(), l.Heard.Finish
	r.RetryCount, r.CacheStatus, r.Losses = l.retries, l.reuse.Status, l.Loss.Paths()
	if f := l.failure; f != nil {
		r.ErrorCode, r.ErrorMessage = string(f.Code), recorded(f)
		if by := f.Limit; by != nil {
			r.Refusal = &usage.Refusal{Subject: by.Subject, ID: by.ID, Entity: by.Entity, Type: by.Type, Unit: by.Unit, Needed: by.Needed}
		}
	}
}

// describeMoney tells what was called and what it cost, once it is settled.
func (l *logbook) describeMoney() {
	r, p := &l.rec, &l.Purse
	r.Attempts, r.Usage, r.Cost, r.Priced, r.SettleSubjects = p.Attempts, p.Usage, p.Cost, p.Priced, p.Entries
	if r.Tariff = p.Tariff; r.Tariff != "" {
		r.Book = l.Book.Version()
	}
	r.UpstreamLatency = l.upstream
	if hit := l.reuse.Hit; hit != nil {
		r.CacheSaved, r.Priced = hit.Cost, true
	}
}

// describeRequest tells what the stages before the targets learned.
func (l *logbook) describeRequest() {
	r := &l.rec
	r.ID, r.Start = l.ULID, l.Start
	r.Endpoint, r.Method, r.Path = l.Route.Endpoint, l.Req.Method, audit.MaskPath(l.Req.URL.EscapedPath())
	r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName = l.Ask.TraceID, l.Ask.SpanID, l.Ask.ParentSpanID, l.Ask.SpanName
	r.Agent = usage.Agent{Session: l.Ask.Session, ID: l.Ask.Agent, Parent: l.Ask.ParentAgent}
	if who := l.Who; who != nil {
		r.Org, r.Workspace, r.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
		r.KeyID, r.KeyType = who.KeyID, string(who.Type)
		if who.Type != identity.SignedToken { // in a signed token the user is whatever its maker wrote
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

// options are what the dialects write an answer with.
func (bk *books) options() *chat.Options {
	bk.opts = chat.Options{
		Strict: bk.Strict(), IncludeUsage: bk.WantUsage, Model: bk.To.Model, ID: bk.ULID,
		Created: bk.Start.Unix(), ProviderName: bk.To.Names.Provider, Request: bk.Decoded,
	}
	if bk.To.Dialect != nil {
		bk.opts.OwnID = !bk.SameDialect()
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
		names = l.stars.CustomNames(slices.Clone(names))
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
	if l.guards.Taken.Any() {
		b.Rewrite(l.guards.Taken.Hidden)
	}
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

// hideInLog takes secrets out of what the log keeps.
func (l *logbook) hideInLog() {
	if l.To.Target.Provider == nil {
		return
	}
	var room [8]string
	secrets := l.To.Target.Secrets(room[:0], false)
	l.bodies.Hide(secrets)
}

// hideInRecord takes secrets out of what the books repeat of an answer.
func (l *logbook) hideInRecord() {
	if l.To.Target.Provider == nil {
		return
	}
	var room [8]string
	secrets := l.To.Target.Secrets(room[:0], false)
	l.rec.Model, l.rec.FinishReason = mask.Text(l.rec.Model, secrets), mask.Text(l.rec.FinishReason, secrets)
	for i := range l.rec.Attempts {
		l.rec.Attempts[i].RequestID = mask.Text(l.rec.Attempts[i].RequestID, secrets)
	}
}
