package accounting

import (
	"net/http"

	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
)

// inward are the classes that count the input sent to a provider, which it charges even if its
// response fails.
var inward = [...]pricing.Class{pricing.Input, pricing.AudioIn, pricing.ImageIn, pricing.Characters, pricing.Seconds, pricing.Pages}

// GivenUp charges a call that the gateway itself ended because its client had disconnected or a
// timeout had passed. If the provider had received the complete request by then, it charges for
// the input.
func GivenUp(b *Bill, whole bool) {
	if !whole {
		return
	}
	if u := sent(b); u.Known() {
		u.Add(pricing.Requests, 1)
		b.Charge(u)
	}
}

// sent estimates the cost of the request without a response; zero if it is free, or if the
// provider may continue it and the later reader of the result is charged for all of it.
func sent(b *Bill) (u pricing.Usage) {
	if b.Target.Req.Req.Method != http.MethodPost || b.Target.CostsNothing() || goesOn(b) {
		return u
	}
	like := b.Target.Req.Route
	if like.Shape == routes.Raw {
		like = b.Target.Body.Like()
	}
	switch {
	case like == nil: // an unknown format: see LearnRaw
		if (&passed{bill: b}).estimates() {
			u = Estimate(b, 0)
		}
		return u
	case like.Free || like.NoModel: // what it starts is charged when it has been done
		return u
	}
	if like.Client != nil || like.Demand == nil {
		return Estimate(b, 0)
	}
	for _, c := range inward {
		if n, ok := b.Target.Wanted.Assumed.Get(c); ok {
			u.Set(c, n)
			u.Estimated = true
		}
	}
	return u
}

// goesOn reports whether a provider continues a request in the background, so that its result
// can be read later although no response arrived: a run by its thread, and a background response
// or interaction by a request with the same key.
func goesOn(b *Bill) bool {
	if b.Target.Req.Route.Shape == routes.Raw && b.Target.Body.StoredPath().Collection == "threads" {
		return true
	}
	return (MakesLater(b) || startsInteraction(b)) && b.Target.Req.Req.Header.Get("Idempotency-Key") != ""
}
