package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/response"
)

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

// ChargeWhatCame charges an incomplete or unreadable response: by the usage that it reports, or
// by an estimate from the bytes received. If no bytes were received, nothing is charged and
// charged is false.
func ChargeWhatCame(b *Bill, body []byte) (charged bool) {
	m, in, answered := whatCame(b, body)
	u := m.Usage
	switch {
	case u.Known() && !in:
		Learn(b, m)
		return true
	case u.Known():
		u = madeWhole(b, u, m) // truncated within the usage: the missing part is estimated
	case !answered:
		return false
	case b.Target.Req.Route.Client == nil && b.Target.Wanted.Assumed.Known():
		u = b.Target.Wanted.Assumed
		u.Estimated = true
	default:
		u = Estimate(b, m.OutputEstimate())
	}
	b.Reported.Hear(m)
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
	d := b.Target.To.Dialect
	if d == nil {
		d = b.Target.Req.Route.Client
	}
	var got response.Partial
	switch {
	case b.Target.To.Carrier != nil:
		got, _ = response.PartialTranslated(b.Target.To.Carrier, b.Target.Carried(), body)
	case d == nil:
		got, _ = response.PartialOperation(b.Target.Req.Route.Meter, body)
	default:
		got, _ = response.PartialConversation(d, &b.Target.To.Traits, body)
	}
	return got.Meter, got.Within, got.HasOutput()
}
