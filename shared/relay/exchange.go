package relay

import (
	"bytes"
	"cmp"
	"errors"
	"gateway/shared/relay/record"
	"net/http"
	"net/url"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/betas"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/outgoing"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/turn"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// attempt calls the provider once. The answer is a refusal, or a response whose
// head is good.
func attempt(c *call, body []byte) answer {
	// What the attempt is charged for while it runs is noted in it.
	at := c.bill.Try(c.req.Since())
	a := exchange(c, body, at)
	judgeAnswer(c, &a, at)
	return a
}

// judgeAnswer records how an attempt ended.
func judgeAnswer(c *call, a *answer, at *usage.Attempt) {
	latency := c.req.Since() - at.Start
	switch {
	case a.fault == nil:
		at.End(a.resp.StatusCode, "", latency)
		c.log.Attempt(latency)
	case a.connectFailed():
		at.End(0, string(a.fault.Code), latency)
	default:
		at.End(a.fault.Status(), string(a.fault.Code), latency)
	}
	if at.Status == http.StatusUnauthorized {
		c.target.CredentialRefused()
	}
}

// exchange sends the request and judges the head of the answer.
func exchange(c *call, body []byte, at *usage.Attempt) answer {
	if c.target.To.Jobs != nil {
		return exchangeJob(c, body, at)
	}
	req, err := upstreamRequest(c, body)
	if err != nil {
		return refusal(err)
	}
	if c.out.bodySpent {
		c.reply.readsOn()
	}
	patience := &c.out.patience
	if ctx := beginPatience(c, req.Context()); ctx != req.Context() {
		req = req.WithContext(ctx)
	}
	t := c.relay.Now()
	resp, err := roundTrip(c, req)
	c.log.Wait(c.relay.Now().Sub(t))
	if err != nil {
		if c.out.upload != nil {
			if f := c.out.upload.Fault(); f != nil {
				return refusal(f) // it is the client's body that broke
			}
		}
		if f := c.target.BodyFault(); f != nil {
			return refusal(f)
		}
		c.metered.GivenUp(gaveUp(c) && c.out.sending.Whole())
		return refusal(cut(c, c.target.To.Unreachable(err)))
	}
	at.Identify(requestID(c.target.To.Unrouted(resp).Header))
	if c.req.Route.Shape != routes.Raw && (resp.StatusCode < 200 || resp.StatusCode > 299) {
		// The time for the head counts for an error's whole body.
		refused := providerRefused(c, resp)
		patience.Stop()
		if f := patience.Late(); f != nil {
			return refusal(f)
		}
		return refused
	}
	if !patience.HeadCame() {
		_ = resp.Body.Close()
		c.metered.GivenUp(resp.StatusCode < 300)
		return refusal(patience.Late())
	}
	if c.req.Route.Shape != routes.Raw && c.target.Stream && c.req.Route.Client != nil {
		return startStream(c, resp)
	}
	if takesWhole(c, resp) || holdsRetold(c, resp) {
		return takePlain(c, resp)
	}
	return answer{resp: resp}
}

func requestID(h http.Header) string {
	if id := asked.One(h, "X-Request-Id"); id != "" {
		return clipText(id)
	}
	return clipText(asked.One(h, "Request-Id"))
}

// startStream prepares what handles the stream and reads it to its first content.
func startStream(c *call, resp *http.Response) answer {
	a := &answer{resp: resp, made: chosen.WatchMade(&c.target)}
	if err := egress.Inflate(resp, 0); err != nil {
		return refusal(unreadableAnswer(err))
	}
	if c.target.SameDialect() {
		a.stream = turn.Pass(c.req.Route.Client.NewStreamFilter(&chat.FilterOptions{Strict: c.target.Strict(), IncludeUsage: c.target.WantUsage, Injected: c.out.injected}))
	} else {
		o := options(c)
		a.stream = translate(c, verified(c, c.target.To.Dialect.NewStreamDecoder(&c.target.To.Traits), o), o)
	}
	guardStream(c, a)
	gather(c, a)
	open(c, a)
	return *a
}

// verified is a decoder whose answer is verified for the client, see chat.Verified. What
// guardrails make of an answer is not: they may leave nothing of it.
func verified(c *call, dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !c.target.SameDialect() {
		dec = chat.Promised(c.target.Decoded, dec)
	}
	return chat.Verified(dec, c.req.Route.Client.Held(o), &c.target.Loss)
}

// translate begins to translate what dec reads for the client.
func translate(c *call, dec chat.StreamDecoder, o *chat.Options) turn.Stream {
	if c.stream.turnBuf == nil {
		c.stream.turnBuf = buffer.For(2 * streamChunk)
	}
	return turn.Translate(dec, c.guards.Taken.Writer(c.req.Route.Client), o, &c.target.Loss, c.stream.turnBuf.B)
}

// providerRefused reads a provider's error answer.
func providerRefused(c *call, resp *http.Response) answer {
	buf := buffer.New()
	defer buf.Free()
	err := readWhole(c, buf, resp, maxErrorAnswer)
	if unreadableAnswer(err) != nil {
		buf.B, err = buf.B[:0], nil // its status still says what it is
	}
	_ = resp.Body.Close()
	c.mask.Refusal(resp.Header, buf.B)
	var f *fault.Fault
	switch {
	case err != nil && !errors.Is(err, buffer.ErrTooLarge):
		f = fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", c.target.To.Target.Provider.ID).WithCause(err)
		f = chat.Told(f, resp.StatusCode, resp.Header) // its status came
	case c.target.To.Carrier != nil:
		f = c.target.To.Carrier.DecodeError(resp.StatusCode, resp.Header, buf.B)
	case c.target.To.Dialect != nil:
		f = c.target.To.Dialect.DecodeError(resp.StatusCode, resp.Header, buf.B)
	default:
		f = c.relay.errorDialect().DecodeError(resp.StatusCode, resp.Header, buf.B)
	}
	f.Source = fault.SourceProvider
	c.log.Body(record.Received, buf.B)
	return answer{fault: f, failed: resp.Header, words: wordsOf(c, resp.StatusCode, buf.B)}
}

// wordsOf is a copy of a provider's error where the client reads it as it came: on
// routes of its own shape, if it is an error of that shape at all.
func wordsOf(c *call, status int, body []byte) []byte {
	if !c.req.Route.Verbatim || !speaksAlike(c) || chat.ErrorStatus(status) != status || wire.KindOf(body) != wire.KindObject {
		return nil
	}
	var w wire.Walk
	if errorKeys.Walk(body, &w) != nil || !w.Spans[0].Present(body) || wire.KindOf(w.Spans[0].Of(body)) != wire.KindObject {
		return nil
	}
	return bytes.Clone(body)
}

// speaksAlike tells whether the provider speaks the client's shape, also where a
// translator of that shape carries the request.
func speaksAlike(c *call) bool {
	return c.target.SameDialect() || c.target.To.Carrier != nil && c.target.To.Carrier.Name() == provider.AnthropicMessages
}

var errorKeys = wire.NewKeySet("error")

// errorDialect reads the errors of routes that are no conversations: they have
// the OpenAI shape.
func (r *Relay) errorDialect() chat.Provider { return r.dialects["openai.chat"] }

// upstreamRequest builds the request to the provider.
func upstreamRequest(c *call, body []byte) (*http.Request, error) {
	h := make(http.Header, 8)
	ctx := c.req.Ctx
	if len(body) > 0 {
		if c.out.sending == nil {
			c.out.sending = outgoing.New(out(c))
		}
		ctx = c.out.sending.Watch(ctx)
	}
	req := (&http.Request{Method: cmp.Or(c.out.part.Method, c.req.Req.Method), Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	var err error
	if c.req.Route.Shape == routes.Raw {
		if req.URL, err = rawURL(c); err != nil {
			return nil, err
		}
		egress.CopyRequestHeaders(h, c.req.HeadersForProvider())
	} else {
		if req.URL, err = unifiedURL(c); err != nil {
			return nil, err
		}
		switch {
		case c.body.Form != nil:
			h["Content-Type"] = c.req.Req.Header["Content-Type"][:1:1]
		case c.target.To.ContentType != "":
			h["Content-Type"] = []string{c.target.To.ContentType}
		case len(body) > 0:
			h["Content-Type"] = jsonType
		}
		h["Accept"] = acceptJSON
		if (c.req.Route.Binary || c.req.Route.Media) && c.target.To.Carrier == nil {
			h["Accept"] = acceptAll
		}
		if c.target.Stream {
			h["Accept"] = acceptStream
		}
	}
	for _, name := range c.target.To.Forward {
		if v, ok := c.req.Req.Header[name]; ok && egress.Forwardable(name) && !(name == "Authorization" && c.req.KeyInAuth) && !c.req.HoldsKey(name) {
			h[name] = v
		}
	}
	for k, v := range c.target.To.Target.CustomHeaders {
		if egress.Forwardable(k) {
			h.Set(k, v)
		}
	}
	for k, v := range c.guards.Headers() {
		if delete(h, k); v != nil {
			h[k] = v
		}
	}
	if parent := c.req.Ask.Traceparent(); parent != "" {
		h["Traceparent"] = []string{parent}
		if state := c.req.Req.Header["Tracestate"]; len(state) > 0 {
			h["Tracestate"] = state
		}
	}
	betas.Set(h, c.req.Req.Header, c.target.To.Target.ToldAs(c.target.To.Op))
	if c.req.Route.Verbatim && speaksAlike(c) {
		betas.SetAnthropic(h, c.req.Req.Header)
	}
	egress.DropLookalikes(h, func(name string) bool { return fromClient(c, name) }, "Authorization", "User-Agent", "X-Api-Key", "Api-Key", c.target.To.Target.Provider.Auth.Name)
	body = reference.Disown(approval.Conceal(body), c.target.To.Wall.Foreign)
	setBody(c, req, body)
	if c.req.Rehearsing {
		return req, nil // no token is asked for
	}
	if err := c.target.To.Target.Authorize(c.req.Ctx, req, body); err != nil {
		return nil, err
	}
	h["User-Agent"] = userAgent
	c.mask.Sent = req.Header
	keepSent(c, req.Header, body)
	return req, nil
}

var (
	jsonType     = []string{"application/json"}
	acceptJSON   = []string{"application/json"}
	acceptAll    = []string{"*/*"}
	acceptStream = []string{"text/event-stream"}
	userAgent    = []string{"gateway"}
)

// setBody gives the request its body: bytes that can be sent again, or the
// client's own stream.
func setBody(c *call, req *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		c.out.sending.Attach(req, body)
	case c.body.Form != nil:
		form, length := formStream(c)
		c.out.sending = c.out.sending.Stream(req, approval.ConcealStream(form), length)
		c.out.bodySpent = true
	case c.req.Route.Shape == routes.Raw && c.body.In == nil && c.req.Req.Body != nil && c.req.Req.ContentLength != 0:
		c.out.sending = c.out.sending.Stream(req, approval.ConcealStream(outgoing.Exactly(c.req.Req.Body, c.req.Req.ContentLength)), c.req.Req.ContentLength)
		c.out.bodySpent = true
	default:
		req.Body = http.NoBody
	}
}

// out is the way to the target.
func out(c *call) http.RoundTripper {
	if c.target.To.AtOwnHost() {
		return c.relay.Trusting
	}
	return c.relay.Transport
}

// asks is the part of the answer that is asked for: the first, or a further one.
func asks(c *call) chosen.Part {
	if c.out.part.Further {
		return c.out.part
	}
	return chosen.Part{Op: c.target.To.Op, ID: c.body.ID, Query: c.req.Req.URL.RawQuery}
}

func unifiedURL(c *call) (*url.URL, error) {
	if c.req.Route.Shape == routes.Socket {
		return socketURL(c)
	}
	if c.req.Route.Shape != routes.Listing && c.req.Route.Client == nil && (c.body.Nameless() || c.target.Through()) {
		return c.target.OperationURL(asks(c))
	}
	if s := c.target.To.Saved; s != nil {
		if u := s.KnownURL(c.target.To.Op, c.target.To.Model, c.target.Stream); u != nil {
			return u, nil
		}
	}
	var raw string
	var err error
	if c.req.Route.Shape == routes.Listing && !c.target.To.Target.Provider.Serves(c.target.To.Op) {
		raw, err = c.target.To.Target.PassthroughURL("/models", "")
	} else {
		raw, err = c.target.To.Target.URL(c.target.To.Op, c.target.To.Model, c.target.Stream)
	}
	if err != nil {
		return nil, err
	}
	if c.target.To.Saved == nil {
		return c.relay.urls.Exact(raw)
	}
	u, err := provider.ExactURL(raw)
	if err == nil && c.target.To.Saved.Allows(c.target.To.Model) == nil {
		c.target.To.Saved.KeepURL(c.target.To.Op, c.target.To.Model, c.target.Stream, u)
	}
	return u, err
}

func rawURL(c *call) (*url.URL, error) {
	if c.out.part.Further && c.out.part.Op != "" {
		return c.target.OperationURL(c.out.part)
	}
	raw, err := c.target.To.Target.PassthroughURL(c.body.RawPath(), asks(c).Query)
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}

// fromClient reports whether the client sent a header of this name.
func fromClient(c *call, name string) bool { return len(c.req.Req.Header[name]) > 0 }
