package plan

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/body"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/seal"
)

// Plan is the way of a request whose body was read: the compiled targets and where their
// walk stands, or that the gateway answers itself.
type Plan struct {
	Req        *admission.Request
	Body       *body.Body
	Mine       bool            // the gateway answers itself: no provider is asked
	Trial      bool            // the config is only tried out: nothing is sent
	Config     UsedConfig      // the config that the targets come from; zero: none
	Asked      Asked           // of the request's headers
	Walker     *route.Walk     // nil: no route has been found
	way        route.Walk      // the memory of Walker
	BreakersOf *ConfigBreakers // nil: the config has none
}

// UsedConfig names a config; ID, Slug and Version are zero for one that came with
// the request.
type UsedConfig struct {
	ID, Slug string
	Version  int64
	Mode     string
	// RefusalEvents: final refusals of streamed requests are sent as an event.
	RefusalEvents bool
}

// Sources are what plans are made of, besides the request.
type Sources struct {
	Sealer   seal.Sealer
	Breakers *Breakers
	Picks    *route.Picks
	Figures  *measure.Board
	Book     *pricing.Book
	Now      func() time.Time
}

// headerTree is the route of a request without a config: one target that takes
// everything from the request.
var headerTree = route.Single()

// SlugAsked is the saved provider that the request itself names: header before
// virtual key before the body's @slug/model.
func (p *Plan) SlugAsked(leaf *route.Leaf) string { return p.SlugAskedOr(leaf, p.Body.Slug) }

// SlugAskedOr is SlugAsked with another body, whose model names slug.
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

// Routed tells whether the request names a provider or a config: then it wants that one's
// list of models, not the gateway's own.
func (p *Plan) Routed() bool {
	return p.Req.Ask.Provider != "" || p.Req.Ask.VirtualKey != "" || p.Config.ID != "" || p.Req.Ask.Config != ""
}

// SlugsOfRoute are the saved providers that the route's leaves name; nil when a
// leaf takes its provider from the request and the request names none.
func (p *Plan) SlugsOfRoute() []string {
	slugs := p.Walker.Slugs()
	if s := p.SlugAsked(&route.Leaf{}); s != "" {
		slugs = append(slugs, s)
	}
	return slugs
}

// ResolveAs resolves the route that a request of the same caller with other headers
// would take.
func (p *Plan) ResolveAs(from *Sources, ask asked.Headers, h http.Header) error {
	body := p.Body.With(ask, h)
	other := Plan{Req: body.Req, Body: body}
	return other.Resolve(from)
}

// OwnProvider is the value of x-gateway-provider that names the gateway itself.
const OwnProvider = "gateway"
