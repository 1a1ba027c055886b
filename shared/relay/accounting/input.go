package accounting

import (
	"fmt"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
	"gateway/shared/tenant"
)

// batchMode is the mode of the price of batches.
const batchMode = "batch"

// measureInput measures the billed input that the body of the request does not contain. It fails
// with 412 if that has no bound and the organization does not allow such requests.
func measureInput(b *Bill) error {
	var err error
	window := func() int64 { return b.windowOf(b.ModelOf()) }
	b.hidden = 0
	if b.Target.Body.Form == nil && (!b.Target.Req.Route.NoModel || b.Target.Req.Route.Shape == routes.Raw) {
		b.hidden, err = InputBound(sentBody(b), func(id string) (int64, bool) { return seenTurn(b, id) }, window)
	}
	if err == nil && b.Target.HeldIn != "" {
		if most := window(); most > 0 {
			b.hidden = max(b.hidden, most)
		} else {
			err = Unbounded(b.Target.HeldIn)
		}
	}
	if err != nil && b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow {
		return nil
	}
	return err
}

// MeasureInput is measureInput for a request that is not sent. Its error counts only where a
// budget is in force.
func MeasureInput(b *Bill) error {
	err := measureInput(b)
	if own, its := b.Budgeted(); len(own)+len(its) == 0 {
		return nil
	}
	if err == nil {
		_, unmeasured := boundOf(b)
		err = measuredUnits(b, unmeasured)
	}
	return err
}

// measuredUnits fails with 412 for a request without a measurable bound, see boundOf, unless the
// organization allows such requests.
func measuredUnits(b *Bill, unmeasured bool) error {
	if !unmeasured || b.Target.Req.Req.Method != http.MethodPost || b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow || polls(b.Target.Body.RawPath()) {
		return nil
	}
	return fault.Newf(fault.UnboundedRequest, "model", "%s is priced by images, seconds, characters or pages, and this request does not state how many it needs while a budget is in force: state it (n, seconds, duration), use the route of the gateway for this operation, or have an admin allow such requests (budget_settings.unbounded: allow)", fault.Clip(b.ModelOf(), 200))
}

// polls reports whether a POST to the path only reads the state of an earlier job.
func polls(escapedPath string) bool {
	return strings.HasSuffix(strings.ToLower(escapedPath), ":fetchpredictoperation")
}

// sentBody is the client's body as the config of the target changed it.
func sentBody(b *Bill) []byte {
	if b.Target.To.Body != nil {
		return b.Target.To.Body
	}
	return b.Target.Body.In
}

func (b *Bill) windowOf(model string) int64 {
	to := &b.Target.To.Target
	if to.Provider == nil || model == "" {
		return 0
	}
	return ContextWindow(to.Provider.ID, model, to.PricedAs(b.Target.Req.Base, model))
}

// measureRows reads the rows of the batch that the request creates, and sums them up while a
// budget is in force. It fails for rows that name objects or models that the caller may not use,
// and, unless the organization allows it, for rows without a bound.
func measureRows(b *Bill, budgeted bool) error {
	b.rows = nil
	if !budgeted {
		return b.ReadRows(nil)
	}
	sum := NewBatchSum(b.ModelOf(), b.windowOf)
	if err := b.ReadRows(sum); err != nil {
		return err
	}
	var err error
	if b.rows, err = sum.Rows(); err == nil || b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow {
		return nil
	}
	if fault.Is(err, fault.UnboundedRequest) {
		return err
	}
	return fault.New(fault.UnboundedRequest, "input_file_id", fmt.Sprintf("The rows of the batch cannot be read (%s), and a budget is in force: name a file with readable rows, or have an admin allow such batches (budget_settings.unbounded: allow)", fault.Clip(fault.From(err).Message, 200))).WithCause(err)
}

// boundOfRows is the most that the rows of a batch may cost.
func boundOfRows(b *Bill) (sum ledger.Bound, unmeasured bool) {
	sum = ledger.Bound{Priced: true, Rerouted: b.rerouted}
	for i := range b.rows {
		r := &b.rows[i]
		price, known := b.priceOf(r.Model, priceOptions(b, r.Prompt, batchMode), false)
		if known {
			most := mostBelow(b, r.Model, r.Prompt, batchMode, false, func(p pricing.Price) pricing.NanoDollars { return p.Bound(r.In, r.Out) })
			sum.Cost = sum.Cost.Plus(most)
			unmeasured = unmeasured || price.Bound(r.In, r.Out) == 0 && !price.OnlyTools()
		}
		sum.Priced = sum.Priced && (known || b.Target.Req.Org.Settings.Unpriced == tenant.UnpricedAllow)
		sum.Tokens += r.In + r.Out
		sum.Assumed = sum.Assumed || r.Assumed
	}
	return sum, unmeasured
}
