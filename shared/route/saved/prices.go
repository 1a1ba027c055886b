package saved

import "gateway/shared/pricing"

// Prices are what models of a provider cost. The integration's own price comes before the
// organisation's, and that before the list's. The multipliers are those of the integration,
// or else of the organisation.
type Prices struct {
	List  *pricing.Book
	By    *pricing.Overrides // of the organisation; nil: none
	Of    string             // the provider, such as openai
	Saved *Provider          // nil: none; its integration may have prices
}

// Find finds the price of a model. name is the model that it is charged as, by which
// it may be looked for elsewhere where ok is false.
func (s Prices) Find(model string, o pricing.Options) (name string, p pricing.Price, ok bool) {
	if s.Saved != nil {
		if own, ok := s.Saved.Prices[model]; ok && own.Applies(o) {
			return model, s.By.Adjust(own.Price(o), s.Saved.Adjust), true
		}
		if m := s.Saved.Model(model); m != nil && m.BaseModelSlug != "" {
			model = m.BaseModelSlug
		}
	}
	p, ok = s.Listed(model, o)
	return model, p, ok
}

// Listed returns the price of a model for which the integration sets none.
func (s Prices) Listed(model string, o pricing.Options) (p pricing.Price, ok bool) {
	if p, ok = s.By.Price(s.List, s.Of, model, o); !ok {
		return p, false
	}
	var adjust *pricing.Adjustments
	if s.Saved != nil {
		adjust = s.Saved.Adjust
	}
	return s.By.Adjust(p, adjust), true
}
