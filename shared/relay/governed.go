package relay

import (
	"net/http"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/came"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
	"gateway/shared/usage"
)

// governed answers by the protocol of the route.
func (c *call) governed() error {
	c.calling = &calling{began: c.Now()}
	g := routes.Governed{
		Context: c.Ctx, Request: c.Req, Body: c.In, Caller: c.Who, View: c.View, Metadata: c.Metadata, TraceID: c.Ask.TraceID,
		Bearer: c.KeyInAuth, Now: c.Relay.Now, Walk: &governor{&c.sender, c.calling},
		Own: routes.Own{Via: c.Transport, Hosts: c.Trusting, Sealer: c.Sealer, Secrets: &provider.Loaded{Secrets: c.Means.Secrets, Loader: c.Loader}, Loader: c.Loader, Kept: c.Relay.owners.Table, Signing: c.Signing, CheckURL: c.Egress.WithoutTrusted().CheckURL, Buffers: c.RecordAfterBody},
	}
	return c.Route.Protocol.Answer(&g)
}

// calling is what is known of a call of a protocol.
type calling struct {
	server, integration, name string
	call                      *usage.Call
	began                     time.Time // of the upstream's call under way
	streamed                  bool
}

// describeCall tells what a protocol said of its call.
func (l *logbook) describeCall() {
	if l.calling == nil || l.calling.call == nil {
		return
	}
	of, r := l.calling, &l.rec
	own := *of.call
	r.Stream = of.streamed
	r.Call, r.Provider, r.ProviderSlug, r.IntegrationID, r.Model, r.RequestModel = &own, own.Protocol, of.server, of.integration, of.name, of.name
}

// governor is the walk of a request that asks no model.
type governor struct {
	s  *sender
	of *calling
}

// Still implements routes.Walk.
func (g *governor) Still() (*identity.Principal, *resource.View, error) {
	now, err := g.s.books.Still(g.s.Ctx)
	if err != nil {
		return nil, nil, err
	}
	return now.Who, now.View, nil
}

// Forwards implements routes.Walk.
func (g *governor) Forwards() http.Header { return g.s.HeadersForProvider() }

// Count implements routes.Walk: by the rates of key and workspace as any request is, and
// by the policies of tools.
func (g *governor) Count(server, tool string) error { return g.s.CountTool(server, tool) }

// CountRequest implements routes.Walk.
func (g *governor) CountRequest() error { return g.s.CountCall() }

// Mine implements routes.Walk.
func (g *governor) Mine(place string, ids ...string) ([]bool, error) {
	who, err := g.s.owners.Of(g.s.Ctx, g.s.Who.Scope, place, ids)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	out := make([]bool, len(ids))
	for i, id := range ids {
		owner, known := who[id]
		out[i] = known && owner == g.s.Who.Scope.Workspace
	}
	return out, nil
}

// Keep implements routes.Walk.
func (g *governor) Keep(place string, ids ...string) error {
	if err := g.s.owners.Own(g.s.Ctx, g.s.Who.Scope, []string{place}, g.of.server, ids...); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Guard implements routes.Walk.
func (g *governor) Guard(name string, args []byte) (changed []byte, denied bool, err error) {
	s := g.s
	return s.guards.Around(s.Relay.guards, &s.Request, s.Route.Endpoint, name, s.Metadata, args)
}

// Judge implements routes.Walk.
func (g *governor) Judge(result []byte) ([]byte, bool) { return g.s.guards.Behind(result) }

// Note implements routes.Walk.
func (g *governor) Note(server, integration, name string, call *usage.Call) {
	g.of.server, g.of.integration, g.of.name, g.of.call = server, integration, name, call
	g.s.To.Names.Slug, g.s.To.Names.Provider = server, call.Protocol
}

// Began implements routes.Walk.
func (g *governor) Began() {
	g.of.began = g.s.Now()
	a := g.s.Purse.Try()
	a.Provider, a.ProviderSlug, a.Model, a.Start = g.of.call.Protocol, g.of.server, g.of.name, g.s.Since()
}

// Ended implements routes.Walk.
func (g *governor) Ended(status int) {
	took := g.s.Now().Sub(g.of.began)
	g.s.waited += took
	g.s.upstream = took
	if a := g.s.Purse.Last(); a != nil {
		a.Status, a.Latency = status, took
	}
}

// Used implements routes.Walk. Nothing is charged for it.
func (g *governor) Used(up, down int) {
	u := pricing.Usage{Estimated: true}
	u.Add(pricing.Input, came.Tokens(up))
	u.Add(pricing.Output, came.Tokens(down))
	g.s.Purse.Charge(u, pricing.Price{}, false)
	g.s.Purse.Priced = true
}

// Trace implements routes.Walk.
func (g *governor) Trace(within string) string {
	if within != "" {
		g.s.Ask.Within(within)
	}
	return g.s.Ask.Traceparent()
}

// Header implements routes.Walk.
func (g *governor) Header() http.Header { return g.s.w.Header() }

// Send implements routes.Walk.
func (g *governor) Send(status int, media string, body []byte, failure *fault.Fault) {
	s := g.s
	h := s.w.Header()
	if media != "" {
		h.Set("Content-Type", media)
	}
	if failure != nil {
		failure.SetHeaders(h)
		s.failure = failure
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	s.ownHeaders(h)
	s.sendWhole(status, body)
}

// Event implements routes.Walk.
func (g *governor) Event(event []byte, last bool, failure *fault.Fault) {
	s := g.s
	if !s.headSent {
		h := s.w.Header()
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		h.Set("X-Accel-Buffering", "no")
		s.ownHeaders(h)
		g.of.streamed = true
		s.head(http.StatusOK)
	}
	if failure != nil {
		s.failure = failure
	}
	s.captureAnswer(event)
	if !last {
		s.write(event)
		s.flush()
		return
	}
	s.tail = append(s.tail[:0], event...)
	s.keepBooks()
	s.flushTail()
}
