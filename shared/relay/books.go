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
func keepBooks(c *call) {
	if c.relay.RecordAfterBody {
		return
	}
	writeBooks(c)
}

// finish ends the walk: whatever happened, the request is settled and recorded.
func finish(c *call) {
	if c.relay.RecordAfterBody {
		flushTail(c)
		// A cut answer must not end like a whole one: the host breaks the connection off.
		if e, ok := c.reply.w.(interface{ EndBody() }); ok && !c.reply.broken {
			e.EndBody()
		}
	}
	writeBooks(c)
	c.req.Over()
}

func writeBooks(c *call) {
	if !c.log.Close() {
		return
	}
	outcome := c.log.Outcome()
	describe(c)
	settleBreakers(c)
	ctx := c.req.Base
	for _, err := range c.bill.Purse.Settle(ctx, c.bill.Ledger, outcome.Failure) {
		c.req.Fail("settle", err)
	}
	if c.req.Who == nil {
		return // an unknown caller has no books
	}
	describeMoney(c)
	if u := &c.rec.Usage; u.N(pricing.CacheWrite5m)+u.N(pricing.CacheWrite1h)+u.N(pricing.CacheRead) > 0 {
		c.relay.unread.Note(promptsOf(c), u.Written() > 0, u.N(pricing.CacheRead) > 0)
	}
	c.rec.ClientStatus, c.rec.ClientGone = outcome.Status, c.reply.gone
	c.rec.ResponseBytes = outcome.Bytes
	c.rec.Duration = c.req.Since()
	c.rec.TimeToFirstByte = c.reply.firstByte
	if c.reply.firstByte == 0 {
		c.rec.TimeToFirstByte = c.rec.Duration
	}
	c.rec.GatewayTime = max(c.rec.Duration-outcome.Waited+c.reply.flushing, 0)
	// A provider's answer and a path may say more than a record has room for.
	c.rec.Model, c.rec.FinishReason = fault.Clip(c.rec.Model, inbound.MaxModel), clipText(c.rec.FinishReason)
	hideInRecord(c)
	if c.req.OnlyLooked() {
		return
	}
	sealBodies(c, ctx)
	if err := c.relay.Sink.Emit(ctx, &c.rec); err != nil {
		c.req.Fail("usage event", err)
	}
}

// describe puts into the record what the stages learned.
func describe(c *call) {
	describeRequest(c)
	describeWalk(c)
	describeAnswer(c)
	describeCall(c)
}

// describeWalk tells what the walk was decided on, before it is settled.
func describeWalk(c *call) {
	r := &c.rec
	r.Guards = c.guards.Notes.All(c.relay.RecordAfterBody)
	if c.plan.Walker == nil {
		return
	}
	r.Draws, r.Breakers = c.plan.Walker.Draws(r.Draws[:0]), c.plan.Walker.Breakers(r.Breakers[:0])
	r.Matches, r.Skips = c.plan.Walker.Matches(r.Matches[:0]), c.plan.Walker.Skips(r.Skips[:0])
}

// describeAnswer tells who was asked last and what came of it.
func describeAnswer(c *call) {
	r, to, outcome := &c.rec, &c.target.To.Names, c.log.Outcome()
	r.OptionIndex, r.Provider, r.ProviderSlug, r.IntegrationID = to.Option, to.Provider, to.Slug, to.Integration
	r.Model, r.FinishReason = c.bill.HeardModel(), c.bill.Heard.Finish
	r.RetryCount, r.CacheStatus, r.Losses = outcome.Retries, c.cache.Status, c.target.Loss.Paths()
	if f := outcome.Failure; f != nil {
		r.ErrorCode, r.ErrorMessage = string(f.Code), recorded(f)
		if by := f.Limit; by != nil {
			r.Refusal = &usage.Refusal{Subject: by.Subject, ID: by.ID, Entity: by.Entity, Type: by.Type, Unit: by.Unit, Needed: by.Needed}
		}
	}
}

// describeMoney tells what was called and what it cost, once it is settled.
func describeMoney(c *call) {
	r, p := &c.rec, &c.bill.Purse
	r.Attempts, r.Usage, r.Cost, r.Priced, r.SettleSubjects = p.Attempts, p.Usage, p.Cost, p.Priced, p.Entries
	if r.Tariff = p.Tariff; r.Tariff != "" {
		r.Book = c.bill.Book.Version()
	}
	r.UpstreamLatency = c.log.Outcome().Upstream
	if hit := c.cache.Hit; hit != nil {
		r.CacheSaved, r.Priced = hit.Cost, true
	}
}

// describeRequest tells what the stages before the targets learned.
func describeRequest(c *call) {
	r := &c.rec
	r.ID, r.Start = c.req.ULID, c.req.Start
	r.Endpoint, r.Method, r.Path = c.req.Route.Endpoint, c.req.Req.Method, audit.MaskPath(c.req.Req.URL.EscapedPath())
	r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName = c.req.Ask.TraceID, c.req.Ask.SpanID, c.req.Ask.ParentSpanID, c.req.Ask.SpanName
	r.Agent = usage.Agent{Session: c.req.Ask.Session, ID: c.req.Ask.Agent, Parent: c.req.Ask.ParentAgent}
	if who := c.req.Who; who != nil {
		r.Org, r.Workspace, r.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
		r.KeyID, r.KeyType = who.KeyID, string(who.Type)
		if who.Type != identity.SignedToken { // in a signed token the user is whatever its maker wrote
			r.UserID = who.UserID
		}
	}
	r.RequestBytes, r.Stream, r.RequestModel = c.body.Size, c.target.Stream, c.body.Model
	r.Metadata, r.EndUser = c.body.Metadata, c.body.Metadata["_user"]
	if by := cmp.Or(c.target.To.Prompt, c.body.Filled); by != nil {
		r.PromptSlug = by.Slug
		r.SetPrompt(by.ID, by.Version, by.Experiment)
	}
	r.ConfigID, r.ConfigSlug, r.ConfigVersion, r.Mode = c.plan.Config.ID, c.plan.Config.Slug, c.plan.Config.Version, c.plan.Config.Mode
}

// options are what the dialects write an answer with.
func options(c *call) *chat.Options {
	c.opts = chat.Options{
		Strict: c.target.Strict(), IncludeUsage: c.target.WantUsage, Model: c.target.To.Model, ID: c.req.ULID,
		Created: c.req.Start.Unix(), ProviderName: c.target.To.Names.Provider, Request: c.target.Decoded,
	}
	if c.target.To.Dialect != nil {
		c.opts.OwnID = !c.target.SameDialect()
		c.opts.Origin = c.target.To.Dialect.Name()
	}
	return &c.opts
}

// keepSent keeps what was sent where it differs from what came in. The body is
// not copied: it stands until the next attempt, which is kept in its place.
func keepSent(c *call, h http.Header, body []byte) {
	if !c.req.Logs() || len(body) == 0 || c.req.Route.Shape == routes.Raw || c.target.SameDialect() {
		return
	}
	names := c.req.Ask.Sensitive
	if len(c.target.To.Target.CustomHeaders)+len(c.target.To.Target.Credential.CustomHeaders) > 0 {
		names = c.mask.CustomNames(slices.Clone(names))
	}
	var room [8]string
	c.log.Sent(h, body, names, c.target.To.Target.Secrets(room[:0], false))
}

// sealBodies puts the bodies that the log keeps into the record, sealed.
func sealBodies(c *call, ctx context.Context) {
	full := c.req.Logs()
	status := c.log.Outcome().Status
	failed := status < 200 || status > 299
	if !full && !failed {
		return
	}
	b := &c.log.Bodies
	b.Head(c.reply.w.Header())
	if c.guards.Taken.Any() {
		b.Rewrite(c.guards.Taken.Hidden)
	}
	if full {
		in := c.body.In
		if p := c.target.To.Prompt; p != c.body.Filled && p != nil {
			in = p.Body
		}
		if c.guards.Sent != nil {
			in = c.guards.Sent // what was taken out of it is in no log
		}
		if c.req.Route.Operation == provider.BatchesCreate {
			in = managed.HideConfig(in)
		}
		b.Request(c.req.Req.Header, c.req.Ask.Sensitive, in)
	} else {
		b.Unsent()
	}
	if c.req.Route.Operation == provider.Embeddings && !failed {
		b.Unanswered() // vectors are long and say nothing
	}
	hideInLog(c)
	var err error
	if c.rec.Bodies, err = b.Seal(ctx, c.relay.Sealer, c.rec.BodiesBinding()); err != nil {
		c.req.Fail("seal bodies", err)
	}
}

// hideInLog takes secrets out of what the log keeps.
func hideInLog(c *call) {
	if c.target.To.Target.Provider == nil {
		return
	}
	var room [8]string
	secrets := c.target.To.Target.Secrets(room[:0], false)
	c.log.Bodies.Hide(secrets)
}

// hideInRecord takes secrets out of what the books repeat of an answer.
func hideInRecord(c *call) {
	if c.target.To.Target.Provider == nil {
		return
	}
	var room [8]string
	secrets := c.target.To.Target.Secrets(room[:0], false)
	c.rec.Model, c.rec.FinishReason = mask.Text(c.rec.Model, secrets), mask.Text(c.rec.FinishReason, secrets)
	for i := range c.rec.Attempts {
		c.rec.Attempts[i].RequestID = mask.Text(c.rec.Attempts[i].RequestID, secrets)
	}
}
