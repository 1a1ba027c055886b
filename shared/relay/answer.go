package relay

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
)

// Bounds of what is read of a provider's answer, in bytes.
const (
	maxPlainAnswer = 64 << 20 // a unified answer, held in memory
	maxErrorAnswer = 1 << 20
	maxLoggedBody  = 1 << 20
)

// answer is what one target gave: a provider's response whose body is still to
// be read, or a refusal. It is sent only when no other target is to be tried.
type answer struct {
	resp  *http.Response
	fault *fault.Fault
	// held is the beginning of a stream, read to learn whether it starts with
	// an error.
	held   []byte
	opened bool // its first byte was seen
	whole  bool // its body was read and stands in the call
	ended  bool // the stream ended within held
	broken error
	failed http.Header // of the response that became a refusal
	filter chat.StreamFilter
	turn   *turn // translation of the stream
	gather *gathering
	cached *cachedAnswer // instead of a response: an answer that was kept
}

func (a *answer) status() int {
	if a.fault != nil {
		return a.fault.Status()
	}
	if a.cached != nil {
		return http.StatusOK
	}
	return a.resp.StatusCode
}

// drop gives the connection of an unwanted answer back.
func (a *answer) drop() {
	if a.resp == nil || a.whole {
		a.resp = nil
		return
	}
	// What is small is read, so that the connection can be used again. A stream
	// may go on for ever.
	if small := int64(64 << 10); a.resp.ContentLength >= 0 && a.resp.ContentLength <= small {
		_, _ = io.CopyN(io.Discard, a.resp.Body, small)
	}
	_ = a.resp.Body.Close()
	a.resp = nil
}

// send gives the chosen answer to the client.
func (c *call) send(a *answer) error {
	if a.fault != nil {
		c.told = a.failed
		return a.fault
	}
	if a.cached != nil {
		return c.sendCached(a.cached)
	}
	c.told = a.resp.Header
	defer a.resp.Body.Close()
	switch {
	case c.rt.Shape == Raw:
		return c.sendRaw(a.resp)
	case c.rt.Shape == Listing:
		return c.sendList(a.resp)
	case c.rt.Operation == provider.BatchesOutput:
		return c.sendOutput(a.resp)
	case c.passes(a.resp):
		return c.sendPassed(a.resp)
	case c.filtered():
		return c.sendHeld(a.resp)
	case a.filter != nil || a.turn != nil:
		return c.sendStream(a)
	}
	return c.sendPlain(a)
}

// meter reads usage and model of an answer in the client's own dialect.
func (c *call) meter(out []byte) chat.Meter {
	if c.rt.Client != nil {
		return c.rt.Client.MeterResponse(out)
	}
	if c.rt.Meter == nil {
		return chat.Meter{Complete: true, Started: true}
	}
	return c.rt.Meter(out)
}

// learn takes over what an answer reported.
func (c *call) learn(m chat.Meter) {
	if m.Model != "" {
		c.rec.Model = m.Model
	}
	c.rec.FinishReason = m.Finish
	u := c.used(m)
	u.Add(pricing.Requests, 1)
	c.charge(u)
}

// answerHeaders sets the gateway's own response headers and passes on the
// provider's request id and rate limits under a prefix.
func (c *call) answerHeaders(from http.Header) {
	h := c.w.Header()
	c.ownHeaders(h)
	if from == nil {
		return
	}
	passProviderHeaders(h, from)
	c.hideInHead(h)
	if !c.loss.Empty() && !c.strict() {
		h.Set(headerTranslation, c.loss.Header())
	}
}

// passProviderHeaders passes on what the provider calls the request, and its rate
// limits under a prefix.
func passProviderHeaders(h, from http.Header) {
	for name, values := range from {
		switch {
		case name == "X-Request-Id" || name == "Request-Id":
			h[headerProviderReqID] = values
		case strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-"):
			h[prefixProviderLimit+strings.TrimPrefix(name, "X-")] = values
		}
	}
}

func (c *call) ownHeaders(h http.Header) {
	values := make([]string, 0, 5) // one allocation for all of them
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(headerTrace, c.ask.TraceID)
	set(headerRetryCount, strconv.Itoa(c.rec.RetryCount))
	set(headerCacheStatus, c.rec.CacheStatus)
	if c.rec.OptionIndex != "" {
		set(headerOptionIndex, c.rec.OptionIndex)
	}
	if c.rec.Provider != "" {
		set(headerProvider, c.rec.Provider)
	}
}

// sendFault answers with an error in the client's dialect.
func (c *call) sendFault(f *fault.Fault) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	f.SetHeaders(h)
	c.ownHeaders(h)
	if passProviderHeaders(h, c.told); c.told != nil {
		hideInHeader(h, c.secrets())
	}
	if f.Source != fault.SourceProvider && f.Status() >= 500 && f.Code == fault.InternalError {
		h.Set(headerException, "true")
	}
	speaker := c.rt.Client
	if speaker == nil {
		speaker = c.errorDialect()
		if c.rt.Errors != nil {
			speaker = c.rt.Errors
		}
	}
	body := c.withAttempts(speaker.AppendError(nil, f, c.options()))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.captureAnswer(body)
	c.rec.ErrorCode, c.rec.ErrorMessage = string(f.Code), recorded(f)
	c.status = f.Status()
	c.books()
	c.head(f.Status())
	c.write(body)
}

// sendRaw passes an answer through byte for byte, as it comes.
func (c *call) sendRaw(resp *http.Response) error {
	if c.holds(resp) {
		return c.sendHeld(resp)
	}
	watch := c.watch(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		if err := c.hideRaw(resp); err != nil {
			return err
		}
	}
	h := c.w.Header()
	egress.CopyResponseHeaders(h, resp.Header)
	c.hideInHead(h)
	c.answerHeaders(nil)
	c.head(resp.StatusCode)
	chunk := newBuffer()
	defer chunk.free()
	p := chunk.b[:cap(chunk.b)]
	meter := newTailMeter(resp)
	meter.memory(c)
	like := c.like()
	// A run is told with all its settings, an event may hold an image or a whole response.
	meter.wide = c.keptPath().collection == "threads" || like != nil && (like.Meter != nil || like.Operation == provider.ResponsesCreate)
	c.flushWhenWaiting(resp.Body)
	for {
		t := c.Now()
		n, err := resp.Body.Read(p)
		c.waited += c.Now().Sub(t)
		if n > 0 {
			meter.feed(p[:n])
			if err := watch.feed(p[:n]); err != nil {
				c.fail("note what was made", err)
			}
			c.captureAnswer(p[:n])
			c.write(p[:n])
			c.flushSoon()
		}
		if err != nil {
			c.flushWritten()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			c.rec.ErrorCode, c.rec.ErrorMessage = string(fault.InvalidProviderResponse), "the answer broke off"
			c.learnRaw(meter, resp.StatusCode)
			c.broken = true // the client must see that the body is not whole
			return nil
		}
	}
	c.learnRaw(meter, resp.StatusCode)
	c.books()
	return nil
}
