package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
)

// Used returns the usage of a response: as reported, with an estimate for missing values.
func Used(b *Bill, m chat.Meter) pricing.Usage {
	if MakesLater(b) {
		return laterOrAwaited(b, m)
	}
	u := m.Usage
	if !u.Known() {
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
	if r == nil && like.Shape == routes.Raw {
		like = b.Target.Body.Like()
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

// Learn records what a response reported.
func Learn(b *Bill, m chat.Meter) {
	b.Reported.Hear(m)
	b.Reported.Ended(m.Finish)
	if at := b.Purse.Last(); at != nil && at.RequestID == "" && len(m.ID) <= maxID {
		at.Identify(m.ID) // a translated response has another id
	}
	u := Used(b, m)
	u.Add(pricing.Requests, 1)
	b.Charge(u)
	noteTurn(b, m)
}

// LearnOperation records what the response of an operation reported. Unreported values keep
// their assumed value.
func LearnOperation(b *Bill, m chat.Meter) {
	b.Reported.Hear(m)
	u := m.Usage
	if !u.Known() {
		u = b.Target.Wanted.Assumed
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
