package relay

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"net/url"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/relay/upstream"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// attempt calls the provider once. The response is a fault, or a response with a successful
// status.
func attempt(c *call, body []byte) targetResult {
	// Charges during the attempt are recorded in it.
	at := c.bill.Try(c.req.Since())
	a := exchange(c, body, at)
	judgeResponse(&c.target, &c.log, &a, at)
	return a
}

// judgeResponse records the result of an attempt.
func judgeResponse(tg *target.Target, log *record.Log, a *targetResult, at *usage.Attempt) {
	latency := tg.Req.Since() - at.Start
	switch {
	case a.fault == nil:
		at.End(a.resp.StatusCode, "", latency)
		log.Attempt(latency)
	case fault.ByGuardrail(a.fault): // of a stream that was held: the call succeeded
		at.End(http.StatusOK, "", latency)
		log.Attempt(latency)
	case a.connectFailed():
		at.End(0, string(a.fault.Code), latency)
	default:
		at.End(a.fault.Status(), string(a.fault.Code), latency)
	}
	if f := a.fault; f == nil || f.Source == fault.SourceProvider {
		target.CredentialAnswered(tg, at.Status, a.header())
	}
}

// exchange sends the request and checks the head of the response.
func exchange(c *call, body []byte, at *usage.Attempt) targetResult {
	if c.target.Choice.Jobs != nil {
		return exchangeJob(c, body, at)
	}
	req, err := upstreamRequest(c, body)
	if err != nil {
		return rejection(err)
	}
	at.CallsServer(req.URL)
	if c.out.bodySpent {
		c.reply.readsOn()
	}
	patience := &c.out.patience
	if ctx := beginPatience(&c.target, &c.out, req.Context()); ctx != req.Context() {
		req = req.WithContext(ctx)
	}
	t := c.relay.Now()
	resp, err := roundTrip(c.relay, &c.target, &c.out, req)
	c.log.Wait(c.relay.Now().Sub(t))
	if err != nil {
		if c.out.upload != nil {
			if f := c.out.upload.Fault(); f != nil {
				return rejection(f) // the client's body was truncated
			}
		}
		if f := c.target.BodyFault(); f != nil {
			return rejection(f)
		}
		accounting.ChargeAborted(&c.bill, endedByGateway(&c.req, &c.out) && c.out.sending.Sent())
		return rejection(cut(&c.out, target.Unreachable(&c.target, req.URL.Host, err)))
	}
	at.Identify(requestID(c.target.Choice.Unrouted(resp).Header))
	if c.req.Route.BodyMode != routes.Raw && !succeeded(resp.StatusCode) {
		// The timeout of the head includes an error's complete body.
		refused := providerRejected(c.relay, &c.target, &c.log, &c.mask, resp)
		patience.Stop()
		if f := patience.TimeoutFault(); f != nil {
			return rejection(f)
		}
		return refused
	}
	if !patience.HeadArrived() {
		_ = resp.Body.Close()
		accounting.ChargeAborted(&c.bill, resp.StatusCode < 300)
		return rejection(patience.TimeoutFault())
	}
	if c.req.Route.BodyMode != routes.Raw && c.target.Stream && c.req.Route.Client != nil {
		return startStream(c, resp)
	}
	if takesWhole(&c.target, &c.out, resp) || containsRepeated(&c.req, &c.guards, resp) {
		return takePlain(c, resp)
	}
	return targetResult{resp: resp}
}

func requestID(h http.Header) string {
	if id := admission.SingleHeader(h, "X-Request-Id"); id != "" {
		return clipText(id)
	}
	return clipText(admission.SingleHeader(h, "Request-Id"))
}

// startStream prepares the handling of a stream and reads it to its first content.
func startStream(c *call, resp *http.Response) targetResult {
	a := &targetResult{resp: resp, made: target.WatchCreated(&c.target)}
	if err := egress.Inflate(resp, 0); err != nil {
		return rejection(unreadableResponse(err))
	}
	if c.target.SameDialect() {
		a.stream = response.Pass(c.req.Route.Client.NewStreamFilter(&chat.FilterOptions{Strict: c.target.StrictOpenAI(), IncludeUsage: c.target.WantUsage, UsageAdded: c.out.injected}))
	} else {
		o := target.Options(&c.target)
		a.stream = translate(&c.target, &c.guards, &c.stream, verified(&c.target, c.target.Choice.Dialect.NewStreamDecoder(&c.target.Choice.Traits), o), o)
	}
	guardStream(&c.target, &c.guards, &c.stream, a)
	gather(&c.target, &c.guards, &c.cache, a)
	open(c, a)
	return *a
}

// verified returns a decoder with a verified response for the client, see chat.Verified. A
// response changed by guardrails is not verified: they may remove everything.
func verified(tg *target.Target, dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !tg.SameDialect() {
		dec = chat.CheckJSON(tg.Decoded, dec)
	}
	return chat.Verified(dec, tg.Req.Route.Client.Support(o), &tg.Loss)
}

// translate starts the translation of dec's stream for the client.
func translate(tg *target.Target, gs *guardrail.State, st *streamState, dec chat.StreamDecoder, o *chat.Options) response.Stream {
	if st.turnBuf == nil {
		st.turnBuf = buffer.For(2 * streamChunk)
	}
	return response.Translate(dec, gs.Masked.Writer(tg.Req.Route.Client), o, &tg.Loss, st.turnBuf.B)
}

// providerRejected reads a provider's error response.
func providerRejected(r *Relay, tg *target.Target, log *record.Log, mk *target.SecretMask, resp *http.Response) targetResult {
	buf := buffer.New()
	defer buf.Free()
	err := readWhole(tg.Req, buf, resp, maxErrorResponse)
	if unreadableResponse(err) != nil {
		buf.B, err = buf.B[:0], nil // its status is still informative
	}
	_ = resp.Body.Close()
	mk.Refusal(resp.Header, buf.B)
	var f *fault.Fault
	switch {
	case err != nil && !errors.Is(err, buffer.ErrTooLarge):
		f = fault.Newf(fault.InvalidProviderResponse, "", "The response of %s was truncated", tg.Choice.Target.Provider.ID).WithCause(err)
		f = chat.CompleteFault(f, resp.StatusCode, resp.Header) // its status was received
	case tg.Choice.Translator != nil:
		f = tg.Choice.Translator.DecodeError(resp.StatusCode, resp.Header, buf.B)
	case tg.Choice.Dialect != nil:
		f = tg.Choice.Dialect.DecodeError(resp.StatusCode, resp.Header, buf.B)
	default:
		f = r.errorDialect().DecodeError(resp.StatusCode, resp.Header, buf.B)
	}
	f.Source = fault.SourceProvider
	log.Body(record.Received, buf.B)
	return targetResult{fault: f, failed: resp.Header, words: wordsOf(tg, resp.StatusCode, buf.B)}
}

// wordsOf returns a copy of a provider's error if the client gets it unchanged: on routes with
// the provider's own dialect, if it is an error in that dialect at all.
func wordsOf(tg *target.Target, status int, body []byte) []byte {
	if !tg.Req.Route.Verbatim || !speaksAlike(tg) || chat.ErrorStatus(status) != status || wire.KindOf(body) != wire.KindObject {
		return nil
	}
	var w wire.Walk
	if errorKeys.Walk(body, &w) != nil || !w.Spans[0].Present(body) || wire.KindOf(w.Spans[0].Of(body)) != wire.KindObject {
		return nil
	}
	return bytes.Clone(body)
}

// speaksAlike reports whether the provider uses the client's dialect, even if a translator of
// that dialect handles the request.
func speaksAlike(tg *target.Target) bool {
	return tg.SameDialect() || tg.Choice.Translator != nil && tg.Choice.Translator.Name() == provider.AnthropicMessages
}

var errorKeys = wire.NewKeySet("error")

// errorDialect returns the dialect of errors on routes that are not conversations: OpenAI's.
func (r *Relay) errorDialect() chat.Provider { return r.dialects["openai.chat"] }

// upstreamRequest builds the request to the provider.
func upstreamRequest(c *call, body []byte) (*http.Request, error) {
	h := make(http.Header, 8)
	ctx := c.req.Ctx
	if len(body) > 0 {
		if c.out.sending == nil {
			c.out.sending = upstream.NewBody(out(c.relay, &c.target))
		}
		ctx = c.out.sending.Watch(ctx)
	}
	req := (&http.Request{Method: cmp.Or(c.out.part.Method, c.req.Req.Method), Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	var err error
	if c.req.Route.BodyMode == routes.Raw {
		if req.URL, err = rawURL(&c.target, &c.out); err != nil {
			return nil, err
		}
		egress.CopyRequestHeaders(h, c.req.HeadersForProvider())
	} else {
		if req.URL, err = unifiedURL(c.relay, &c.target, &c.out); err != nil {
			return nil, err
		}
		switch {
		case c.body.Form != nil:
			h["Content-Type"] = c.req.Req.Header["Content-Type"][:1:1]
		case c.target.Choice.ContentType != "":
			h["Content-Type"] = []string{c.target.Choice.ContentType}
		case len(body) > 0:
			h["Content-Type"] = jsonType
		}
		h["Accept"] = acceptJSON
		if (c.req.Route.Binary || c.req.Route.Media) && c.target.Choice.Translator == nil {
			h["Accept"] = acceptAll
		}
		if c.target.Stream {
			h["Accept"] = acceptStream
		}
	}
	for _, name := range c.target.Choice.Forward {
		if v, ok := c.req.Req.Header[name]; ok && egress.Forwardable(name) && !(name == "Authorization" && c.req.KeyInAuth) && !c.req.HoldsKey(name) {
			h[name] = v
		}
	}
	for k, v := range c.target.Choice.Target.CustomHeaders {
		if egress.Forwardable(k) {
			h.Set(k, v)
		}
	}
	for k, v := range c.guards.Headers() {
		if delete(h, k); v != nil {
			h[k] = v
		}
	}
	if parent := c.req.Headers.Traceparent(); parent != "" {
		h["Traceparent"] = []string{parent}
		if state := c.req.Req.Header["Tracestate"]; len(state) > 0 {
			h["Tracestate"] = state
		}
	}
	upstream.SetBetas(h, c.req.Req.Header, c.target.Choice.Target.HeaderRow(c.target.Choice.Op))
	if c.req.Route.Verbatim && speaksAlike(&c.target) {
		upstream.SetAnthropicBetas(h, c.req.Req.Header)
	}
	egress.DropLookalikes(h, func(name string) bool { return fromClient(&c.req, name) }, "Authorization", "User-Agent", "X-Api-Key", "Api-Key", c.target.Choice.Target.Provider.Auth.Name)
	body = reference.ReplaceForeign(approval.Conceal(body), c.target.Choice.Isolation.ForeignItems)
	setBody(&c.target, &c.out, req, body)
	if c.req.DryRun {
		return req, nil // no token is requested
	}
	if err := c.target.Choice.Target.Authorize(c.req.Ctx, req, body); err != nil {
		return nil, err
	}
	h["User-Agent"] = userAgent
	c.mask.Sent = req.Header
	keepSent(&c.target, &c.log, &c.mask, req.Header, body)
	return req, nil
}

var (
	jsonType     = []string{"application/json"}
	acceptJSON   = []string{"application/json"}
	acceptAll    = []string{"*/*"}
	acceptStream = []string{"text/event-stream"}
	userAgent    = []string{"gateway"}
)

// setBody sets the body of the request: bytes that can be sent again, or the client's own
// stream.
func setBody(tg *target.Target, up *outbound, req *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		up.sending.Attach(req, body)
	case tg.Body.Form != nil:
		form, length := formStream(tg, up)
		up.sending = up.sending.Stream(req, approval.ConcealStream(form), length)
		up.bodySpent = true
	case tg.Req.Route.BodyMode == routes.Raw && tg.Body.In == nil && tg.Req.Req.Body != nil && tg.Req.Req.ContentLength != 0:
		up.sending = up.sending.Stream(req, approval.ConcealStream(upstream.WithLength(tg.Req.Req.Body, tg.Req.Req.ContentLength)), tg.Req.Req.ContentLength)
		up.bodySpent = true
	default:
		req.Body = http.NoBody
	}
}

// out returns the transport to the target.
func out(r *Relay, tg *target.Target) http.RoundTripper {
	if tg.Choice.AtOwnHost() {
		return r.TrustedTransport
	}
	return r.Transport
}

// requestedChoice returns the requested part of the response: the first, or a further one.
func requestedChoice(tg *target.Target, up *outbound) target.Part {
	if up.part.Further {
		return up.part
	}
	return target.Part{Op: tg.Choice.Op, ID: tg.Body.ID, Query: tg.Req.Req.URL.RawQuery}
}

func unifiedURL(r *Relay, tg *target.Target, up *outbound) (*url.URL, error) {
	if tg.Req.Route.BodyMode == routes.Socket {
		return socketURL(tg)
	}
	if tg.Req.Route.BodyMode != routes.Listing && tg.Req.Route.Client == nil && (tg.Body.Nameless() || tg.UsesRoutePath()) {
		return tg.OperationURL(requestedChoice(tg, up))
	}
	if tg.ListsAsGoogle() {
		return tg.GoogleListURL()
	}
	if s := tg.Choice.Saved; s != nil {
		if u := s.KnownURL(tg.Choice.Op, tg.Choice.Model, tg.Stream); u != nil {
			return u, nil
		}
	}
	var raw string
	var err error
	if tg.Req.Route.BodyMode == routes.Listing && !tg.Choice.Target.Provider.Serves(tg.Choice.Op) {
		raw, err = tg.Choice.Target.PassthroughURL("/models", "")
	} else {
		raw, err = tg.Choice.Target.URL(tg.Choice.Op, tg.Choice.Model, tg.Stream)
	}
	if err != nil {
		return nil, err
	}
	if tg.Choice.Saved == nil {
		return r.urls.Exact(raw)
	}
	u, err := provider.ExactURL(raw)
	if err == nil && tg.Choice.Saved.Allows(tg.Choice.Model) == nil {
		tg.Choice.Saved.CacheURL(tg.Choice.Op, tg.Choice.Model, tg.Stream, u)
	}
	return u, err
}

func rawURL(tg *target.Target, up *outbound) (*url.URL, error) {
	if up.part.Further && up.part.Op != "" {
		return tg.OperationURL(up.part)
	}
	raw, err := tg.Choice.Target.PassthroughURL(tg.Body.RawPath(), requestedChoice(tg, up).Query)
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}

// fromClient reports whether the client sent a header of this name.
func fromClient(q *admission.Request, name string) bool { return len(q.Req.Header[name]) > 0 }
