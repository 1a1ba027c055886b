package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// Limits of a provider's response, in bytes.
const (
	maxPlainResponse = 64 << 20 // a unified response, buffered in memory
	maxErrorResponse = 1 << 20
)

// Names of the gateway's own response headers, in canonical form.
const (
	headerException = "X-Gateway-Gateway-Exception"
	headerCode      = "X-Gateway-Error-Code"
)

// targetResult is the result of one target: a provider's response with an unread body, or a fault. It
// is sent only if no other target is to be tried.
type targetResult struct {
	resp  *http.Response
	fault *fault.Fault
	// prefix is the beginning of a stream, read to determine whether it starts with an error.
	prefix []byte
	whole  bool // its body was read into the call
	ended  bool // the stream ended within held
	broken error
	failed http.Header // of the response that became a fault
	words  []byte      // its body, if the client gets the provider's errors unchanged
	stream response.Stream
	made   *ownership.IDWatcher
	cached *caching.Hit // instead of a response: a cached one
	soft   bool         // a non-denying guardrail has failed
}

func (a *targetResult) status() int {
	if a.fault != nil {
		return a.fault.Status()
	}
	if a.soft {
		return guardrail.StatusFailed
	}
	if a.cached != nil {
		return http.StatusOK
	}
	return a.resp.StatusCode
}

// succeeded reports whether a status is one of success. Hosts may respond with another one than
// 200, and clients get the body as of a 200.
func succeeded(status int) bool { return status >= 200 && status <= 299 }

// drop releases the connection of an unused response.
func (a *targetResult) drop() {
	if a.resp == nil || a.whole {
		a.resp = nil
		return
	}
	// A small body is read, so that the connection can be reused. A stream may be endless.
	if small := int64(64 << 10); a.resp.ContentLength >= 0 && a.resp.ContentLength <= small {
		_, _ = io.CopyN(io.Discard, a.resp.Body, small)
	}
	_ = a.resp.Body.Close()
	a.resp = nil
}

// send sends the chosen response to the client.
func send(c *call, a *targetResult) error {
	if a.fault != nil {
		c.reply.providerHeader, c.reply.words = a.failed, a.words
		return a.fault
	}
	if a.cached != nil {
		return sendCached(c, a.cached)
	}
	c.reply.providerHeader = a.resp.Header
	if c.req.Route.BodyMode == routes.Socket {
		return c.relay.Sessions.open(c, a.resp)
	}
	defer a.resp.Body.Close()
	switch {
	case c.req.Route.BodyMode == routes.Raw:
		return sendRaw(c, a.resp)
	case c.req.Route.BodyMode == routes.Listing:
		return sendList(c, a.resp)
	case c.req.Route.Operation == provider.BatchesOutput:
		return sendOutput(c, a.resp)
	case !a.whole && c.target.Passes(a.resp):
		return sendPassed(c, a.resp)
	case target.Filtered(&c.target):
		return sendHeld(c, a.resp)
	case a.stream.Is():
		return sendStream(c, a)
	}
	return sendPlain(c, a)
}

// setResponseHeaders sets the gateway's own response headers and forwards the provider's request id
// and rate limits under a prefix.
func setResponseHeaders(c *call, from http.Header) {
	h := c.reply.w.Header()
	ownHeaders(c, h)
	if from == nil {
		return
	}
	response.PassHeaders(h, from)
	c.mask.Head(h)
	if !c.target.Loss.Empty() && (!c.target.StrictOpenAI() || !isOpenAIClient(&c.req)) {
		h.Set(admission.Translation, c.target.Loss.Header())
	}
}

// isOpenAIClient reports whether the client uses one of OpenAI's dialects. Responses to such
// clients keep strictly to the schema unless the client allows more; other dialects use headers
// for the rest anyway.
func isOpenAIClient(q *admission.Request) bool {
	return q.Route.Client == nil || strings.HasPrefix(q.Route.Client.Name(), "openai.")
}

func ownHeaders(c *call, h http.Header) {
	values := make([]string, 0, 5) // one allocation for all of them
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(admission.TraceID, c.req.Headers.TraceID)
	set(admission.RetryCount, strconv.Itoa(c.log.Outcome().Retries))
	set(admission.CacheStatus, c.cache.Status)
	if c.target.Choice.Names.Option != "" {
		set(admission.OptionIndex, c.target.Choice.Names.Option)
	}
	if c.target.Choice.Names.Provider != "" {
		set(admission.Provider, c.target.Choice.Names.Provider)
	}
	if p := c.target.Choice.Target.Provider; p != nil {
		modelmeta.Of(p.ID, c.target.Choice.Model).SetHeaders(h)
	}
	if c.relay.unread.Any() && c.req.Principal != nil && c.relay.unread.IsUnread(promptsOf(&c.target, &c.bill)) {
		h[admission.PromptCache] = promptUnread
	}
}

var promptUnread = []string{"unread"}

// promptsOf returns the key under which the request's prompt is counted, see package unread.
func promptsOf(tg *target.Target, bill *accounting.Bill) response.PromptSource {
	return response.PromptSource{
		Org: tg.Req.Principal.Scope.Org, Workspace: tg.Req.Principal.Scope.Workspace, Key: tg.Req.Principal.KeyID,
		Provider: tg.Choice.Names.Slug, Model: bill.ModelOf(), Session: tg.Req.Headers.Session,
	}
}

// sendFault sends an error in the client's dialect.
func sendFault(c *call, f *fault.Fault) {
	if len(c.bill.Spending.Attempts) > 1 {
		again := *f
		again.Retried = true
		f = &again
	}
	h := c.reply.w.Header()
	h.Set("Content-Type", "application/json")
	f.SetHeaders(h)
	ownHeaders(c, h)
	if response.PassHeaders(h, c.reply.providerHeader); c.reply.providerHeader != nil {
		mask.Header(h, c.mask.Secrets())
	}
	h.Set(headerCode, string(f.Code))
	if f.Source != fault.SourceProvider && f.Status() >= 500 && f.Code == fault.InternalError {
		h.Set(headerException, "true")
	}
	body := errorBody(c, f)
	if f.Final() { // even if the provider's headers differ
		h.Set(fault.ShouldRetry, "false")
	}
	if f.Status() == http.StatusUpgradeRequired {
		h.Set("Upgrade", "websocket")
	}
	speaker := errorSpeaker(c.relay, &c.target)
	if by, ok := speaker.(routes.Challenger); ok {
		by.Challenge(h, c.req.Req, f) // it overrides the provider's headers
	}
	status := f.Status()
	if by, ok := speaker.(chat.RefusalWriter); ok && sendsEvent(&c.target, f) {
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		h.Set(admission.ErrorStatus, strconv.Itoa(status))
		h.Del("Retry-After")
		body, status = by.AppendRefusal(nil, f, target.Options(&c.target)), http.StatusOK
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.log.Reject(f)
	c.log.Body(record.Response, body)
	settleAndRecord(c)
	c.reply.head(status)
	c.reply.write(body)
}

// sendsEvent reports whether a rejection is sent as an event: it is final, the request wants a
// stream, and it or its config enables such events.
func sendsEvent(tg *target.Target, f *fault.Fault) bool {
	if f.Status() >= http.StatusInternalServerError || !f.Final() {
		return false
	}
	if admission.SingleHeader(tg.Req.Req.Header, admission.Refusals) != "event" && !tg.Plan.Config.RefusalEvents {
		return false
	}
	// An unread body, such as that of a request with an invalid key, does not show whether a
	// stream is requested.
	return tg.Stream || tg.Body.In == nil && strings.Contains(admission.SingleHeader(tg.Req.Req.Header, "Accept"), "text/event-stream")
}

// errorBody returns the body of an error, with the results of the guardrails of the last target.
// JSON-RPC has no place for them.
func errorBody(c *call, f *fault.Fault) []byte {
	if f.Code == fault.GuardrailDenied {
		if body := deniedBody(c.relay, &c.target, &c.guards, c.reply.w.Header(), f); body != nil {
			return body
		}
	}
	body := plainError(c.relay, &c.target, &c.bill, &c.reply, f)
	if c.req.Route.Protocol() != nil {
		return body
	}
	return c.guards.WithResults(body, true)
}

// plainError returns the provider's unchanged error if the client uses the provider's own
// dialect, otherwise the gateway's error in the client's dialect.
func plainError(r *Relay, tg *target.Target, bill *accounting.Bill, rw *reply, f *fault.Fault) []byte {
	h := rw.w.Header()
	if rw.words != nil && f.Source == fault.SourceProvider {
		response.PassRetry(h, rw.providerHeader)
		return rw.words
	}
	return withAttempts(tg, bill, errorSpeaker(r, tg).AppendError(nil, f, target.Options(tg)))
}

// errorSpeaker returns the writer of errors in the client's dialect.
func errorSpeaker(r *Relay, tg *target.Target) chat.ErrorWriter {
	switch {
	case tg.Req.Route.Client != nil:
		return tg.Req.Route.Client
	case tg.Req.Route.Errors != nil:
		return tg.Req.Route.Errors
	}
	if own, ok := r.dialects[target.ErrorDialect(tg)].(chat.ErrorWriter); ok {
		return own
	}
	speaker, _ := r.errorDialect().(chat.ErrorWriter)
	return speaker
}

// plainJSON reports whether a response is JSON and not an error.
func plainJSON(resp *http.Response) bool {
	return succeeded(resp.StatusCode) && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// endRawStream writes the error event of a passed-through stream that was truncated between two
// events, for clients that would otherwise only see a network failure.
func endRawStream(r *Relay, tg *target.Target, rw *reply, log *record.Log, resp *http.Response, f fault.Fault) {
	speaker := errorSpeaker(r, tg)
	if b, ok := speaker.(chat.Breaker); !ok || !b.BreaksConnection() || !events(resp) || resp.Header.Get("Content-Encoding") != "" {
		return
	}
	f.Source = fault.SourceProvider
	last := speaker.AppendStreamError(nil, &f, target.Options(tg))
	log.Body(record.Response, last)
	rw.write(last)
	rw.flush()
}

// sendRaw passes a response through byte for byte, as it arrives.
func sendRaw(c *call, resp *http.Response) error {
	if target.BuffersRaw(&c.target, resp) || accounting.IsTicket(&c.bill, resp) || c.bill.Spending.HasReservation() && createsBatch(&c.req, &c.body) && plainJSON(resp) {
		return sendHeld(c, resp)
	}
	watch := target.Watch(&c.target, resp)
	if !succeeded(resp.StatusCode) {
		if err := c.mask.Raw(resp); err != nil {
			return err
		}
	}
	h := c.reply.w.Header()
	egress.CopyResponseHeaders(h, resp.Header)
	c.mask.Head(h)
	setResponseHeaders(c, nil)
	c.reply.head(c.guards.Verdict.Status(resp.StatusCode))
	chunk := buffer.New()
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	meter := response.NewUsageTail(resp)
	meter.Memory(c.req.Ctx, c.req.Lease)
	like := c.body.Counterpart()
	// A run object contains all its settings, an event may hold an image or a complete response.
	meter.KeepsLargeEnd = c.body.StoredPath().Collection == "threads" || c.body.StoredPath().Collection == "interactions" || like != nil && (like.Meter != nil || like.Operation == provider.ResponsesCreate)
	c.reply.flushWhenWaiting(resp.Body)
	between := true // all events so far were complete
	for {
		t := c.relay.Now()
		n, err := resp.Body.Read(p)
		c.log.Wait(c.relay.Now().Sub(t))
		if n > 0 {
			between = bytes.HasSuffix(p[:n], []byte("\n\n")) || bytes.HasSuffix(p[:n], []byte("\r\n\r\n"))
			meter.Feed(p[:n])
			if err := watch.Feed(p[:n]); err != nil {
				c.req.Fail("record created objects", err)
			}
			c.log.Body(record.Response, p[:n])
			c.reply.write(p[:n])
			c.reply.flushSoon()
		}
		if err != nil {
			c.reply.flushWritten()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			f := brokeOff()
			c.log.Reject(f)
			if between {
				endRawStream(c.relay, &c.target, &c.reply, &c.log, resp, *f)
			}
			meter.Cut = true
			accounting.RecordRawUsage(&c.bill, meter, resp.StatusCode)
			c.reply.broken = true // the client must see that the body is incomplete
			return nil
		}
	}
	accounting.RecordRawUsage(&c.bill, meter, resp.StatusCode)
	if meter.JSON && succeeded(resp.StatusCode) {
		settleBatch(c, meter.Retained)
	}
	settleAndRecord(c)
	return nil
}
