package accounting

import (
	"net/http"

	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
)

// inputClasses are the classes that count the input sent to a provider, which it charges even if
// its response fails.
var inputClasses = [...]pricing.Class{pricing.Input, pricing.AudioIn, pricing.ImageIn, pricing.Characters, pricing.Seconds, pricing.Pages}

// ChargeAborted charges the input of a call that the gateway itself ended because its client had
// disconnected or a timeout had passed. If the provider has not received the complete request,
// nothing is charged.
func ChargeAborted(b *Bill, received bool) {
	if !received {
		return
	}
	if u := inputUsage(b); u.IsReported() {
		u.Add(pricing.Requests, 1)
		b.Charge(u)
	}
}

// inputUsage estimates the usage of the request without a response. It is zero if the request is
// free, or if the provider may continue it: then reading the result charges all of it.
func inputUsage(b *Bill) (u pricing.Usage) {
	if b.Target.Req.Req.Method != http.MethodPost || b.Target.CostsNothing() || continuesInBackground(b) {
		return u
	}
	like := b.Target.Req.Route
	if like.BodyMode == routes.Raw {
		like = b.Target.Body.Counterpart()
	}
	switch {
	case like == nil: // an unknown format: see RecordRawUsage
		if (&passed{bill: b}).estimates() {
			u = Estimate(b, 0)
		}
		return u
	case like.Free || like.NoModel: // what it starts is charged when it has been done
		return u
	}
	if like.Client != nil || like.UnitsOf == nil {
		return Estimate(b, 0)
	}
	for _, c := range inputClasses {
		if n, ok := b.Target.Units.Assumed.Get(c); ok {
			u.Set(c, n)
			u.Estimated = true
		}
	}
	return u
}

// continuesInBackground reports whether a provider continues a request in the background, so that
// its result can be read later although no response arrived: a run by its thread, and a background
// response or interaction by a request with the same idempotency key.
func continuesInBackground(b *Bill) bool {
	if b.Target.Req.Route.BodyMode == routes.Raw && b.Target.Body.StoredPath().Collection == "threads" {
		return true
	}
	return (StartsBackground(b) || startsInteraction(b)) && b.Target.Req.Req.Header.Get("Idempotency-Key") != ""
}
