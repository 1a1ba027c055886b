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

// Protocol answers the requests of a route that asks no model. The walk has identified the
// caller and read the body; through Walk, the calls of the protocol are counted, guarded
// and recorded. An error is answered like those of the walk itself.
type Protocol interface {
	Answer(*Governed) error
}

// Governed is one such request.
type Governed struct {
	Context  context.Context // ends some time after its client has gone; see Request for when
	Request  *http.Request
	Body     []byte // nothing of it may be kept
	Caller   *identity.Principal
	View     *resource.View
	Metadata map[string]string
	TraceID  string
	Bearer   bool // the caller's credential came in Authorization
	Now      func() time.Time
	Own      Own
	Walk
}

// Own is what protocols of the process work with.
type Own struct {
	Via     http.RoundTripper // the guarded way out
	Hosts   http.RoundTripper // the same, also to hosts that administrators have registered by address
	Sealer  seal.Sealer
	Secrets *provider.Loaded
	Loader  *resource.Loader
	Kept    store.Table // of what changes with use
	Signing *signing.Keys
	// CheckURL is the egress rule for addresses that clients name.
	CheckURL provider.URLCheck
	Buffers  bool // answers may be lost with the process between requests (Lambda)
}

// Credentials is a protocol whose callers may also bring credentials that it knows.
type Credentials interface {
	// Credentials takes them, and hands others on to next.
	Credentials(l *resource.Loader, now func() time.Time, next identity.TokenVerifier) identity.TokenVerifier
}

// Challenger is an error writer that also writes headers: how to authenticate, or the type
// of the error.
type Challenger interface {
	Challenge(h http.Header, r *http.Request, f *fault.Fault)
}

// Walk is what the walk does for a protocol.
type Walk interface {
	// Still looks again who asks and what holds for it, while an answer is under way.
	Still() (*identity.Principal, *resource.View, error)
	// Forwards gives the client's headers without the gateway's credential.
	Forwards() http.Header
	// Count counts a call of a tool against the rates of its caller and the policies;
	// it fails with RateLimited.
	Count(server, tool string) error
	// CountRequest counts a call of anything else, as any request is counted.
	CountRequest() error
	// Mine tells which of the things that an upstream keeps under ids the caller's
	// workspace made, in the order of the ids. place is the upstream.
	Mine(place string, ids ...string) ([]bool, error)
	// Keep notes that the caller's workspace made things there; what another made stays
	// that one's.
	Keep(place string, ids ...string) error
	// Guard has the guardrails judge a call as one of the route's type. denied: it must not be made. changed is
	// what they make of it; nil: nothing.
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	// Judge has them judge its result, and gives what the client may have of it.
	Judge(result []byte) (out []byte, denied bool)
	// Note puts into the record what is known of the call; what it points to may
	// change until the answer is sent.
	Note(server, integration, name string, call *usage.Call)
	// Began and Ended stand around a call of the upstream: its status, 0 for none.
	Began()
	Ended(status int)
	// Used notes the sizes of what went up and down, in bytes.
	Used(up, down int)
	// Send answers. failure is why the answer is no good one; nil: it is.
	Send(status int, media string, body []byte, failure *fault.Fault)
	// Event sends one event of a stream, which it begins; the last one ends it.
	Event(event []byte, last bool, failure *fault.Fault)
	// Header is that of the answer, until it has begun.
	Header() http.Header
	// Trace gives the W3C trace context of calls of the upstream; "": the request came
	// without one. within is what the protocol's own message says of it, if anything.
	Trace(within string) string
}
