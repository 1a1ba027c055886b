package relay

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/turn"
)

// An answer that was made in the background, or is kept, reaches the client with a later
// request. Guardrails behind answers judge it there, each time that it is told. They are
// those of the reading request, of its workspace and of the organisation. An answer that is
// still being made has nothing to judge.

// events tells whether an answer is a stream of events.
func events(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// holdsRetold tells whether a stream that tells an old answer again is read whole before it
// is sent, because a guardrail may refuse or change it. Nobody waits for its words one by
// one.
func (pl *plains) holdsRetold(resp *http.Response) bool {
	return pl.Route.Retold != nil && pl.guards.Outputs() && pl.guards.OnItsWay() && resp.StatusCode == http.StatusOK && events(resp)
}

// readRetold reads a stream that tells an answer again.
func (pl *plains) readRetold(stream []byte) error {
	p := &pl.plain
	if p.retold = kept.LastResponse(stream); p.retold == nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s broke off before its end", pl.To.Target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	p.own, p.meter = true, chat.Meter{Complete: true, Started: true}
	pl.LearnOperation(p.meter)
	return nil
}

// sentRetold is what the client gets of such a stream: the stream itself, or another one
// where guardrails have changed the answer, with what they said.
func sentRetold(s *sender, stream []byte) []byte {
	out := s.guards.FirstEvent(s.Route.Endpoint, s.Strict())
	if !s.guards.Changed {
		out = append(out, stream...)
	} else if r, err := s.Route.Retold.Client.DecodeResponse(s.guards.Answer, &s.To.Traits); err == nil {
		out = append(out, turn.Replay(r, s.Route.Retold.Client.NewStreamEncoder(s.options()))...)
	}
	return append(out, s.guards.LastEvent(s.Route.Endpoint, s.Strict())...)
}

// judgeRetold has those guardrails look at it that judge streams once they have ended.
func judgeRetold(s *sender, stream []byte) {
	if s.Route.Retold == nil || !s.guards.JudgesEnd() {
		return
	}
	if whole := kept.LastResponse(stream); whole != nil && !kept.Unmade(whole) {
		s.guards.End(whole)
	}
	told := s.guards.LastEvent(s.Route.Endpoint, s.Strict())
	s.captureAnswer(told)
	s.write(told)
}
