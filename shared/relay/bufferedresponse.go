package relay

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// plain is the complete response to a unified request that is not streamed. It is read while
// other targets can still be tried, so that a successful status without a valid response is
// retried like a bad gateway.
type plain struct {
	buf, made  *buffer.Buffer // the body received, and the result of a translator
	media      string         // of the translator's result; "": JSON
	own        bool           // it is forwarded unchanged
	repeated   []byte         // the final response of a stream
	meter      chat.Meter
	translated *chat.Response
	signed     []chat.Signed
}

func (p *plain) free() {
	p.buf.Free()
	p.made.Free()
	*p = plain{}
}

// takesWhole reports whether a response is read before it is chosen. A further part of a
// response that is being sent is not.
func takesWhole(tg *target.Target, up *outbound, resp *http.Response) bool {
	return tg.Req.Route.BodyMode != routes.Raw && tg.Req.Route.BodyMode != routes.Listing && tg.Req.Route.BodyMode != routes.Socket && tg.Req.Route.Operation != provider.BatchesOutput && !up.part.Further && !tg.Passes(resp) && !target.Filtered(tg)
}

// takePlain reads a complete response, charges it, and checks whether it is valid.
func takePlain(c *call, resp *http.Response) targetResult {
	p := &c.plain
	p.free()
	p.buf = buffer.For(int(min(resp.ContentLength, maxPlainResponse)) + 1)
	t, held := c.relay.Now(), c.req.Lease.Size()
	err := readWhole(&c.req, p.buf, resp, maxPlainResponse)
	c.log.Wait(c.relay.Now().Sub(t))
	_ = resp.Body.Close()
	if err == nil {
		err = reserveDecoding(&c.target, len(p.buf.B))
	}
	if err != nil {
		err = brokenResponse(c, err, p.buf.B)
	} else {
		err = readPlain(c, resp)
	}
	if err != nil {
		p.free()
		c.req.Lease.Return(c.req.Lease.Size() - held)
		return targetResult{fault: fault.From(err), failed: resp.Header}
	}
	return targetResult{resp: resp, whole: true}
}

// readPlain reads the buffered response: its usage, and the client's version of it.
func readPlain(c *call, resp *http.Response) (err error) {
	p := &c.plain
	out := p.buf.B
	switch {
	case containsRepeated(&c.req, &c.guards, resp):
		return readRepeated(&c.target, &c.bill, &c.plain, out)
	case c.target.Choice.Translator != nil:
		p.made = buffer.New()
		if p.made.B, p.media, p.meter, err = c.target.Choice.Translator.DecodeResponse(p.made.B, out, resp.Header, c.target.TranslatorRequest()); err != nil {
			return unusable(&c.target, &c.bill, &c.log, &c.mask, err, out)
		}
		accounting.RecordUsage(&c.bill, p.meter)
	case c.target.SameDialect() && !arrivedAsEvents(&c.target, out):
		p.own = true
		if returnsItems(c.req.Route) {
			clean, err := approval.Clean(out)
			if err != nil {
				return unusable(&c.target, &c.bill, &c.log, &c.mask, err, out)
			}
			out, p.buf.B = clean, clean
		}
		if c.req.Req.Method == http.MethodPost && !response.IsEnclosed(out) {
			return unusable(&c.target, &c.bill, &c.log, &c.mask, errNoJSON, out)
		}
		if p.meter = accounting.Meter(&c.bill, out); p.meter.Err != nil {
			return unusable(&c.target, &c.bill, &c.log, &c.mask, p.meter.Err, out)
		}
		if !isAnswer(&c.target, &p.meter, out) {
			return unusable(&c.target, &c.bill, &c.log, &c.mask, errNoResponse, out)
		}
		if operates(&c.req) {
			accounting.RecordOperationUsage(&c.bill, p.meter)
		} else {
			accounting.RecordUsage(&c.bill, p.meter)
		}
		if client, ok := c.req.Route.Client.(chat.Conformer); ok {
			p.buf.B = client.Conform(out, p.meter.Finish, c.target.StrictOpenAI())
		} else if c.req.Route.Operation == provider.Embeddings {
			p.buf.B = openai.ConformEmbeddings(out, c.body.In)
		}
	default:
		p.translated, p.meter, p.signed, err = decodeWhole(&c.target, out)
		if err != nil && arrivedAsEvents(&c.target, out) {
			return eventsBroke(&c.target, &c.bill, &c.log, &c.mask, err, p.meter, out)
		}
		if err != nil {
			return unusable(&c.target, &c.bill, &c.log, &c.mask, err, out)
		}
		if d, ok := c.target.Choice.Dialect.(chat.HeaderReader); ok {
			d.ReadHeader(resp.Header, p.translated)
			p.meter = p.translated.Meter()
		}
		if !c.target.SameDialect() {
			if err = chat.Verify(p.translated, c.req.Route.Client.Support(target.Options(&c.target)), &c.target.Loss); err != nil {
				return unusable(&c.target, &c.bill, &c.log, &c.mask, err, out)
			}
		}
		accounting.RecordUsage(&c.bill, p.meter)
	}
	return nil
}

// returnsItems reports whether the responses of a route are Responses objects, or lists of their
// items.
func returnsItems(rt *routes.Route) bool {
	switch rt.Operation {
	case provider.ResponsesCreate, provider.ResponsesGet, provider.ResponsesCancel, provider.ResponsesInputItems, provider.ResponsesCompact:
		return true
	}
	return false
}

// operates reports whether the route is metered as an operation, not as a conversation.
func operates(q *admission.Request) bool {
	return q.Route.Client == nil && (q.Route.UnitsOf != nil || q.Route.Meter == nil)
}

var (
	errNoJSON     = errors.New("relay: the response is not JSON")
	errNoResponse = errors.New("relay: the response has no content")
)

// isAnswer reports whether a body in the client's dialect is a valid response. One with usage, an
// id or a model is; others are examined further.
func isAnswer(tg *target.Target, m *chat.Meter, out []byte) bool {
	if m.Usage.IsReported() || m.ID != "" || m.Model != "" || m.OutputBytes > 0 || tg.Req.Req.Method != http.MethodPost {
		return true
	}
	if tg.Req.Route.Client != nil {
		r, err := tg.Req.Route.Client.DecodeResponse(out, &tg.Choice.Traits)
		return err == nil && (r.Meter().OutputBytes > 0 || len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0)
	}
	switch tg.Req.Route.Operation {
	case provider.Embeddings:
		return bytes.Contains(out, []byte(`"embedding"`))
	case provider.Moderations:
		return bytes.Contains(out, []byte(`"results"`))
	}
	return true
}

// sendPlain sends the response to a unified request that is not streamed.
func sendPlain(c *call, a *targetResult) error {
	resp := a.resp
	if !a.whole {
		if got := takePlain(c, resp); got.fault != nil {
			return got.fault
		}
	}
	p := &c.plain
	out, kind := p.buf.B, jsonType
	switch {
	case p.repeated != nil:
		kind = eventStream
		out = clientRepeated(&c.target, &c.guards, out)
	case c.guards.Response != nil:
		out = c.guards.Response
		if !p.own {
			break
		}
		if err := target.RecordCreated(&c.target, p.buf.B, p.meter.ID); err != nil {
			return err
		}
		target.StoreForwardedReasoning(&c.target, p.buf.B)
	case p.own:
		if operates(&c.req) {
			holdBatch(&c.req, &c.body, &c.bill, out)
			settleBatch(c, out)
			accounting.SettleResponse(&c.bill, out, false)
		}
		if err := target.RecordCreated(&c.target, out, p.meter.ID); err != nil {
			return err
		}
		target.StoreForwardedReasoning(&c.target, out)
	case p.translated == nil:
		c.log.Body(record.Received, out)
		if out = p.made.B; p.media != "" {
			kind = []string{p.media}
		}
	default:
		enc := buffer.New()
		defer enc.Free()
		if err := encodePlain(&c.target, &c.log, &c.plain, enc); err != nil {
			return err
		}
		out = enc.B
	}
	if c.cache.Stores() {
		c.cache.Store(out)
	}
	if c.guards.Enabled && kind[0] == jsonType[0] {
		out = c.guards.WithResults(c.guards.Masked.RestoreBody(out), true)
	}
	h := c.reply.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	setResponseHeaders(c, resp.Header)
	sendWhole(c, c.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// encodePlain encodes a decoded response for the client.
func encodePlain(tg *target.Target, log *record.Log, pn *plain, enc *buffer.Buffer) error {
	p := pn
	o := target.Options(tg)
	if tg.SameDialect() {
		o.Request = tg.Body.LegacyOnly()
		if err := target.RecordCreated(tg, p.buf.B, p.meter.ID); err != nil {
			return err
		}
	} else {
		if err := tg.Decoded.CheckJSON(p.translated); err != nil {
			log.Body(record.Received, p.buf.B)
			return err
		}
	}
	tg.StoreReasoning(p.signed)
	log.Body(record.Received, p.buf.B)
	missed := chat.NewLossReporter(tg.Req.Route.Client, o, &tg.Loss)
	missed.Examine(p.translated)
	enc.B = tg.Req.Route.Client.EncodeResponse(enc.B, p.translated, o)
	if target.StoresItems(tg) {
		target.StoreItems(tg, enc.B)
	}
	return nil
}

// readWhole reads a complete response, inflated if it was compressed without a request for it.
// More than limit bytes is buffer.ErrTooLarge.
func readWhole(q *admission.Request, buf *buffer.Buffer, resp *http.Response, limit int64) error {
	if err := egress.Inflate(resp, 0); err != nil {
		return err
	}
	return buf.ReadAll(q.Ctx, q.Lease, resp.Body, resp.ContentLength, limit)
}

// maxTranslated limits a response that is translated, in bytes: the translation needs a multiple
// of its size in memory.
const maxTranslated = 40 << 20

// reserveDecoding reserves the memory that the translation of n bytes needs.
func reserveDecoding(tg *target.Target, n int) error {
	switch {
	case n <= egress.Uncounted, tg.Choice.Translator == nil && tg.SameDialect():
		return nil
	case n > maxTranslated:
		return fault.Newf(fault.InvalidProviderResponse, "", "The response of %s is larger than the %d bytes that can be translated", tg.Choice.Target.Provider.ID, maxTranslated)
	}
	return tg.Req.Lease.Reserve(tg.Req.Ctx, int64(n))
}

// unreadableResponse returns the fault for a response that the gateway does not accept: an
// excessive compression ratio, an unknown compression, or not enough memory. It is nil if the
// response was truncated.
func unreadableResponse(err error) *fault.Fault {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return nil
	}
	if f.Code == fault.InvalidProviderResponse {
		f.Source = fault.SourceProvider
	}
	return f
}

// unusable returns the error for a success that cannot be used. Its usage is charged, because
// the provider bills it, and created objects are recorded.
func unusable(tg *target.Target, bill *accounting.Bill, log *record.Log, mk *target.SecretMask, err error, body []byte) error {
	f := fault.From(err)
	if f.Code == fault.InternalError {
		f = fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", tg.Choice.Target.Provider.ID).WithCause(err)
	}
	f.Source = fault.SourceProvider
	mask.Bytes(body, mk.Secrets())
	log.Body(record.Received, body)
	accounting.ChargeTruncated(bill, body)
	return f
}

// brokenResponse returns the error for a body that did not arrive completely. body is the part
// received.
func brokenResponse(c *call, err error, body []byte) error {
	mask.Bytes(body, c.mask.Secrets())
	c.log.Body(record.Received, body)
	if errors.Is(err, buffer.ErrTooLarge) {
		// It is not parsed: that would need its size in memory again.
		c.bill.Charge(accounting.Estimate(&c.bill, min(response.TokensOfBytes(len(body)), c.target.MaxOutput)))
		f := fault.Newf(fault.InvalidProviderResponse, "", "The response of %s is larger than %d bytes", c.target.Choice.Target.Provider.ID, int64(maxPlainResponse))
		f.Source = fault.SourceProvider
		return f
	}
	accounting.ChargeAborted(&c.bill, !accounting.ChargeTruncated(&c.bill, body) && endedByGateway(&c.req, &c.out))
	if f := unreadableResponse(err); f != nil {
		return f
	}
	f := fault.Newf(fault.InvalidProviderResponse, "", "The response of %s was truncated", c.target.Choice.Target.Provider.ID).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}
