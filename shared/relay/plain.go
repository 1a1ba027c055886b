package relay

import (
	"bytes"
	"errors"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/record"
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/came"
	"gateway/shared/relay/routes"
)

// plain is the whole answer to a unified request that is not streamed. It is read while
// other targets can still be tried, so that a success that is no answer is retried like a
// bad gateway.
type plain struct {
	buf, made  *buffer.Buffer // the body that came, or what a carrier made of it
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
func takesWhole(c *call, resp *http.Response) bool {
	return c.req.Route.Shape != routes.Raw && c.req.Route.Shape != routes.Listing && c.req.Route.Shape != routes.Socket && c.req.Route.Operation != provider.BatchesOutput && !c.out.part.Further && !c.target.Passes(resp) && !chosen.Filtered(&c.target)
}

// takePlain reads an answer whole, books it, and judges whether it is one.
func takePlain(c *call, resp *http.Response) answer {
	p := &c.plain
	p.free()
	p.buf = buffer.For(int(min(resp.ContentLength, maxPlainAnswer)) + 1)
	t, held := c.relay.Now(), c.req.Lease.Held()
	err := readWhole(c, p.buf, resp, maxPlainAnswer)
	c.log.Wait(c.relay.Now().Sub(t))
	_ = resp.Body.Close()
	if err == nil {
		err = roomToDecode(c, len(p.buf.B))
	}
	if err != nil {
		err = brokenAnswer(c, err, p.buf.B)
	} else {
		err = readPlain(c, resp)
	}
	if err != nil {
		p.free()
		c.req.Lease.Give(c.req.Lease.Held() - held)
		return answer{fault: fault.From(err), failed: resp.Header}
	}
	return answer{resp: resp, whole: true}
}

// readPlain reads what was taken: usage, and what of it the client gets.
func readPlain(c *call, resp *http.Response) (err error) {
	p := &c.plain
	out := p.buf.B
	switch {
	case holdsRetold(c, resp):
		return readRetold(c, out)
	case c.target.To.Carrier != nil:
		p.made = buffer.New()
		if p.made.B, p.media, p.meter, err = c.target.To.Carrier.DecodeResponse(p.made.B, out, resp.Header, c.target.Carried()); err != nil {
			return unusable(c, err, out)
		}
		c.metered.Learn(p.meter)
	case c.target.SameDialect() && !cameAsEvents(c, out):
		p.own = true
		if tellsItems(c.req.Route) {
			clean, err := approval.Clean(out)
			if err != nil {
				return unusable(c, err, out)
			}
			out, p.buf.B = clean, clean
		}
		if c.req.Req.Method == http.MethodPost && !came.Enclosed(out) {
			return unusable(c, errNoJSON, out)
		}
		if p.meter = c.metered.Meter(out); p.meter.Err != nil {
			return unusable(c, p.meter.Err, out)
		}
		if !answers(c, &p.meter, out) {
			return unusable(c, errNoAnswer, out)
		}
		if operates(c) {
			c.metered.LearnOperation(p.meter)
		} else {
			c.metered.Learn(p.meter)
		}
		if client, ok := c.req.Route.Client.(chat.Conformer); ok {
			p.buf.B = client.Conform(out, p.meter.Finish, c.target.Strict())
		} else if c.req.Route.Operation == provider.Embeddings {
			p.buf.B = openai.ConformEmbeddings(out, c.body.In)
		}
	default:
		p.translated, p.meter, p.signed, err = decodeWhole(c, out)
		if err != nil && cameAsEvents(c, out) {
			return eventsBroke(c, err, p.meter, out)
		}
		if err != nil {
			return unusable(c, err, out)
		}
		if d, ok := c.target.To.Dialect.(chat.Headed); ok {
			d.ReadHeader(resp.Header, p.translated)
			p.meter = p.translated.Meter()
		}
		if !c.target.SameDialect() {
			if err = chat.Verify(p.translated, c.req.Route.Client.Held(options(c)), &c.target.Loss); err != nil {
				return unusable(c, err, out)
			}
		}
		c.metered.Learn(p.meter)
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
func operates(c *call) bool {
	return c.req.Route.Client == nil && (c.req.Route.Demand != nil || c.req.Route.Meter == nil)
}

var (
	errNoJSON   = errors.New("relay: the answer is not JSON")
	errNoAnswer = errors.New("relay: nothing of an answer is in it")
)

// answers tells whether a body in the client's dialect is an answer at all. One that tells
// usage, an id or a model is; others are looked at more closely.
func answers(c *call, m *chat.Meter, out []byte) bool {
	if m.Usage.Known() || m.ID != "" || m.Model != "" || m.OutputBytes > 0 || c.req.Req.Method != http.MethodPost {
		return true
	}
	if c.req.Route.Client != nil {
		r, err := c.req.Route.Client.DecodeResponse(out, &c.target.To.Traits)
		return err == nil && (r.Meter().OutputBytes > 0 || len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0)
	}
	switch c.req.Route.Operation {
	case provider.Embeddings:
		return bytes.Contains(out, []byte(`"embedding"`))
	case provider.Moderations:
		return bytes.Contains(out, []byte(`"results"`))
	}
	return true
}

// sendPlain answers a unified request that is not streamed.
func sendPlain(c *call, a *answer) error {
	resp := a.resp
	if !a.whole {
		if got := takePlain(c, resp); got.fault != nil {
			return got.fault
		}
	}
	p := &c.plain
	out, kind := p.buf.B, jsonType
	switch {
	case p.retold != nil:
		kind = eventStream
		out = sentRetold(c, out)
	case c.guards.Answer != nil:
		out = c.guards.Answer
		if !p.own {
			break
		}
		if err := chosen.KeepMade(&c.target, p.buf.B, p.meter.ID); err != nil {
			return err
		}
	case p.own:
		if operates(c) {
			holdBatch(c, out)
			settleBatch(c, out)
			c.metered.SettleResponse(out, false)
		}
		if err := chosen.KeepMade(&c.target, out, p.meter.ID); err != nil {
			return err
		}
	case p.translated == nil:
		c.log.Body(record.Received, out)
		if out = p.made.B; p.media != "" {
			kind = []string{p.media}
		}
	default:
		enc := buffer.New()
		defer enc.Free()
		if err := encodePlain(c, enc); err != nil {
			return err
		}
		out = enc.B
	}
	if c.cache.Keeps() {
		c.cache.Keep(out)
	}
	if c.guards.On && kind[0] == jsonType[0] {
		out = c.guards.Told(c.guards.Taken.Restored(out), true)
	}
	h := c.reply.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	answerHeaders(c, resp.Header)
	sendWhole(c, c.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// encodePlain writes a decoded answer as the client reads it.
func encodePlain(c *call, enc *buffer.Buffer) error {
	p := &c.plain
	o := options(c)
	if c.target.SameDialect() {
		o.Request = c.body.LegacyOnly()
		if err := chosen.KeepMade(&c.target, p.buf.B, p.meter.ID); err != nil {
			return err
		}
	} else {
		if err := c.target.Decoded.Promised(p.translated); err != nil {
			c.log.Body(record.Received, p.buf.B)
			return err
		}
		c.target.Remember(p.signed)
	}
	c.log.Body(record.Received, p.buf.B)
	missed := chat.MissedBy(c.req.Route.Client, o, &c.target.Loss)
	missed.Whole(p.translated)
	enc.B = c.req.Route.Client.EncodeResponse(enc.B, p.translated, o)
	if chosen.StoresItems(&c.target) {
		chosen.StoreItems(&c.target, enc.B)
	}
	return nil
}
