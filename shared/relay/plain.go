package relay

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// plain is the answer to a unified request that is not streamed, read whole and
// found to be one. It is read while targets can still be tried, so that a success
// that is no answer is retried like a bad gateway.
type plain struct {
	buf, made  *buffer // what came; what a carrier made of it
	media      string  // of what a carrier made; "": JSON
	own        bool    // it is passed on as it came
	meter      chat.Meter
	translated *chat.Response
	signed     []chat.Signed
}

func (p *plain) free() {
	p.buf.free()
	p.made.free()
	*p = plain{}
}

// takesWhole tells whether an answer is read before it is chosen. What another
// part of the answer is read for is not: the one that is being sent stands there.
func (c *call) takesWhole(resp *http.Response) bool {
	return c.rt.Shape != Raw && c.rt.Shape != Listing && c.rt.Operation != provider.BatchesOutput && !c.further && !c.passes(resp) && !c.filtered()
}

// takePlain reads an answer whole, books it, and judges whether it is one.
func (c *call) takePlain(resp *http.Response) answer {
	p := &c.plain
	p.free()
	p.buf = newBufferFor(int(min(resp.ContentLength, maxPlainAnswer)) + 1)
	t, held := c.Now(), c.lease.Held()
	err := c.readWhole(p.buf, resp, maxPlainAnswer)
	c.waited += c.Now().Sub(t)
	_ = resp.Body.Close()
	if err == nil {
		err = c.roomToDecode(len(p.buf.b))
	}
	if err != nil {
		err = c.brokenAnswer(err, p.buf.b)
	} else {
		err = c.readPlain(resp)
	}
	if err != nil {
		p.free()
		c.lease.Give(c.lease.Held() - held)
		return answer{fault: fault.From(err), failed: resp.Header}
	}
	return answer{resp: resp, whole: true}
}

// readPlain reads what was taken: usage, and what of it the client gets.
func (c *call) readPlain(resp *http.Response) (err error) {
	p := &c.plain
	out := p.buf.b
	switch {
	case c.to.carrier != nil:
		p.made = newBuffer()
		if p.made.b, p.media, p.meter, err = c.to.carrier.DecodeResponse(p.made.b, out, resp.Header, c.carried()); err != nil {
			return c.unusable(err, out)
		}
		c.learn(p.meter)
	case c.sameDialect() && !c.cameAsEvents(out):
		p.own = true
		if c.req.Method == http.MethodPost && !enclosed(out) {
			return c.unusable(errNoJSON, out)
		}
		if p.meter = c.meter(out); p.meter.Err != nil {
			return c.unusable(p.meter.Err, out)
		}
		if !c.answers(&p.meter, out) {
			return c.unusable(errNoAnswer, out)
		}
		if c.operates() {
			c.learnOperation(p.meter)
		} else {
			c.learn(p.meter)
		}
	default:
		p.translated, p.meter, p.signed, err = c.decodeWhole(out)
		if err != nil && c.cameAsEvents(out) {
			return c.eventsBroke(err, p.meter, out)
		}
		if err != nil {
			return c.unusable(err, out)
		}
		if d, ok := c.to.dialect.(chat.Headed); ok {
			d.ReadHeader(resp.Header, p.translated)
			p.meter = p.translated.Meter()
		}
		c.learn(p.meter)
	}
	return nil
}

// operates tells whether the route is metered as an operation, not as a
// conversation.
func (c *call) operates() bool {
	return c.rt.Client == nil && (c.rt.Demand != nil || c.rt.Meter == nil)
}

var (
	errNoJSON   = errors.New("relay: the answer is not JSON")
	errNoAnswer = errors.New("relay: nothing of an answer is in it")
)

// answers tells whether an answer in the client's dialect has anything of one. Who
// tells of usage, an id or a model has answered; the rest is looked at.
func (c *call) answers(m *chat.Meter, out []byte) bool {
	if m.Usage.Known() || m.ID != "" || m.Model != "" || m.OutputBytes > 0 || c.req.Method != http.MethodPost {
		return true
	}
	if c.rt.Client != nil {
		r, err := c.rt.Client.DecodeResponse(out, &c.to.traits)
		return err == nil && (r.Meter().OutputBytes > 0 || len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0)
	}
	switch c.rt.Operation {
	case provider.Embeddings:
		return bytes.Contains(out, []byte(`"embedding"`))
	case provider.Moderations:
		return bytes.Contains(out, []byte(`"results"`))
	}
	return true
}

// sendPlain answers a unified request that is not streamed.
func (c *call) sendPlain(a *answer) error {
	resp := a.resp
	if !a.whole {
		if got := c.takePlain(resp); got.fault != nil {
			return got.fault
		}
	}
	p := &c.plain
	out, kind := p.buf.b, jsonType
	switch {
	case p.own:
		if c.operates() {
			c.settleBatch(out)
			c.settleResponse(out, false)
		}
		if err := c.keepMade(out, p.meter.ID); err != nil {
			return err
		}
	case p.translated == nil:
		c.keepReceived(out)
		if out = p.made.b; p.media != "" {
			kind = []string{p.media}
		}
	default:
		enc := newBuffer()
		defer enc.free()
		if err := c.encodePlain(enc); err != nil {
			return err
		}
		out = enc.b
	}
	if c.caching != nil {
		c.keepAnswer(out)
	}
	c.captureAnswer(out)
	h := c.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	c.answerHeaders(resp.Header)
	c.status = http.StatusOK
	c.books()
	c.head(http.StatusOK)
	c.write(out)
	return nil
}

// encodePlain writes a decoded answer as the client reads it.
func (c *call) encodePlain(enc *buffer) error {
	p := &c.plain
	o := c.options()
	if c.sameDialect() {
		o.Request = c.legacyOnly()
		if err := c.keepMade(nil, p.meter.ID); err != nil {
			return err
		}
	} else {
		if err := c.decoded.Promised(p.translated); err != nil {
			c.keepReceived(p.buf.b)
			return err
		}
		c.remember(p.signed)
	}
	c.keepReceived(p.buf.b)
	enc.b = c.rt.Client.EncodeResponse(enc.b, p.translated, o)
	return nil
}
