package realtime

import (
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

func (s *LiveSession) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end disconnects the client. Work in progress at the provider is read to its end and charged;
// then the provider is disconnected.
func (s *LiveSession) end(code int, reason string, why *fault.Fault) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.ended, s.why = true, &session.Ended{Code: code, Reason: reason}, why
	s.mu.Unlock()
	s.Near.Close(code, reason)
	s.part()
}

// clientLeft ends the session after the client has disconnected: nothing more is sent to it.
func (s *LiveSession) clientLeft(err error) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.left = true, err
	s.mu.Unlock()
	session.CloseNear(s.Near, err)
	s.part()
}

// part disconnects the provider once it has reported all work in progress, or after a while.
func (s *LiveSession) part() {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun || !s.Wire.Busy() {
		s.leave()
		return
	}
	s.mu.Lock()
	first := s.late == nil
	if first {
		s.late = time.AfterFunc(s.Times.Drain, s.Far.Drop)
	}
	s.mu.Unlock()
	if bye := s.Wire.Bye(); first && bye != nil {
		_ = s.Far.Write(false, bye) // a provider that is gone is detected by its reader
	}
}

// leave disconnects an idle provider after the client has disconnected.
func (s *LiveSession) leave() {
	s.mu.Lock()
	leaves := s.over && !s.leaving
	s.leaving = s.leaving || leaves
	left := s.left
	s.mu.Unlock()
	if leaves {
		s.Far.Close(session.UpstreamClose(left))
	}
}

// providerLeft reports to the client how the provider has ended the session.
func (s *LiveSession) providerLeft(err error) {
	code, reason := session.CloseForClient(s.Far, err)
	s.end(code, reason, nil)
	s.Far.Drop()
}

// Drain implements session.Ender: the session ends, and work in progress is charged.
func (s *LiveSession) Drain() { s.end(session.GoingAway, session.Restarting, nil) }

// Break implements session.Ender.
func (s *LiveSession) Break() {
	s.end(session.GoingAway, session.Restarting, nil)
	s.Far.Drop()
}
