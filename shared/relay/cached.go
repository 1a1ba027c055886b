package relay

import (
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// sendCached sends a cached response: no provider is called and nothing is charged.
func sendCached(c *call, a *caching.Hit) error {
	e := a.Entry
	c.cache.Use(e)
	out := e.Body
	h := c.reply.w.Header()
	if a.Decoded != nil && c.target.Stream {
		out = replayed(&c.target, &c.guards, a.Decoded)
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
	} else {
		h["Content-Type"] = jsonType
		if a.Decoded != nil {
			out = restored(&c.target, a.Decoded)
		} else {
			out = c.guards.Masked.RestoreBody(out)
		}
		out = c.guards.WithResults(out, false)
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	setResponseHeaders(c, nil)
	sendWhole(c, c.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// restored returns a cached response under a new id, and stores it: the items of the first one expire
// before it, and another client may have continued it.
func restored(tg *target.Target, r *chat.Response) []byte {
	o := target.Options(tg)
	o.Request = target.Echoed(tg)
	out := tg.Req.Route.Client.EncodeResponse(nil, r, o)
	target.StoreItems(tg, out)
	return out
}

// replayed returns a complete response as a stream in the client's dialect.
func replayed(tg *target.Target, gs *guardrail.State, r *chat.Response) []byte {
	if target.StoresItems(tg) {
		restored(tg, r)
	}
	o := target.Options(tg)
	o.Request = target.Echoed(tg)
	return streamTold(tg, gs, response.Replay(r, tg.Req.Route.Client.NewStreamEncoder(o)))
}

// gather starts to assemble a stream that is cached, judged at its end, or has reasoning to
// remember.
func gather(tg *target.Target, gs *guardrail.State, ca *caching.Cache, a *targetResult) {
	judged := gs.JudgesEnd()
	if !ca.Stores() && !judged && !target.StoresItems(tg) && !target.StoresForwarded(tg) {
		return
	}
	if a.stream.Translated() {
		a.stream.StartAssembly(cache.MaxBody, tg.Decoded != nil && tg.Decoded.HiddenResponse, judged, nil)
		return
	}
	a.stream.StartAssembly(cache.MaxBody, false, judged, tg.Req.Route.Client.NewStreamDecoder(&tg.Choice.Traits))
}

// keepStream stores a finished stream: in the cache, and its items for later references.
func keepStream(tg *target.Target, ca *caching.Cache, a *targetResult) {
	stores := target.StoresItems(tg)
	if !ca.Stores() && !stores {
		return
	}
	whole := a.stream.Assembled()
	if whole == nil {
		return
	}
	enc := buffer.New()
	defer enc.Free()
	enc.B = encodeWhole(tg, enc.B, a, whole)
	if ca.Stores() {
		ca.Store(enc.B)
	}
	if stores {
		target.StoreItems(tg, enc.B)
	}
}

// encodeWhole writes an assembled stream as a complete response.
func encodeWhole(tg *target.Target, dst []byte, a *targetResult, whole *chat.Response) []byte {
	o := target.Options(tg)
	if !a.stream.Translated() || tg.SameDialect() {
		o.Request = tg.Body.LegacyOnly()
	}
	whole.Attribute(tg.Choice.Dialect.Name())
	return tg.Req.Route.Client.EncodeResponse(dst, whole, o)
}

// A background response, or a stored one, reaches the client with a later request. Output
// guardrails judge it there, on each read. They are those of the reading request, of its
// workspace and of the organization. A response in progress has nothing to judge.

// events reports whether a response is a stream of events.
func events(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// containsRepeated reports whether a stream that repeats an earlier response is read completely
// before it is sent, because a guardrail may deny or change it. No client depends on receiving
// it incrementally.
func containsRepeated(q *admission.Request, gs *guardrail.State, resp *http.Response) bool {
	return q.Route.EarlierResponse != nil && gs.Outputs() && gs.JudgesStream() && succeeded(resp.StatusCode) && events(resp)
}

// readRepeated reads a stream that repeats an earlier response.
func readRepeated(tg *target.Target, bill *accounting.Bill, pn *plain, stream []byte) error {
	p := pn
	if p.repeated = ownership.LastResponse(stream); p.repeated == nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s was truncated", tg.Choice.Target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	p.own, p.meter = true, chat.Meter{Complete: true, Started: true}
	accounting.RecordOperationUsage(bill, p.meter)
	return nil
}

// clientRepeated returns the client's version of such a stream: the stream itself, or another one if
// guardrails have changed the response, with their results.
func clientRepeated(tg *target.Target, gs *guardrail.State, stream []byte) []byte {
	out := gs.FirstEvent(tg.Req.Route.Endpoint, tg.StrictOpenAI())
	if !gs.Changed {
		out = append(out, stream...)
	} else if r, err := tg.Req.Route.EarlierResponse.Client.DecodeResponse(gs.Response, &tg.Choice.Traits); err == nil {
		out = append(out, response.Replay(r, tg.Req.Route.EarlierResponse.Client.NewStreamEncoder(target.Options(tg)))...)
	}
	return append(out, gs.LastEvent(tg.Req.Route.Endpoint, tg.StrictOpenAI())...)
}

// judgeRepeated runs the guardrails that judge streams once they have ended on it.
func judgeRepeated(tg *target.Target, rw *reply, log *record.Log, gs *guardrail.State, stream []byte) {
	if tg.Req.Route.EarlierResponse == nil || !gs.JudgesEnd() {
		return
	}
	if whole := ownership.LastResponse(stream); whole != nil && !ownership.IsEmptyInProgress(whole) {
		gs.End(whole)
	}
	told := gs.LastEvent(tg.Req.Route.Endpoint, tg.StrictOpenAI())
	log.Body(record.Response, told)
	rw.write(told)
}

// Some hosts send a complete response when a stream was requested, or the reverse. The body
// shows it, often in contradiction to its headers. The client gets the requested form.

// pass passes the next bytes of a response to the stream's handler.
func pass(tg *target.Target, gs *guardrail.State, ca *caching.Cache, st *streamState, a *targetResult, in []byte) ([]byte, error) {
	if a.stream.IsNotEvents(in) {
		takeWhole(tg, gs, ca, st, a)
	}
	unnoted := a.made.Feed(in)
	out, err := a.stream.Feed(in)
	if unnoted != nil { // it must not be sent, but is charged completely
		a.made = nil
		return nil, unnoted
	}
	if err == nil {
		err = st.backlog.Record(tg.Req.Ctx, tg.Req.Lease, len(in), len(out))
	}
	return out, err
}

// takeWhole turns a into a complete response that is replayed to the client as a stream.
func takeWhole(tg *target.Target, gs *guardrail.State, ca *caching.Cache, st *streamState, a *targetResult) {
	dec := upstream.NewBufferedDecoder(tg.Choice.Dialect, &tg.Choice.Traits)
	o := target.Options(tg)
	if !a.stream.Translated() {
		o.Request = tg.Body.LegacyOnly()
	}
	a.stream.ReplaceBy(translate(tg, gs, st, guardedDecoder(tg, gs, verified(tg, dec, o), o), o))
	gather(tg, gs, ca, a)
}

// arrivedAsEvents reports whether the body of a conversation's response is a stream that was not
// requested.
func arrivedAsEvents(tg *target.Target, body []byte) bool {
	if tg.Req.Route.Client == nil || tg.Choice.Dialect == nil {
		return false
	}
	return response.IsEvents(body)
}

// decodeWhole reads a response in the provider's dialect: a complete one, or a stream that is
// assembled.
func decodeWhole(tg *target.Target, body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !arrivedAsEvents(tg, body) {
		r, err := tg.Choice.Dialect.DecodeResponse(body, &tg.Choice.Traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	return response.Collect(tg.Choice.Dialect.NewStreamDecoder(&tg.Choice.Traits), body)
}

// eventsBroke returns the error for a stream that was not requested and cannot be assembled. Its
// content was created, and is charged.
func eventsBroke(tg *target.Target, bill *accounting.Bill, log *record.Log, mk *target.SecretMask, err error, m chat.Meter, body []byte) error {
	f := tg.Choice.TruncatedFault(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, mk.Secrets())
	log.Body(record.Received, body)
	if m.Usage.IsReported() || m.OutputEstimate() > 0 {
		bill.Reported.Observe(m)
		u := accounting.UsageOf(bill, m)
		response.EstimateOutput(&u, m)
		bill.Charge(u)
	}
	return f
}
