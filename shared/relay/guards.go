package relay

import (
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/media"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/wire"
)

// guardInput is where the guardrails before a target judge what it is to be sent. The
// target is chosen, and the client's body is what its config made of it. What they make
// of it goes in its place, and the target is asked for that.
func (rq *requests) guardInput(leaf *route.Leaf) error {
	if !guarded.Wants(leaf, &rq.Request) {
		return nil
	}
	changed, err := rq.guards.Input(rq.Relay.guards, rq.Target, leaf, rq.content(), rq.images())
	if err != nil || changed == nil {
		return err
	}
	return rq.Rewrite(changed)
}

// images returns a function that fetches images for checks that put them into the request,
// all of them within the limit of the media of a request. A fetch ends with the context of
// its check, which has the lane of the request.
func (rq *requests) images() judge.Fetch {
	f := media.NewFetcher(rq.Transport, rq.Egress.WithoutTrusted(), rq.Lease)
	return func(ctx context.Context, address string, most int64) (mime, data string, err error) {
		return f.Image(ctx, address, most)
	}
}

// guardOutput is where the guardrails behind a target judge its answer. What they refuse
// becomes the answer; of a stream, guardStream has had judged what was held of it.
func (x *exchanges) guardOutput(_ *route.Leaf, a answer) answer {
	if !x.guards.On || a.fault != nil {
		return a
	}
	if a.resp != nil && !a.whole && !a.stream.Is() {
		if a = x.guardPassed(a); a.fault != nil {
			return a
		}
		if x.guards.Changed {
			x.keepReceived(nil)
		}
	}
	if x.guards.Outputs() && a.whole && a.status() == http.StatusOK {
		out, err := x.inClientShape()
		if err == nil && !kept.Unmade(out) {
			x.SettleResponse(out, false) // it is paid for whatever they say
			err = asError(x.guards.Output(out))
		}
		if x.guards.Changed {
			x.keepReceived(nil) // the log has nothing that was removed from it, denied or not
		}
		if err != nil {
			return answer{fault: fault.From(err), failed: a.resp.Header}
		}
	}
	a.soft = a.status() == http.StatusOK && x.guards.Verdict.Failed()
	return a
}

func asError(f *fault.Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// inClientShape is a whole answer as the client would get it, in memory of its own.
func (pl *plains) inClientShape() ([]byte, error) {
	p := &pl.plain
	switch {
	case p.retold != nil:
		return p.retold, nil
	case p.own:
		return p.buf.B, nil
	case p.translated == nil:
		pl.keepReceived(p.buf.B)
		return p.made.B, nil
	}
	enc := pooled.Buffer{}
	err := pl.encodePlain(&enc)
	return enc.B, err
}

// repeats tells whether the target is called once more because of what guardrails said
// of its answer: its config lists their status.
func (x *exchanges) repeats(s *route.Schedule, a *answer) bool {
	refused, _ := x.guards.Verdict.Refused()
	if !a.soft && !refused || x.headSent || x.bodySpent || !s.Repeat(a.status()) {
		return false
	}
	if x.CoverAgain() != nil {
		return false
	}
	x.retries = s.Count()
	a.drop()
	x.guards.Again()
	return true
}

// deniedBody returns the body of a denial: in OpenAI's shape an error with the results of
// the hooks, or, where the guardrail says so, a response with the error for its text. It is
// nil where the denial is an error like others.
func deniedBody(s *sender, h http.Header, f *fault.Fault) []byte {
	client := s.Route.Client
	if made := s.Route.Retold; made != nil {
		client = made.Client
	}
	if _, soft := s.guards.Verdict.Refused(); !soft || client == nil || s.Route.Shape != routes.Unified && s.Route.Retold == nil {
		if d, ok := errorSpeaker(s).(chat.Dialect); ok && !strings.HasPrefix(d.Name(), "openai.") {
			return nil
		}
		body := append(wire.AppendJSONString([]byte(`{"error":{"message":`), f.Message), `,"type":"hooks_failed","param":null,"code":null},"hook_results":`...)
		return append(s.guards.Shown().Append(body, true), '}')
	}
	r := &chat.Response{ID: s.ULID, Model: s.To.Model, Created: s.Start.Unix(), Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: f.Message}}, Stop: chat.StopEnd, Native: "stop"}}}
	if s.Stream {
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		return s.replayed(r)
	}
	return s.guards.Told(client.EncodeResponse(nil, r, s.options()), true)
}

// guardStream is where the guardrails behind a target begin to judge an answer that is
// a stream, before its first byte is read. One that is judged on its way is decoded and
// written anew, also where client and provider speak the same dialect.
func (st *streams) guardStream(a *answer) {
	if !st.guards.On {
		return
	}
	st.guards.Again()
	if !st.guards.OnItsWay() || st.Route.Client == nil {
		return
	}
	dec, o := st.To.Dialect.NewStreamDecoder(&st.To.Traits), st.options()
	if st.SameDialect() {
		o.Request = st.LegacyOnly()
	}
	a.stream = st.translate(st.guarded(verified(st, dec, o), o), o)
}

// guarded is a decoder whose stream is judged on its way.
func (st *streams) guarded(dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !st.guards.On || st.Route.Client == nil {
		return dec
	}
	return st.guards.Decoder(dec, guarded.Shape{Client: st.Route.Client, Options: *o, Traits: &st.To.Traits})
}

// drain reads a stream that was denied to its end, for what it used: it was made, and
// is paid for.
func (st *streams) drain(a *answer) {
	st.Leave()
	chunk := pooled.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	for !a.ended {
		n, err := a.resp.Body.Read(p)
		if n > 0 {
			if _, ferr := st.pass(a, p[:n]); ferr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// denyStream ends a stream that has begun with the denial, at once; then it is read on
// and settled.
func (s *streams) denyStream(a *answer, f *fault.Fault) error {
	recordFailure(s.reply, f)
	// Client libraries stop reading at the error.
	last, _ := a.stream.AppendError(s.guards.LastEvent(s.Route.Endpoint, s.Strict()), f)
	s.captureAnswer(last)
	s.tail = s.tail[:0]
	s.write(last)
	s.flush()
	s.drain(a)
	s.Remember(a.stream.Signed())
	s.Learn(a.stream.Meter())
	s.keepBooks()
	breakConnection(s.reply)
	return nil
}

// judgeEnd has the guardrails that do not judge a stream on its way look at it once it
// has ended. The client has all of it by then.
func (s *streams) judgeEnd(a *answer) {
	if !s.guards.On {
		return
	}
	if whole := a.stream.Judged(); whole != nil {
		s.write(s.tail)
		s.tail = s.tail[:0]
		s.flush()
		s.guards.End(s.encodeWhole(nil, a, whole))
	}
	told := s.guards.LastEvent(s.Route.Endpoint, s.Strict())
	s.captureAnswer(told)
	s.tail = append(s.tail, told...)
}

// streamTold is a whole stream with what the hooks before it said.
func (ca *answerCache) streamTold(out []byte) []byte {
	if told := ca.guards.FirstEvent(ca.Route.Endpoint, ca.Strict()); len(told) > 0 {
		return append(told, out...)
	}
	return out
}
