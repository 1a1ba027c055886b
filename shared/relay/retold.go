package relay

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/target"
)

// A background response, or a stored one, reaches the client with a later request. Output
// guardrails judge it there, on each read. They are those of the reading request, of its
// workspace and of the organization. A response in progress has nothing to judge.

// events reports whether a response is a stream of events.
func events(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// holdsRetold reports whether a stream that repeats an earlier response is read completely
// before it is sent, because a guardrail may deny or change it. No client depends on receiving
// it incrementally.
func holdsRetold(q *admission.Request, gs *guardrail.State, resp *http.Response) bool {
	return q.Route.Retold != nil && gs.Outputs() && gs.OnItsWay() && resp.StatusCode == http.StatusOK && events(resp)
}

// readRetold reads a stream that repeats an earlier response.
func readRetold(tg *target.Target, bill *accounting.Bill, pn *plain, stream []byte) error {
	p := pn
	if p.retold = ownership.LastResponse(stream); p.retold == nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s was truncated", tg.To.Target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	p.own, p.meter = true, chat.Meter{Complete: true, Started: true}
	accounting.LearnOperation(bill, p.meter)
	return nil
}

// sentRetold returns the client's version of such a stream: the stream itself, or another one if
// guardrails have changed the response, with their results.
func sentRetold(tg *target.Target, gs *guardrail.State, stream []byte) []byte {
	out := gs.FirstEvent(tg.Req.Route.Endpoint, tg.Strict())
	if !gs.Changed {
		out = append(out, stream...)
	} else if r, err := tg.Req.Route.Retold.Client.DecodeResponse(gs.Answer, &tg.To.Traits); err == nil {
		out = append(out, response.Replay(r, tg.Req.Route.Retold.Client.NewStreamEncoder(target.Options(tg)))...)
	}
	return append(out, gs.LastEvent(tg.Req.Route.Endpoint, tg.Strict())...)
}

// judgeRetold runs the guardrails that judge streams once they have ended on it.
func judgeRetold(tg *target.Target, rw *reply, log *record.Log, gs *guardrail.State, stream []byte) {
	if tg.Req.Route.Retold == nil || !gs.JudgesEnd() {
		return
	}
	if whole := ownership.LastResponse(stream); whole != nil && !ownership.Unmade(whole) {
		gs.End(whole)
	}
	told := gs.LastEvent(tg.Req.Route.Endpoint, tg.Strict())
	log.Body(record.Response, told)
	rw.write(told)
}
