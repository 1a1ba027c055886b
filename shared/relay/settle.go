package relay

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/usage"
	"gateway/shared/wire/mask"
)

// settleAndRecord settles the request and writes its record, once. It is called before the last byte
// of the response is sent, or, if the process may be frozen after the response, by finish.
func settleAndRecord(c *call) {
	if c.relay.RecordAfterBody {
		return
	}
	writeRecord(c)
}

// finish ends the pipeline: in every case, the request is settled and recorded.
func finish(c *call) {
	if c.relay.RecordAfterBody {
		flushTail(c.relay, &c.reply)
		// A truncated response must not end like a complete one: the host aborts the connection.
		if e, ok := c.reply.w.(interface{ EndBody() }); ok && !c.reply.broken {
			e.EndBody()
		}
	}
	writeRecord(c)
	c.req.RunDeferred()
}

func writeRecord(c *call) {
	if !c.log.Close() {
		return
	}
	outcome := c.log.Outcome()
	describe(c)
	settleBreakers(c)
	ctx := c.req.Base
	var other *accounting.Spending
	used, unused := c.bill.Spending.Cost, pricing.NanoDollars(0)
	if l := c.loser(); l != nil {
		other, unused = &l.bill.Spending, l.bill.Spending.Cost
	}
	for _, err := range c.bill.Spending.Settle(ctx, c.bill.Ledger, outcome.Failure, other) {
		c.req.Fail("settle", err)
	}
	if c.race != nil {
		c.race.hedge.RecordCost(int64(used), int64(unused))
	}
	if c.req.Principal == nil {
		return // an unknown caller has no record
	}
	describeMoney(&c.bill, &c.log, &c.cache, &c.rec)
	if u := &c.rec.Usage; u.N(pricing.CacheWrite5m)+u.N(pricing.CacheWrite1h)+u.N(pricing.CacheRead) > 0 {
		c.relay.unread.Observe(promptsOf(&c.target, &c.bill), u.CacheWrites() > 0, u.N(pricing.CacheRead) > 0)
	}
	c.rec.ClientStatus, c.rec.ClientGone = outcome.Status, c.reply.gone
	c.rec.ResponseBytes = outcome.Bytes
	c.rec.Duration = c.req.Since()
	c.rec.TimeToFirstByte = c.reply.firstByte
	if c.reply.firstByte == 0 {
		c.rec.TimeToFirstByte = c.rec.Duration
	}
	c.rec.GatewayTime = max(c.rec.Duration-outcome.Waited+c.reply.flushing, 0)
	// A provider's response and a path may exceed the limits of a record.
	c.rec.Model, c.rec.FinishReason = fault.Clip(c.rec.Model, body.MaxModel), clipText(c.rec.FinishReason)
	hideInRecord(&c.target, &c.rec)
	if c.req.IsUnchargedPoll() {
		return
	}
	sealBodies(c, ctx)
	if err := c.relay.Sink.Emit(ctx, &c.rec); err != nil {
		c.req.Fail("usage event", err)
	}
}

// describe fills the record from the values of the stages.
func describe(c *call) {
	describeRequest(&c.target, &c.rec)
	if c.race != nil { // a second attempt has its own id for its reservations
		c.rec.ID = c.race.first.req.ULID
	}
	describeWalk(c.relay, &c.plan, &c.guards, &c.rec)
	describeResponse(c)
	describeCall(&c.rec, c.protocol)
	if c.guards.Request != nil || !c.guards.Judged.All() {
		if path := content.HidePath(c.rec.Path); path != c.rec.Path && (c.guards.Request != nil || withheld(c)) {
			c.rec.Path = path
		}
	}
}

// describeWalk records the routing decisions, before settlement.
func describeWalk(relay *Relay, pl *plan.Plan, gs *guardrail.State, rec *usage.Record) {
	r := rec
	r.Guards = gs.Entries.All(relay.RecordAfterBody)
	if pl.Traversal == nil {
		return
	}
	r.Draws, r.Breakers = pl.Traversal.AppendDraws(r.Draws[:0]), pl.Traversal.Breakers(r.Breakers[:0])
	r.Measured = pl.Traversal.Measured(r.Measured[:0])
	r.Matches, r.Skips = pl.Traversal.Matches(r.Matches[:0]), pl.Traversal.Skips(r.Skips[:0])
}

// describeResponse records the last target and its result.
func describeResponse(c *call) {
	r, to, outcome := &c.rec, &c.target.Choice.Names, c.log.Outcome()
	r.OptionIndex, r.Provider, r.ProviderSlug, r.IntegrationID = to.Option, to.Provider, to.Slug, to.Integration
	r.Model, r.FinishReason = c.bill.ReportedModel(), c.bill.Reported.Finish
	r.RetryCount, r.CacheStatus, r.Losses = outcome.Retries, c.cache.Status, c.target.Loss.Paths()
	if f := outcome.Failure; f != nil {
		r.ErrorCode, r.ErrorMessage = string(f.Code), recorded(f)
		if by := f.Limit; by != nil {
			r.Refusal = &usage.Refusal{Subject: by.Subject, ID: by.ID, Entity: by.Entity, Type: by.Type, Unit: by.Unit, Needed: by.Needed}
		}
	}
}

// describeMoney records the calls and their cost, after settlement.
func describeMoney(bill *accounting.Bill, log *record.Log, ca *caching.Cache, rec *usage.Record) {
	r, p := rec, &bill.Spending
	r.Attempts, r.Usage, r.Cost, r.Priced, r.SettleSubjects = p.Attempts, p.Usage, p.Cost, p.Priced, p.Entries
	if r.Tariff = p.Tariff; r.Tariff != "" {
		r.Book = bill.Prices.Version()
	}
	r.UpstreamLatency = log.Outcome().Upstream
	if hit := ca.Hit; hit != nil {
		r.CacheSaved, r.Priced = hit.Cost, true
	}
}

// describeRequest records the values of the stages before the targets.
func describeRequest(tg *target.Target, rec *usage.Record) {
	r := rec
	r.ID, r.Start = tg.Req.ULID, tg.Req.StartTime
	r.Endpoint, r.Method, r.Path = tg.Req.Route.Endpoint, tg.Req.Req.Method, audit.MaskPath(tg.Req.Req.URL.EscapedPath())
	r.TraceID, r.SpanID, r.ParentSpanID, r.SpanName = tg.Req.Headers.TraceID, tg.Req.Headers.SpanID, tg.Req.Headers.ParentSpanID, tg.Req.Headers.SpanName
	r.Agent = usage.Agent{Session: tg.Req.Headers.Session, ID: tg.Req.Headers.Agent, Parent: tg.Req.Headers.ParentAgent}
	if who := tg.Req.Principal; who != nil {
		r.Org, r.Workspace, r.WorkspaceSlug = who.Scope.Org, who.Scope.Workspace, who.WorkspaceSlug
		r.KeyID, r.KeyType, r.KeyName = who.KeyID, string(who.Type), who.Name
		if who.Type != identity.SignedToken { // the user of a signed token is not verified
			r.UserID = who.UserID
		}
	}
	r.RequestBytes, r.Stream, r.RequestModel = tg.Body.Size, tg.Stream, tg.Body.Model
	r.Metadata, r.EndUser = tg.Body.Metadata, tg.Body.Metadata["_user"]
	if by := cmp.Or(tg.Choice.Prompt, tg.Body.Prompt); by != nil {
		r.PromptSlug = by.Slug
		r.SetPrompt(by.ID, by.Version, by.Experiment)
	}
	r.ConfigID, r.ConfigSlug, r.ConfigVersion, r.Mode = tg.Plan.Config.ID, tg.Plan.Config.Slug, tg.Plan.Config.Version, tg.Plan.Config.Mode
}

// keepSent stores the request to the provider if it differs from the client's. The body is not
// copied: it is valid until the next attempt, which replaces it.
func keepSent(tg *target.Target, log *record.Log, mk *target.SecretMask, h http.Header, body []byte) {
	log.Bodies.BeginAttempt()
	if !tg.Req.LogsBodies() || len(body) == 0 || tg.Req.Route.BodyMode == routes.Raw || tg.SameDialect() {
		return
	}
	names := tg.Req.Headers.Sensitive
	if len(tg.Choice.Target.CustomHeaders)+len(tg.Choice.Target.Credential.CustomHeaders) > 0 {
		names = mk.CustomNames(slices.Clone(names))
	}
	var room [8]string
	log.RecordRequest(h, body, names, tg.Choice.Target.Secrets(room[:0], false))
}

// sealBodies adds the logged bodies to the record, sealed.
func sealBodies(c *call, ctx context.Context) {
	full := c.req.LogsBodies()
	status := c.log.Outcome().Status
	failed := !succeeded(status)
	if !full && !failed {
		return
	}
	showBodies(c, full, failed)
	var err error
	if c.rec.Bodies, err = c.log.Bodies.Seal(ctx, c.relay.Sealer, c.rec.BodiesBinding()); err != nil {
		c.req.Fail("seal bodies", err)
	}
}

// showBodies states what the log shows of the bodies: everything, or of a failed request the
// response.
func showBodies(c *call, full, failed bool) {
	in := c.body.In
	if p := c.target.Choice.Prompt; p != c.body.Prompt && p != nil {
		in = p.Body
	}
	if c.guards.Request != nil {
		in = c.guards.Request // masked content is not logged
	}
	if full && c.req.Route.Operation == provider.BatchesCreate {
		in = batch.HideConfig(in)
	}
	var change func([]byte) []byte
	if c.guards.Masked.Any() {
		change = c.guards.Masked.MaskBody
	}
	if full && len(in) > 0 && withheld(c) {
		in = []byte(usage.Withheld)
		// A response that other requests composed repeats the request, or what their guardrails
		// restored in it. Protocols judge their results themselves.
		if c.protocol == nil && (!failed || c.reply.streams()) {
			change = func([]byte) []byte { return []byte(usage.Withheld) }
		}
	}
	var room [8]string
	c.log.Bodies.SetExtras(record.Extras{
		ResponseHeaders: c.reply.w.Header(), Change: change,
		NoResponse: c.req.Route.Operation == provider.Embeddings && !failed, // vectors are long and not informative
		Requests:   full, RequestHeaders: c.req.Req.Header, SensitiveHeaders: c.req.Headers.Sensitive, Request: in,
	}, secretsOf(&c.target, room[:0]))
}

// withheld reports whether the request must not be stored: it has input guardrails that can deny
// or change it, and they have not judged it, because it was rejected before or because other
// requests were made of it, which they judged one by one.
func withheld(c *call) bool {
	if c.guards.Judged.All() || c.req.WS == nil || c.req.Org == nil { // without settings nothing was read
		return false
	}
	targets, none := c.guards.Judged.Missed()
	if none {
		known := false
		if targets, known = c.plan.Leaves(c.relay.sources); !known {
			return true
		}
	}
	return c.relay.guards.Withholds(c.req.Base, &c.req, &c.guards.Judged, targets)
}

// secretsOf returns the secrets of a target, appended to dst.
func secretsOf(tg *target.Target, dst []string) []string {
	if tg.Choice.Target.Provider == nil {
		return dst
	}
	return tg.Choice.Target.Secrets(dst, false)
}

// hideInRecord redacts secrets in the parts of a response that the record repeats.
func hideInRecord(tg *target.Target, rec *usage.Record) {
	var room [8]string
	secrets := secretsOf(tg, room[:0])
	rec.Model, rec.FinishReason = mask.Text(rec.Model, secrets), mask.Text(rec.FinishReason, secrets)
	for i := range rec.Attempts {
		rec.Attempts[i].RequestID = mask.Text(rec.Attempts[i].RequestID, secrets)
	}
}
