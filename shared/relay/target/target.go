package target

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/route/saved"
	"gateway/shared/seal"
	"gateway/shared/wire"
)

// Target is what was decided on for one target of the plan: how it is reached, in
// which shape, and what of the request it is told.
type Target struct {
	Req          *admission.Request
	Body         *body.Body
	Plan         *plan.Plan
	Means        *Means
	body.Demands // of the body for the target
	To           Choice
	Decoded      *chat.Request // canonical form, made once
	decodedOwn   bool          // decoded is of the client's own body, not of an edited one
	Loss         chat.Loss
	Edited       wire.Walk     // of a body that a config has changed
	options      chat.Options  // memory of Options
	native       *routes.Route // of a target that takes the request as it came; nil: others
}

// Means are what targets are made with, besides the plan.
type Means struct {
	Sealer   seal.Sealer
	Secrets  *provider.Secrets // of external managers
	Owners   *kept.Owners
	Hosts    *egress.Hosts // addresses that requests name
	Tokens   *provider.Tokens
	Trusting http.RoundTripper // to services of tokens at custom hosts
	Dialects map[string]chat.Provider
	Carriers map[string]chat.Translator
	Jobs     map[string]chat.Jobs
	Memory   *kept.Memory
	Await    func(b Bookings, id string) // looks at a response that is made in the background until it is booked
	plainer  plainer                     // what hosts have refused of what the gateway adds
}

// Names are what records and responses call a target.
type Names struct{ Option, Provider, Slug, Integration, Model string }

// Choice is one target made ready: where, with which credential, in which shape.
type Choice struct {
	Leaf    *route.Leaf
	Prompt  *prompt.Filled  // the saved prompt that made the body; nil: the client wrote it
	Wall    kept.Wall       // keeps what workspaces made at the saved provider apart
	Saved   *saved.Provider // nil with a credential of the request or of the config
	Target  provider.Target
	Traits  chat.Traits
	Model   string
	Dialect chat.Provider // that the provider speaks for this route; nil on Raw routes
	// carrier translates an operation that is no conversation; nil when the
	// provider takes the client's own shape.
	Carrier  chat.Translator
	Jobs     chat.Jobs // for files, batches and fine-tuning jobs; nil when the provider takes the client's shape
	Local    bool      // the gateway answers itself, see Route.Local
	Upstream string    // the model as the provider takes it
	// contentType is that of the body that carrier made; "" is JSON.
	ContentType string
	Op          provider.Operation
	leaves      added // what is added elsewhere and its host is known to refuse
	Names       Names
	lenient     bool
	Timeout     time.Duration
	Body        []byte // what the config made of the client's body; nil: it is sent as it came
	Forward     []string
	Subjects    []*ledger.Subject  // limits of the provider and of its integration
	form        *form.Form         // of a passed-through request, where it was read
	order       *routes.Demand     // of a video that is ordered by that form; nil: none is
	asked       *provider.Provider // of the saved provider, before it may be used
}

// InPath tells whether the path of the request names its model, and not the body.
func (tg *Target) InPath() bool {
	return tg.Req.Route.InPath || tg.native != nil && tg.native.InPath
}

// Strict tells whether the answer must keep to the OpenAI shape.
func (tg *Target) Strict() bool {
	return tg.Req.Route.Passed() != nil || !tg.Req.Ask.Lenient && !tg.To.lenient // shapes of others have no extensions
}

// SameDialect tells whether the bytes can be forwarded.
func (tg *Target) SameDialect() bool {
	if tg.Req.Route.Client == nil {
		return tg.To.Carrier == nil
	}
	return tg.To.Dialect.Name() == tg.Req.Route.Client.Name()
}

// Carried is what a translator may know of the request.
func (tg *Target) Carried() *chat.Asked {
	return &chat.Asked{
		Body: tg.Body.In, Model: tg.To.Upstream, Operation: string(tg.To.Op), Traits: &tg.To.Traits, Loss: &tg.Loss, Field: tg.To.Target.Field,
		ID: tg.Req.ULID, Created: tg.Req.Start.Unix(), ProviderName: tg.To.Target.Provider.ID, Strict: tg.Strict(),
	}
}

// Region is where the target runs, for its price.
func (t *Choice) Region() string {
	for _, f := range [...]string{"aws_region", "vertex_region", "oracle_region"} {
		if v := t.Target.Field(f); v != "" {
			return v
		}
	}
	return ""
}

// DialectName is the dialect of a conversation; "" for other operations.
func (t *Choice) DialectName() string {
	if t.Dialect == nil {
		return ""
	}
	return t.Dialect.Name()
}

// AsksUsage tells whether the target reports usage in streams only when asked.
func (t *Choice) AsksUsage() bool {
	switch t.Dialect.Name() {
	case provider.OpenAIChat, provider.OpenAICompletions:
		return !t.Traits.NoStreamUsage
	}
	return false
}

// Decode reads the conversation of a body, once for the client's own.
func (tg *Target) Decode(src []byte) (*chat.Request, error) {
	// What another target's config made of the body must not reach this one.
	if own := tg.Body.IsOwn(src); tg.Decoded == nil || !own || !tg.decodedOwn {
		r, err := tg.Req.Route.Client.DecodeRequest(src)
		if err != nil {
			return nil, err
		}
		tg.Decoded, tg.decodedOwn = r, own
	}
	return tg.Decoded, nil
}

// Through tells whether the operation goes to the route's own path, though the
// provider's row does not have it: at a host of the target's own, whose operations
// nobody knows here. The catalogue's own addresses are not asked for what they are
// not known to have.
func (tg *Target) Through() bool {
	p := tg.To.Target.Provider
	if !tg.Req.Route.Through || p.Serves(tg.Req.Route.Operation) || p.Dialect != provider.OpenAIChat {
		return false
	}
	own, _ := tg.To.Target.OwnHost()
	return own != ""
}

// SocketQuery is what of the query of a session goes on: the target names the model, and
// Azure's versions itself.
func (tg *Target) SocketQuery() url.Values {
	q := tg.Req.Req.URL.Query()
	for _, name := range [...]string{"model", "deployment"} {
		q.Del(name)
	}
	if tg.To.Target.Provider.ID == "azure-openai" && !tg.Through() {
		q.Del("api-version")
	}
	return q
}

// OperationURL is the address of an operation that is not bound to a model.
func (tg *Target) OperationURL(of Part) (*url.URL, error) {
	op, id, query := of.Op, of.ID, ""
	if tg.Req.Req.Method == http.MethodGet || tg.Req.Req.Method == http.MethodDelete {
		query = of.Query
	}
	var raw string
	var err error
	if tg.Through() {
		path := tg.Req.Route.Path
		if id != "" {
			path = path[:strings.IndexByte(path, '{')] + url.PathEscape(id)
		}
		raw, err = tg.To.Target.PassthroughURL(path, "")
	} else {
		raw, err = tg.To.Target.ResourceURL(op, id)
	}
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(provider.AddQuery(raw, query))
}

// Part is what of an answer is asked for in a request of its own: a page of a list,
// a file.
type Part struct {
	Op        provider.Operation
	ID, Query string
	Further   bool   // there has been another
	Method    string // "": that of the client's request
}

// CostsNothing tells whether what is passed through to things that a provider
// keeps cannot cost anything, or only counts tokens. Then no budget asks for its price.
func (tg *Target) CostsNothing() bool {
	if tg.Req.Route.Shape != routes.Raw {
		return false
	}
	s, p := tg.Body.KeptPath(), tg.To.Target.Provider
	if p != nil && p.CountsTokens(tg.Body.RawPath()) {
		return true
	}
	if s.Collection == "" {
		return false
	}
	return s.Free(tg.Req.Req.Method, tg.Body.RawPath(), p != nil && p.Serves(provider.ResponsesCreate))
}

func Unsupported(endpoint string, p *provider.Provider) error {
	return fault.Newf(fault.UnsupportedOperation, "x-gateway-provider", "%s is not supported by %s", endpoint, p.ID)
}

// Passes tells whether an answer is passed on as it comes.
func (tg *Target) Passes(resp *http.Response) bool {
	if tg.Req.Route.Client != nil || tg.To.Carrier != nil {
		return false
	}
	return tg.Req.Route.Binary || tg.Req.Route.Media && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// Bound sets how much a response of a session can use at most: input tokens beside the message,
// a field by which the provider adds input of any length, and output tokens, or seconds where it
// is priced by them.
func (tg *Target) Bound(input int64, heldIn string, output, seconds int64) {
	d := &tg.Demands
	d.InBound, d.HeldIn, d.OutBound, d.OutAssumed = input, heldIn, output, false
	if seconds > 0 {
		d.Wanted.Most.Set(pricing.Seconds, seconds)
	} else if output == 0 {
		d.OutBound, d.OutAssumed = routes.DefaultReserveOutput, true
	}
}

// Of returns the names with another model.
func (n Names) Of(model string) Names {
	n.Model = model
	return n
}

// Options returns what dialects write a response with. The result is valid until the next call.
func Options(tg *Target) *chat.Options {
	tg.options = chat.Options{
		Strict: tg.Strict(), IncludeUsage: tg.WantUsage, Model: tg.To.Model, ID: tg.Req.ULID,
		Created: tg.Req.Start.Unix(), ProviderName: tg.To.Names.Provider, Request: tg.Decoded,
	}
	if tg.To.Dialect != nil {
		tg.options.OwnID = !tg.SameDialect()
		tg.options.Origin = tg.To.Dialect.Name()
	}
	return &tg.options
}
