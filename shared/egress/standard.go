package egress

import (
	"context"
	"hash/maphash"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"gateway/shared/wire/engine"
)

// Options configures the transports.
type Options struct {
	// Standard makes all calls by net/http, in case this project's own transport fails.
	Standard bool
}

// Transport is a way out.
type Transport interface {
	http.RoundTripper
	CloseIdleConnections() // those that no request uses
}

// New returns the guarded way out for a policy. It is the one place that decides which
// transport that is. The transport follows no redirects, decompresses nothing, and has no
// time limit but the request's context.
func New(p Policy, o Options) Transport {
	if o.Standard || !engine.Linked {
		return NewStandard(p)
	}
	return NewHTTP1(p)
}

// NotifiesObserver reports whether a transport notifies the BodyObserver of NewObservedBody.
func NotifiesObserver(t http.RoundTripper) bool {
	notifier, ok := t.(interface{ notifiesObserver() })
	if ok {
		notifier.notifiesObserver()
	}
	return ok
}

// CloseIdle closes the connections of a transport that no request uses.
func CloseIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Standard is the way out by net/http, with a pool of connections for each lane.
type Standard struct {
	policy   Policy
	resolver *net.Resolver
	common   *http.Transport // the model for the transports of the lanes

	mu    sync.Mutex
	lanes map[lane]*lanePool
	tick  uint64
}

// lanePool is net/http's transport of one lane.
type lanePool struct {
	transport *http.Transport
	used      uint64 // time of its last use
}

// Bounds of net/http's idle connections. The lane that was used least recently is dropped
// first, with its idle connections.
const (
	maxLanes       = 64
	maxIdleOfALane = 256
)

// NewStandard returns net/http's transport for a policy.
func NewStandard(p Policy) *Standard { return newStandard(p, nil) }

// newStandard takes the resolver, which tests replace; nil is the system's.
func newStandard(p Policy, resolver *net.Resolver) *Standard {
	return &Standard{policy: p, resolver: resolver, common: newTransport(p, resolver), lanes: make(map[lane]*lanePool)}
}

func (s *Standard) notifiesObserver() {}

// RoundTrip implements http.RoundTripper.
func (s *Standard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil {
		return s.common.RoundTrip(req)
	}
	resp, err := s.of(laneOf(req)).RoundTrip(traceBody(req))
	return plainResponse(req, resp, err)
}

// of is the transport of a lane.
func (s *Standard) of(l lane) *http.Transport {
	s.mu.Lock()
	p := s.lanes[l]
	var last *lanePool
	if p == nil {
		if len(s.lanes) >= maxLanes {
			last = s.drop()
		}
		p = &lanePool{transport: newTransport(s.policy, s.resolver)}
		p.transport.TLSClientConfig.ClientSessionCache = s.common.TLSClientConfig.ClientSessionCache
		p.transport.MaxIdleConns, p.transport.MaxIdleConnsPerHost = maxIdleOfALane, maxIdleOfALane
		s.lanes[l] = p
	}
	s.tick++
	p.used = s.tick
	s.mu.Unlock()
	if last != nil {
		last.transport.CloseIdleConnections()
	}
	return p.transport
}

// drop evicts the lane that was used least recently.
func (s *Standard) drop() (last *lanePool) {
	var key lane
	for l, p := range s.lanes {
		if last == nil || p.used < last.used {
			key, last = l, p
		}
	}
	delete(s.lanes, key)
	return last
}

// CloseIdleConnections closes the connections that no request uses.
func (s *Standard) CloseIdleConnections() {
	s.mu.Lock()
	lanes := make([]*lanePool, 0, len(s.lanes))
	for _, p := range s.lanes {
		lanes = append(lanes, p)
	}
	s.mu.Unlock()
	for _, p := range lanes {
		p.transport.CloseIdleConnections()
	}
}

// traceBody makes net/http notify the body's BodyObserver, if any.
func traceBody(req *http.Request) *http.Request {
	b, ok := req.Body.(*Body)
	if !ok || b.observer == nil {
		return req
	}
	trace := &httptrace.ClientTrace{
		WroteHeaders: func() { b.sent.Store(false) }, // the body may be sent again
		WroteRequest: func(how httptrace.WroteRequestInfo) {
			b.sent.Store(true)
			b.observer.BodyWritten(how.Err == nil)
		},
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}

// Lane is a context that identifies the tenant of a call. Connections are only reused
// within a lane: if a provider mixes up the responses on a connection, no other tenant
// receives them. The zero tenant is a lane too.
type Lane struct {
	context.Context
	Tenant, Workspace string
}

// Of sets the tenant, before the first call under the lane.
func (l *Lane) Of(tenant, workspace string) { l.Tenant, l.Workspace = tenant, workspace }

// laneKey is the context key of *Lane.
type laneKey struct{}

// Value implements context.Context.
func (l *Lane) Value(key any) any {
	if key == (laneKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// LaneOf returns the lane of ctx; nil if it has none.
func LaneOf(ctx context.Context) *Lane {
	l, _ := ctx.Value(laneKey{}).(*Lane)
	return l
}

// WithLane returns ctx with the lane l: calls end with ctx and use the connections of l. A
// nil lane returns ctx itself. The parameters have different types, so that the context
// that ends a call and the one that only names its lane cannot be confused.
func WithLane(ctx context.Context, l *Lane) context.Context {
	if l == nil {
		return ctx
	}
	return &Lane{Context: ctx, Tenant: l.Tenant, Workspace: l.Workspace}
}

// lane identifies the tenant, the workspace and the credential of a request.
type lane struct {
	tenant, workspace string
	credential        uint64
}

var laneSeed = maphash.MakeSeed()

// credentialHeaders are the headers in which providers expect the credential.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key"}

// laneOf is the lane of a request.
func laneOf(req *http.Request) (l lane) {
	if of := LaneOf(req.Context()); of != nil {
		l.tenant, l.workspace = of.Tenant, of.Workspace
	}
	for i, name := range credentialHeaders {
		for _, v := range req.Header[name] {
			l.credential = l.credential*31 + uint64(i+1) + maphash.String(laneSeed, stablePart(v))
		}
	}
	if key := queryKey(req.URL.RawQuery); key != "" {
		l.credential = l.credential*31 + maphash.String(laneSeed, key)
	}
	return l
}

// stablePart is the part of a credential that is the same in each request: AWS signatures
// change with what they sign, but the signer stays the same.
func stablePart(v string) string {
	if !strings.HasPrefix(v, "AWS4-") {
		return v
	}
	_, who, _ := strings.Cut(v, "Credential=")
	who, _, _ = strings.Cut(who, "/")
	return who
}

// queryKey is the API key in a query, as Google has it.
func queryKey(query string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if key, ok := strings.CutPrefix(pair, "key="); ok {
			return key
		}
	}
	return ""
}
