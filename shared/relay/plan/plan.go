// Package plan resolves the config of a request after its body is read: the compiled targets and
// the position in them, or that the gateway serves it without a provider. Later stages get the
// next target from it and report the outcome of the last one.
//
// Breakers share the circuit breakers of saved configs between processes through one row of the
// store for each version of a config; package route defines when a breaker opens. Patience
// limits the times of one attempt: until the head of the response, until the first content of
// its stream, and between two events.
package plan

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/route/saved"
	"gateway/shared/seal"
)

// Plan holds the compiled targets of a request and the position in them, or that the gateway
// serves it without a provider.
type Plan struct {
	Req        *admission.Request
	Body       *body.Body
	BuiltIn    bool             // the gateway serves it: no provider is called
	DryRun     bool             // the config is only tested: nothing is sent
	Config     UsedConfig       // the config of the targets; zero: none
	Requested  RequestedLimits  // from the request's headers
	Traversal  *route.Traversal // nil: no route was found
	way        route.Traversal  // the memory of Traversal
	BreakersOf *ConfigBreakers  // nil: the config has none
}

// Connect sets the values of the earlier stages.
func (p *Plan) Connect(q *admission.Request, b *body.Body) { p.Req, p.Body = q, b }

// ContinueFrom continues the traversal of another plan of the same request.
func (p *Plan) ContinueFrom(from *Plan) { p.Traversal, p.BreakersOf = from.Traversal, from.BreakersOf }

// UsedConfig identifies a config; ID, Slug and Version are zero for an inline one.
type UsedConfig struct {
	ID, Slug string
	Version  int64
	Mode     string
	// RefusalEvents: final rejections of streamed requests are sent as an event.
	RefusalEvents bool
}

// Sources are the dependencies of plans, besides the request.
type Sources struct {
	Sealer       seal.Sealer
	Breakers     *Breakers
	Picks        *route.Picks
	Measurements *measure.Board
	Prices       *pricing.Book
	Now          func() time.Time
}

// headerTree is the route of a request without a config: one target with all settings from the
// request.
var headerTree = route.Single()

// RequestedSlug returns the saved provider that the request itself names: the header overrides the
// virtual key, which overrides the body's @slug/model.
func (p *Plan) RequestedSlug(leaf *route.Leaf) string { return p.RequestedSlugOr(leaf, p.Body.Slug) }

// RequestedSlugOr is RequestedSlug with another body, with a model that names slug.
func (p *Plan) RequestedSlugOr(leaf *route.Leaf, slug string) string {
	if s, ok := strings.CutPrefix(p.Req.Headers.Provider, "@"); ok {
		return s
	}
	if p.Req.Headers.VirtualKey != "" {
		return strings.TrimPrefix(p.Req.Headers.VirtualKey, "@")
	}
	if p.Req.Headers.Provider == "" || leaf.Passthrough {
		return slug
	}
	return ""
}

// Routed reports whether the request names a provider or a config: then it gets that one's list
// of models, not the gateway's.
func (p *Plan) Routed() bool {
	return p.Req.Headers.Provider != "" || p.Req.Headers.VirtualKey != "" || p.Config.ID != "" || p.Req.Headers.Config != ""
}

// SlugsOfRoute returns the saved providers that the route's leaves name; nil if a leaf gets its
// provider from the request and the request names none.
func (p *Plan) SlugsOfRoute() []string {
	slugs := p.Traversal.Slugs()
	if s := p.RequestedSlug(&route.Leaf{}); s != "" {
		slugs = append(slugs, s)
	}
	return slugs
}

// ResolveAs resolves the route of a request by the same caller with other headers.
func (p *Plan) ResolveAs(from *Sources, ask admission.Headers, h http.Header) error {
	body := p.Body.WithHeaders(ask, h)
	other := Plan{Req: body.Req, Body: body}
	return other.Resolve(from)
}

// OwnProvider is the value of x-gateway-provider that names the gateway itself.
const OwnProvider = "gateway"

// bytesPerToken estimates how many tokens a body has.
const bytesPerToken = 4

// measures returns the metrics for a tree with strategies that compare them; nil for others.
func (p *Plan) measures(from *Sources, tree *route.Tree) *route.Measures {
	if !tree.Measured() || from.Measurements == nil {
		return nil
	}
	size := max(int64(len(p.Body.In)), p.Req.Req.ContentLength)
	class := measure.ClassOf(size, p.Body.ClientDemands.Stream)
	room := from.Measurements.Of(p.Req.Principal.Scope.Org, p.Req.Principal.Scope.Workspace)
	used := p.estimate(size)
	return &route.Measures{
		Workspace: room, Class: class, Model: p.Body.Model, KeyID: p.Req.Principal.KeyID, Used: used, At: from.Now(),
		Find: func(l *route.Leaf) (pricing.Price, bool) { return p.priceOf(from, l, used.InputTokens()) },
	}
}

// estimate returns the expected usage of the request: a token for every four bytes, its output
// limit, and the requested units.
func (p *Plan) estimate(size int64) pricing.Usage {
	u := p.Body.ClientDemands.Units.Assumed
	if !u.IsReported() {
		u.Set(pricing.Input, size/bytesPerToken)
		u.Set(pricing.Output, p.Body.ClientDemands.MaxOutput)
	}
	u.Set(pricing.Requests, 1)
	return u
}

// priceOf returns the price of a target of the config; false if it has none, or cannot be
// called.
func (p *Plan) priceOf(from *Sources, l *route.Leaf, input int64) (pricing.Price, bool) {
	var of string
	var by *saved.Provider
	slug := l.Slug
	if slug == "" && (l.Provider == "" || l.Passthrough) {
		slug = p.RequestedSlug(l)
	}
	o := pricing.Options{ContextTokens: input, Mode: p.Body.ClientDemands.Units.Mode, Quality: p.Body.ClientDemands.Units.Quality, Size: p.Body.ClientDemands.Units.Size, At: p.Req.StartTime}
	if slug != "" {
		s, err := saved.Load(p.Req.Ctx, p.Req.View, p.Req.Principal.Scope, slug, from.Now())
		if err != nil || s.Provider == nil {
			return pricing.Price{}, false
		}
		by, of = s, s.Provider.ID
	} else {
		known, ok := provider.ByID(l.Provider)
		if !ok {
			return pricing.Price{}, false
		}
		of = known.ID
	}
	prices := saved.Prices{List: from.Prices.Current(), By: p.Req.Org.Prices(), Saved: by, Of: of}
	model := l.Model
	if model == "" {
		if model = p.Body.Model; model == "" {
			model = l.DefaultModel
		}
	}
	_, price, ok := prices.Find(model, o)
	return price, ok
}
