package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/realtime"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/target"
)

// This file opens and ends the sessions of Socket routes. Until both sides are open such a
// request is like any other: its targets are tried in turn.

// roundTrip calls the target. The response on a Socket route is the opened connection.
func roundTrip(r *Relay, tg *target.Target, up *outbound, req *http.Request) (*http.Response, error) {
	if tg.Req.Route.BodyMode != routes.Socket {
		return out(r, tg).RoundTrip(req)
	}
	far, resp, err := tg.Req.Route.Sockets().Dial(req.Context(), &session.Address{
		URL: req.URL, Header: req.Header, Protocols: admission.Protocols(tg.Req.Req.Header), Dialer: r.dialers.Of(r.Egress, tg.Choice.AtOwnHost()),
	})
	switch {
	case err != nil:
		return nil, err
	case far == nil && resp.StatusCode < 300:
		resp.StatusCode = http.StatusBadGateway // a success without a WebSocket is invalid
		return resp, nil
	case far == nil:
		return resp, nil
	}
	up.providerConn = far
	return &http.Response{StatusCode: http.StatusOK, Header: resp.Header, Body: session.Body{Conn: far}}, nil
}

// socketURL returns the URL of a session at the target.
func socketURL(tg *target.Target) (*url.URL, error) {
	if tg.Req.Route.Live() != nil {
		raw, err := tg.Choice.Target.PassthroughURL(strings.Replace(tg.Req.Route.Path, "{id}", url.PathEscape(tg.Body.ID), 1), "")
		if err != nil {
			return nil, err
		}
		return provider.ExactURL(raw)
	}
	q := tg.SocketQuery()
	var raw string
	var err error
	if tg.UsesRoutePath() || tg.Choice.Model == "" {
		if tg.Choice.Upstream != "" {
			q.Set("model", tg.Choice.Upstream)
		}
		raw, err = tg.Choice.Target.PassthroughURL(tg.Req.Route.Path, "")
	} else {
		raw, err = tg.Choice.Target.URL(tg.Choice.Op, tg.Choice.Model, false)
	}
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(provider.AddQuery(raw, q.Encode()))
}

// Sessions serves routes with Sockets. Lambda functions have no such routes and, as only
// NewSessions refers to the code for them, do not link it.
type Sessions struct {
	open     func(*call, *http.Response) error   // opens the client's side, once the provider's is open
	await    func(*call) error                   // opens a session with a first message that names the model
	converse func(*call, *routes.Dialogue) error // serves the requests of a session one by one
}

// NewSessions returns the handlers of routes with Sockets.
func NewSessions() *Sessions {
	return &Sessions{open: sendSession, await: awaitOpening, converse: converse}
}

// sendSession opens the client's side of a session.
func sendSession(c *call, resp *http.Response) error {
	err := openNear(c, resp)
	if c.reply.carry.run == nil {
		c.out.providerConn.Drop()
	}
	return err
}

// carry is an opened session. It runs after its handler has returned, so that the server's
// memory for a request is free while the session lasts, above all the handler's deep stack.
type carry struct {
	near, providerConn session.Conn // far: nil without a provider
	run                func()       // to the session's end
	end                func()       // of session.Running
}

// carryOn runs a session to its end and finishes its pipeline. A panic ends the session, as a
// server ends a request.
func (r *Relay) carryOn(c *call, s carry) {
	defer s.end()
	defer func() {
		if v := recover(); v != nil {
			slog.Error("session panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			s.near.Drop()
			if s.providerConn != nil {
				s.providerConn.Drop()
			}
		}
	}()
	s.run()
	r.over(c)
}

func openNear(c *call, resp *http.Response) error {
	guards, err := c.guards.PrepareSession(c.relay.guards, &c.target, c.target.Choice.Leaf, images(c.relay, &c.req))
	if err != nil {
		return err
	}
	if c.req.Route.Live() != nil {
		return sendLive(c, guards)
	}
	setResponseHeaders(c, resp.Header)
	near, err := c.req.Route.Sockets().Accept(c.reply.w, c.req.Req, admission.AgreedProtocol(c.req.Req.Header, resp.Header.Get("Sec-Websocket-Protocol"), "realtime"), c.reply.w.Header())
	if err != nil {
		return err
	}
	c.reply.upgraded()
	live := &session.Session{
		Client: near, Provider: c.out.providerConn, Times: c.relay.SessionTimes, Memory: c.relay.Memory, Tenant: c.req.Principal.Scope.Org, ID: c.req.ULID, Model: c.target.Choice.Model,
		Names: session.Names(c.target.Choice.Names.Slug, c.req.Req.URL.Query().Get("model"), c.body.Model),
	}
	if c.req.ClientSecret != nil {
		live.FirstMessage = c.req.ClientSecret.FirstEvent()
	}
	desk := newSessionController(c)
	desk.guard = realtime.NewGuard(c.req.Base, func() realtime.Guardrails { return guards.Now() }, realtime.GuardedSession{
		ID: c.req.ULID, Model: c.target.Choice.Model, Strict: c.target.StrictOpenAI(), Memory: c.relay.Memory, Tenant: c.req.Principal.Scope.Org,
	})
	live.Controller, live.Guard = desk, desk.guard
	end, ok := c.relay.sessions.Add(live)
	if !ok {
		desk.guard.Close()
		near.Close(session.CloseGoingAway, session.Restarting)
		near.Linger()
		return nil
	}
	c.reply.carry = carry{near, c.out.providerConn, func() {
		defer desk.guard.Close()
		result := live.Run(c.req.Base)
		ended(&c.body, &c.bill, &c.log, &c.guards, &result)
	}, end}
	return nil
}

// ended records how a session has ended.
func ended(in *body.Body, bill *accounting.Bill, log *record.Log, gs *guardrail.State, r *session.Result) {
	gs.Entries.Ended(gs.Live())
	in.AddReceived(r.FromClient)
	log.Count(r.ToClient)
	bill.Reported.Ended(r.Summary())
	switch {
	case r.Fault != nil:
		log.Fail(r.Fault)
	case r.ByProvider && r.Code == session.ServerError:
		log.Reject(brokeOff())
	}
	accounting.RecordOperationUsage(bill, chat.Meter{Started: true, Complete: true})
}

// Drain makes realtime sessions end, each once none of its responses is in progress, because the
// process is about to stop. New ones are rejected. It does not wait.
func (r *Relay) Drain() { r.sessions.Drain() }

// openSession opens a session, unless the process is stopping.
func openSession(c *call) error {
	if !c.relay.sessions.Open() {
		return restarting()
	}
	return relay(c)
}

// restarting returns the fault for a session that is not opened because the process is stopping.
func restarting() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", "The gateway is restarting; try again")
	f.RetryAfter = time.Second
	return f
}

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
	end, ok := c.relay.sessions.Add(waiting{near})
	if !ok {
		realtime.RejectLive(near, wire, restarting(), c.req.ULID)
		return nil
	}
	c.req.Defer(end) // once its record is written
	o, err := realtime.OpenLive(c.req.Base, c.relay.SessionTimes.Open, near, wire, c.relay.Memory, c.req.Principal.Scope.Org)
	if err != nil {
		unopened(&c.req, &c.body, &c.bill, &c.log, near, o, err)
		return nil
	}
	opened(c.relay, &c.req, &c.log, o)
	return nil
}

// waiting is a connection without a first message yet.
type waiting struct{ near session.Conn }

// Drain implements session.Closer.
func (w waiting) Drain() { w.near.Close(session.CloseGoingAway, restarting().Message) }

// Break implements session.Closer.
func (w waiting) Break() { w.near.Drop() }

// unopened ends a connection without a session.
func unopened(q *admission.Request, in *body.Body, bill *accounting.Bill, log *record.Log, near session.Conn, o *session.ClientConn, err error) {
	if e := (*session.Ended)(nil); errors.As(err, &e) {
		near.Close(e.Code, e.Reason) // nothing is sent if the client has closed it
		near.Linger()
		bill.Reported.Ended("closed_by_client")
	} else {
		f := fault.From(err)
		log.Fail(f)
		bill.Reported.Ended("ended_by_policy")
		if o != nil {
			in.AddReceived(o.First)
		}
		realtime.RejectLive(near, q.Route.Live().Wire(), f, q.ULID)
	}
	accounting.RecordOperationUsage(bill, chat.Meter{Started: true, Complete: true})
}

// opened runs the requested session through the pipeline, which writes the record.
func opened(r *Relay, q *admission.Request, log *record.Log, o *session.ClientConn) {
	req := q.Req.Clone(context.WithoutCancel(q.Req.Context()))
	req.Header.Set(admission.TraceID, q.Headers.TraceID)
	req.URL.RawQuery = ""
	answer, near := &response.Recorder{Max: realtime.MaxRefusal}, &realtime.AcceptedConn{Sockets: q.Route.Sockets(), Client: o.Conn}
	log.Close() // the opened session writes the record
	broken := r.run(answer, req, q.Route.WithConn(o, near), q.PathID, nil)
	if near.Accepted {
		return
	}
	f := realtime.LiveRefusal(answer.Status, answer.Body.Bytes())
	if broken || f == nil {
		f = fault.New(fault.ServiceUnavailable, "", "The session could not be opened")
	}
	realtime.RejectLive(o.Conn, o.Wire, f, q.ULID)
}

// sendLive opens the client's side of a Live session.
func sendLive(c *call, guards *guardrail.Live) error {
	o := c.req.Route.ClientConn()
	near, err := c.req.Route.Sockets().Accept(c.reply.w, c.req.Req, "", c.reply.w.Header())
	if err != nil {
		return err
	}
	c.reply.upgraded()
	run := &realtime.LiveSession{
		Client: near, Provider: c.out.providerConn, Wire: o.Wire, Controller: newSessionController(c), Times: c.relay.SessionTimes, Memory: c.relay.Memory, Tenant: c.req.Principal.Scope.Org,
		ID: c.req.ULID, Model: c.target.Choice.Upstream, FirstMessage: o.FirstMessage, First: o.First,
		Guardrails: func() realtime.Guardrails { return guards.Now() },
	}
	if run.Model == "" {
		run.Model = c.target.Choice.Model
	}
	end, ok := c.relay.sessions.Add(run)
	if !ok {
		realtime.RejectLive(near, o.Wire, restarting(), c.req.ULID)
		return nil
	}
	c.reply.carry = carry{near, c.out.providerConn, func() {
		result := run.Run(c.req.Base)
		ended(&c.body, &c.bill, &c.log, &c.guards, &result)
	}, end}
	return nil
}
