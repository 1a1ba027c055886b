package relay

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/resource"
	"gateway/shared/usage"
)

// governed serves the request by the protocol of the route.
func governed(c *call, by routes.Protocol) error {
	c.protocol = &calling{began: c.relay.Now()}
	g := routes.ProtocolCall{
		Context: c.req.Ctx, Request: c.req.Req, Body: c.body.In, Caller: c.req.Principal, View: c.req.View, Metadata: c.body.Metadata, TraceID: c.req.Headers.TraceID,
		Bearer: c.req.KeyInAuth, Now: c.relay.Now, Pipeline: &governor{c, c.protocol},
		Deps: routes.ProtocolDeps{Transport: c.relay.Transport, Hosts: c.relay.TrustedTransport, Sealer: c.relay.Sealer, Secrets: &provider.Loaded{Secrets: c.target.Deps.Secrets, Loader: c.relay.Loader}, Loader: c.relay.Loader, State: c.relay.owners.Table, Signing: c.relay.Signing, CheckURL: c.relay.Egress.WithoutTrusted().CheckURL, Buffers: c.relay.RecordAfterBody},
	}
	return by.Serve(&g)
}

// calling is the state of a protocol's call.
type calling struct {
	server, integration, name string
	call                      *usage.Call
	began                     time.Time // of the upstream call in progress
	streamed                  bool
}

func (c *calling) note(server, integration, name string, call *usage.Call) {
	c.server, c.integration, c.name, c.call = server, integration, name, call
}

func (c *calling) start(at time.Time) { c.began = at }

func (c *calling) stream() { c.streamed = true }

// describeCall records a protocol's call.
func describeCall(rec *usage.Record, pc *calling) {
	if pc == nil || pc.call == nil {
		return
	}
	of, r := pc, rec
	own := *of.call
	r.Stream = of.streamed
	r.Call, r.Provider, r.ProviderSlug, r.IntegrationID, r.Model, r.RequestModel = &own, own.Protocol, of.server, of.integration, of.name, of.name
}

// governor implements routes.ProtocolPipeline for a request that calls no model.
type governor struct {
	s  *call
	of *calling
}

// Reauthenticate implements routes.ProtocolPipeline.
func (g *governor) Reauthenticate() (*identity.Principal, *resource.View, error) {
	now, err := g.s.req.Reauthenticate(g.s.req.Ctx)
	if err != nil {
		return nil, nil, err
	}
	return now.Principal, now.View, nil
}

// Forwards implements routes.ProtocolPipeline.
func (g *governor) Forwards() http.Header { return g.s.req.HeadersForProvider() }

// Count implements routes.ProtocolPipeline: by the rates of key and workspace, and by the policies of tools.
func (g *governor) Count(server, tool string) error { return g.s.bill.CountTool(server, tool) }

// CountRequest implements routes.ProtocolPipeline.
func (g *governor) CountRequest() error { return g.s.bill.CountCall() }

// OwnedByCaller implements routes.ProtocolPipeline.
func (g *governor) OwnedByCaller(place string, ids ...string) ([]bool, error) {
	who, err := g.s.relay.owners.Lookup(g.s.req.Ctx, g.s.req.Principal.Scope, place, ids)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	out := make([]bool, len(ids))
	for i, id := range ids {
		owner, known := who[id]
		out[i] = known && owner == g.s.req.Principal.Scope.Workspace
	}
	return out, nil
}

// RecordOwnership implements routes.ProtocolPipeline.
func (g *governor) RecordOwnership(place string, ids ...string) error {
	if err := g.s.relay.owners.Record(g.s.req.Ctx, g.s.req.Principal.Scope, []string{place}, g.of.server, ids...); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Guard implements routes.ProtocolPipeline.
func (g *governor) Guard(name string, args []byte) (changed []byte, denied bool, err error) {
	s := g.s
	return s.guards.JudgeCall(s.relay.guards, &s.req, s.req.Route.Endpoint, name, s.body.Metadata, args)
}

// Judge implements routes.ProtocolPipeline.
func (g *governor) Judge(result []byte) ([]byte, bool) { return g.s.guards.JudgeResult(result) }

// JudgeMessage implements routes.ProtocolPipeline.
func (g *governor) JudgeMessage(name string, message []byte, ofClient bool) ([]byte, bool, error) {
	s := g.s
	now, err := s.req.Reauthenticate(s.req.Ctx)
	if err != nil {
		return nil, false, err
	}
	phase := guard.After
	if ofClient {
		phase = guard.Before
	}
	return s.guards.Message(s.relay.guards, &s.req, now, phase, name, message)
}

// RecordCall implements routes.ProtocolPipeline.
func (g *governor) RecordCall(server, integration, name string, call *usage.Call) {
	g.of.note(server, integration, name, call)
	target.Serve(&g.s.target, server, call.Protocol)
}

// StartResponse implements routes.ProtocolPipeline.
func (g *governor) StartResponse() {
	g.of.start(g.s.relay.Now())
	g.s.bill.Spending.Try(usage.Attempt{Provider: g.of.call.Protocol, ProviderSlug: g.of.server, Model: g.of.name, Start: g.s.req.Since()})
}

// Ended implements routes.ProtocolPipeline.
func (g *governor) Ended(status int) {
	took := g.s.relay.Now().Sub(g.of.began)
	g.s.log.Wait(took)
	g.s.log.Attempt(took)
	if a := g.s.bill.Spending.Last(); a != nil {
		a.End(status, "", took)
	}
}

// RecordSizes implements routes.ProtocolPipeline. It charges nothing.
func (g *governor) RecordSizes(up, down int) {
	u := pricing.Usage{Estimated: true}
	u.Add(pricing.Input, response.TokensOfBytes(up))
	u.Add(pricing.Output, response.TokensOfBytes(down))
	g.s.bill.Spending.Charge(u, pricing.Price{}, false)
	g.s.bill.Spending.Unpriced()
}

// Trace implements routes.ProtocolPipeline.
func (g *governor) Trace(within string) string {
	if within != "" {
		g.s.req.Headers.Within(within)
	}
	return g.s.req.Headers.Traceparent()
}

// Header implements routes.ProtocolPipeline.
func (g *governor) Header() http.Header { return g.s.reply.w.Header() }

// Send implements routes.ProtocolPipeline.
func (g *governor) Send(status int, media string, body []byte, failure *fault.Fault) {
	s := g.s
	h := s.reply.w.Header()
	if media != "" {
		h.Set("Content-Type", media)
	}
	if failure != nil {
		failure.SetHeaders(h)
		s.log.Fail(failure)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	ownHeaders(s, h)
	sendWhole(s, status, body)
}

// Event implements routes.ProtocolPipeline.
func (g *governor) Event(event []byte, last bool, failure *fault.Fault) {
	s := g.s
	if !s.reply.headSent {
		h := s.reply.w.Header()
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		h.Set("X-Accel-Buffering", "no")
		ownHeaders(s, h)
		g.of.stream()
		s.reply.head(http.StatusOK)
	}
	if failure != nil {
		s.log.Fail(failure)
	}
	s.log.Body(record.Response, event)
	if !last {
		s.reply.write(event)
		s.reply.flush()
		return
	}
	s.reply.last(event)
	settleAndRecord(s)
	flushTail(s.relay, &s.reply)
}

// headerBeta is the header by which clients request beta features.
const headerBeta = "X-Gateway-Beta"

// wantsTools reports whether the gateway must call tools for the model.
func wantsTools(q *admission.Request, in *body.Body, of *routes.ToolRun) bool {
	return len(q.Req.Header[headerBeta]) > 0 && of.Matches(q.Req.Header, in.In)
}

// runTools responds with the model's response after the tools that it requests were called.
func runTools(c *call, of *routes.ToolRun) error {
	if scope := of.Calls.Scope; !c.req.Principal.Has(scope) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s, which tool calls need", scope)
	}
	judge, err := judgeTools(c.relay, &c.req, &c.plan, &c.guards)
	if err != nil {
		return err
	}
	p, out := newPartner(c, c.req.Route), &governor{c, new(calling)}
	p.below(&c.req)
	calls, req := of.Calls, c.req.Req
	desk := routes.ToolLoop{
		Context: req.Context(), Body: c.body.In, ID: c.req.ULID, Now: c.relay.Now,
		Approvals: &approval.Requests{Table: c.relay.owners.Table, Now: c.relay.Now, Scope: c.req.Principal.Scope},
		SendTurn:  p.Send,
		Call: func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) bool {
			own := p.header.Clone()
			for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
				delete(own, name) // it is for the model's provider
			}
			for name := range h {
				own[name] = h[name]
			}
			return p.take(ctx, w, calls, slug, own, body, req)
		},
		Judge: judge, Header: out.Header, Send: out.Send, Event: out.Event, Sign: signOfLife(&c.req),
		StreamError: func(f *fault.Fault, next int64, id string) []byte {
			o := target.Options(&c.target)
			o.NextEvent, o.ID = next, id
			return c.req.Route.Client.AppendStreamError(nil, f, o)
		},
	}
	c.bill.Spending.Unpriced() // its parts are charged separately
	return of.Serve(&desk)
}

// judgeTools returns the function that judges the results of tools of the run: the output
// guardrails of the config, of all its targets, because the target of a turn is not known yet.
// Those of the workspace and the organization judge each call of a server. It returns nil if
// there are none.
func judgeTools(r *Relay, q *admission.Request, pl *plan.Plan, gs *guardrail.State) (func(ctx context.Context, tool string, result []byte) ([]byte, *fault.Fault), error) {
	if err := pl.Resolve(r.sources); err != nil {
		return nil, err
	}
	if pl.Traversal == nil {
		return nil, nil
	}
	results, err := guardrail.NewToolResults(r.guards, q, pl.Traversal.Leaves(), &gs.Entries)
	if err != nil || results == nil {
		return nil, err
	}
	return results.Judge, nil
}
