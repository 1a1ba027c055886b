package accounting

import (
	"cmp"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// Videos are made in the provider's own time. Google (AI Studio and Vertex AI), OpenAI and Azure
// bill the videos that they deliver, so an order only holds what it may cost. It is charged once,
// with the first response that shows its end: in full, in part where videos were withheld, or not
// at all where the job failed.

// ordersVideo reports whether the request is passed through to have videos made.
func ordersVideo(b *Bill) bool {
	return b.Target.Req.Route.Shape == routes.Raw && b.Target.Req.Req.Method == http.MethodPost && b.Target.Body.Like() == nil && body.OrdersVideo(b.Target.Body.RawPath())
}

// readsVideoJob reports whether the request reads the progress of such a job.
func readsVideoJob(b *Bill) bool {
	if b.Target.Req.Route.Shape != routes.Raw {
		return false
	}
	if b.Target.Req.Req.Method == http.MethodPost {
		return strings.HasSuffix(strings.ToLower(b.Target.Body.RawPath()), ":fetchpredictoperation")
	}
	at := b.Target.Body.StoredPath()
	return b.Target.Req.Req.Method == http.MethodGet && at.ID != "" && !at.Below && (at.Collection == "videos" || at.Collection == "operations")
}

// ofVideoJob returns the charge for the response to an order or to a read of one. The second
// result is false if it is neither.
func (a *passed) ofVideoJob(got chat.Meter) (u pricing.Usage, told bool) {
	orders := ordersVideo(a.bill)
	if !orders && !readsVideoJob(a.bill) || !a.answer.JSON {
		return u, false
	}
	job, ok := body.ReadJob(a.answer.Retained)
	if !ok || len(job.ID) > ownership.MaxID {
		return u, false
	}
	if orders {
		return a.orderVideo(job, got)
	}
	if !job.Ended {
		return u, true
	}
	order, ok, err := a.bill.Target.Bookings().Order(job.ID)
	if err != nil {
		a.bill.Target.Req.Fail("read an order", err)
		return u, true // a later read books it
	}
	if !ok || !a.bill.Claim(job.ID) {
		return u, ok
	}
	if seconds := job.BilledSeconds(order.Seconds); seconds > 0 {
		u.Set(pricing.Seconds, seconds)
		a.bill.Reported.PricedAs(order.Model)
		a.bill.Reported.OfSize(order.Size)
		a.bill.Target.Req.Prices()
	}
	return u, true
}

// orderVideo records an order and holds the most it may cost. The second result is false if the
// order must be charged now, because its end could not be recognized.
func (a *passed) orderVideo(job body.Job, got chat.Meter) (u pricing.Usage, told bool) {
	seconds := got.Usage.N(pricing.Seconds)
	switch {
	case job.Ended && job.Failed:
		return u, true
	case job.Ended || seconds <= 0:
		return u, false
	}
	order := ownership.Order{Model: cmp.Or(got.Model, a.bill.ModelOf()), Size: cmp.Or(a.bill.Reported.Size, a.bill.Target.Wanted.Size), Seconds: seconds}
	if err := a.bill.Target.Bookings().NoteOrder(job.ID, order); err != nil {
		a.bill.Target.Req.Fail("note an order", err)
		return u, false
	}
	a.bill.HoldUntilBooked(job.ID, HoldResponse)
	if a.bill.Target.Bookings().PathOfLooks(job.ID) != "" {
		a.bill.Target.Bookings().Await(job.ID)
	}
	return u, true
}
