package plan

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/seal"
)

// Plan holds the compiled targets of a request and the position in them, or that the gateway
// serves it without a provider.
type Plan struct {
	Req        *admission.Request
	Body       *body.Body
	Mine       bool            // the gateway serves it: no provider is called
	Trial      bool            // the config is only tested: nothing is sent
	Config     UsedConfig      // the config of the targets; zero: none
	Requested  RequestedLimits // from the request's headers
	Walker     *route.Walk     // nil: no route was found
	way        route.Walk      // the memory of Walker
	BreakersOf *ConfigBreakers // nil: the config has none
}

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
	Sealer   seal.Sealer
	Breakers *Breakers
	Picks    *route.Picks
	Figures  *measure.Board
	Prices   *pricing.Book
	Now      func() time.Time
}

// headerTree is the route of a request without a config: one target with all settings from the
// request.
var headerTree = route.Single()

// SlugAsked returns the saved provider that the request itself names: the header overrides the
// virtual key, which overrides the body's @slug/model.
func (p *Plan) SlugAsked(leaf *route.Leaf) string { return p.SlugAskedOr(leaf, p.Body.Slug) }

// SlugAskedOr is SlugAsked with another body, with a model that names slug.
func (p *Plan) SlugAskedOr(leaf *route.Leaf, slug string) string {
	if s, ok := strings.CutPrefix(p.Req.Ask.Provider, "@"); ok {
		return s
	}
	if p.Req.Ask.VirtualKey != "" {
		return strings.TrimPrefix(p.Req.Ask.VirtualKey, "@")
	}
	if p.Req.Ask.Provider == "" || leaf.Passthrough {
		return slug
	}
	return ""
}

// Routed reports whether the request names a provider or a config: then it gets that one's list
// of models, not the gateway's.
func (p *Plan) Routed() bool {
	return p.Req.Ask.Provider != "" || p.Req.Ask.VirtualKey != "" || p.Config.ID != "" || p.Req.Ask.Config != ""
}

// SlugsOfRoute returns the saved providers that the route's leaves name; nil if a leaf gets its
// provider from the request and the request names none.
func (p *Plan) SlugsOfRoute() []string {
	slugs := p.Walker.Slugs()
	if s := p.SlugAsked(&route.Leaf{}); s != "" {
		slugs = append(slugs, s)
	}
	return slugs
}

// ResolveAs resolves the route of a request by the same caller with other headers.
func (p *Plan) ResolveAs(from *Sources, ask admission.Headers, h http.Header) error {
	body := p.Body.With(ask, h)
	other := Plan{Req: body.Req, Body: body}
	return other.Resolve(from)
}

// OwnProvider is the value of x-gateway-provider that names the gateway itself.
const OwnProvider = "gateway"
