package relay

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/blob"
	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/queue"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/caching"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/session"
	"gateway/shared/relay/target"
	"gateway/shared/relay/upstream"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/route/rotation"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Options are the dependencies of the relay. All fields are required unless stated otherwise.
type Options struct {
	Loader           *resource.Loader
	Auth             *identity.Authenticator
	Ledger           *ledger.Ledger
	Prices           *pricing.Book
	Sink             usage.Sink
	Sealer           seal.Sealer
	Store            store.Store // signed reasoning of strict clients
	Transport        http.RoundTripper
	TrustedTransport http.RoundTripper // Transport for custom hosts; nil: Transport
	Egress           egress.Policy
	Memory           *egress.Memory  // of buffered bodies; nil: a separate budget
	Dialects         []chat.Provider // by name; provider.Provider.Dialect refers to them
	// Translators translate the operations that are not conversations; provider.Route.Dialect
	// refers to them. May be empty.
	Translators []chat.Translator
	// Jobs translate files, batches and fine-tuning jobs of providers with another format. May
	// be empty.
	Jobs []chat.Jobs
	// Bucket stores files for providers that cannot store them; nil: such uploads are rejected.
	Bucket blob.Bucket
	// Runs receives the steps of batches that the gateway runs; nil: such batches are rejected.
	Runs queue.Queue
	// Cache caches responses if a config enables it; nil: none are cached.
	Cache      *cache.Cache
	CacheTimes caching.Times
	Checks     map[string]judge.Maker // makers of the checks of guardrails, by id
	Signing    *signing.Keys          // sign identities for servers and agent cards; nil: neither is served
	Now        func() time.Time

	// BlockInline rejects inline configuration regardless of the organization.
	BlockInline bool
	// RecordAfterBody writes the record after the response has ended (Lambda), not before its
	// last byte.
	RecordAfterBody bool
	DrainTime       time.Duration // how long a response is read after the client has disconnected; 0: 30 s
	// Sessions serves routes with Sockets; nil: they are rejected.
	Sessions *Sessions
	// SessionTimes are those of realtime sessions; zero: session.DefaultTimes.
	SessionTimes session.Times
	// Sleep waits before a retry, and returns false if done is closed first; nil: in real time.
	Sleep func(done <-chan struct{}, d time.Duration) bool
	// Faults is called with failures that no caller sees; nil: they are logged by slog.
	Faults func(where string, err error)
}

// Relay serves the data plane. It is safe for concurrent use.
type Relay struct {
	Options
	doors      *admission.Dependencies
	sources    *plan.Sources
	dialects   map[string]chat.Provider
	carriers   map[string]chat.Translator
	jobs       map[string]chat.Jobs
	fileStores *batch.FileStores
	batches    *batch.Batches
	guards     *guardrail.Deps
	calls      sync.Pool
	means      *target.Deps
	urls       upstream.URLs // of their targets
	breakers   *plan.Breakers
	budgets    *ledger.ExhaustionCache // of waiting sessions
	owners     *ownership.Owners
	unread     response.CachedPrompts
	ephemeral  *admission.ClientSecretScope
	sessions   session.Running
	dialers    session.Dialers
}

// New returns a relay.
func New(o Options) *Relay {
	if o.DrainTime == 0 {
		o.DrainTime = 30 * time.Second
	}
	o.CacheTimes = o.CacheTimes.OrStandard()
	if o.SessionTimes == (session.Times{}) {
		o.SessionTimes = session.DefaultTimes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TrustedTransport == nil {
		o.TrustedTransport = o.Transport
	}
	r := &Relay{Options: o, dialects: make(map[string]chat.Provider, len(o.Dialects))}
	if r.Memory == nil {
		r.Memory = egress.NewMemory(0)
	}
	r.ephemeral = &admission.ClientSecretScope{Keys: o.Store.Table(store.Keys), Sealer: o.Sealer, Now: o.Now}
	r.doors = r.newDoors()
	r.owners = &ownership.Owners{Now: o.Now, Table: o.Store.Table(store.Usage)}
	for _, d := range o.Dialects {
		r.dialects[d.Name()] = d
	}
	r.carriers = make(map[string]chat.Translator, len(o.Translators))
	for _, t := range o.Translators {
		r.carriers[t.Name()] = t
	}
	r.jobs = make(map[string]chat.Jobs, len(o.Jobs))
	for _, j := range o.Jobs {
		r.jobs[j.Name()] = j
	}
	tokens := provider.NewTokens(o.Transport, o.Now)
	r.means = &target.Deps{
		Sealer: o.Sealer, Secrets: provider.NewSecrets(o.Sealer, tokens, o.Transport),
		Owners: r.owners, Hosts: egress.NewHosts(o.Egress), Tokens: tokens, TrustedTransport: o.TrustedTransport,
		Dialects: r.dialects, Translators: r.carriers, Jobs: r.jobs, Memory: ownership.New(o.Now, o.Store.Table(store.Usage), o.Sealer),
	}
	r.means.Rotation = rotation.NewBoard(o.Now, o.Store.Table(store.Usage), r.failAside)
	r.means.Poll = r.await
	r.guards = guardrail.NewDeps(o.Checks, o.Sealer, o.TrustedTransport, o.Transport, r.means.Secrets, o.Now)
	r.fileStores = &batch.FileStores{Now: o.Now, Table: o.Store.Table(store.Usage), Bucket: o.Bucket, Sealer: o.Sealer}
	r.batches = &batch.Batches{Now: o.Now, Store: o.Store, Sealer: o.Sealer}
	if r.Sleep == nil {
		r.Sleep = sleep
	}
	r.budgets = r.Ledger.ExhaustionCache(budgetAge)
	r.breakers = plan.NewBreakers(o.Now, o.Store.Table(store.Rate), r.failAside)
	r.sources = &plan.Sources{Sealer: o.Sealer, Breakers: r.breakers, Picks: route.NewPicks(o.Now), Measurements: measure.NewBoard(o.Now), Prices: o.Prices, Now: o.Now}
	r.calls.New = func() any { return newCall() }
	return r
}

// budgetAge is how long all sessions reuse the state of a budget that one of them has read.
// Together with the time between two checks it is below the 2 s within which a session must end.
const budgetAge = time.Second

func (r *Relay) newDoors() *admission.Dependencies {
	return &admission.Dependencies{Auth: r.Auth, Secrets: r.ephemeral, Loader: r.Loader, Memory: r.Memory, BlockInline: r.BlockInline, DrainTime: r.DrainTime, Now: r.Now, Fault: r.fault}
}

// Handler serves one route.
func (r *Relay) Handler(rt *routes.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.Serve(w, req, rt) })
}

// Serve runs a request through the pipeline and responds to it.
func (r *Relay) Serve(w http.ResponseWriter, req *http.Request, rt *routes.Route) {
	r.serve(w, req, rt, "")
}

// serve also has the value of the variable in the route's path, escaped.
func (r *Relay) serve(w http.ResponseWriter, req *http.Request, rt *routes.Route, id string) {
	r.serveFor(w, req, rt, id, nil)
}

// InternalCall names the principal of a request that the gateway itself makes.
type InternalCall = admission.InternalCall

// Declarations of a family: see relay/routes.
type (
	Route           = routes.Route
	Caller          = routes.Caller
	Get             = routes.Get
	Units           = routes.Units
	Form            = routes.Form
	Prompt          = routes.Prompt
	EarlierResponse = routes.EarlierResponse

	Composed     = routes.Composed
	Composition  = routes.Composition
	Protocol     = routes.Protocol
	Calls        = routes.Calls
	DryRun       = routes.DryRun
	Secret       = routes.Secret
	Realtime     = routes.Realtime
	Live         = routes.Live
	Dialogue     = routes.Dialogue
	ModelList    = routes.ModelList
	ProtocolCall = routes.ProtocolCall
)

// Shapes of routes, and the prefix of their paths.
const (
	Unified   = routes.Unified
	Raw       = routes.Raw
	Listing   = routes.Listing
	Resource  = routes.Resource
	Multipart = routes.Multipart
	Socket    = routes.Socket

	AnyPath        = routes.AnyPath
	BasePath       = routes.BasePath
	DefaultMaxBody = routes.DefaultMaxBody
)

// Mux serves the routes of a table.
type Mux struct {
	*routes.Table
	relay *Relay
}

// NewMux serves routes with r. Two routes with the same method and path are a
// mistake of the program.
func NewMux(r *Relay, all []routes.Route) *Mux {
	for i := range all {
		if of, ok := all[i].Protocol().(routes.Credentials); ok && r != nil {
			r.Auth.Tokens = of.Credentials(r.Loader, r.Now, r.Auth.Tokens)
			break
		}
	}
	if r != nil && r.Sessions == nil {
		all = slices.Clone(all)
		for i := range all {
			all[i] = all[i].WithoutSockets()
		}
	}
	return &Mux{routes.NewTable(all), r}
}

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req = m.Canonical(req)
	rt, id := m.Match(req.Method, req.URL.EscapedPath())
	if rt == nil {
		m.Refuse(w, req)
		return
	}
	if rt.Google != nil && routes.GoogleClient(req.Header) {
		rt = rt.Google
	}
	m.relay.serve(w, req, rt, id)
}

// clipText truncates a caller's or provider's text for messages and records.
func clipText(s string) string { return fault.Clip(s, 300) }

// fault reports a failure that no caller sees; request is "" where it is of none.
func (r *Relay) fault(where, request string, err error) {
	if r.Faults != nil {
		r.Faults(where, err)
		return
	}
	slog.Error("gateway failure", "where", where, "request_id", request, "error", err.Error())
}

// brokeOff returns the recorded fault of a truncated response.
func brokeOff() *fault.Fault {
	return fault.New(fault.InvalidProviderResponse, "", "the response was truncated")
}

// recorded returns the recorded text of a fault. Providers repeat prompts in their errors, so
// only their status, type and code are stored; the message is in the sealed bodies. The address
// of a provider is not stored, because readers of logs may lack the right to see it.
func recorded(f *fault.Fault) string {
	if said := chat.ProviderErrorOf(f); said != nil {
		return clipText(said.Error())
	}
	var none *target.NoResponse
	if errors.As(f, &none) {
		return none.Error()
	}
	return clipText(f.Message)
}
