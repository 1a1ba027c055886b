package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
)

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
	r, route := b.Target.Decoded, b.Target.Req.Route
	if r == nil && route.BodyMode == routes.Raw {
		route = b.Target.Body.Counterpart()
	}
	if r == nil && route != nil && route.Client != nil {
		r, _ = route.Client.DecodeRequest(b.Target.Body.In) // the body of a successful request can be decoded
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

// MeterEvents reads the usage of a stream from its end, as response.MeterEvents does with the meter
// of the request's route. It returns the zero value for a route without one.
func MeterEvents(b *Bill, end []byte) (last chat.Meter) {
	if b.Target.Req.Route.Meter == nil {
		return last
	}
	return response.MeterEvents(b.Target.Req.Route.Meter, end)
}

// completeUsage adds estimates to the usage of a response that was truncated within its usage.
func completeUsage(b *Bill, u pricing.Usage, m chat.Meter) pricing.Usage {
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
	m, in, answered := readPrefix(b, body)
	u := m.Usage
	switch {
	case u.IsReported() && !in:
		RecordUsage(b, m)
		return true
	case u.IsReported():
		u = completeUsage(b, u, m) // truncated within the usage: the missing part is estimated
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

// readPrefix reads the beginning of a response. within reports that it was truncated within its
// usage, answered that it holds some content.
func readPrefix(b *Bill, body []byte) (m chat.Meter, within, answered bool) {
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
