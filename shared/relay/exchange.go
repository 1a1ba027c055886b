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
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/betas"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/outgoing"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/turn"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// attempt calls the provider once. The answer is a refusal, or a response whose
// head is good.
func (x *exchanges) attempt(body []byte) answer {
	// What the attempt is charged for while it runs is noted in it.
	at := x.Purse.Try()
	at.Provider, at.ProviderSlug, at.Model = x.To.Target.Provider.ID, x.To.Names.Slug, fault.Clip(x.ModelOf(), inbound.MaxModel)
	at.OptionIndex, at.Start = x.To.Names.Option, x.Since()
	a := x.exchange(body, at)
	x.judge(&a, at)
	return a
}

// judge notes how an attempt ended.
func (bk *books) judge(a *answer, at *usage.Attempt) {
	at.Latency = bk.Since() - at.Start
	if a.fault != nil {
		at.Status, at.ErrorCode = a.fault.Status(), string(a.fault.Code)
		if a.connectFailed() {
			at.Status = 0
		}
	} else {
		at.Status = a.resp.StatusCode
		bk.upstream = at.Latency
	}
	if at.Status == http.StatusUnauthorized {
		bk.CredentialRefused()
	}
}

// exchange sends the request and judges the head of the answer.
func (x *exchanges) exchange(body []byte, at *usage.Attempt) answer {
	if x.To.Jobs != nil {
		return x.exchangeJob(body, at)
	}
	req, err := x.upstreamRequest(body)
	if err != nil {
		return refusal(err)
	}
	if x.bodySpent {
		x.readsOn()
	}
	patience := &x.patience
	if ctx := x.beginPatience(req.Context()); ctx != req.Context() {
		req = req.WithContext(ctx)
	}
	t := x.Now()
	resp, err := x.roundTrip(req)
	x.waited += x.Now().Sub(t)
	if err != nil {
		if x.upload != nil {
			if f := x.upload.Fault(); f != nil {
				return refusal(f) // it is the client's body that broke
			}
		}
		if f := x.BodyFault(); f != nil {
			return refusal(f)
		}
		x.GivenUp(x.gaveUp() && x.sending.Whole())
		return refusal(x.cut(x.To.Unreachable(err)))
	}
	at.RequestID = requestID(x.To.Unrouted(resp).Header)
	if x.Route.Shape != routes.Raw && (resp.StatusCode < 200 || resp.StatusCode > 299) {
		// The time for the head counts for an error's whole body.
		refused := x.providerRefused(resp)
		patience.Stop()
		if f := patience.Late(); f != nil {
			return refusal(f)
		}
		return refused
	}
	if !patience.HeadCame() {
		_ = resp.Body.Close()
		x.GivenUp(resp.StatusCode < 300)
		return refusal(patience.Late())
	}
	if x.Route.Shape != routes.Raw && x.Stream && x.Route.Client != nil {
		return x.startStream(resp)
	}
	if x.takesWhole(resp) || x.holdsRetold(resp) {
		return x.takePlain(resp)
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
func (st *streams) startStream(resp *http.Response) answer {
	a := &answer{resp: resp, made: st.WatchMade()}
	if err := egress.Inflate(resp, 0); err != nil {
		return refusal(unreadableAnswer(err))
	}
	if st.SameDialect() {
		a.stream = turn.Pass(st.Route.Client.NewStreamFilter(&chat.FilterOptions{Strict: st.Strict(), IncludeUsage: st.WantUsage, Injected: st.injected}))
	} else {
		o := st.options()
		a.stream = st.translate(verified(st, st.To.Dialect.NewStreamDecoder(&st.To.Traits), o), o)
	}
	st.guardStream(a)
	st.gather(a)
	st.open(a)
	return *a
}

// verified is a decoder whose answer is verified for the client, see chat.Verified. What
// guardrails make of an answer is not: they may leave nothing of it.
func verified(st *streams, dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !st.SameDialect() {
		dec = chat.Promised(st.Decoded, dec)
	}
	return chat.Verified(dec, st.Route.Client.Held(o), &st.Loss)
}

// translate begins to translate what dec reads for the client.
func (st *streams) translate(dec chat.StreamDecoder, o *chat.Options) turn.Stream {
	if st.turnBuf == nil {
		st.turnBuf = pooled.For(2 * streamChunk)
	}
	return turn.Translate(dec, st.guards.Taken.Writer(st.Route.Client), o, &st.Loss, st.turnBuf.B)
}

// providerRefused reads a provider's error answer.
func (x *exchanges) providerRefused(resp *http.Response) answer {
	buf := pooled.New()
	defer buf.Free()
	err := x.readWhole(buf, resp, maxErrorAnswer)
	if unreadableAnswer(err) != nil {
		buf.B, err = buf.B[:0], nil // its status still says what it is
	}
	_ = resp.Body.Close()
	x.stars.Refusal(resp.Header, buf.B)
	var f *fault.Fault
	switch {
	case err != nil && !errors.Is(err, pooled.ErrTooLarge):
		f = fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", x.To.Target.Provider.ID).WithCause(err)
		f = chat.Told(f, resp.StatusCode, resp.Header) // its status came
	case x.To.Carrier != nil:
		f = x.To.Carrier.DecodeError(resp.StatusCode, resp.Header, buf.B)
	case x.To.Dialect != nil:
		f = x.To.Dialect.DecodeError(resp.StatusCode, resp.Header, buf.B)
	default:
		f = x.errorDialect().DecodeError(resp.StatusCode, resp.Header, buf.B)
	}
	f.Source = fault.SourceProvider
	x.keepReceived(buf.B)
	return answer{fault: f, failed: resp.Header, words: x.wordsOf(resp.StatusCode, buf.B)}
}

// wordsOf is a copy of a provider's error where the client reads it as it came: on
// routes of its own shape, if it is an error of that shape at all.
func (x *exchanges) wordsOf(status int, body []byte) []byte {
	if !x.Route.Verbatim || !x.speaksAlike() || chat.ErrorStatus(status) != status || wire.KindOf(body) != wire.KindObject {
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
func (o *outbound) speaksAlike() bool {
	return o.SameDialect() || o.To.Carrier != nil && o.To.Carrier.Name() == provider.AnthropicMessages
}

var errorKeys = wire.NewKeySet("error")

// errorDialect reads the errors of routes that are no conversations: they have
// the OpenAI shape.
func (r *Relay) errorDialect() chat.Provider { return r.dialects["openai.chat"] }

// upstreamRequest builds the request to the provider.
func (rq *requests) upstreamRequest(body []byte) (*http.Request, error) {
	h := make(http.Header, 8)
	ctx := rq.Ctx
	if len(body) > 0 {
		if rq.sending == nil {
			rq.sending = outgoing.New(rq.out())
		}
		ctx = rq.sending.Watch(ctx)
	}
	req := (&http.Request{Method: cmp.Or(rq.part.Method, rq.Req.Method), Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	var err error
	if rq.Route.Shape == routes.Raw {
		if req.URL, err = rq.rawURL(); err != nil {
			return nil, err
		}
		egress.CopyRequestHeaders(h, rq.HeadersForProvider())
	} else {
		if req.URL, err = rq.unifiedURL(); err != nil {
			return nil, err
		}
		switch {
		case rq.Form != nil:
			h["Content-Type"] = rq.Req.Header["Content-Type"][:1:1]
		case rq.To.ContentType != "":
			h["Content-Type"] = []string{rq.To.ContentType}
		case len(body) > 0:
			h["Content-Type"] = jsonType
		}
		h["Accept"] = acceptJSON
		if (rq.Route.Binary || rq.Route.Media) && rq.To.Carrier == nil {
			h["Accept"] = acceptAll
		}
		if rq.Stream {
			h["Accept"] = acceptStream
		}
	}
	for _, name := range rq.To.Forward {
		if v, ok := rq.Req.Header[name]; ok && egress.Forwardable(name) && !(name == "Authorization" && rq.KeyInAuth) && !rq.HoldsKey(name) {
			h[name] = v
		}
	}
	for k, v := range rq.To.Target.CustomHeaders {
		if egress.Forwardable(k) {
			h.Set(k, v)
		}
	}
	for k, v := range rq.guards.Headers() {
		if delete(h, k); v != nil {
			h[k] = v
		}
	}
	if parent := rq.Ask.Traceparent(); parent != "" {
		h["Traceparent"] = []string{parent}
		if state := rq.Req.Header["Tracestate"]; len(state) > 0 {
			h["Tracestate"] = state
		}
	}
	betas.Set(h, rq.Req.Header, rq.To.Target.ToldAs(rq.To.Op))
	if rq.Route.Verbatim && rq.speaksAlike() {
		betas.SetAnthropic(h, rq.Req.Header)
	}
	egress.DropLookalikes(h, rq.fromClient, "Authorization", "User-Agent", "X-Api-Key", "Api-Key", rq.To.Target.Provider.Auth.Name)
	body = reference.Disown(approval.Conceal(body), rq.To.Wall.Foreign)
	rq.setBody(req, body)
	if rq.Rehearsing {
		return req, nil // no token is asked for
	}
	if err := rq.To.Target.Authorize(rq.Ctx, req, body); err != nil {
		return nil, err
	}
	h["User-Agent"] = userAgent
	rq.stars.Sent = req.Header
	rq.keepSent(req.Header, body)
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
func (o *outbound) setBody(req *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		o.sending.Attach(req, body)
	case o.Form != nil:
		form, length := o.formStream()
		o.sending = o.sending.Stream(req, approval.ConcealStream(form), length)
		o.bodySpent = true
	case o.Route.Shape == routes.Raw && o.In == nil && o.Req.Body != nil && o.Req.ContentLength != 0:
		o.sending = o.sending.Stream(req, approval.ConcealStream(outgoing.Exactly(o.Req.Body, o.Req.ContentLength)), o.Req.ContentLength)
		o.bodySpent = true
	default:
		req.Body = http.NoBody
	}
}

// out is the way to the target.
func (o *outbound) out() http.RoundTripper {
	if o.To.AtOwnHost() {
		return o.Trusting
	}
	return o.Transport
}

// asks is the part of the answer that is asked for: the first, or a further one.
func (o *outbound) asks() chosen.Part {
	if o.part.Further {
		return o.part
	}
	return chosen.Part{Op: o.To.Op, ID: o.ID, Query: o.Req.URL.RawQuery}
}

func (o *outbound) unifiedURL() (*url.URL, error) {
	if o.Route.Shape == routes.Socket {
		return o.socketURL()
	}
	if o.Route.Shape != routes.Listing && o.Route.Client == nil && (o.Nameless() || o.Through()) {
		return o.OperationURL(o.asks())
	}
	if s := o.To.Saved; s != nil {
		if u := s.KnownURL(o.To.Op, o.To.Model, o.Stream); u != nil {
			return u, nil
		}
	}
	var raw string
	var err error
	if o.Route.Shape == routes.Listing && !o.To.Target.Provider.Serves(o.To.Op) {
		raw, err = o.To.Target.PassthroughURL("/models", "")
	} else {
		raw, err = o.To.Target.URL(o.To.Op, o.To.Model, o.Stream)
	}
	if err != nil {
		return nil, err
	}
	if o.To.Saved == nil {
		return o.urls.Exact(raw)
	}
	u, err := provider.ExactURL(raw)
	if err == nil && o.To.Saved.Allows(o.To.Model) == nil {
		o.To.Saved.KeepURL(o.To.Op, o.To.Model, o.Stream, u)
	}
	return u, err
}

func (o *outbound) rawURL() (*url.URL, error) {
	if o.part.Further && o.part.Op != "" {
		return o.OperationURL(o.part)
	}
	raw, err := o.To.Target.PassthroughURL(o.RawPath(), o.asks().Query)
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}

// fromClient reports whether the client sent a header of this name.
func (rq *requests) fromClient(name string) bool { return len(rq.Req.Header[name]) > 0 }
