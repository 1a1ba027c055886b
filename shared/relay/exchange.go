package relay

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/usage"
)

// attempt calls the provider once. The answer is a refusal, or a response whose
// head is good.
func (c *call) attempt(body []byte) answer {
	// What the attempt is charged for while it runs is noted in it.
	c.rec.Attempts = append(c.rec.Attempts, usage.Attempt{})
	at := &c.rec.Attempts[len(c.rec.Attempts)-1]
	at.Provider, at.ProviderSlug, at.Model = c.to.target.Provider.ID, c.rec.ProviderSlug, clipBytes(c.to.model, maxModel)
	at.OptionIndex, at.Start = c.rec.OptionIndex, c.since()
	a := c.exchange(body, at)
	c.judge(&a, at)
	return a
}

// judge notes how an attempt ended.
func (c *call) judge(a *answer, at *usage.Attempt) {
	at.Latency = c.since() - at.Start
	if a.fault != nil {
		at.Status, at.ErrorCode = a.fault.Status(), string(a.fault.Code)
		if a.connectFailed() {
			at.Status = 0
		}
	} else {
		at.Status = a.resp.StatusCode
		c.rec.UpstreamLatency = at.Latency
	}
}

// exchange sends the request and judges the head of the answer.
func (c *call) exchange(body []byte, at *usage.Attempt) answer {
	if c.to.jobs != nil {
		return c.exchangeJob(body, at)
	}
	req, err := c.upstreamRequest(body)
	if err != nil {
		return refusal(err)
	}
	patience := &c.patience
	if ctx := c.beginPatience(req.Context()); ctx != req.Context() {
		req = req.WithContext(ctx)
	}
	t := c.Now()
	resp, err := c.out().RoundTrip(req)
	c.waited += c.Now().Sub(t)
	if err != nil {
		if c.upload != nil {
			if f := c.upload.Fault(); f != nil {
				return refusal(f) // it is the client's body that broke
			}
		}
		if f := patience.Late(); f != nil {
			return refusal(f)
		}
		return refusal(c.unreachable(err))
	}
	at.RequestID = requestID(resp.Header)
	if c.rt.Shape != Raw && (resp.StatusCode < 200 || resp.StatusCode > 299) {
		// The time for the head counts for an error's whole body.
		refused := c.providerRefused(resp)
		patience.Stop()
		if f := patience.Late(); f != nil {
			return refusal(f)
		}
		return refused
	}
	if !patience.HeadCame() {
		_ = resp.Body.Close()
		return refusal(patience.Late())
	}
	if c.rt.Shape != Raw && c.stream && c.rt.Client != nil {
		return c.startStream(resp)
	}
	if c.takesWhole(resp) {
		return c.takePlain(resp)
	}
	return answer{resp: resp}
}

func requestID(h http.Header) string {
	if id := one(h, "X-Request-Id"); id != "" {
		return clipText(id)
	}
	return clipText(one(h, "Request-Id"))
}

// startStream prepares what handles the stream and reads it to its first content.
func (c *call) startStream(resp *http.Response) answer {
	a := &answer{resp: resp}
	if err := egress.Inflate(resp, 0); err != nil {
		return refusal(unreadableAnswer(err))
	}
	if c.sameDialect() {
		a.filter = c.rt.Client.NewStreamFilter(&chat.FilterOptions{Strict: c.strict(), IncludeUsage: c.wantUsage, Injected: c.injected})
	} else {
		c.startTurn(a, chat.Promised(c.decoded, c.to.dialect.NewStreamDecoder(&c.to.traits)), c.options())
	}
	c.gather(a)
	c.open(a)
	return *a
}

// startTurn begins to translate what dec reads for the client.
func (c *call) startTurn(a *answer, dec chat.StreamDecoder, o *chat.Options) {
	a.turn = newTurn(dec, c.rt.Client.NewStreamEncoder(o))
	if c.turnBuf == nil {
		c.turnBuf = newBufferFor(2 * streamChunk)
	}
	a.turn.out = c.turnBuf.b
}

// unreachable says that no answer came.
func (c *call) unreachable(err error) *fault.Fault {
	if egress.Refused(err) {
		return fault.From(err)
	}
	why := "did not answer"
	var dns *net.DNSError
	if errors.As(err, &dns) {
		why = "has an address that cannot be resolved"
	}
	f := fault.Newf(fault.ProviderUnreachable, "", "The provider %s %s", c.to.target.Provider.ID, why).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}

// providerRefused reads a provider's error answer.
func (c *call) providerRefused(resp *http.Response) answer {
	buf := newBuffer()
	defer buf.free()
	err := c.readWhole(buf, resp, maxErrorAnswer)
	if unreadableAnswer(err) != nil {
		buf.b, err = buf.b[:0], nil // its status still says what it is
	}
	_ = resp.Body.Close()
	c.hideRefusal(resp.Header, buf.b)
	var f *fault.Fault
	switch {
	case err != nil && !errors.Is(err, errTooLarge):
		f = fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", c.to.target.Provider.ID).WithCause(err)
		f = chat.Told(f, resp.StatusCode, resp.Header) // its status came
	case c.to.carrier != nil:
		f = c.to.carrier.DecodeError(resp.StatusCode, resp.Header, buf.b)
	case c.to.dialect != nil:
		f = c.to.dialect.DecodeError(resp.StatusCode, resp.Header, buf.b)
	default:
		f = c.errorDialect().DecodeError(resp.StatusCode, resp.Header, buf.b)
	}
	f.Source = fault.SourceProvider
	c.keepReceived(buf.b)
	return answer{fault: f, failed: resp.Header}
}

// errorDialect reads the errors of routes that are no conversations: they have
// the OpenAI shape.
func (c *call) errorDialect() chat.Dialect { return c.dialects["openai.chat"] }

// upstreamRequest builds the request to the provider.
func (c *call) upstreamRequest(body []byte) (*http.Request, error) {
	h := make(http.Header, 8)
	ctx := c.ctx
	if len(body) > 0 {
		if c.sending == nil {
			c.sending = newOutgoing(c.out())
		}
		ctx = c.sending.watch(ctx)
	}
	req := (&http.Request{Method: c.req.Method, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	var err error
	if c.rt.Shape == Raw {
		if req.URL, err = c.rawURL(); err != nil {
			return nil, err
		}
		egress.CopyRequestHeaders(h, c.headersForProvider())
	} else {
		if req.URL, err = c.unifiedURL(); err != nil {
			return nil, err
		}
		switch {
		case c.form != nil:
			h["Content-Type"] = c.req.Header["Content-Type"][:1:1]
		case c.to.contentType != "":
			h["Content-Type"] = []string{c.to.contentType}
		case len(body) > 0:
			h["Content-Type"] = jsonType
		}
		h["Accept"] = acceptJSON
		if (c.rt.Binary || c.rt.Media) && c.to.carrier == nil {
			h["Accept"] = acceptAll
		}
		if c.stream {
			h["Accept"] = acceptStream
		}
	}
	for _, name := range c.to.forward {
		if v, ok := c.req.Header[name]; ok && egress.Forwardable(name) && !(name == "Authorization" && c.keyInAuth) && !c.holdsKey(name) {
			h[name] = v
		}
	}
	for k, v := range c.to.target.CustomHeaders {
		if egress.Forwardable(k) {
			h.Set(k, v)
		}
	}
	c.setBeta(h)
	c.setBody(req, body)
	if c.rehearsing {
		return req, nil // no token is asked for
	}
	if err := c.to.target.Authorize(c.ctx, req, body); err != nil {
		return nil, err
	}
	h["User-Agent"] = userAgent
	c.sentHeader = req.Header
	c.keepSent(req.Header, body)
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
func (c *call) setBody(req *http.Request, body []byte) {
	switch {
	case len(body) > 0:
		c.sending.attach(req, body)
	case c.form != nil:
		req.Body, req.ContentLength = c.formStream()
		c.bodySpent = true
	case c.rt.Shape == Raw && c.in == nil && c.req.Body != nil && c.req.ContentLength != 0:
		req.Body, req.ContentLength = exactly(c.req.Body, c.req.ContentLength), c.req.ContentLength
		c.bodySpent = true
	default:
		req.Body = http.NoBody
	}
}

// address names an upstream URL of a saved provider, so that it is parsed once.
type address struct {
	op     provider.Operation
	model  string
	stream bool
}

func (c *call) unifiedURL() (*url.URL, error) {
	if c.rt.Shape != Listing && c.rt.Client == nil && (c.nameless() || c.through()) {
		return c.operationURL(c.to.op, c.id)
	}
	if s := c.to.saved; s != nil {
		if u, ok := s.urls.Load(address{c.to.op, c.to.model, c.stream}); ok {
			return u.(*url.URL), nil
		}
	}
	var raw string
	var err error
	if c.rt.Shape == Listing && !c.to.target.Provider.Serves(c.to.op) {
		raw, err = c.to.target.PassthroughURL("/models", "")
	} else {
		raw, err = c.to.target.URL(c.to.op, c.to.model, c.stream)
	}
	if err != nil {
		return nil, err
	}
	if c.to.saved == nil {
		return c.urls.exact(raw)
	}
	u, err := provider.ExactURL(raw)
	if err == nil && c.to.saved.allows(c.to.model) == nil {
		c.to.saved.keepURL(address{c.to.op, c.to.model, c.stream}, u)
	}
	return u, err
}

// exactURLs remembers addresses that were parsed. Nobody changes them.
type exactURLs struct {
	known sync.Map // raw address -> *url.URL
	n     atomic.Int64
}

// maxExact bounds the addresses remembered, since callers name hosts and models.
const maxExact = 1000

// exact is provider.ExactURL.
func (e *exactURLs) exact(raw string) (*url.URL, error) {
	if u, ok := e.known.Load(raw); ok {
		return u.(*url.URL), nil
	}
	u, err := provider.ExactURL(raw)
	if err == nil && e.n.Add(1) <= maxExact {
		e.known.Store(raw, u)
	}
	return u, err
}

func (c *call) rawURL() (*url.URL, error) {
	raw, err := c.to.target.PassthroughURL(c.rawPath(), c.req.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}
