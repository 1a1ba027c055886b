package session

import (
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// end sends the client away. What is under way at the provider is ended, read to its
// end and booked; then the provider is left.
func (s *Session) end(code int, reason string, why *fault.Fault) {
	if s.stands.end(&Ended{code, reason}, why, false) {
		s.Near.Close(code, reason)
		s.leave()
	}
}

// clientLeft: nothing more goes to the client.
func (s *Session) clientLeft(err error) {
	if !s.stands.end(nil, nil, false) {
		return
	}
	s.stands.leftBy(err)
	CloseNear(s.Near, err)
	s.leave()
}

// leave leaves the provider once nothing is under way there, or after a while.
func (s *Session) leave() {
	s.cancelLeft()
	if s.turns.quiet() {
		s.Far.Close(s.stands.upstreamClose())
		return
	}
	s.stands.after(s.Times.Drain, s.Far.Drop)
}

// cancelLeft ends what is under way and has nobody who waits for it.
func (s *Session) cancelLeft() {
	if !s.stands.isOver() {
		return
	}
	for _, id := range s.turns.toCancel() {
		_ = s.Far.Write(false, realtime.Cancel(id)) // a provider that has gone is seen by its reader
	}
}

// leaveWhenDone ends a session whose last response has ended, when that was waited for.
// While a goroutine is telling the client of that end, it does this itself afterwards.
func (s *Session) leaveWhenDone() {
	over, leaves := s.stands.leaves()
	switch {
	case !leaves || !s.turns.quiet():
	case over:
		s.Far.Close(s.stands.upstreamClose())
	default:
		s.end(GoingAway, Restarting, nil)
	}
}

// providerLeft tells the client how the provider has ended the session.
func (s *Session) providerLeft(err error) {
	s.turns.leave()
	code, reason := ToldOfFar(s.Far, err)
	if s.stands.end(&Ended{code, reason}, nil, true) {
		s.Near.Close(code, reason)
		s.leave()
	}
	s.Far.Drop()
}

// Drain ends the session once no response is under way.
func (s *Session) Drain() {
	s.stands.drain()
	s.leaveWhenDone()
}

// Break ends the session now.
func (s *Session) Break() {
	s.end(GoingAway, Restarting, nil)
	s.Far.Drop()
}
