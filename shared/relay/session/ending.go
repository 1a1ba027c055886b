package session

import (
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// end disconnects the client. Work in progress at the provider is ended, read to its end and
// charged; then the provider is disconnected.
func (s *Session) end(code int, reason string, why *fault.Fault) {
	if s.stands.end(&Ended{code, reason}, why, false) {
		s.Near.Close(code, reason)
		s.leave()
	}
}

// clientLeft ends the session after the client has disconnected: nothing more is sent to it.
func (s *Session) clientLeft(err error) {
	if !s.stands.end(nil, nil, false) {
		return
	}
	s.stands.leftBy(err)
	CloseNear(s.Near, err)
	s.leave()
}

// leave disconnects the provider once nothing is in progress there, or after a while.
func (s *Session) leave() {
	s.cancelLeft()
	if s.turns.quiet() {
		s.Far.Close(s.stands.upstreamClose())
		return
	}
	s.stands.after(s.Times.Drain, s.Far.Drop)
}

// cancelLeft cancels responses in progress that no client waits for.
func (s *Session) cancelLeft() {
	if !s.stands.isOver() {
		return
	}
	for _, id := range s.turns.toCancel() {
		_ = s.Far.Write(false, realtime.Cancel(id)) // a provider that is gone is detected by its reader
	}
}

// leaveWhenDone ends a draining session after its last response has ended. If a goroutine is
// still sending that end to the client, that goroutine calls it again afterwards.
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

// providerLeft reports to the client how the provider has ended the session.
func (s *Session) providerLeft(err error) {
	s.turns.leave()
	code, reason := CloseForClient(s.Far, err)
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
