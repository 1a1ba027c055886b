package bill

import (
	"fmt"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/relay/inputbound"
	"gateway/shared/relay/routes"
	"gateway/shared/tenant"
)

// batchMode is the mode of the price of batches.
const batchMode = "batch"

// measureInput finds what the input may be billed that the body of the request does not show.
// It fails with 412 where that has no bound and the organization does not allow such requests.
func measureInput(b *Bill) error {
	var err error
	switch b.hidden, b.rows = 0, nil; {
	case b.ReadRows != nil:
		err = measureRows(b)
	case b.Form != nil || b.Route.NoModel && b.Route.Shape != routes.Raw:
	default:
		body := b.In
		if b.To.Body != nil {
			body = b.To.Body // as the config changed it
		}
		b.hidden, err = inputbound.Input(body, func() int64 { return b.windowOf(b.ModelOf()) })
	}
	if err != nil && b.Org.Settings.Unbounded == tenant.UnboundedAllow {
		return nil
	}
	return err
}

func (b *Bill) windowOf(model string) int64 {
	to := &b.To.Target
	if to.Provider == nil || model == "" {
		return 0
	}
	return inputbound.Window(to.Provider.ID, model, to.PricedAs(b.Base, model))
}

// measureRows reads the rows of the batch that the request creates.
func measureRows(b *Bill) error {
	src, err := b.ReadRows()
	if err == nil {
		b.rows, err = inputbound.ReadRows(src, b.ModelOf(), b.windowOf)
		_ = src.Close()
	}
	if err == nil || fault.Is(err, fault.UnboundedRequest) {
		return err
	}
	return fault.New(fault.UnboundedRequest, "input_file_id", fmt.Sprintf("The rows of the batch cannot be read (%s), and a budget is in force: name a file with readable rows, or have an admin allow such batches (budget_settings.unbounded: allow)", fault.Clip(fault.From(err).Message, 200))).WithCause(err)
}

// boundOfRows is the most that the rows of a batch may cost.
func boundOfRows(b *Bill) ledger.Bound {
	sum := ledger.Bound{Priced: true, Rerouted: b.rerouted}
	for i := range b.rows {
		r := &b.rows[i]
		price, known := b.priceOf(r.Model, priceOptions(b, 0, batchMode), false)
		if known {
			sum.Cost += price.Bound(r.In, r.Out)
		}
		sum.Priced = sum.Priced && (known || b.Org.Settings.Unpriced == tenant.UnpricedAllow)
		sum.Tokens += r.In + r.Out
		sum.Assumed = sum.Assumed || r.Assumed
	}
	return sum
}
