package pricing

import (
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// MaxOverrides bounds the models for which an organisation sets prices.
const MaxOverrides = 500

// Overrides are an organisation's own prices, which replace those of the list, and its
// multipliers, which apply where an integration has none. Nil changes nothing.
type Overrides struct {
	prices map[string]*Custom // by provider/model
	adjust *Adjustments
}

// ParseOverrides reads prices of models, {"provider/model": pricing_config}, and
// multipliers, {default, request_token, ...}; either may be absent.
func ParseOverrides(models, multiplier json.RawMessage) (*Overrides, []fault.Detail) {
	o := new(Overrides)
	prices, bad := ParseModelPrices(models)
	o.prices = prices
	if given(multiplier) {
		adjust, more := ParseMultiplier(multiplier)
		o.adjust, bad = adjust, append(bad, more...)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	if len(o.prices) == 0 && o.adjust == nil {
		return nil, nil
	}
	return o, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ParseModelPrices reads {"provider/model": pricing_config}.
func ParseModelPrices(raw json.RawMessage) (map[string]*Custom, []fault.Detail) {
	if !given(raw) {
		return nil, nil
	}
	var bad []fault.Detail
	top := readObject(raw, "", &bad)
	if len(top.members) > MaxOverrides {
		return nil, []fault.Detail{{Message: "must have at most 500 models"}}
	}
	out := make(map[string]*Custom, len(top.members))
	for _, name := range keysOf(top.members) {
		if provider, model, ok := strings.Cut(name, "/"); !ok || provider == "" || model == "" || len(name) > 300 || strings.HasPrefix(name, "@") {
			bad = append(bad, fault.Detail{Field: name, Message: "must be provider/model, such as openai/gpt-4o"})
			continue
		}
		own, more := ParseCustom(top.members[name], name)
		bad = append(bad, more...)
		out[name] = own
	}
	return out, bad
}

// ParseMultiplier reads the multipliers of Adjustments as a separate object.
func ParseMultiplier(raw json.RawMessage) (*Adjustments, []fault.Detail) {
	const at = "multiplier"
	whole := slices.Concat([]byte(`{"`+at+`":`), raw, []byte("}"))
	a, bad := ParseAdjustments(whole, "")
	for i := range bad { // the caller knows ".multiplier.default" as "default"
		bad[i].Field = strings.TrimPrefix(strings.TrimPrefix(bad[i].Field, "."+at), ".")
	}
	return a, bad
}

// organisationLine replaces the name of a line of the list for prices of an organization.
const organisationLine = "organisation"

// Price is the price of a model before multipliers: the organisation's own, or else the
// book's.
func (v *Overrides) Price(b *Book, provider, model string, o Options) (p Price, ok bool) {
	if v != nil {
		if own, has := v.prices[provider+"/"+model]; has && own.Applies(o) {
			p = own.Price(o)
			p.line = organisationLine + " " + provider + "/" + model
			return p, true
		}
	}
	return b.Price(provider, model, o)
}

// Adjust applies an integration's multipliers, or else the organisation's.
func (v *Overrides) Adjust(p Price, of *Adjustments) Price {
	if of == nil && v != nil {
		of = v.adjust
	}
	return of.Apply(p)
}
