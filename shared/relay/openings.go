package relay

import (
	"context"
	"errors"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/live"
	"gateway/shared/relay/recorder"
	"gateway/shared/relay/session"
)

// This file opens sessions whose first message names the model. The request that became a
// WebSocket is admitted; what its first message asks for is a request of its own, which
// takes the whole walk before a provider hears anything.

// awaitOpening takes the client's upgrade, waits for its first message and has the session
// opened.
func (c *call) awaitOpening() error {
	if !c.sessions.Open() {
		return restarting()
	}
	c.ownHeaders(c.w.Header())
	near, err := c.Route.Sockets.Accept(c.w, c.Req, asked.Agreed(c.Req.Header), c.w.Header())
	if err != nil {
		return err
	}
	c.headSent, c.status, c.firstByte = true, http.StatusSwitchingProtocols, c.Since()
	wire := c.Route.Live()
	end, ok := c.sessions.Begin(waiting{near})
	if !ok {
		live.Refuse(near, wire, restarting(), c.ULID)
		return nil
	}
	c.After(end) // once its record is written
	o, err := live.Open(c.Base, c.SessionTimes.Open, near, wire, c.Memory, c.Who.Scope.Org)
	if err != nil {
		c.unopened(near, o, err)
		return nil
	}
	c.opened(o)
	return nil
}

// waiting is a connection whose client has said nothing yet.
type waiting struct{ near session.Conn }

// Drain implements session.Ender.
func (w waiting) Drain() { w.near.Close(session.GoingAway, restarting().Message) }

// Break implements session.Ender.
func (w waiting) Break() { w.near.Drop() }

// unopened ends a connection on which no session was asked for.
func (c *call) unopened(near session.Conn, o *session.Opened, err error) {
	if e := (*session.Ended)(nil); errors.As(err, &e) {
		near.Close(e.Code, e.Reason) // nothing is sent where the client has closed it
		near.Linger()
		c.Heard.Finish = "closed_by_client"
	} else {
		c.failure = fault.From(err)
		if c.Heard.Finish = "ended_by_policy"; o != nil {
			c.Size = o.First
		}
		live.Refuse(near, c.Route.Live(), c.failure, c.ULID)
	}
	c.LearnOperation(chat.Meter{Started: true, Complete: true})
}

// opened takes the session that was asked for through the walk. That walk has the record.
func (c *call) opened(o *session.Opened) {
	req := c.Req.Clone(context.WithoutCancel(c.Req.Context()))
	req.Header.Set(asked.TraceID, c.Ask.TraceID)
	req.URL.RawQuery = ""
	answer, near := &recorder.Recorder{Max: live.MaxRefusal}, &live.Taken{Maker: c.Route.Sockets, Near: o.Near}
	c.inBooks = true
	broken := c.Relay.run(answer, req, c.Route.With(o, near), c.PathID, nil)
	if near.Begun {
		return
	}
	f := live.Refused(answer.Status, answer.Body.Bytes())
	if broken || f == nil {
		f = fault.New(fault.ServiceUnavailable, "", "The session could not be opened")
	}
	live.Refuse(o.Near, o.Wire, f, c.ULID)
}

// sendLive opens the client's side of a Live session.
func sendLive(s *sender, guards *guarded.Live) error {
	o := s.Route.Opened()
	near, err := s.Route.Sockets.Accept(s.w, s.Req, "", s.w.Header())
	if err != nil {
		return err
	}
	s.headSent, s.status, s.firstByte = true, http.StatusSwitchingProtocols, s.Since()
	run := &live.Session{
		Near: near, Far: s.far, Wire: o.Wire, Desk: newDesk(s), Times: s.SessionTimes, Memory: s.Memory, Tenant: s.Who.Scope.Org,
		ID: s.ULID, Model: s.To.Upstream, Opening: o.Opening, First: o.First,
		Judges: func() live.Judges { return guards.Now() },
	}
	if run.Model == "" {
		run.Model = s.To.Model
	}
	end, ok := s.sessions.Begin(run)
	if !ok {
		live.Refuse(near, o.Wire, restarting(), s.ULID)
		return nil
	}
	s.carry = carry{near, s.far, func() {
		result := run.Run(s.Base)
		s.ended(&result)
	}, end}
	return nil
}
