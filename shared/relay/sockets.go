package relay

import (
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
	"gateway/shared/relay/asked"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/spoken"
)

// This file opens the sessions of Socket routes and ends them. Until both sides are
// open such a request is as every other: its targets are tried in turn.

// roundTrip asks the target. A Socket route's answer is the connection that was opened.
func (o *outbound) roundTrip(req *http.Request) (*http.Response, error) {
	if o.Route.Shape != routes.Socket {
		return o.out().RoundTrip(req)
	}
	far, resp, err := o.Route.Sockets.Dial(req.Context(), &session.Address{
		URL: req.URL, Header: req.Header, Protocols: asked.Protocols(o.Req.Header), Dialer: o.dialers.Of(o.Egress, o.To.AtOwnHost()),
	})
	switch {
	case err != nil:
		return nil, err
	case far == nil && resp.StatusCode < 300:
		resp.StatusCode = http.StatusBadGateway // a success without a WebSocket is none
		return resp, nil
	case far == nil:
		return resp, nil
	}
	o.far = far
	return &http.Response{StatusCode: http.StatusOK, Header: resp.Header, Body: session.Body{Conn: far}}, nil
}

// socketURL is the address of a session at the target.
func (o *outbound) socketURL() (*url.URL, error) {
	if o.Route.Live != nil {
		raw, err := o.To.Target.PassthroughURL(strings.Replace(o.Route.Path, "{id}", url.PathEscape(o.ID), 1), "")
		if err != nil {
			return nil, err
		}
		return provider.ExactURL(raw)
	}
	q := o.SocketQuery()
	var raw string
	var err error
	if o.Through() || o.To.Model == "" {
		if o.To.Upstream != "" {
			q.Set("model", o.To.Upstream)
		}
		raw, err = o.To.Target.PassthroughURL(o.Route.Path, "")
	} else {
		raw, err = o.To.Target.URL(o.To.Op, o.To.Model, false)
	}
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(provider.AddQuery(raw, q.Encode()))
}

// Sessions serves routes with Sockets. Functions have no such routes and, as only NewSessions
// refers to what serves them, do not link it.
type Sessions struct {
	open     func(*sender, *http.Response) error // opens the client's side, once the provider's is open
	await    func(*call) error                   // opens a session whose first message names the model
	converse func(*call) error                   // takes the requests of a session one by one
}

// NewSessions returns what serves routes with Sockets.
func NewSessions() *Sessions {
	return &Sessions{open: sendSession, await: (*call).awaitOpening, converse: (*call).converse}
}

// sendSession opens the client's side of a session.
func sendSession(s *sender, resp *http.Response) error {
	err := openNear(s, resp)
	if s.carry.run == nil {
		s.far.Drop()
	}
	return err
}

// carry is a session that was opened. It runs once its handler has returned, so that what
// a server holds for a request is free again while the session lasts, the handler's deep
// stack before all.
type carry struct {
	near, far session.Conn // far: nil without a provider
	run       func()       // to the session's end
	end       func()       // of session.Running
}

// carryOn carries a session to its end and finishes its walk. A panic ends the session, as
// a server ends a request.
func (r *Relay) carryOn(c *call, s carry) {
	defer s.end()
	defer func() {
		if v := recover(); v != nil {
			slog.Error("session panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			s.near.Drop()
			if s.far != nil {
				s.far.Drop()
			}
		}
	}()
	s.run()
	r.over(c)
}

func openNear(s *sender, resp *http.Response) error {
	guards, err := s.guards.GoLive(s.Relay.guards, s.Target, s.To.Leaf, s.images())
	if err != nil {
		return err
	}
	if s.Route.Live != nil {
		return sendLive(s, guards)
	}
	s.answerHeaders(resp.Header)
	near, err := s.Route.Sockets.Accept(s.w, s.Req, asked.Agreed(s.Req.Header, resp.Header.Get("Sec-Websocket-Protocol"), "realtime"), s.w.Header())
	if err != nil {
		return err
	}
	s.headSent, s.status, s.firstByte = true, http.StatusSwitchingProtocols, s.Since()
	live := &session.Session{
		Near: near, Far: s.far, Times: s.SessionTimes, Memory: s.Memory, Tenant: s.Who.Scope.Org, ID: s.ULID, Model: s.To.Model,
		Names: namesOf(s.Model),
	}
	if s.Bound != nil {
		live.Opening = s.Bound.Opening()
	}
	desk := newDesk(s)
	desk.guard = spoken.New(s.Base, func() spoken.Judges { return guards.Now() }, spoken.Session{
		ID: s.ULID, Model: s.To.Model, Strict: s.Strict(), Memory: s.Memory, Tenant: s.Who.Scope.Org,
	})
	live.Desk, live.Guard = desk, desk.guard
	end, ok := s.sessions.Begin(live)
	if !ok {
		desk.guard.Close()
		near.Close(session.GoingAway, session.Restarting)
		near.Linger()
		return nil
	}
	s.carry = carry{near, s.far, func() {
		defer desk.guard.Close()
		result := live.Run(s.Base)
		s.ended(&result)
	}, end}
	return nil
}

// namesOf returns the names by which a client may repeat the model that it asked for:
// @slug/model is also model.
func namesOf(asked string) []string {
	if asked == "" {
		return nil
	}
	names := []string{asked}
	if _, model, ok := strings.Cut(asked, "/"); ok && strings.HasPrefix(asked, "@") {
		names = append(names, model)
	}
	return names
}

// ended notes how a session has ended.
func (s *sender) ended(r *session.Result) {
	s.guards.Notes.Ended(s.guards.Live())
	s.Size, s.answered = r.FromClient, r.ToClient
	s.Heard.Finish = r.Told()
	switch {
	case r.Fault != nil:
		s.failure = r.Fault
	case r.ByProvider && r.Code == session.ServerError:
		recordFailure(s.reply, brokeOff())
	}
	s.LearnOperation(chat.Meter{Started: true, Complete: true})
}

// Drain tells realtime sessions to end, each once no response of it is under way: the
// process is to stop. New ones are refused. It does not wait.
func (r *Relay) Drain() { r.sessions.Drain() }

// openSession opens a session, unless none is begun any more.
func (c *call) openSession() error {
	if !c.sessions.Open() {
		return restarting()
	}
	return c.relay()
}

// restarting is why no session is begun.
func restarting() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", "The gateway is restarting; try again")
	f.RetryAfter = time.Second
	return f
}
