package routes

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Protocol serves the requests of a route that calls no model. The pipeline has authenticated
// the caller and read the body; through Walk, the calls of the protocol are counted, guarded and
// recorded. An error is sent like those of the pipeline itself.
type Protocol interface {
	Answer(*Governed) error
}

// Governed is one such request.
type Governed struct {
	Context  context.Context // ends some time after its client has disconnected; see Request for when
	Request  *http.Request
	Body     []byte // must not be retained
	Caller   *identity.Principal
	View     *resource.View
	Metadata map[string]string
	TraceID  string
	Bearer   bool // the caller's credential was in Authorization
	Now      func() time.Time
	Own      Own
	Walk
}

// Own holds the dependencies of in-process protocols.
type Own struct {
	Via     http.RoundTripper // the guarded transport
	Hosts   http.RoundTripper // the same, also to hosts that administrators have registered by address
	Sealer  seal.Sealer
	Secrets *provider.Loaded
	Loader  *resource.Loader
	State   store.Table // for data that changes with use
	Signing *signing.Keys
	// CheckURL is the egress rule for addresses that clients name.
	CheckURL provider.URLCheck
	Buffers  bool // responses may be lost with the process between requests (Lambda)
}

// Credentials is a protocol that accepts additional kinds of credentials.
type Credentials interface {
	// Credentials returns a verifier for them, which passes others to next.
	Credentials(l *resource.Loader, now func() time.Time, next identity.TokenVerifier) identity.TokenVerifier
}

// Challenger is an error writer that also writes headers: how to authenticate, or the type
// of the error.
type Challenger interface {
	Challenge(h http.Header, r *http.Request, f *fault.Fault)
}

// Walk holds the pipeline's operations for a protocol.
type Walk interface {
	// Still re-reads the caller and its settings during a long response.
	Still() (*identity.Principal, *resource.View, error)
	// Forwards returns the client's headers without the gateway's credential.
	Forwards() http.Header
	// Count counts a call of a tool against the rates of its caller and the policies;
	// it fails with RateLimited.
	Count(server, tool string) error
	// CountRequest counts a call of anything else, as any request is counted.
	CountRequest() error
	// Mine reports which of the objects that an upstream stores under ids the caller's workspace
	// created, in the order of the ids. place is the upstream.
	Mine(place string, ids ...string) ([]bool, error)
	// Keep records that the caller's workspace created objects there; it does not change another
	// owner.
	Keep(place string, ids ...string) error
	// Guard has the guardrails judge a call of the route's type. denied: it must not be made.
	// changed is the call as they changed it; nil: unchanged.
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	// Judge has them judge its result, and returns the result for the client.
	Judge(result []byte) (out []byte, denied bool)
	// Note records the call; the value that call points to may change until the response is
	// sent.
	Note(server, integration, name string, call *usage.Call)
	// Began and Ended surround a call of the upstream. Ended gets its status, 0 for none.
	Began()
	Ended(status int)
	// Used records the sizes of request and response, in bytes.
	Used(up, down int)
	// Send sends the response. failure is the reason if it is not a success; nil if it is.
	Send(status int, media string, body []byte, failure *fault.Fault)
	// Event sends one event of a stream, which it starts; the last one ends it.
	Event(event []byte, last bool, failure *fault.Fault)
	// Header returns the headers of the response, until it has started.
	Header() http.Header
	// Trace returns the W3C trace context for calls of the upstream; "" if the request had none.
	// within is the trace context in the protocol's own message, if any.
	Trace(within string) string
}
