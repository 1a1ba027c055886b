package accounting

import (
	"bytes"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// A background response is created after the response to its creation request, which is a ticket
// without usage. It is charged once, with the first response that reports its usage: a read, or
// the end of the stream that it was created with.

var backgroundName = []byte(`"background"`)

// StartsBackground reports whether the request makes the provider create a response, or an
// interaction, in the background.
func StartsBackground(b *Bill) bool {
	if rt := b.Target.Req.Route; rt.BodyMode != routes.Raw {
		return rt.Operation == provider.ResponsesCreate && b.Target.SameDialect() && asksBackground(b)
	}
	like := b.Target.Body.Counterpart()
	return (like != nil && like.Operation == provider.ResponsesCreate || startsInteraction(b)) && asksBackground(b)
}

// Tickets reports whether a passed-through response is such a ticket. It is read completely
// before it is sent, so that a client that has the id can rely on the charge being recorded even
// if this process dies.
func Tickets(b *Bill, resp *http.Response) bool {
	return resp.StatusCode >= 200 && resp.StatusCode <= 299 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (StartsBackground(b) || ordersVideo(b))
}

func asksBackground(b *Bill) bool {
	src := b.Target.Body.In
	if b.Target.Choice.Body != nil {
		src = b.Target.Choice.Body // as the config changed it
	}
	return bytes.Contains(src, backgroundName) && body.RequestsBackground(src)
}

// laterOrAwaited returns the charge for the response to such a creation. If it reports no usage,
// the background response is awaited.
func laterOrAwaited(b *Bill, m chat.Meter) pricing.Usage {
	if !m.Usage.IsReported() && m.ID != "" && len(m.ID) <= ownership.MaxID {
		await(b, m.ID)
	}
	return b.BackgroundUsage(m)
}

// await has a response or interaction polled until it has ended, and holds its reservation until
// it is settled.
func await(b *Bill, id string) {
	b.HoldForBackground(id, HoldResponse)
	b.Target.ChargeClaims().Poll(id)
}

// usedByResponse returns the usage of a background response, read from the provider, that no
// earlier response has reported.
func usedByResponse(b *Bill, answer []byte) (u pricing.Usage) {
	d := b.Target.Deps.Dialects[provider.OpenAIResponses]
	if d == nil || !ownership.Background(answer) {
		return u
	}
	m := upstream.Passer(d).MeterResponse(answer)
	if u = b.BackgroundUsage(m); u.IsReported() {
		StoreTurn(b, m)
		b.Reported.AsPriced(m)
	}
	if !m.Usage.IsReported() && b.Target.Req.Req.Method == http.MethodGet && ownership.EndedUnused(answer) && len(m.ID) <= ownership.MaxID && m.ID != "" {
		b.Claim(m.ID) // nothing was used: its reservation is released
	}
	return u
}

// usedByStream is usedByResponse for the last event that holds a complete response.
func usedByStream(b *Bill, events []byte) pricing.Usage {
	var last []byte
	response.EachEvent(events, func(data []byte) {
		if response := ownership.BackgroundIn(data); response != nil {
			last = append(last[:0], response...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return usedByResponse(b, last)
}

// SettleResponse books a response made in the background with the request that
// first reads its end.
func SettleResponse(b *Bill, answer []byte, stream bool) {
	if op := b.Target.Req.Route.Operation; op != provider.ResponsesGet && op != provider.ResponsesCancel {
		return
	}
	var u pricing.Usage
	if stream {
		u = usedByStream(b, answer)
	} else {
		u = usedByResponse(b, answer)
	}
	if u.IsReported() {
		b.Charge(u)
		b.Spend()
		b.Target.Req.Prices()
	}
}

// lastRun returns the last run object in the response; nil if there is none.
func lastRun(m *response.UsageTail) []byte {
	if !m.Stream {
		return ownership.RunIn(m.Retained)
	}
	var last []byte
	response.EachEvent(m.Events(), func(data []byte) {
		if run := ownership.RunIn(data); run != nil {
			last = append(last[:0], run...)
		}
	})
	return last
}

// ChargeRows books what the rows of a batch used, one entry for each model.
func ChargeRows(b *Bill, used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	b.Reported.InMode(batchMode)
	for _, m := range used {
		b.Reported.AsPriced(m)
		b.Charge(m.Usage)
	}
	b.Spend()
}

// UsageOf returns the usage of a response: as reported, with an estimate for missing values.
func UsageOf(b *Bill, m chat.Meter) pricing.Usage {
	if StartsBackground(b) {
		return laterOrAwaited(b, m)
	}
	u := m.Usage
	if !u.IsReported() {
		return Estimate(b, m.OutputEstimate())
	}
	if b.Target.Req.Route.Client != nil {
		u = response.FillUsage(m, func() int64 { return estimateInput(b) }, b.Target.Req.Route.NoOutput)
	}
	if b.Target.Stream && !m.Complete && !b.Target.Req.Route.NoOutput {
		response.EstimateOutput(&u, m)
	}
	return u
}

// Estimate is usage without any report of the provider.
func Estimate(b *Bill, output int64) pricing.Usage {
	var u pricing.Usage
	u.Set(pricing.Input, estimateInput(b))
	if !b.Target.Req.Route.NoOutput {
		u.Set(pricing.Output, output)
	}
	u.Estimated = true
	return u
}

// estimateInput counts the text of a conversation, a token for four bytes and
// four for each message; other bodies count as they are.
func estimateInput(b *Bill) int64 {
	r, like := b.Target.Decoded, b.Target.Req.Route
	if r == nil && like.BodyMode == routes.Raw {
		like = b.Target.Body.Counterpart()
	}
	if r == nil && like != nil && like.Client != nil {
		r, _ = like.Client.DecodeRequest(b.Target.Body.In) // the body of a successful request can be decoded
	}
	if r == nil {
		return response.TokensOfBytes(len(b.Target.Body.In))
	}
	return response.EstimateTokens(r)
}

// Meter reads usage and model of a response in the client's own dialect.
func Meter(b *Bill, out []byte) chat.Meter {
	if b.Target.Req.Route.Client != nil {
		return b.Target.Req.Route.Client.MeterResponse(out)
	}
	if b.Target.Req.Route.Meter == nil {
		return chat.Meter{Complete: true, Started: true}
	}
	return b.Target.Req.Route.Meter(out)
}

// maxID limits the response id in the record.
const maxID = 256

// RecordUsage records what a response reported.
func RecordUsage(b *Bill, m chat.Meter) {
	b.Reported.Observe(m)
	b.Reported.Ended(m.Finish)
	if at := b.Spending.Last(); at != nil && at.RequestID == "" && len(m.ID) <= maxID {
		at.Identify(m.ID) // a translated response has another id
	}
	u := UsageOf(b, m)
	u.Add(pricing.Requests, 1)
	b.Charge(u)
	noteTurn(b, m)
}

// RecordOperationUsage records what the response of an operation reported. Unreported values keep
// their assumed value.
func RecordOperationUsage(b *Bill, m chat.Meter) {
	b.Reported.Observe(m)
	u := m.Usage
	if !u.IsReported() {
		u = b.Target.Units.Assumed
	}
	u.Add(pricing.Requests, 1)
	b.Charge(u)
}

// MeterEvents reads the usage of a stream from its end.
func MeterEvents(b *Bill, end []byte) (last chat.Meter) {
	if b.Target.Req.Route.Meter == nil {
		return last
	}
	return response.MeterEvents(b.Target.Req.Route.Meter, end)
}

// madeWhole adds an estimate to usage in which the response was truncated.
func madeWhole(b *Bill, u pricing.Usage, m chat.Meter) pricing.Usage {
	if e := Estimate(b, 0); u.InputTokens() == 0 {
		u.Add(pricing.Input, e.N(pricing.Input))
	}
	if !b.Target.Req.Route.NoOutput {
		response.EstimateOutput(&u, m)
	}
	u.Estimated = true
	return u
}

// ChargeTruncated charges an incomplete or unreadable response: by the usage that it reports, or
// by an estimate from the bytes received. If no bytes were received, nothing is charged and
// charged is false.
func ChargeTruncated(b *Bill, body []byte) (charged bool) {
	m, in, answered := whatCame(b, body)
	u := m.Usage
	switch {
	case u.IsReported() && !in:
		RecordUsage(b, m)
		return true
	case u.IsReported():
		u = madeWhole(b, u, m) // truncated within the usage: the missing part is estimated
	case !answered:
		return false
	case b.Target.Req.Route.Client == nil && b.Target.Units.Assumed.IsReported():
		u = b.Target.Units.Assumed
		u.Estimated = true
	default:
		u = Estimate(b, m.OutputEstimate())
	}
	b.Reported.Observe(m)
	u.Add(pricing.Requests, 1)
	b.Charge(u)
	return true
}

// whatCame reads the beginning of a response. within reports that it was truncated within its
// usage, answered that it holds some content.
func whatCame(b *Bill, body []byte) (m chat.Meter, within, answered bool) {
	if len(body) > response.MaxPartial {
		m.OutputBytes = int64(len(body))
		return m, false, true
	}
	d := b.Target.Choice.Dialect
	if d == nil {
		d = b.Target.Req.Route.Client
	}
	var got response.Partial
	switch {
	case b.Target.Choice.Translator != nil:
		got, _ = response.PartialTranslated(b.Target.Choice.Translator, b.Target.TranslatorRequest(), body)
	case d == nil:
		got, _ = response.PartialOperation(b.Target.Req.Route.Meter, body)
	default:
		got, _ = response.PartialConversation(d, &b.Target.Choice.Traits, body)
	}
	return got.Meter, got.InUsage, got.HasOutput()
}
