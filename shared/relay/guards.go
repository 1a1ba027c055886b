package relay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/wire"
)

// guardInput runs the input guardrails of a resolved target on the request to it, which is the
// client's body after the target's config. If they change it, the changed body is sent.
func guardInput(r *Relay, tg *target.Target, gs *guardrail.State, leaf *route.Leaf) error {
	if !guardrail.HasGuardrails(leaf, tg.Req) {
		gs.Judged.Elsewhere()
		return nil
	}
	changed, err := gs.Input(r.guards, tg, leaf, requestContent(tg), images(r, tg.Req))
	if err != nil || changed == nil {
		return err
	}
	return target.Rewrite(tg, changed)
}

// images returns a function that fetches images for checks that put them into the request,
// all of them within the limit of the media of a request. A fetch ends with the context of
// its check, which has the lane of the request.
func images(r *Relay, q *admission.Request) judge.Fetch {
	f := body.NewMediaFetcher(r.Transport, r.Egress.WithoutTrusted(), q.Lease)
	return func(ctx context.Context, address string, most int64) (mime, data string, err error) {
		return f.Image(ctx, address, most)
	}
}

// guardOutput runs the output guardrails of a target on its response. A denial replaces the
// response; of a stream, guardStream has had the held part judged.
func guardOutput(c *call, _ *route.Leaf, a targetResult) targetResult {
	if !c.guards.Enabled || a.fault != nil {
		return a
	}
	if a.resp != nil && !a.whole && !a.stream.Is() {
		if a = guardPassed(c, a); a.fault != nil {
			return a
		}
		if c.guards.Changed {
			c.log.Body(record.Received, nil)
		}
	}
	if c.guards.Outputs() && a.whole && succeeded(a.status()) {
		out, err := inClientShape(&c.target, &c.log, &c.plain)
		if err == nil && !ownership.IsEmptyInProgress(out) {
			accounting.SettleResponse(&c.bill, out, false) // it is charged regardless of the verdict
			err = asError(c.guards.Output(out))
		}
		if c.guards.Changed {
			c.log.Body(record.Received, nil) // the log contains nothing that was removed from it, denied or not
		}
		if err != nil {
			return targetResult{fault: fault.From(err), failed: a.resp.Header}
		}
	}
	a.soft = succeeded(a.status()) && c.guards.Verdict.Failed()
	return a
}

func asError(f *fault.Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// inClientShape returns a complete response in the client's format, in its own memory.
func inClientShape(tg *target.Target, log *record.Log, pn *plain) ([]byte, error) {
	p := pn
	switch {
	case p.repeated != nil:
		return p.repeated, nil
	case p.own:
		return p.buf.B, nil
	case p.translated == nil:
		log.Body(record.Received, p.buf.B)
		return p.made.B, nil
	}
	enc := buffer.Buffer{}
	err := encodePlain(tg, log, pn, &enc)
	return enc.B, err
}

// repeats reports whether the target is called once more because of the guardrails' verdict on
// its response: its config lists their status.
func repeats(c *call, s *route.Schedule, a *targetResult) bool {
	refused, _ := c.guards.Verdict.Denied()
	if !a.soft && !refused || c.reply.headSent || c.out.bodySpent || !s.Repeat(a.status()) {
		return false
	}
	if c.bill.ExtendReservation() != nil {
		return false
	}
	c.log.Retried(s.Count())
	a.drop()
	c.guards.ResetOutput()
	return true
}

// deniedBody returns the body of a denial: in OpenAI's format an error with the results of the
// hooks, or, if the guardrail is configured so, a response with the error as its text. It is nil
// if the denial is an ordinary error.
func deniedBody(relay *Relay, tg *target.Target, gs *guardrail.State, h http.Header, f *fault.Fault) []byte {
	client := tg.Req.Route.Client
	if made := tg.Req.Route.EarlierResponse; made != nil {
		client = made.Client
	}
	if _, soft := gs.Verdict.Denied(); !soft || client == nil || tg.Req.Route.BodyMode != routes.Unified && tg.Req.Route.EarlierResponse == nil {
		if d, ok := errorSpeaker(relay, tg).(chat.Dialect); ok && !strings.HasPrefix(d.Name(), "openai.") {
			return nil
		}
		body := append(wire.AppendJSONString([]byte(`{"error":{"message":`), f.Message), `,"type":"hooks_failed","param":null,"code":null},"hook_results":`...)
		return append(gs.ClientResults().Append(body, true), '}')
	}
	r := &chat.Response{ID: tg.Req.ULID, Model: tg.Choice.Model, Created: tg.Req.StartTime.Unix(), Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: f.Message}}, Stop: chat.StopEnd, Native: "stop"}}}
	if tg.Stream {
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
		return replayed(tg, gs, r)
	}
	return gs.WithResults(client.EncodeResponse(nil, r, target.Options(tg)), true)
}

// guardStream prepares the output guardrails of a target for a stream, before its first byte is
// read. A stream that is judged while it is forwarded is decoded and encoded, even if client and
// provider use the same dialect.
func guardStream(tg *target.Target, gs *guardrail.State, st *streamState, a *targetResult) {
	if !gs.Enabled {
		return
	}
	gs.ResetOutput()
	if !gs.JudgesStream() || tg.Req.Route.Client == nil {
		return
	}
	dec, o := tg.Choice.Dialect.NewStreamDecoder(&tg.Choice.Traits), target.Options(tg)
	if tg.SameDialect() {
		o.Request = tg.Body.LegacyOnly()
	}
	a.stream = translate(tg, gs, st, guardedDecoder(tg, gs, verified(tg, dec, o), o), o)
}

// guardedDecoder returns a decoder that checks the stream it decodes.
func guardedDecoder(tg *target.Target, gs *guardrail.State, dec chat.StreamDecoder, o *chat.Options) chat.StreamDecoder {
	if !gs.Enabled || tg.Req.Route.Client == nil {
		return dec
	}
	return gs.Decoder(dec, guardrail.Shape{Client: tg.Req.Route.Client, Options: *o, Traits: &tg.Choice.Traits})
}

// drain reads a denied stream to its end, for its usage: it was created, and is charged.
func drain(tg *target.Target, gs *guardrail.State, ca *caching.Cache, st *streamState, a *targetResult) {
	tg.Req.OnClientGone()
	chunk := buffer.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	for !a.ended {
		n, err := a.resp.Body.Read(p)
		if n > 0 {
			if _, ferr := pass(tg, gs, ca, st, a, p[:n]); ferr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// denyStream immediately ends a started stream with the denial; then the rest is read and
// settled.
func denyStream(c *call, a *targetResult, f *fault.Fault) error {
	c.log.Reject(f)
	// Client libraries stop reading at the error.
	last, _ := a.stream.AppendError(c.guards.LastEvent(c.req.Route.Endpoint, c.target.StrictOpenAI()), f)
	c.log.Body(record.Response, last)
	c.reply.tail = c.reply.tail[:0]
	c.reply.write(last)
	c.reply.flush()
	drain(&c.target, &c.guards, &c.cache, &c.stream, a)
	c.target.StoreReasoning(a.stream.Signed())
	accounting.RecordUsage(&c.bill, a.stream.Meter())
	settleAndRecord(c)
	breakConnection(&c.reply)
	return nil
}

// judgeEnd runs the guardrails that judge a stream once it has ended. The client has all of it
// by then.
func judgeEnd(tg *target.Target, rw *reply, log *record.Log, gs *guardrail.State, a *targetResult) {
	if !gs.Enabled {
		return
	}
	if whole := a.stream.AssembledForGuardrails(); whole != nil {
		rw.write(rw.tail)
		rw.tail = rw.tail[:0]
		rw.flush()
		gs.End(encodeWhole(tg, nil, a, whole))
	}
	told := gs.LastEvent(tg.Req.Route.Endpoint, tg.StrictOpenAI())
	log.Body(record.Response, told)
	rw.tail = append(rw.tail, told...)
}

// streamTold returns a complete stream with the results of the input hooks.
func streamTold(tg *target.Target, gs *guardrail.State, out []byte) []byte {
	if told := gs.FirstEvent(tg.Req.Route.Endpoint, tg.StrictOpenAI()); len(told) > 0 {
		return append(told, out...)
	}
	return out
}

// requestContent returns the input of guardrails from the request. Every body is judged, or
// marked as unread, for any path.
func requestContent(tg *target.Target) guardrail.Content {
	body := tg.Body.In
	if tg.Choice.Body != nil {
		body = tg.Choice.Body
	}
	var shown guardrail.Content
	streamed := tg.Req.Req.Body != nil && tg.Req.Req.Body != http.NoBody && tg.Req.Req.ContentLength != 0
	switch raw := tg.Req.Route.BodyMode == routes.Raw; {
	case tg.Body.Form != nil:
		shown = formContent(tg.Body.Form, tg.Req.Route.Endpoint)
	case len(body) > 0 && raw && !(content.IsJSON(body) && content.ReadsASCII(strings.Join(tg.Req.Req.Header["Content-Type"], ","))):
		shown.Unreadable = true
	case len(body) > 0:
		shown.JSON, shown.IsBody, shown.Unreadable = body, true, rowsUnread(tg.Req, tg.Body, body)
	case raw:
		shown.Unreadable = streamed
	}
	if tg.Req.Route.BodyMode == routes.Raw {
		shown.Query = content.Address(tg.Req.Req.URL.Path, tg.Req.Req.URL.RawQuery)
	}
	return shown
}

// mediaRoutes read the files of a form as images or audio, regardless of their declared type.
var mediaRoutes = map[string]bool{"createTranscription": true, "createTranslation": true, "imageEdit": true, "imageVariation": true}

// formContent returns the input of guardrails from a form: its fields, and its text files.
func formContent(f *form.Form, endpoint string) guardrail.Content {
	// An uploaded file may later be read by a model, in any form.
	c := guardrail.Content{Unreadable: !f.Complete() || endpoint == "uploadFile"}
	doc := []byte{'{'}
	add := func(name, value string) {
		doc = wire.AppendJSONString(append(wire.AppendJSONString(doc, name), ':'), value)
		doc = append(doc, ',')
	}
	for name, value := range f.Fields() {
		add(strings.TrimSuffix(name, "[]"), value)
	}
	for _, file := range f.Attachments() {
		if text, ok := content.ReadFile(file.Type, file.Body, mediaRoutes[endpoint]); !ok {
			c.Unreadable = true
		} else if text != "" {
			add("text", text)
		}
	}
	c.JSON = append(bytes.TrimSuffix(doc, []byte{','}), '}')
	return c
}

// rowsUnread reports whether the request creates a batch, or starts the run of an evaluation,
// with rows that were not judged. Those of a batch that the gateway submits to a provider were
// judged one by one.
func rowsUnread(q *admission.Request, in *body.Body, body []byte) bool {
	if q.Internal != nil || q.Req.Method != http.MethodPost {
		return false
	}
	return target.RowsFile(in.RawPath(), body) != "" || target.EvalRowsElsewhere(in.RawPath(), body)
}

// guardPassed runs the output guardrails on a passed-through response. One that they may deny is
// read completely before any of it is sent; otherwise they judge it after it was sent.
func guardPassed(c *call, a targetResult) targetResult {
	resp := a.resp
	if c.req.Route.BodyMode == routes.Socket || c.req.Route.EarlierResponse != nil || !succeeded(resp.StatusCode) || !c.guards.Outputs() {
		return a
	}
	kind := resp.Header.Get("Content-Type")
	if !c.guards.Waits(strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream")) {
		resp.Body = &overheard{ReadCloser: resp.Body, ended: func(body []byte) { c.guards.Ended(kind, body) }}
		return a
	}
	buf := new(buffer.Buffer) // its memory becomes part of the response
	if err := readWhole(&c.req, buf, resp, maxPlainResponse); err != nil {
		return targetResult{fault: fault.From(brokenResponse(c, err, buf.B)), failed: resp.Header}
	}
	_ = resp.Body.Close()
	resp.Header.Del("Content-Encoding") // it was read and inflated
	out, err := c.guards.JudgeResponse(kind, buf.B)
	if err != nil {
		learnWithheld(&c.req, &c.bill, resp, buf.B)
		return targetResult{fault: fault.From(err), failed: resp.Header}
	}
	if resp.Header.Get("Content-Length") != "" {
		resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
	return a
}

// learnWithheld charges a response that was created and is not sent.
func learnWithheld(q *admission.Request, bill *accounting.Bill, resp *http.Response, body []byte) {
	if q.Route.BodyMode != routes.Raw {
		accounting.RecordOperationUsage(bill, accounting.Meter(bill, body))
		return
	}
	meter := response.NewUsageTail(&http.Response{Header: http.Header{"Content-Type": resp.Header["Content-Type"]}})
	meter.KeepsLargeEnd = true
	meter.Feed(body)
	accounting.RecordRawUsage(bill, meter, resp.StatusCode)
}

// maxOverheard limits the bytes of a stream that are buffered for guardrails that judge it at
// its end.
const maxOverheard = 8 << 20

// overheard buffers the bytes read from a body, and passes them to ended at its end. A longer
// body is judged by its beginning.
type overheard struct {
	io.ReadCloser
	kept  []byte
	ended func(body []byte)
}

// Read implements io.Reader.
func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.kept = append(o.kept, p[:min(n, maxOverheard-len(o.kept))]...)
	if err == io.EOF && o.ended != nil {
		o.ended(o.kept)
		o.ended = nil
	}
	return n, err
}
