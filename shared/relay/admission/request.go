package admission

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/wire/reqctx"
)

// Dependencies are the dependencies of admission. All are required.
type Dependencies struct {
	Auth        *identity.Authenticator
	Secrets     *ClientSecretScope
	Loader      *resource.Loader
	Memory      *egress.Memory // for buffered bodies
	BlockInline bool           // inline configuration is rejected regardless of the organization
	DrainTime   time.Duration  // how long a response is read after the client has disconnected
	Now         func() time.Time
	Fault       func(where, request string, err error) // called with failures that no caller sees
}

// Request is an admitted client request: its principal, organization and workspace, and the
// parsed gateway headers. It is created first; no later stage changes it.
type Request struct {
	Caller
	deps      *Dependencies
	Route     *routes.Route
	Req       *http.Request
	Base      context.Context // the request's values; never ends
	Ctx       context.Context // outlives the client's disconnect
	Stop      context.CancelFunc
	alive     *lifetime // the context of Ctx and Stop
	StartTime time.Time
	ULID      string // id of the record
	PathID    string // the variable of the route's path, escaped

	Headers      Headers
	Internal     *InternalCall      // for requests by the gateway itself; nil: by a client
	ClientSecret *ClientSecretToken // the client secret used instead of a key; nil: none
	DryRun       bool               // a dry run: nothing is sent
	Child        bool               // the gateway sends it for another request: without cache and guardrails
	Lease        *egress.Lease      // memory of buffered bodies
	Deferred     []func()           // run after the request is over
}

// Caller is the authenticated caller with its settings.
type Caller struct {
	Principal *identity.Principal
	View      *resource.View
	WS        *tenant.Effective
	Org       *tenant.Organisation // with the settings in force for the workspace
	Token     string               // the gateway key itself, so that it is never forwarded
	KeyInAuth bool                 // it was in Authorization
}

// Start starts the lifetime of a request. Its bodies are buffered in the memory of lease.
func (q *Request) Start(d *Dependencies, req *http.Request, rt *routes.Route, id string, behalf *InternalCall, lease *egress.Lease) {
	q.deps, q.Route, q.PathID, q.Req, q.Internal, q.Lease = d, rt, id, req, behalf, lease
	q.StartTime = d.Now()
	q.ULID = ulid.MustNewDefault(q.StartTime).String()
	if behalf != nil {
		behalf.arrived(q.ULID)
	}
	q.Base = reqctx.Endless(req.Context())
	q.alive = &lifetime{lane: egress.Lane{Context: q.Base}, drain: d.DrainTime}
	q.alive.Begin(&q.alive.lane)
	q.Ctx, q.Stop = &q.alive.Context, q.alive.End // a bare Life: waiting for its end needs no channel
	// A client that disconnects while the provider is silent is noticed here, not by a write.
	// The other goroutine does not access the pooled call.
	q.alive.client.Begin(req.Context(), q.alive.left)
}

// ClientContext returns a context that ends when the client disconnects, for work that is only
// done for the client. Calls under it use the connections of the request's lane.
func ClientContext(q *Request) context.Context {
	return egress.WithLane(q.Req.Context(), egress.LaneOf(q.Ctx))
}

// ServeAs changes the route of the request: to that of a saved prompt's type, and to
// pass-through for a target that gets the request unchanged.
func (q *Request) ServeAs(rt *routes.Route) { q.Route = rt }

// WithHeaders returns a request with other headers, on a route that needs a provider.
func WithHeaders(q *Request, ask Headers, h http.Header) *Request {
	other, req, rt := *q, *q.Req, *q.Route
	req.Header, rt.BuiltIn = h, false
	other.Headers, other.Req, other.Route = ask, &req, &rt
	return &other
}

// Reuse gives the request the memory that End of another one returned.
func (q *Request) Reuse(afterwards []func()) { q.Deferred = afterwards }

// MakeChild makes q a child of a request that was admitted.
func MakeChild(q *Request, parent Caller, ask Headers) {
	q.Child, q.Caller, q.Headers = true, parent, ask
	q.Trace()
}

// Defer registers f to be called once the request is over.
func (q *Request) Defer(f func()) { q.Deferred = append(q.Deferred, f) }

// RunDeferred runs the functions registered by Defer.
func (q *Request) RunDeferred() {
	for _, f := range q.Deferred {
		f()
	}
}

// OnClientGone cancels the provider's response after a while, because the client has disconnected;
// until then it is read, so that its cost is known.
func (q *Request) OnClientGone() {
	drain := time.AfterFunc(q.deps.DrainTime, q.Stop)
	q.Defer(func() { drain.Stop() })
}

// Detach lets the request continue after its handler has returned: the client is a connection
// that other goroutines read.
func (q *Request) Detach() { q.alive.client.Stop() }

// End frees the memory of a request. It returns the part that another request may reuse.
func (q *Request) End() (afterwards []func()) {
	q.alive.client.Stop()
	q.Stop()
	q.Lease.Free()
	clear(q.Deferred)
	return q.Deferred[:0]
}

// lifetime is the context of a request's work. It outlives the pooled call.
type lifetime struct {
	reqctx.Context
	client reqctx.Watch // over the client's own context
	lane   egress.Lane
	drain  time.Duration
}

// left is called when the client has disconnected. The response is still read for a while.
func (l *lifetime) left() { time.AfterFunc(l.drain, l.End) }

// Trace determines the trace ids of the request.
func (q *Request) Trace() {
	q.Headers.trace(q.Req)
}

// Admit authenticates the caller, and reads its settings and the gateway headers. The trace is
// set even if it fails: it is returned to rejected callers as well.
func (q *Request) Admit() error {
	err := q.identify()
	if err != nil {
		q.Headers.identify(q.Req.Header)
	} else {
		err = q.Headers.Read(q.Req.Header)
	}
	q.Trace()
	return err
}

// identify determines the caller, its workspace and its organization's settings.
func (q *Request) identify() error {
	if err := q.authenticate(); err != nil {
		return err
	}
	who := q.Principal
	q.Lease.Of(q.deps.Memory, who.Scope.Org)
	q.alive.lane.Of(who.Scope.Org, who.Scope.Workspace)
	var err error
	q.Caller, err = withSettings(q.Ctx, q, q.Caller)
	return err
}

// withSettings returns a caller that may use the route of q with the settings that apply to it.
func withSettings(ctx context.Context, q *Request, c Caller) (Caller, error) {
	view, ws, err := q.mayAsk(ctx, c.Principal)
	if err != nil {
		return c, err
	}
	org, err := tenant.LoadSettings(ctx, view, c.Principal.Scope)
	return Caller{c.Principal, view, ws, org, c.Token, c.KeyInAuth}, err
}

// mayAsk checks whether a caller may use the route, in an active workspace.
func (q *Request) mayAsk(ctx context.Context, who *identity.Principal) (*resource.View, *tenant.Effective, error) {
	if who.Type == identity.OrganisationService {
		if f := q.Route.MisdirectedFault(q.Req.Method, q.Req.URL.EscapedPath()); f != nil {
			return nil, nil, f
		}
		return nil, nil, fault.New(fault.NotAllowed, "x-gateway-api-key", "An organization key manages the gateway and cannot call models; use a workspace key")
	}
	if !who.Has(q.Route.Scope) && !slices.ContainsFunc(q.Route.OrScopes, who.Has) {
		return nil, nil, fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", q.Route.Scope)
	}
	view, err := q.deps.Loader.Fresh(ctx, who.Scope.Org)
	if err != nil {
		return nil, nil, err
	}
	orgScope := store.Scope{Org: who.Scope.Org}
	ws, ok, err := resource.Load(ctx, view, orgScope, tenant.KindWorkspace, who.Scope.Workspace, tenant.DecodeWorkspace)
	if err != nil {
		return nil, nil, err
	}
	if !ok || ws.Status != tenant.StatusActive {
		return nil, nil, fault.New(fault.NotAllowed, "x-gateway-api-key", "The workspace of this API key is not active")
	}
	return view, ws, nil
}

// Reauthenticate re-reads the caller of a long-lived request. The error is a *fault.Fault if the key or
// the workspace may no longer use the route.
func (q *Request) Reauthenticate(ctx context.Context) (*Caller, error) {
	who, err := q.known(ctx)
	if err != nil {
		return nil, err
	}
	now, err := withSettings(ctx, q, Caller{Principal: who, Token: q.Token, KeyInAuth: q.KeyInAuth})
	if err != nil {
		return nil, err
	}
	return &now, nil
}

// authenticate determines the caller by the key of the request, or by the principal that the
// request is made for.
func (q *Request) authenticate() error {
	if q.Internal == nil {
		token, inAuth, err := identity.Token(q.Req.Header)
		q.Caller = Caller{Token: token, KeyInAuth: inAuth}
		if err == nil && IsClientSecret(token) {
			err = unbind(q)
		}
		if err != nil {
			return err
		}
	}
	who, err := q.known(q.Ctx)
	q.Caller = Caller{Principal: who, Token: q.Token, KeyInAuth: q.KeyInAuth}
	return err
}

// known returns the principal of the request's credential.
func (q *Request) known(ctx context.Context) (*identity.Principal, error) {
	switch {
	case q.Internal != nil:
		if who := cmp.Or(q.Internal.Closing, q.Internal.Caller); who != nil {
			return who, nil // the initiator of the request checks whether it may continue
		}
		return q.deps.Auth.ByHash(ctx, q.Internal.Key)
	case q.ClientSecret != nil:
		return q.deps.Auth.ByHash(ctx, q.ClientSecret.Key)
	}
	return q.deps.Auth.Authenticate(ctx, q.Token, identity.AuthenticationAttempt{Request: q.Req})
}

// unbind opens the client secret of a request: the settings of its creator replace those of the
// client.
func unbind(q *Request) error {
	if !q.Route.TakesSecrets() {
		return fault.New(fault.Unauthorized, "x-gateway-api-key", "A client secret can only open realtime sessions; use an API key")
	}
	s, err := q.deps.Secrets.Open(q.Ctx, q.Token)
	if err != nil {
		return err
	}
	h, err := s.Unbind(q.Req.Header, q.Token)
	if err != nil {
		return err
	}
	own, at := *q.Req, *q.Req.URL
	if at.RawQuery, err = s.Query(at.RawQuery); err != nil {
		return err
	}
	own.Header, own.URL = h, &at
	q.Req, q.ClientSecret, q.KeyInAuth = &own, s, false
	return nil
}

// Now returns the current time.
func (q *Request) Now() time.Time { return q.deps.Now() }

// Since returns the time since the request's arrival.
func (q *Request) Since() time.Duration { return q.Now().Sub(q.StartTime) }

// Fail reports a failure that the caller does not see.
func (q *Request) Fail(where string, err error) {
	if err != nil {
		q.deps.Fault(where, q.ULID, err)
	}
}

// newTraceID returns a random UUID. The uuid package would allocate its bytes.
func newTraceID() string {
	var b uuid.UUID
	_, _ = rand.Read(b[:])                      // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return b.String()
}

// Admitted are the results of admission that a second attempt of the request shares. Nothing
// changes them after admission, so that another goroutine may read them.
type Admitted struct {
	Caller
	Route *routes.Route
	Req   *http.Request
	start time.Time
	ask   Headers
	bound *ClientSecretToken
}

// Admitted returns the results of the request's admission.
func (q *Request) Admitted() Admitted {
	return Admitted{Caller: q.Caller, Route: q.Route, Req: q.Req, start: q.StartTime, ask: q.Headers, bound: q.ClientSecret}
}

// Share makes q, which has arrived, a second attempt of an admitted request: it has its own
// lifetime, memory and id, and everything else of that request.
func (q *Request) Share(of *Admitted) {
	q.Caller, q.StartTime, q.Headers, q.ClientSecret = of.Caller, of.start, of.ask, of.bound
	q.Lease.Of(q.deps.Memory, q.Principal.Scope.Org)
	q.alive.lane.Of(q.Principal.Scope.Org, q.Principal.Scope.Workspace)
}

// InternalCall names the principal of a request that the gateway itself makes.
type InternalCall struct {
	Key     string              // hash of the API key
	Closing *identity.Principal // instead of a key that is no longer valid: see Mux.Admits
	Caller  *identity.Principal // of the parent request, instead of a key
	Request string              // set by Run: the id of the request's record

	// Settling marks a request that only polls for an end, so that it can be charged. No limit
	// rejects it, no default config routes it elsewhere, no guardrail reads it, and a poll
	// without a charge leaves no record.
	Settling bool
	Charged  bool // set by Run, of such a request: it has charged the usage

	// Rows marks the transfer of a file with rows that the guardrails judge one by one, so that
	// none reads the file: see Mux.JudgeRow.
	Rows bool
}

func (b *InternalCall) arrived(id string) { b.Request = id }

func (b *InternalCall) charge() { b.Charged = true }

// CarriesRows reports whether the request transfers rows that are judged one by one.
func (q *Request) CarriesRows() bool { return q.Internal != nil && q.Internal.Rows }

// Settles reports whether the request polls for the end of earlier work.
func (q *Request) Settles() bool { return q.Internal != nil && q.Internal.Settling }

// IsUnchargedPoll reports whether it was such a poll without a charge.
func (q *Request) IsUnchargedPoll() bool { return q.Settles() && !q.Internal.Charged }

// Prices records that the request has charged the usage, for its initiator.
func (q *Request) Prices() {
	if q.Internal != nil {
		q.Internal.charge()
	}
}
