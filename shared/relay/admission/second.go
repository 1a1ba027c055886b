package admission

import (
	"net/http"
	"time"

	"gateway/shared/relay/routes"
)

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
	return Admitted{Caller: q.Caller, Route: q.Route, Req: q.Req, start: q.Start, ask: q.Ask, bound: q.Bound}
}

// Share makes q, which has arrived, a second attempt of an admitted request: it has its own
// lifetime, memory and id, and everything else of that request.
func (q *Request) Share(of *Admitted) {
	q.Caller, q.Start, q.Ask, q.Bound = of.Caller, of.start, of.ask, of.bound
	q.Lease.Of(q.doors.Memory, q.Who.Scope.Org)
	q.alive.lane.Tenant, q.alive.lane.Workspace = q.Who.Scope.Org, q.Who.Scope.Workspace
}
