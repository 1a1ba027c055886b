package plan

import (
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/route/saved"
)

// bytesPerToken estimates how many tokens a body has.
const bytesPerToken = 4

// measures returns the metrics for a tree with strategies that compare them; nil for others.
func (p *Plan) measures(from *Sources, tree *route.Tree) *route.Measures {
	if !tree.Measured() || from.Figures == nil {
		return nil
	}
	size := max(int64(len(p.Body.In)), p.Req.Req.ContentLength)
	class := measure.ClassOf(size, p.Body.Own.Stream)
	room := from.Figures.Of(p.Req.Who.Scope.Org, p.Req.Who.Scope.Workspace)
	used := p.estimate(size)
	return &route.Measures{
		Workspace: room, Class: class, Model: p.Body.Model, Spender: p.Req.Who.KeyID, Used: used, At: from.Now(),
		Find: func(l *route.Leaf) (pricing.Price, bool) { return p.priceOf(from, l, used.InputTokens()) },
	}
}

// estimate returns the expected usage of the request: a token for every four bytes, its output
// limit, and the requested units.
func (p *Plan) estimate(size int64) pricing.Usage {
	u := p.Body.Own.Wanted.Assumed
	if !u.Known() {
		u.Set(pricing.Input, size/bytesPerToken)
		u.Set(pricing.Output, p.Body.Own.OutBound)
	}
	u.Set(pricing.Requests, 1)
	return u
}

// priceOf returns the price of a target of the config; false if it has none, or cannot be
// called.
func (p *Plan) priceOf(from *Sources, l *route.Leaf, input int64) (pricing.Price, bool) {
	prices := saved.Prices{List: from.Prices.Current(), By: p.Req.Org.Prices()}
	slug := l.Slug
	if slug == "" && (l.Provider == "" || l.Passthrough) {
		slug = p.SlugAsked(l)
	}
	o := pricing.Options{ContextTokens: input, Mode: p.Body.Own.Wanted.Mode, Quality: p.Body.Own.Wanted.Quality, Size: p.Body.Own.Wanted.Size, At: p.Req.Start}
	if slug != "" {
		s, err := saved.Load(p.Req.Ctx, p.Req.View, p.Req.Who.Scope, slug, from.Now())
		if err != nil || s.Provider == nil {
			return pricing.Price{}, false
		}
		prices.Saved, prices.Of = s, s.Provider.ID
	} else {
		of, ok := provider.ByID(l.Provider)
		if !ok {
			return pricing.Price{}, false
		}
		prices.Of = of.ID
	}
	model := l.Model
	if model == "" {
		if model = p.Body.Model; model == "" {
			model = l.DefaultModel
		}
	}
	_, price, ok := prices.Find(model, o)
	return price, ok
}
