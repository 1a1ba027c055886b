package relay

import (
	"context"
	"errors"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/realtime"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/session"
)

// This file opens sessions with a first message that names the model. The request that became a
// WebSocket is admitted; its first message is a separate request, which runs the complete
// pipeline before any provider is called.

// awaitOpening accepts the client's upgrade, waits for its first message and opens the session.
func awaitOpening(c *call) error {
	if !c.relay.sessions.Open() {
		return restarting()
	}
	ownHeaders(c, c.reply.w.Header())
	near, err := c.req.Route.Sockets().Accept(c.reply.w, c.req.Req, admission.AgreedProtocol(c.req.Req.Header), c.reply.w.Header())
	if err != nil {
		return err
	}
	c.reply.upgraded()
	wire := c.req.Route.Live().Wire()
	end, ok := c.relay.sessions.Begin(waiting{near})
	if !ok {
		realtime.RefuseLive(near, wire, restarting(), c.req.ULID)
		return nil
	}
	c.req.After(end) // once its record is written
	o, err := realtime.OpenLive(c.req.Base, c.relay.SessionTimes.Open, near, wire, c.relay.Memory, c.req.Who.Scope.Org)
	if err != nil {
		unopened(&c.req, &c.body, &c.bill, &c.log, near, o, err)
		return nil
	}
	opened(c.relay, &c.req, &c.log, o)
	return nil
}

// waiting is a connection without a first message yet.
type waiting struct{ near session.Conn }

// Drain implements session.Ender.
func (w waiting) Drain() { w.near.Close(session.GoingAway, restarting().Message) }

// Break implements session.Ender.
func (w waiting) Break() { w.near.Drop() }

// unopened ends a connection without a session.
func unopened(q *admission.Request, in *body.Body, bill *accounting.Bill, log *record.Log, near session.Conn, o *session.Opened, err error) {
	if e := (*session.Ended)(nil); errors.As(err, &e) {
		near.Close(e.Code, e.Reason) // nothing is sent if the client has closed it
		near.Linger()
		bill.Reported.Ended("closed_by_client")
	} else {
		f := fault.From(err)
		log.Fail(f)
		bill.Reported.Ended("ended_by_policy")
		if o != nil {
			in.Carried(o.First)
		}
		realtime.RefuseLive(near, q.Route.Live().Wire(), f, q.ULID)
	}
	accounting.LearnOperation(bill, chat.Meter{Started: true, Complete: true})
}

// opened runs the requested session through the pipeline, which writes the record.
func opened(r *Relay, q *admission.Request, log *record.Log, o *session.Opened) {
	req := q.Req.Clone(context.WithoutCancel(q.Req.Context()))
	req.Header.Set(admission.TraceID, q.Ask.TraceID)
	req.URL.RawQuery = ""
	answer, near := &response.Recorder{Max: realtime.MaxRefusal}, &realtime.TakenConn{Maker: q.Route.Sockets(), Near: o.Near}
	log.Close() // the opened session writes the record
	broken := r.run(answer, req, q.Route.With(o, near), q.PathID, nil)
	if near.Begun {
		return
	}
	f := realtime.LiveRefusal(answer.Status, answer.Body.Bytes())
	if broken || f == nil {
		f = fault.New(fault.ServiceUnavailable, "", "The session could not be opened")
	}
	realtime.RefuseLive(o.Near, o.Wire, f, q.ULID)
}

// sendLive opens the client's side of a Live session.
func sendLive(c *call, guards *guardrail.Live) error {
	o := c.req.Route.Opened()
	near, err := c.req.Route.Sockets().Accept(c.reply.w, c.req.Req, "", c.reply.w.Header())
	if err != nil {
		return err
	}
	c.reply.upgraded()
	run := &realtime.LiveSession{
		Near: near, Far: c.out.far, Wire: o.Wire, Controller: newSessionController(c), Times: c.relay.SessionTimes, Memory: c.relay.Memory, Tenant: c.req.Who.Scope.Org,
		ID: c.req.ULID, Model: c.target.To.Upstream, Opening: o.Opening, First: o.First,
		Judges: func() realtime.Judges { return guards.Now() },
	}
	if run.Model == "" {
		run.Model = c.target.To.Model
	}
	end, ok := c.relay.sessions.Begin(run)
	if !ok {
		realtime.RefuseLive(near, o.Wire, restarting(), c.req.ULID)
		return nil
	}
	c.reply.carry = carry{near, c.out.far, func() {
		result := run.Run(c.req.Base)
		ended(&c.body, &c.bill, &c.log, &c.guards, &result)
	}, end}
	return nil
}
