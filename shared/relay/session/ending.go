package session

import (
	"time"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

func (s *Session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end sends the client away. What is under way at the provider is ended, read to its
// end and booked; then the provider is left.
func (s *Session) end(code int, reason string, why *fault.Fault) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.draining, s.ended = true, true, &Ended{code, reason}
	s.mu.Unlock()
	s.turns.mu.Lock()
	s.turns.why = why
	s.turns.mu.Unlock()
	s.Near.Close(code, reason)
	s.leave()
}

// clientLeft: nothing more goes to the client.
func (s *Session) clientLeft(err error) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.draining = true, true
	s.mu.Unlock()
	CloseNear(s.Near, err)
	s.leave()
}

// leave leaves the provider once nothing is under way there, or after a while.
func (s *Session) leave() {
	s.cancelLeft()
	if s.turns.quiet() {
		s.Far.Close(Normal, "")
		return
	}
	s.mu.Lock()
	if s.late == nil {
		s.late = time.AfterFunc(s.Times.Drain, s.Far.Drop)
	}
	s.mu.Unlock()
}

// cancelLeft ends what is under way and has nobody who waits for it.
func (s *Session) cancelLeft() {
	if !s.isOver() {
		return
	}
	for _, id := range s.turns.toCancel() {
		_ = s.Far.Write(false, realtime.Cancel(id)) // a provider that has gone is seen by its reader
	}
}

// leaveWhenDone ends a session whose last response has ended, when that was waited for.
// While the client is told of its end, who tells it does this afterwards.
func (s *Session) leaveWhenDone() {
	s.mu.Lock()
	over, draining, telling := s.over, s.draining, s.telling
	s.mu.Unlock()
	switch {
	case telling || !draining || !s.turns.quiet():
	case over:
		s.Far.Close(Normal, "")
	default:
		s.end(GoingAway, Restarting, nil)
	}
}

// providerLeft tells the client how the provider has ended the session.
func (s *Session) providerLeft(err error) {
	s.turns.leave()
	code, reason := ToldOfFar(s.Far, err)
	s.end(code, reason, nil)
	s.Far.Drop()
}

// Drain ends the session once no response is under way.
func (s *Session) Drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.leaveWhenDone()
}

// Break ends the session now.
func (s *Session) Break() {
	s.end(GoingAway, Restarting, nil)
	s.Far.Drop()
}
