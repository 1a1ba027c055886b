package relay

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/realtime"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
)

// converse serves a WebSocket on which each message that requests a response is a separate
// request.
func converse(c *call, turns *routes.Dialogue) error {
	if !c.relay.sessions.Open() {
		return restarting()
	}
	ownHeaders(c, c.reply.w.Header())
	protocol := ""
	if offered := admission.Protocols(c.req.Req.Header); len(offered) > 0 {
		protocol = offered[0] // browsers require a subprotocol that they have offered
	}
	client, err := c.req.Route.Sockets().Accept(c.reply.w, c.req.Req, protocol, c.reply.w.Header())
	if err != nil {
		return err
	}
	c.reply.upgraded()
	d := &realtime.Dialogue{
		Client: client, Times: c.relay.SessionTimes, Memory: c.relay.Memory, Tenant: c.req.Principal.Scope.Org, ID: c.req.ULID, Now: c.relay.Now, Responder: newPartner(c, turns.ResponsesRoute()),
	}
	end, ok := c.relay.sessions.Add(d)
	if !ok {
		client.Close(session.CloseGoingAway, realtime.Restarting)
		client.Linger()
		return nil
	}
	c.reply.carry = carry{client, nil, func() {
		result := d.Run(c.req.Base)
		c.body.AddReceived(result.FromClient)
		c.log.Count(result.ToClient)
		c.bill.Reported.Ended(result.Summary())
		if result.Fault != nil {
			c.log.Fail(result.Fault)
		}
		accounting.RecordOperationUsage(&c.bill, chat.Meter{Started: true, Complete: true})
	}, end}
	return nil
}

// partner sends the child requests of a request through the pipeline, each as a separate request
// of its caller. The parts of the call that it reads do not change while it runs.
type partner struct {
	relay  *Relay
	of     *call
	route  *routes.Route
	header http.Header // copied to each request
	key    string
}

func newPartner(c *call, rt *routes.Route) *partner {
	h := c.req.HeadersForProvider().Clone()
	h.Del("X-Gateway-Api-Key")
	for name := range h {
		if strings.HasPrefix(name, "Sec-Websocket-") || name == "Connection" || name == "Upgrade" {
			delete(h, name)
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set(admission.TraceID, c.req.Headers.TraceID)
	return &partner{relay: c.relay, of: c, route: rt, header: h, key: c.req.KeyHash()}
}

// below makes further child requests parts of q in the trace.
func (p *partner) below(q *admission.Request) {
	h := p.header
	for _, name := range [...]string{headerBeta, "X-Gateway-Span-Id", "X-Gateway-Span-Name", "Origin", "Content-Length"} {
		delete(h, name)
	}
	h.Set(admission.ParentSpanID, cmp.Or(q.Headers.SpanID, q.ULID))
}

// Send implements realtime.Responder.
func (p *partner) Send(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool) {
	return p.take(ctx, w, p.route, "", p.header.Clone(), body, nil)
}

// take sends a request to a route through the pipeline. id is the variable of its path; like has
// the address at which the gateway was called, nil if it does not matter.
func (p *partner) take(ctx context.Context, w http.ResponseWriter, rt *routes.Route, id string, h http.Header, body []byte, like *http.Request) (broken bool) {
	req, err := http.NewRequestWithContext(ctx, rt.Method, routes.BasePath+rt.At(id), bytes.NewReader(body))
	if err != nil {
		return true // both are internal values
	}
	if req.Header = h; like != nil {
		req.Host, req.TLS = like.Host, like.TLS
	}
	now, err := p.of.req.Reauthenticate(p.of.req.Base)
	if err != nil {
		f := fault.From(err)
		f.SetHeaders(w.Header())
		w.WriteHeader(f.Status())
		_, _ = w.Write(errorAt(rt, f)) // it is buffered
		return false
	}
	return p.relay.run(w, req, rt, url.PathEscape(id), &admission.InternalCall{Key: p.key, Caller: now.Principal})
}

// errorAt returns the body of an error at a route.
func errorAt(rt *routes.Route, f *fault.Fault) []byte {
	switch {
	case rt.Client != nil:
		return rt.Client.AppendError(nil, f, &chat.Options{})
	case rt.Errors != nil:
		return rt.Errors.AppendError(nil, f, &chat.Options{})
	}
	return f.DataBody(false)
}

// Check implements realtime.Responder.
func (p *partner) Check() error {
	now, err := p.of.req.Reauthenticate(p.of.req.Base)
	if err != nil {
		return err
	}
	own, _ := p.of.bill.Budgeted()
	for _, s := range append(accounting.Budgeted(now.Principal.Subject), own...) {
		if s == p.of.req.Principal.Subject && s != now.Principal.Subject {
			continue // the key's limits have changed
		}
		exhausted, err := p.relay.budgets.Exhausted(p.of.req.Base, s)
		if err != nil {
			return err
		}
		if exhausted {
			return fault.Newf(fault.BudgetExhausted, "", "The budget of %s is exhausted", s.Label)
		}
	}
	return nil
}

// Fail implements realtime.Responder.
func (p *partner) Fail(where string, err error) { p.of.req.Fail(where, err) }
