package relay

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/wire/life"
)

// request is a client's request that is admitted: who asks, within which
// organisation and workspace, and what the gateway's headers ask for. It is made
// first; no later stage changes it.
type request struct {
	*Relay
	rt     *routes.Route
	req    *http.Request
	base   context.Context // the request's values; never ends
	ctx    context.Context // lives on when the client goes
	stop   context.CancelFunc
	alive  *lifetime // what ctx and stop are of
	start  time.Time
	ulid   string // id of the record
	pathID string // the variable of the route's path, escaped

	who        *identity.Principal
	view       *resource.View
	ws         *tenant.Effective
	org        *tenant.Organisation
	ask        asked.Headers
	keyInAuth  bool          // the gateway key came in Authorization
	token      string        // the gateway key itself, so that it is never sent on
	behalf     *Behalf       // who a request is made for that came from no client
	rehearsing bool          // nothing is sent
	lease      *egress.Lease // memory of what is held whole
	afterwards []func()      // to be done once the request is over
}

// arrive starts the life of a request.
func (q *request) arrive(r *Relay, req *http.Request, rt *routes.Route) {
	q.Relay, q.rt, q.req = r, rt, req
	q.start = r.Now()
	q.ulid = ulid.MustNewDefault(q.start).String()
	q.base = life.Endless(req.Context())
	q.alive = new(lifetime)
	q.alive.lane.Context = q.base
	q.alive.Begin(&q.alive.lane)
	q.ctx, q.stop = &q.alive.Life, q.alive.End // a bare Life: who waits for its end needs no channel
	// A client that goes while the provider is silent is noticed here, not by a
	// write. Nothing of the pooled call is touched from the other goroutine.
	q.alive.drain = r.DrainTime
	q.alive.client.Begin(req.Context(), q.alive.left)
}

// lifetime is the context of a request's work. It outlives the pooled call.
type lifetime struct {
	life.Life
	client life.Watch // over the client's own context
	lane   egress.Lane
	drain  time.Duration
}

// left: the client has gone, and the answer is read on for a while.
func (l *lifetime) left() { time.AfterFunc(l.drain, l.End) }

// trace settles the names of the request in traces.
func (q *request) trace() {
	if q.ask.TraceID == "" {
		q.ask.TraceID = newTraceID()
	}
	if q.ask.Traced && q.ask.SpanName == "" {
		q.ask.SpanName = q.req.Method + " " + q.req.URL.Path
		q.ask.SpanName = strings.ToValidUTF8(q.ask.SpanName[:min(len(q.ask.SpanName), asked.MaxSpanName)], "")
	}
}

// identify finds the caller, its workspace and its organisation's settings.
func (q *request) identify() error {
	if err := q.authenticate(); err != nil {
		return err
	}
	who := q.who
	q.lease.Of(q.Memory, who.Scope.Org)
	q.alive.lane.Tenant, q.alive.lane.Workspace = who.Scope.Org, who.Scope.Workspace
	if who.Type == identity.OrganisationService {
		return fault.New(fault.NotAllowed, "x-gateway-api-key", "An organisation key manages the gateway and cannot call models; use a workspace key")
	}
	if !who.Has(q.rt.Scope) && !slices.ContainsFunc(q.rt.OrScopes, who.Has) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", q.rt.Scope)
	}
	var err error
	if q.view, err = q.Loader.Fresh(q.ctx, who.Scope.Org); err != nil {
		return err
	}
	orgScope := store.Scope{Org: who.Scope.Org}
	ws, ok, err := resource.Load(q.ctx, q.view, orgScope, tenant.KindWorkspace, who.Scope.Workspace, tenant.DecodeWorkspace)
	if err != nil {
		return err
	}
	if !ok || ws.Status != tenant.StatusActive {
		return fault.New(fault.NotAllowed, "x-gateway-api-key", "The workspace of this API key is not active")
	}
	org, ok, err := resource.Load(q.ctx, q.view, orgScope, tenant.KindOrganisation, who.Scope.Org, tenant.DecodeOrganisation)
	if err != nil {
		return err
	}
	if !ok {
		org = &tenant.Organisation{Settings: tenant.Settings{BlockInlineConfig: true}}
	}
	q.ws, q.org = ws, org
	return nil
}

// authenticate finds the caller by the key of the request, or by the one that the
// request is made for.
func (q *request) authenticate() (err error) {
	if q.behalf != nil {
		if q.who = q.behalf.Closing; q.who != nil {
			return nil
		}
		q.who, err = q.Auth.ByHash(q.ctx, q.behalf.Key)
		return err
	}
	if q.token, q.keyInAuth, err = identity.Token(q.req.Header); err == nil {
		q.who, err = q.Auth.Authenticate(q.ctx, q.token)
	}
	return err
}

// since is the time from arrival.
func (q *request) since() time.Duration { return q.Now().Sub(q.start) }

// fail reports a failure that the caller does not see.
func (q *request) fail(where string, err error) {
	if err == nil {
		return
	}
	if q.Faults != nil {
		q.Faults(where, err)
		return
	}
	logFault(where, q.ulid, err)
}
