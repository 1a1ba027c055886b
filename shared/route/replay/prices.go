package replay

import (
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Prices are the prices of calls. A multiplier applies to a call's cost by these prices, or
// otherwise to the recorded charge.
type Prices struct {
	models map[string]*pricing.Custom // by provider/model
	by     map[string]int64           // millionths, by provider/model, provider/* or *
}

// Bounds of prices.
const (
	million        = 1_000_000
	maxMultipliers = 500
	// maxCharge bounds one call in the same way as real charges.
	maxCharge = 10_000_000 * pricing.Dollar
)

// ParsePrices reads {"provider/model": pricing_config} and {"provider/model", "provider/*"
// or "*": number}; either may be absent. Errors name members below them.
func ParsePrices(models, multipliers json.RawMessage) (*Prices, []fault.Detail) {
	p := &Prices{by: map[string]int64{}}
	var bad []fault.Detail
	p.models, bad = pricing.ParseModelPrices(models)
	for i := range bad {
		bad[i].Field = strings.TrimSuffix("models."+bad[i].Field, ".")
	}
	if len(multipliers) == 0 || string(multipliers) == "null" {
		return p, bad
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(multipliers, &all) != nil || len(all) > maxMultipliers {
		return nil, append(bad, fault.Detail{Field: "multipliers", Message: "must be an object of at most 500 numbers"})
	}
	for name, raw := range all {
		if provider, model, ok := strings.Cut(name, "/"); name != "*" && (!ok || provider == "" || model == "" || len(name) > 300) {
			bad = append(bad, fault.Detail{Field: "multipliers." + fault.Clip(name, 300), Message: "must be named provider/model, provider/* or *"})
			continue
		}
		n, ok := pricing.ParseMillionths(raw)
		if !ok {
			bad = append(bad, fault.Detail{Field: "multipliers." + name, Message: "must be a number from 0 to 1000000; 1 leaves the price as it is"})
		}
		p.by[name] = n
	}
	slices.SortFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return p, bad
}

// charge adds up what the calls cost.
func (r *Run) charge(c *course) {
	c.cost = c.rest
	tariffs := 1 + strings.Count(c.rec.Tariff, "; ")
	for i := range c.calls {
		call := &c.calls[i]
		if r.q.Prices != nil && call.usage.Known() {
			cost, known := r.q.Prices.cost(call, tariffs > len(c.calls), c.rec.Start)
			if !known {
				c.unjudged(PriceFacts)
			}
			call.cost = cost
		}
		c.cost = plus(c.cost, call.cost)
	}
}

// cost returns the cost of a call. known is false if the record lacks data that the price
// depends on; the cost is then the recorded charge. several: one call was charged as several
// models.
func (p *Prices) cost(c *call, several bool, at time.Time) (cost pricing.NanoDollars, known bool) {
	cost, known = c.cost, true
	o := pricing.Options{ContextTokens: c.usage.InputTokens(), At: at}
	if own := p.models[c.Provider+"/"+c.Model]; own != nil && own.Applies(o) {
		if several || own.Depends(c.usage) {
			return c.cost, false
		}
		cost = min(own.Price(o).Cost(c.usage), maxCharge)
	}
	for _, name := range [...]string{c.Provider + "/" + c.Model, c.Provider + "/*", "*"} {
		if by, ok := p.by[name]; ok {
			return min(times(cost, by), maxCharge), known
		}
	}
	return cost, known
}

// times multiplies by millionths, rounded half up.
func times(cost pricing.NanoDollars, by int64) pricing.NanoDollars {
	if cost <= 0 {
		return cost
	}
	hi, lo := bits.Mul64(uint64(cost), uint64(by))
	lo, carry := bits.Add64(lo, million/2, 0)
	if hi += carry; hi >= million {
		return maxCharge
	}
	q, _ := bits.Div64(hi, lo, million)
	return pricing.NanoDollars(min(q, uint64(maxCharge)))
}
