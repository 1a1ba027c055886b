package relay

import (
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/record"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/wire"
)

// guardInput runs the input guardrails of a resolved target on the request to it, which is the
// client's body after the target's config. If they change it, the changed body is sent.
func guardInput(r *Relay, tg *target.Target, gs *guardrail.State, leaf *route.Leaf) error {
	if !guardrail.Wants(leaf, tg.Req) {
		return nil
	}
	changed, err := gs.Input(r.guards, tg, leaf, requestContent(tg), images(r, tg.Req))
	if err != nil || changed == nil {
		return err
	}
	return target.Rewrite(tg, changed)
}

// images returns a function that fetches images for checks that put them into the request,
// all of them within the limit of the media of a request. A fetch ends with the context of
// its check, which has the lane of the request.
func images(r *Relay, q *admission.Request) judge.Fetch {
	f := body.NewMediaFetcher(r.Transport, r.Egress.WithoutTrusted(), q.Lease)
	return func(ctx context.Context, address string, most int64) (mime, data string, err error) {
		return f.Image(ctx, address, most)
	}
}

// guardOutput runs the output guardrails of a target on its response. A denial replaces the
// response; of a stream, guardStream has had the held part judged.
func guardOutput(c *call, _ *route.Leaf, a answer) answer {
	if !c.guards.On || a.fault != nil {
		return a
	}
	if a.resp != nil && !a.whole && !a.stream.Is() {
		if a = guardPassed(c, a); a.fault != nil {
			return a
		}
		if c.guards.Changed {
			c.log.Body(record.Received, nil)
		}
	}
	if c.guards.Outputs() && a.whole && a.status() == http.StatusOK {
		out, err := inClientShape(&c.target, &c.log, &c.plain)
		if err == nil && !ownership.Unmade(out) {
			accounting.SettleResponse(&c.bill, out, false) // it is charged regardless of the verdict
			err = asError(c.guards.Output(out))
		}
		if c.guards.Changed {
			c.log.Body(record.Received, nil) // the log contains nothing that was removed from it, denied or not
		}
		if err != nil {
			return answer{fault: fault.From(err), failed: a.resp.Header}
		}
	}
	a.soft = a.status() == http.StatusOK && c.guards.Verdict.Failed()
	return a
}

func asError(f *fault.Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// inClientShape returns a complete response in the client's format, in its own memory.
func inClientShape(tg *target.Target, log *record.Log, pn *plain) ([]byte, error) {
	p := pn
	switch {
	case p.retold != nil:
		return p.retold, nil
	case p.own:
		return p.buf.B, nil
	case p.translated == nil:
		log.Body(record.Received, p.buf.B)
		return p.made.B, nil
	}
	enc := buffer.Buffer{}
	err := encodePlain(tg, log, pn, &enc)
	return enc.B, err
}

// repeats reports whether the target is called once more because of the guardrails' verdict on
// its response: its config lists their status.
func repeats(c *call, s *route.Schedule, a *answer) bool {
	refused, _ := c.guards.Verdict.Refused()
	if !a.soft && !refused || c.reply.headSent || c.out.bodySpent || !s.Repeat(a.status()) {
		return false
	}
	if c.bill.CoverAgain() != nil {
		return false
	}
	c.log.Retried(s.Count())
	a.drop()
	c.guards.Again()
	return true
}

// deniedBody returns the body of a denial: in OpenAI's format an error with the results of the
// hooks, or, if the guardrail is configured so, a response with the error as its text. It is nil
// if the denial is an ordinary error.
func deniedBody(relay *Relay, tg *target.Target, gs *guardrail.State, h http.Header, f *fault.Fault) []byte {
	client := tg.Req.Route.Client
	if made := tg.Req.Route.Retold; made != nil {
		client = made.Client
	}
	if _, soft := gs.Verdict.Refused(); !soft || client == nil || tg.Req.Route.Shape != routes.Unified && tg.Req.Route.Retold == nil {
		if d, ok := errorSpeaker(relay, tg).(chat.Dialect); ok && !strings.HasPrefix(d.Name(), "openai.") {
			return nil
		}
		body := append(wire.AppendJSONString([]byte(`{"error":{"message":`), f.Message), `,"type":"hooks_failed","param":null,"code":null},"hook_results":`...)
		return append(gs.Shown().Append(body, true), '}')
	}
	r := &chat.Response{ID: tg.Req.ULID, Model: tg.To.Model, Created: tg.Req.Start.Unix(), Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: f.Message}}, Stop: chat.StopEnd, Native: "stop"}}}
	if tg.Stream {
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		return replayed(tg, gs, r)
	}
	return gs.WithResults(client.EncodeResponse(nil, r, target.Options(tg)), true)
}

// guardStream prepares the output guardrails of a target for a stream, before its first byte is
// read. A stream that is judged while it is forwarded is decoded and encoded, even if client and
// provider use the same dialect.
func guardStream(tg *target.Target, gs *guardrail.State, st *streamState, a *answer) {
	if !gs.On {
		return
	}
	gs.Again()
	if !gs.OnItsWay() || tg.Req.Route.Client == nil {
		return
	}
	dec, o := tg.To.Dialect.NewStreamDecoder(&tg.To.Traits), target.Options(tg)
	if tg.SameDialect() {
		o.Request = tg.Body.LegacyOnly()
	}
	a.stream = translate(tg, gs, st, guardedDecoder(tg, gs, verified(tg, dec, o), o), o)
}

// guardedDecoder returns a decoder that checks the stream it decodes.
func guardedDecoder(tg *target.Target, gs *guardrail.State, dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !gs.On || tg.Req.Route.Client == nil {
		return dec
	}
	return gs.Decoder(dec, guardrail.Shape{Client: tg.Req.Route.Client, Options: *o, Traits: &tg.To.Traits})
}

// drain reads a denied stream to its end, for its usage: it was created, and is charged.
func drain(tg *target.Target, gs *guardrail.State, ca *reused.Cache, st *streamState, a *answer) {
	tg.Req.Leave()
	chunk := buffer.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	for !a.ended {
		n, err := a.resp.Body.Read(p)
		if n > 0 {
			if _, ferr := pass(tg, gs, ca, st, a, p[:n]); ferr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// denyStream immediately ends a started stream with the denial; then the rest is read and
// settled.
func denyStream(c *call, a *answer, f *fault.Fault) error {
	c.log.Reject(f)
	// Client libraries stop reading at the error.
	last, _ := a.stream.AppendError(c.guards.LastEvent(c.req.Route.Endpoint, c.target.Strict()), f)
	c.log.Body(record.Response, last)
	c.reply.tail = c.reply.tail[:0]
	c.reply.write(last)
	c.reply.flush()
	drain(&c.target, &c.guards, &c.cache, &c.stream, a)
	c.target.Remember(a.stream.Signed())
	accounting.Learn(&c.bill, a.stream.Meter())
	keepBooks(c)
	breakConnection(&c.reply)
	return nil
}

// judgeEnd runs the guardrails that judge a stream once it has ended. The client has all of it
// by then.
func judgeEnd(tg *target.Target, rw *reply, log *record.Log, gs *guardrail.State, a *answer) {
	if !gs.On {
		return
	}
	if whole := a.stream.Judged(); whole != nil {
		rw.write(rw.tail)
		rw.tail = rw.tail[:0]
		rw.flush()
		gs.End(encodeWhole(tg, nil, a, whole))
	}
	told := gs.LastEvent(tg.Req.Route.Endpoint, tg.Strict())
	log.Body(record.Response, told)
	rw.tail = append(rw.tail, told...)
}

// streamTold returns a complete stream with the results of the input hooks.
func streamTold(tg *target.Target, gs *guardrail.State, out []byte) []byte {
	if told := gs.FirstEvent(tg.Req.Route.Endpoint, tg.Strict()); len(told) > 0 {
		return append(told, out...)
	}
	return out
}
