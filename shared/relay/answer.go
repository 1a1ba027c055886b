package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/provider/known"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/came"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
	"gateway/shared/relay/turn"
	"gateway/shared/relay/unread"
	"gateway/shared/wire/mask"
)

// Bounds of what is read of a provider's answer, in bytes.
const (
	maxPlainAnswer = 64 << 20 // a unified answer, held in memory
	maxErrorAnswer = 1 << 20
)

// Names of the gateway's own headers of answers, in canonical form.
const (
	headerException = "X-Gateway-Gateway-Exception"
	headerCode      = "X-Gateway-Error-Code"
)

// answer is what one target gave: a provider's response whose body is still to
// be read, or a refusal. It is sent only when no other target is to be tried.
type answer struct {
	resp  *http.Response
	fault *fault.Fault
	// held is the beginning of a stream, read to learn whether it starts with
	// an error.
	held   []byte
	whole  bool // its body was read and stands in the call
	ended  bool // the stream ended within held
	broken error
	failed http.Header // of the response that became a refusal
	words  []byte      // its body, where the client reads the provider's errors as they are
	stream turn.Stream
	made   *kept.IDWatcher
	cached *reused.Answer // instead of a response: an answer that was kept
	soft   bool           // a guardrail that does not deny has failed
}

func (a *answer) status() int {
	if a.fault != nil {
		return a.fault.Status()
	}
	if a.soft {
		return guarded.StatusFailed
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
func (s *sender) send(a *answer) error {
	if a.fault != nil {
		s.told, s.words = a.failed, a.words
		return a.fault
	}
	if a.cached != nil {
		return s.sendCached(a.cached)
	}
	s.told = a.resp.Header
	if s.Route.Shape == routes.Socket {
		return s.Sessions.open(s, a.resp)
	}
	defer a.resp.Body.Close()
	switch {
	case s.Route.Shape == routes.Raw:
		return s.sendRaw(a.resp)
	case s.Route.Shape == routes.Listing:
		return s.sendList(a.resp)
	case s.Route.Operation == provider.BatchesOutput:
		return s.sendOutput(a.resp)
	case !a.whole && s.Passes(a.resp):
		return s.sendPassed(a.resp)
	case s.Filtered():
		return s.sendHeld(a.resp)
	case a.stream.Is():
		return s.sendStream(a)
	}
	return s.sendPlain(a)
}

// answerHeaders sets the gateway's own response headers and passes on the
// provider's request id and rate limits under a prefix.
func (l *logbook) answerHeaders(from http.Header) {
	h := l.w.Header()
	l.ownHeaders(h)
	if from == nil {
		return
	}
	came.PassHeaders(h, from)
	l.stars.Head(h)
	if !l.Loss.Empty() && (!l.Strict() || !l.asksAsOpenAI()) {
		h.Set(asked.Translation, l.Loss.Header())
	}
}

// asksAsOpenAI tells whether the client speaks one of OpenAI's shapes. Answers to such
// clients keep strictly to the shape unless the client allows more; other shapes have
// headers for the rest anyway.
func (l *logbook) asksAsOpenAI() bool {
	return l.Route.Client == nil || strings.HasPrefix(l.Route.Client.Name(), "openai.")
}

func (l *logbook) ownHeaders(h http.Header) {
	values := make([]string, 0, 5) // one allocation for all of them
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(asked.TraceID, l.Ask.TraceID)
	set(asked.RetryCount, strconv.Itoa(l.retries))
	set(asked.CacheStatus, l.reuse.Status)
	if l.To.Names.Option != "" {
		set(asked.OptionIndex, l.To.Names.Option)
	}
	if l.To.Names.Provider != "" {
		set(asked.Provider, l.To.Names.Provider)
	}
	if p := l.To.Target.Provider; p != nil {
		known.Of(p.ID, l.To.Model).SetHeaders(h)
	}
	if l.unread.Any() && l.Who != nil && l.unread.Unread(l.promptsOf()) {
		h[asked.PromptCache] = promptUnread
	}
}

var promptUnread = []string{"unread"}

// promptsOf tells together with which other requests this one's prompt is counted, see
// unread.
func (l *logbook) promptsOf() unread.Of {
	return unread.Of{
		Org: l.Who.Scope.Org, Workspace: l.Who.Scope.Workspace, Key: l.Who.KeyID,
		Provider: l.To.Names.Slug, Model: l.ModelOf(), Session: l.Ask.Session,
	}
}

// sendFault answers with an error in the client's dialect.
func (s *sender) sendFault(f *fault.Fault) {
	if len(s.Purse.Attempts) > 1 {
		again := *f
		again.Retried = true
		f = &again
	}
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	f.SetHeaders(h)
	s.ownHeaders(h)
	if came.PassHeaders(h, s.told); s.told != nil {
		mask.Header(h, s.stars.Secrets())
	}
	h.Set(headerCode, string(f.Code))
	if f.Source != fault.SourceProvider && f.Status() >= 500 && f.Code == fault.InternalError {
		h.Set(headerException, "true")
	}
	body := errorBody(s, f)
	if f.Final() { // also where the provider says otherwise
		h.Set(fault.ShouldRetry, "false")
	}
	if f.Status() == http.StatusUpgradeRequired {
		h.Set("Upgrade", "websocket")
	}
	speaker := errorSpeaker(s)
	if by, ok := speaker.(routes.Challenger); ok {
		by.Challenge(h, s.Req, f) // behind what the provider's headers say
	}
	status := f.Status()
	if by, ok := speaker.(chat.Refuser); ok && sendsEvent(s, f) {
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		h.Set(asked.ErrorStatus, strconv.Itoa(status))
		h.Del("Retry-After")
		body, status = by.AppendRefusal(nil, f, s.options()), http.StatusOK
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	s.failure = f
	s.captureAnswer(body)
	s.status = f.Status() // of the record
	s.keepBooks()
	s.head(status)
	s.write(body)
	s.status = f.Status()
}

// sendsEvent reports whether a refusal is sent as an event: it is final, the request asks
// for a stream, and it or its config asks for such events.
func sendsEvent(s *sender, f *fault.Fault) bool {
	if f.Status() >= http.StatusInternalServerError || !f.Final() {
		return false
	}
	if asked.One(s.Req.Header, asked.Refusals) != "event" && !s.Config.RefusalEvents {
		return false
	}
	// A body that was not read, as of a wrong key, does not say whether it asks for a stream.
	return s.Stream || s.In == nil && strings.Contains(asked.One(s.Req.Header, "Accept"), "text/event-stream")
}

// errorBody returns the body of an error, with the results of the guardrails of the target
// that was tried last. JSON-RPC has no place for them.
func errorBody(s *sender, f *fault.Fault) []byte {
	if f.Code == fault.GuardrailDenied {
		if body := deniedBody(s, s.w.Header(), f); body != nil {
			return body
		}
	}
	body := plainError(s, f)
	if s.Route.Protocol != nil {
		return body
	}
	return s.guards.Told(body, true)
}

// plainError returns an error in the provider's own words if the client speaks to it in its
// own shape, otherwise in the gateway's words and the client's shape.
func plainError(s *sender, f *fault.Fault) []byte {
	h := s.w.Header()
	if s.words != nil && f.Source == fault.SourceProvider {
		came.PassRetry(h, s.told)
		return s.words
	}
	return s.withAttempts(errorSpeaker(s).AppendError(nil, f, s.options()))
}

// errorSpeaker returns what writes an error in its client's shape.
func errorSpeaker(s *sender) chat.ErrorWriter {
	switch {
	case s.Route.Client != nil:
		return s.Route.Client
	case s.Route.Errors != nil:
		return s.Route.Errors
	}
	if own, ok := s.dialects[chosen.ErrorDialect(s.Target)].(chat.ErrorWriter); ok {
		return own
	}
	speaker, _ := s.errorDialect().(chat.ErrorWriter)
	return speaker
}

// plainJSON reports whether a response is JSON and no error.
func plainJSON(resp *http.Response) bool {
	return resp.StatusCode >= 200 && resp.StatusCode <= 299 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// endRawStream writes the error event of a passed-through stream of events that broke off
// between two of them, for clients that would else take it for a network failure alone.
func endRawStream(s *sender, resp *http.Response) {
	speaker := errorSpeaker(s)
	if b, ok := speaker.(chat.Breaker); !ok || !b.BreaksConnection() || !events(resp) || resp.Header.Get("Content-Encoding") != "" {
		return
	}
	f := *s.failure
	f.Source = fault.SourceProvider
	last := speaker.AppendStreamError(nil, &f, s.options())
	s.captureAnswer(last)
	s.write(last)
	s.flush()
}

// sendRaw passes an answer through byte for byte, as it comes.
func (s *sender) sendRaw(resp *http.Response) error {
	if s.Holds(resp) || s.Tickets(resp) || s.Purse.Holds() && createsBatch(s) && plainJSON(resp) {
		return s.sendHeld(resp)
	}
	watch := s.Watch(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		if err := s.stars.Raw(resp); err != nil {
			return err
		}
	}
	h := s.w.Header()
	egress.CopyResponseHeaders(h, resp.Header)
	s.stars.Head(h)
	s.answerHeaders(nil)
	s.head(s.guards.Verdict.Status(resp.StatusCode))
	chunk := pooled.New()
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	meter := tail.New(resp)
	meter.Memory(s.Ctx, s.Lease)
	like := s.Like()
	// A run is told with all its settings, an event may hold an image or a whole response.
	meter.Wide = s.KeptPath().Collection == "threads" || s.KeptPath().Collection == "interactions" || like != nil && (like.Meter != nil || like.Operation == provider.ResponsesCreate)
	s.flushWhenWaiting(resp.Body)
	between := true // events have come whole so far
	for {
		t := s.Now()
		n, err := resp.Body.Read(p)
		s.waited += s.Now().Sub(t)
		if n > 0 {
			between = bytes.HasSuffix(p[:n], []byte("\n\n")) || bytes.HasSuffix(p[:n], []byte("\r\n\r\n"))
			meter.Feed(p[:n])
			if err := watch.Feed(p[:n]); err != nil {
				s.Fail("note what was made", err)
			}
			s.captureAnswer(p[:n])
			s.write(p[:n])
			s.flushSoon()
		}
		if err != nil {
			s.flushWritten()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			recordFailure(s.reply, brokeOff())
			if between {
				endRawStream(s, resp)
			}
			meter.Cut = true
			s.LearnRaw(meter, resp.StatusCode)
			s.broken = true // the client must see that the body is not whole
			return nil
		}
	}
	s.LearnRaw(meter, resp.StatusCode)
	if meter.JSON && resp.StatusCode == http.StatusOK {
		s.settleBatch(meter.Kept)
	}
	s.keepBooks()
	return nil
}
