package integrations

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// mayPrice rejects a change of prices by a caller below an admin of the workspace. Budgets count
// what requests cost: who may not raise the limits of a workspace may not set its prices to zero
// either.
func mayPrice(c *admin.Call, was, now *provider.Integration) error {
	field := ""
	if !sameJSON(was.PricingAdjustments, now.PricingAdjustments) {
		field = "pricing_adjustments"
	} else if pricedOtherwise(was, now) {
		field = "models"
	}
	if field == "" || c.Caller.AtLeast(admin.Admin) {
		return nil
	}
	return fault.New(fault.NotAllowed, field, "Only admins of the workspace can change pricing_adjustments, and pricing_config and base_model_slug of models, because budgets count by these prices")
}

// pricedOtherwise reports whether a model has another price, or the price of another model.
func pricedOtherwise(was, now *provider.Integration) bool {
	priced := func(all []provider.IntegrationModel) (out []provider.IntegrationModel) {
		for _, m := range all {
			if len(m.Pricing) > 0 || m.BaseModelSlug != "" {
				out = append(out, m)
			}
		}
		slices.SortFunc(out, func(a, b provider.IntegrationModel) int { return strings.Compare(a.Slug, b.Slug) })
		return out
	}
	return !slices.EqualFunc(priced(was.Models), priced(now.Models), func(a, b provider.IntegrationModel) bool {
		return a.Slug == b.Slug && a.BaseModelSlug == b.BaseModelSlug && sameJSON(a.Pricing, b.Pricing)
	})
}

// sameJSON reports whether two values are equal in any notation. A client may send back what it
// has read.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
