package relay

import (
	"gateway/shared/relay/record"
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
func holdsRetold(c *call, resp *http.Response) bool {
	return c.req.Route.Retold != nil && c.guards.Outputs() && c.guards.OnItsWay() && resp.StatusCode == http.StatusOK && events(resp)
}

// readRetold reads a stream that tells an answer again.
func readRetold(c *call, stream []byte) error {
	p := &c.plain
	if p.retold = kept.LastResponse(stream); p.retold == nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s broke off before its end", c.target.To.Target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	p.own, p.meter = true, chat.Meter{Complete: true, Started: true}
	c.metered.LearnOperation(p.meter)
	return nil
}

// sentRetold is what the client gets of such a stream: the stream itself, or another one
// where guardrails have changed the answer, with what they said.
func sentRetold(c *call, stream []byte) []byte {
	out := c.guards.FirstEvent(c.req.Route.Endpoint, c.target.Strict())
	if !c.guards.Changed {
		out = append(out, stream...)
	} else if r, err := c.req.Route.Retold.Client.DecodeResponse(c.guards.Answer, &c.target.To.Traits); err == nil {
		out = append(out, turn.Replay(r, c.req.Route.Retold.Client.NewStreamEncoder(options(c)))...)
	}
	return append(out, c.guards.LastEvent(c.req.Route.Endpoint, c.target.Strict())...)
}

// judgeRetold has those guardrails look at it that judge streams once they have ended.
func judgeRetold(c *call, stream []byte) {
	if c.req.Route.Retold == nil || !c.guards.JudgesEnd() {
		return
	}
	if whole := kept.LastResponse(stream); whole != nil && !kept.Unmade(whole) {
		c.guards.End(whole)
	}
	told := c.guards.LastEvent(c.req.Route.Endpoint, c.target.Strict())
	c.log.Body(record.Response, told)
	c.reply.write(told)
}
