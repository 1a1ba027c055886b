package accounting

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
	"gateway/shared/route/saved"
	"gateway/shared/usage"
)

// Reported holds the metadata that a response reports.
type Reported struct {
	Model, Finish string
	Priced        string // the model that it is charged as; "": the target's
	Mode          string // of its price; "": the response's
	Served        chat.PriceFacts
	Sized, Pixels int64  // of images, see chat.Meter
	Size          string // of a video; "": as the request states it
	Prompt        int64  // see chat.Meter
}

// Observe records the model and the service mode of a response before it is charged.
func (h *Reported) Observe(m chat.Meter) {
	if m.Model != "" {
		h.Model = m.Model
	}
	h.Served = m.PriceFacts
	h.Sized, h.Pixels, h.Prompt = m.Sized, m.Pixels, m.Prompt
}

// OfRows has the sum of a number of rows priced by the size of a row; 0: the number is unknown.
func (h *Reported) OfRows(sum pricing.Usage, rows int64) {
	if rows > 0 {
		h.Prompt = (sum.InputTokens() + rows - 1) / rows
	}
}

// AsPriced is Observe for a response that is charged as the model that it names.
func (h *Reported) AsPriced(m chat.Meter) {
	h.Observe(m)
	if m.Model != "" {
		h.Priced = m.Model
	}
}

// ReportedModel returns the model that responded, by its own name, or else the requested model.
func (b *Bill) ReportedModel() string { return cmp.Or(b.Reported.Model, b.Target.Choice.Names.Model) }

// ModelOf returns the model that a response is charged as.
func (b *Bill) ModelOf() string { return cmp.Or(b.Reported.Priced, b.Target.Choice.Model) }

// Charge counts the usage of the answering attempt and prices it, and what further
// models used on the same bill.
func (b *Bill) Charge(u pricing.Usage) {
	u = plausible(b, u)
	price, known := b.priceOf(b.ModelOf(), priceOptions(b, cmp.Or(b.Reported.Prompt, u.InputTokens()), cmp.Or(b.Reported.Mode, b.Reported.Served.Mode, b.Target.Units.Mode)), true)
	u = price.CountPixels(u, pricing.ImageSizes{Pixels: b.Reported.Pixels, Read: b.Reported.Sized, Each: b.Target.Units.Pixels, Steps: b.Target.Units.Steps})
	b.Spending.Charge(u, price, known)
	for _, line := range b.Reported.Served.Extra {
		used := plausible(b, line.Usage)
		price, known := priceOfLine(b, line, used.InputTokens())
		b.Spending.ChargeAlso(used, price, known)
	}
	b.Reported.Served.Extra = nil
}

// plausible replaces counts that the request cannot have used by the most that it can, and
// reports them. The rows of a batch were checked one by one.
func plausible(b *Bill, u pricing.Usage) pricing.Usage {
	if b.Reported.Mode == pricing.Batch {
		return u.Bounded()
	}
	if limited := u.Limit(pricing.Usage{}); !limited.Limited || u.Limited {
		return limited
	}
	most := b.Target.Units.Most
	in, out := tokenBound(b)
	if out == 0 {
		out = routes.DefaultReserveOutput
	}
	most.Set(pricing.Input, in)
	most.Set(pricing.Output, out)
	limited := u.Limit(most)
	b.Target.Req.Fail("usage of a provider", fmt.Errorf("%s reported %d tokens in and %d out, which no request can use; %d and %d are charged",
		b.ReportedModel(), u.Bounded().InputTokens(), u.Bounded().OutputTokens(), limited.InputTokens(), limited.OutputTokens()))
	return limited
}

// priceOfLine returns the price of a line of the bill. A line of the requested model has the
// price of the request, and so has one of the responding model that is not in the price list:
// hosts may name a model otherwise than the list.
func priceOfLine(b *Bill, line chat.Line, inputTokens int64) (pricing.Price, bool) {
	mode := cmp.Or(b.Reported.Mode, line.Mode)
	if line.Model != b.Target.Choice.Names.Model {
		price, known := b.priceOf(line.Model, priceOptions(b, inputTokens, mode), false)
		if known || line.Model != b.Reported.Model {
			return price, known
		}
	}
	return b.priceOf(b.ModelOf(), priceOptions(b, inputTokens, cmp.Or(mode, b.Target.Units.Mode)), true)
}

// priceOptions are the facts of the request that prices depend on.
func priceOptions(b *Bill, inputTokens int64, mode string) pricing.Options {
	s := &b.Reported.Served
	return pricing.Options{ContextTokens: inputTokens, Region: cmp.Or(s.Region, b.Target.Choice.Region()), Quality: b.Target.Units.Quality, Size: cmp.Or(b.Reported.Size, b.Target.Units.Size), Mode: mode, SearchContext: s.SearchContext, At: b.Target.Req.StartTime}
}

// priceOf finds what a model of the target costs. named: the model may go by the name
// that it gave itself, too.
func (b *Bill) priceOf(model string, o pricing.Options, named bool) (pricing.Price, bool) {
	if b.Target.Choice.Target.Provider == nil {
		return pricing.Price{}, false
	}
	at := saved.Prices{List: b.Prices, By: b.Target.Req.Org.Prices(), Of: b.Target.Choice.Target.Provider.ID, Saved: b.Target.Choice.Saved}
	name, p, ok := at.Find(model, o)
	if !ok {
		if as := b.Target.Choice.Target.PricedAs(b.Target.Req.Base, name); as != name {
			p, ok = at.ListPrice(as, o)
		}
	}
	if heard := b.ReportedModel(); !ok && named && heard != "" && heard != name {
		p, ok = at.ListPrice(heard, o)
	}
	return p, ok
}

// tokensOfAnImage limits the tokens of an image that is sent by URL, since the body does not
// contain its bytes.
const tokensOfAnImage = 4000

// tokenBound returns the most tokens that the request can use at this target, as far as its body
// shows. A token is at least one byte of the body.
func tokenBound(b *Bill) (in, out int64) {
	in = int64(max(len(b.Target.Body.In), len(b.Target.Choice.Body)))
	if b.Target.Body.Form != nil {
		in = b.Target.Body.Form.Text()
	} else if in == 0 {
		in = max(b.Target.Req.Req.ContentLength, 0)
	}
	if images := bytes.Index(b.Target.Body.In, []byte(`"image`)); images >= 0 {
		rest := b.Target.Body.In[images:]
		in += int64(bytes.Count(rest, []byte(`"image_url"`))+bytes.Count(rest, []byte(`"image"`))) * tokensOfAnImage
	}
	in = max(in, b.Target.MaxInput, b.hidden)
	in += b.Fetched.Documents // fetched documents are not in the client's body
	return in, b.Target.MaxOutput
}

// MaxCost returns the most that the request can cost at this target.
func (b *Bill) MaxCost() ledger.Bound {
	most, _ := boundOf(b)
	return most
}

// boundOf is MaxCost. unmeasured reports that the price is by units that the request does not
// count, so that there is no bound.
func boundOf(b *Bill) (most ledger.Bound, unmeasured bool) {
	if b.ReadRows != nil {
		return boundOfRows(b)
	}
	in, out := tokenBound(b)
	price, known := b.priceOf(b.ModelOf(), priceOptions(b, in, b.Target.Units.Mode), true)
	most = ledger.Bound{Tokens: in + out, Priced: known, Assumed: b.Target.OutAssumed, Rerouted: b.rerouted}
	if known {
		cost := func(p pricing.Price) pricing.NanoDollars {
			return p.Bound(in, out).Add(p.Cost(p.BoundOfPixels(b.Target.Units.Most, b.Target.Units.Steps)))
		}
		most.Cost = cost(price)
		if below := price.MinPromptSize(); below > 0 {
			most.Cost = max(most.Cost, mostBelow(b, b.ModelOf(), below, b.Target.Units.Mode, true, cost))
		}
		if b.Target.Units.Mode != "" { // the provider may serve it as a standard one
			most.Cost = max(most.Cost, mostBelow(b, b.ModelOf(), in, pricing.Standard, true, cost))
		}
		switch units := price.Measures(b.Target.Units.Most); {
		case price.Bound(in, out) > 0 || price.Free():
		case units: // tokens are free, so their number is not a guess that would admit it
			most.Tokens, most.Assumed = in, false
		case most.Cost == 0:
			most.Cost = 1 // of units that the request does not state: an exhausted budget rejects it
			unmeasured = !price.OnlyTools() || b.hidden > int64(len(sentBody(b)))
		}
	} else if b.Target.Req.Org.Settings.Unpriced == "allow" || b.Target.Body.Transcribes { // what transcribes is named later
		most.Priced = true
	}
	return most, unmeasured
}

// mostBelow returns the most that something costs by the prices of prompts of at most so many
// tokens: the size of a prompt is known exactly only after it was answered, and its price may be
// one for smaller prompts, which can be higher.
func mostBelow(b *Bill, model string, tokens int64, mode string, named bool, cost func(pricing.Price) pricing.NanoDollars) (most pricing.NanoDollars) {
	for {
		price, known := b.priceOf(model, priceOptions(b, tokens, mode), named)
		if known {
			most = max(most, cost(price))
		}
		if tokens = price.MinPromptSize(); tokens == 0 {
			return most
		}
	}
}

// TierOf returns the size that a prompt in a batch exceeds and that determines its price, as
// chat.Job.Tier.
func (b *Bill) TierOf(model string, prompt int64) int64 {
	price, _ := b.priceOf(model, priceOptions(b, prompt, batchMode), true)
	return price.MinPromptSize()
}

// Clear drops the previous target's response metadata, except the model that it was priced as.
func (h *Reported) Clear() { h.Model, h.Served, h.Size = "", chat.PriceFacts{}, "" }

// Ended records why the response ended.
func (h *Reported) Ended(reason string) { h.Finish = reason }

// PricedAs has the response charged as a model, which is also the model that responded.
func (h *Reported) PricedAs(model string) { h.Model, h.Priced = model, model }

// InMode has the response charged at the price of a mode, such as batch.
func (h *Reported) InMode(mode string) { h.Mode = mode }

// SetServed records how the provider served the response.
func (h *Reported) SetServed(s chat.PriceFacts) { h.Served = s }

// Cached copies the model and the finish reason from a stored response.
func (h *Reported) Cached(model, finish string) {
	h.Finish = finish
	if model != "" {
		h.Model = model
	}
}

// OfSize has a video charged by the size that the provider states.
func (h *Reported) OfSize(size string) { h.Size = size }

// ChargedAs has the response charged as the model that it names, where the request names none.
func (h *Reported) ChargedAs(model string) { h.Priced = model }

// Try begins a call of the target, which starts at a time since the arrival of the request. The
// result is valid until the next call.
func (b *Bill) Try(start time.Duration) *usage.Attempt {
	to := &b.Target.Choice
	return b.Spending.Try(usage.Attempt{
		Provider: to.Target.Provider.ID, ProviderSlug: to.Names.Slug, Model: fault.Clip(b.ModelOf(), body.MaxModel), OptionIndex: to.Names.Option, Start: start, Credential: to.Names.Credential,
	})
}

// Videos are made in the provider's own time. Google (AI Studio and Vertex AI), OpenAI and Azure
// bill the videos that they deliver, so an order only holds what it may cost. It is charged once,
// with the first response that shows its end: in full, in part where videos were withheld, or not
// at all where the job failed.

// ordersVideo reports whether the request is passed through to have videos made.
func ordersVideo(b *Bill) bool {
	return b.Target.Req.Route.BodyMode == routes.Raw && b.Target.Req.Req.Method == http.MethodPost && b.Target.Body.Counterpart() == nil && body.OrdersVideo(b.Target.Body.RawPath())
}

// readsVideoJob reports whether the request reads the progress of such a job.
func readsVideoJob(b *Bill) bool {
	if b.Target.Req.Route.BodyMode != routes.Raw {
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
	if !orders && !readsVideoJob(a.bill) || !a.response.JSON {
		return u, false
	}
	job, ok := body.ReadJob(a.response.Retained)
	if !ok || len(job.ID) > ownership.MaxID {
		return u, false
	}
	if orders {
		return a.orderVideo(job, got)
	}
	if !job.Ended {
		return u, true
	}
	order, ok, err := a.bill.Target.ChargeClaims().Order(job.ID)
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
	order := ownership.Order{Model: cmp.Or(got.Model, a.bill.ModelOf()), Size: cmp.Or(a.bill.Reported.Size, a.bill.Target.Units.Size), Seconds: seconds}
	if err := a.bill.Target.ChargeClaims().StoreOrder(job.ID, order); err != nil {
		a.bill.Target.Req.Fail("record an order", err)
		return u, false
	}
	a.bill.HoldForBackground(job.ID, HoldResponse)
	if a.bill.Target.ChargeClaims().PathOfLooks(job.ID) != "" {
		a.bill.Target.ChargeClaims().Poll(job.ID)
	}
	return u, true
}
