package relay

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/came"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
)

// plain is the whole answer to a unified request that is not streamed. It is read while
// other targets can still be tried, so that a success that is no answer is retried like a
// bad gateway.
type plain struct {
	buf, made  *pooled.Buffer // the body that came, or what a carrier made of it
	media      string         // of what a carrier made; "": JSON
	own        bool           // it is passed on as it came
	retold     []byte         // it came as a stream: the answer that this ends with
	meter      chat.Meter
	translated *chat.Response
	signed     []chat.Signed
}

func (p *plain) free() {
	p.buf.Free()
	p.made.Free()
	*p = plain{}
}

// takesWhole tells whether an answer is read before it is chosen. A further part of an
// answer that is being sent is not.
func (o *outbound) takesWhole(resp *http.Response) bool {
	return o.Route.Shape != routes.Raw && o.Route.Shape != routes.Listing && o.Route.Shape != routes.Socket && o.Route.Operation != provider.BatchesOutput && !o.part.Further && !o.Passes(resp) && !o.Filtered()
}

// takePlain reads an answer whole, books it, and judges whether it is one.
func (pl *plains) takePlain(resp *http.Response) answer {
	p := &pl.plain
	p.free()
	p.buf = pooled.For(int(min(resp.ContentLength, maxPlainAnswer)) + 1)
	t, held := pl.Now(), pl.Lease.Held()
	err := pl.readWhole(p.buf, resp, maxPlainAnswer)
	pl.waited += pl.Now().Sub(t)
	_ = resp.Body.Close()
	if err == nil {
		err = pl.roomToDecode(len(p.buf.B))
	}
	if err != nil {
		err = pl.brokenAnswer(err, p.buf.B)
	} else {
		err = pl.readPlain(resp)
	}
	if err != nil {
		p.free()
		pl.Lease.Give(pl.Lease.Held() - held)
		return answer{fault: fault.From(err), failed: resp.Header}
	}
	return answer{resp: resp, whole: true}
}

// readPlain reads what was taken: usage, and what of it the client gets.
func (pl *plains) readPlain(resp *http.Response) (err error) {
	p := &pl.plain
	out := p.buf.B
	switch {
	case pl.holdsRetold(resp):
		return pl.readRetold(out)
	case pl.To.Carrier != nil:
		p.made = pooled.New()
		if p.made.B, p.media, p.meter, err = pl.To.Carrier.DecodeResponse(p.made.B, out, resp.Header, pl.Carried()); err != nil {
			return pl.unusable(err, out)
		}
		pl.Learn(p.meter)
	case pl.SameDialect() && !pl.cameAsEvents(out):
		p.own = true
		if tellsItems(pl.Route) {
			clean, err := approval.Clean(out)
			if err != nil {
				return pl.unusable(err, out)
			}
			out, p.buf.B = clean, clean
		}
		if pl.Req.Method == http.MethodPost && !came.Enclosed(out) {
			return pl.unusable(errNoJSON, out)
		}
		if p.meter = pl.Meter(out); p.meter.Err != nil {
			return pl.unusable(p.meter.Err, out)
		}
		if !pl.answers(&p.meter, out) {
			return pl.unusable(errNoAnswer, out)
		}
		if pl.operates() {
			pl.LearnOperation(p.meter)
		} else {
			pl.Learn(p.meter)
		}
		if c, ok := pl.Route.Client.(chat.Conformer); ok {
			p.buf.B = c.Conform(out, p.meter.Finish, pl.Strict())
		} else if pl.Route.Operation == provider.Embeddings {
			p.buf.B = openai.ConformEmbeddings(out, pl.In)
		}
	default:
		p.translated, p.meter, p.signed, err = pl.decodeWhole(out)
		if err != nil && pl.cameAsEvents(out) {
			return pl.eventsBroke(err, p.meter, out)
		}
		if err != nil {
			return pl.unusable(err, out)
		}
		if d, ok := pl.To.Dialect.(chat.Headed); ok {
			d.ReadHeader(resp.Header, p.translated)
			p.meter = p.translated.Meter()
		}
		if !pl.SameDialect() {
			if err = chat.Verify(p.translated, pl.Route.Client.Held(pl.options()), &pl.Loss); err != nil {
				return pl.unusable(err, out)
			}
		}
		pl.Learn(p.meter)
	}
	return nil
}

// tellsItems reports whether the answers of a route are responses, or lists of their items.
func tellsItems(rt *routes.Route) bool {
	switch rt.Operation {
	case provider.ResponsesCreate, provider.ResponsesGet, provider.ResponsesCancel, provider.ResponsesInputItems, provider.ResponsesCompact:
		return true
	}
	return false
}

// operates tells whether the route is metered as an operation, not as a
// conversation.
func (pl *plains) operates() bool {
	return pl.Route.Client == nil && (pl.Route.Demand != nil || pl.Route.Meter == nil)
}

var (
	errNoJSON   = errors.New("relay: the answer is not JSON")
	errNoAnswer = errors.New("relay: nothing of an answer is in it")
)

// answers tells whether a body in the client's dialect is an answer at all. One that tells
// usage, an id or a model is; others are looked at more closely.
func (pl *plains) answers(m *chat.Meter, out []byte) bool {
	if m.Usage.Known() || m.ID != "" || m.Model != "" || m.OutputBytes > 0 || pl.Req.Method != http.MethodPost {
		return true
	}
	if pl.Route.Client != nil {
		r, err := pl.Route.Client.DecodeResponse(out, &pl.To.Traits)
		return err == nil && (r.Meter().OutputBytes > 0 || len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0)
	}
	switch pl.Route.Operation {
	case provider.Embeddings:
		return bytes.Contains(out, []byte(`"embedding"`))
	case provider.Moderations:
		return bytes.Contains(out, []byte(`"results"`))
	}
	return true
}

// sendPlain answers a unified request that is not streamed.
func (s *sender) sendPlain(a *answer) error {
	resp := a.resp
	if !a.whole {
		if got := s.takePlain(resp); got.fault != nil {
			return got.fault
		}
	}
	p := &s.plain
	out, kind := p.buf.B, jsonType
	switch {
	case p.retold != nil:
		kind = eventStream
		out = sentRetold(s, out)
	case s.guards.Answer != nil:
		out = s.guards.Answer
		if !p.own {
			break
		}
		if err := s.KeepMade(p.buf.B, p.meter.ID); err != nil {
			return err
		}
	case p.own:
		if s.operates() {
			holdBatch(s, out)
			s.settleBatch(out)
			s.SettleResponse(out, false)
		}
		if err := s.KeepMade(out, p.meter.ID); err != nil {
			return err
		}
	case p.translated == nil:
		s.keepReceived(out)
		if out = p.made.B; p.media != "" {
			kind = []string{p.media}
		}
	default:
		enc := pooled.New()
		defer enc.Free()
		if err := s.encodePlain(enc); err != nil {
			return err
		}
		out = enc.B
	}
	if s.reuse.Keeps() {
		s.reuse.Keep(out)
	}
	if s.guards.On && kind[0] == jsonType[0] {
		out = s.guards.Told(s.guards.Taken.Restored(out), true)
	}
	h := s.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	s.answerHeaders(resp.Header)
	s.sendWhole(s.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// encodePlain writes a decoded answer as the client reads it.
func (pl *plains) encodePlain(enc *pooled.Buffer) error {
	p := &pl.plain
	o := pl.options()
	if pl.SameDialect() {
		o.Request = pl.LegacyOnly()
		if err := pl.KeepMade(p.buf.B, p.meter.ID); err != nil {
			return err
		}
	} else {
		if err := pl.Decoded.Promised(p.translated); err != nil {
			pl.keepReceived(p.buf.B)
			return err
		}
		pl.Remember(p.signed)
	}
	pl.keepReceived(p.buf.B)
	missed := chat.MissedBy(pl.Route.Client, o, &pl.Loss)
	missed.Whole(p.translated)
	enc.B = pl.Route.Client.EncodeResponse(enc.B, p.translated, o)
	return nil
}
