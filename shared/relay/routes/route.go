package routes

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/form"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// BodyMode is the body handling of a route.
type BodyMode uint8

const (
	// Unified routes have a JSON body that is checked, and translated if the provider uses
	// another dialect.
	Unified BodyMode = iota + 1
	// Raw routes pass path, query, body and response through byte for byte.
	Raw
	// Listing routes respond from the gateway's own data, or with a provider's list in the
	// OpenAI format if the request names a provider.
	Listing
	// Resource routes act on objects stored at a provider. No body is sent; the response is the
	// provider's.
	Resource
	// Multipart routes have a multipart/form-data body. Long ones are streamed
	// through.
	Multipart
	// Socket routes become a WebSocket on both sides.
	Socket
)

// Route is one data-plane route, as a family declares it.
type Route struct {
	Method   string   // one method, or
	Methods  []string // several, for the route of AnyPath
	Path     string   // below the base URL, e.g. /chat/completions or /files/{id}
	Name     string   // in the API document, if several routes have one Endpoint
	Endpoint string   // request type in logs, limits and guardrails: chatComplete, embed, proxy, ...
	BodyMode BodyMode
	Scope    string   // scope that the key must hold, or
	OrScopes []string // one of these
	MaxBody  int64    // bytes; 0: DefaultMaxBody

	// Client is the dialect of the caller; nil on routes that are not conversations.
	Client chat.TwoWayDialect
	// Errors writes the errors of a route without a Client, for clients that do not read
	// OpenAI's format; nil: OpenAI's.
	Errors chat.ErrorWriter
	// Verbatim: errors of a provider with the client's dialect are sent byte for byte, since
	// clients parse them; the gateway's code is a header.
	Verbatim bool
	// Operation is the provider's operation that serves the route.
	Operation provider.Operation
	// Check validates the limits of a body on Unified routes without a Client; CheckForm those
	// of the parsed fields on Multipart routes.
	Check     func(body []byte) error
	CheckForm func(Form) error
	// UnitsOf returns the units of a request that its price depends on besides tokens, on routes
	// without a Client. With it, nothing is estimated from the body's length.
	UnitsOf func(get Get, bytes int64) Units
	// DefaultModel is used for requests that name no model.
	DefaultModel string
	NoModel      bool // the request has no model, or
	AnyModel     bool // models that the gateway cannot see: not for providers with a list of models
	Free         bool // providers charge nothing for it: budgets are not checked
	// CustomHost: an OpenAI-compatible provider at a custom address is called at the route's own
	// path, even if its catalog row does not list the operation.
	CustomHost bool
	// Media: a response that is not JSON is forwarded unchanged. Binary: every response is.
	Media, Binary bool
	// Meter reads the usage of a response, or of one event of its stream, on routes without a
	// Client; nil if responses report none.
	Meter    func(answer []byte) chat.Meter
	NoOutput bool // the operation has no output tokens (embeddings)
	// Local responds for providers that do not have the operation. The response must state that
	// it is not the provider's.
	Local func(body []byte) ([]byte, error)
	// BuiltIn: the gateway serves it itself if the request names the provider gateway, or no
	// provider.
	BuiltIn bool
	// EarlierResponse: the response was created for an earlier request. Output guardrails judge it like a
	// response to that. Nil: it is not judged.
	EarlierResponse *EarlierResponse
	shadowed        *Table // of the route of AnyPath: the routes that shadow it
	// Handler serves the requests; nil: Model.
	Handler Handler
	// Google serves requests of Google's clients instead; nil: this route does.
	Google *Route
	// Native are, for the route of AnyPath, the conversations of clients with a provider's own
	// dialect. A target with that dialect gets the request unchanged, by the route of AnyPath;
	// other targets get it translated. {model+} in a path also matches slashes.
	Native  []Route
	native  []nativePath
	passed  *Route // of a native route: that of AnyPath
	InPath  bool   // the path names the model, not the body, and determines whether
	Streams bool   // the response is a stream
}

// EarlierResponse describes an earlier response.
type EarlierResponse struct {
	Endpoint string             // type of its request
	Client   chat.TwoWayDialect // its dialect
}

// Get returns the text of a top-level field of the client's body, or of a field of its form; ""
// if it is absent or not a text.
type Get func(name string) string

// Units holds the units that a request demands besides tokens.
type Units struct {
	Quality, Size string        // of images
	Mode          string        // of the price: batch; "" is standard
	Pixels        int64         // of one image; zero if the request does not state its size
	Steps         int64         // inference steps of an image; zero if the request states none
	Most          pricing.Usage // the most units, besides the tokens of the body, that it may use
	Assumed       pricing.Usage // what it is charged if the response reports nothing
}

// Limits of bodies, in bytes.
const (
	DefaultMaxBody = 20 << 20
)

// Output limit that a reservation assumes if the request states none.
const DefaultReserveOutput = 4096

// Caller holds the facts of a request on a Listing route.
type Caller struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Query   url.Values
	Slugs   []string // saved providers that the request's route is limited to; nil: all
	// Anthropic, Google: the client reads the list in that format.
	Anthropic, Google bool
	Model             string // the only one to respond with; "": all
}

// Form is the input of a route's check: the parsed fields.
type Form = *form.Form

// BodyLimit returns the maximum size of a body in bytes.
func (rt *Route) BodyLimit() int64 {
	if rt.MaxBody > 0 {
		return rt.MaxBody
	}
	return DefaultMaxBody
}

// Protocol serves the requests of a route that calls no model. The pipeline has authenticated
// the caller and read the body; through Walk, the calls of the protocol are counted, guarded and
// recorded. An error is sent like those of the pipeline itself.
type Protocol interface {
	Serve(*ProtocolCall) error
}

// ProtocolCall is one such request.
type ProtocolCall struct {
	Context  context.Context // ends some time after its client has disconnected; see Request for when
	Request  *http.Request
	Body     []byte // must not be retained
	Caller   *identity.Principal
	View     *resource.View
	Metadata map[string]string
	TraceID  string
	Bearer   bool // the caller's credential was in Authorization
	Now      func() time.Time
	Deps     ProtocolDeps
	Pipeline ProtocolPipeline
}

// ProtocolDeps holds the dependencies of in-process protocols.
type ProtocolDeps struct {
	Transport http.RoundTripper // the guarded transport
	Hosts     http.RoundTripper // the same, also to hosts that administrators have registered by address
	Sealer    seal.Sealer
	Secrets   *provider.Loaded
	Loader    *resource.Loader
	State     store.Table // for data that changes with use
	Signing   *signing.Keys
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

// ProtocolPipeline holds the pipeline's operations for a protocol.
type ProtocolPipeline interface {
	// Reauthenticate re-reads the caller and its settings during a long response.
	Reauthenticate() (*identity.Principal, *resource.View, error)
	// Forwards returns the client's headers without the gateway's credential.
	Forwards() http.Header
	// Count counts a call of a tool against the rates of its caller and the policies;
	// it fails with RateLimited.
	Count(server, tool string) error
	// CountRequest counts a call of anything else, as any request is counted.
	CountRequest() error
	// OwnedByCaller reports which of the objects that an upstream stores under ids the caller's workspace
	// created, in the order of the ids. place is the upstream.
	OwnedByCaller(place string, ids ...string) ([]bool, error)
	// RecordOwnership records that the caller's workspace created objects there; it does not change another
	// owner.
	RecordOwnership(place string, ids ...string) error
	// Guard has the guardrails judge a call of the route's type. denied: it must not be made.
	// changed is the call as they changed it; nil: unchanged.
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	// Judge has them judge its result, and returns the result for the client.
	Judge(result []byte) (out []byte, denied bool)
	// JudgeMessage has them judge a message beside a call and its result, by those in force now:
	// one of the client as input, one of the upstream as output.
	JudgeMessage(name string, message []byte, ofClient bool) (out []byte, denied bool, err error)
	// RecordCall records the call; the value that call points to may change until the response is
	// sent.
	RecordCall(server, integration, name string, call *usage.Call)
	// StartResponse and Ended surround a call of the upstream. Ended gets its status, 0 for none.
	StartResponse()
	Ended(status int)
	// RecordSizes records the sizes of request and response, in bytes.
	RecordSizes(up, down int)
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

// maxUnescape limits how many times a path is unescaped: each proxy may do it once.
const maxUnescape = 3

// Endpoints returns the types of requests of the gateway's own routes that a passed-through
// request may reach at the provider, in any encoding of its path and below any base. It is empty
// for other routes, and for a path that none of them has.
func (rt *Route) Endpoints(method, escapedPath string) (endpoints []string) {
	if rt.shadowed == nil || method != http.MethodPost {
		return nil
	}
	segments := Segments(escapedPath)
	for i, s := range segments {
		if !strings.Contains(s, ":") { // a method of Google's, which is case-sensitive
			segments[i] = strings.ToLower(s)
		}
	}
	for i := range segments {
		below := "/" + strings.Join(segments[i:], "/")
		add := func(rt *Route) {
			if rt.Method == method && rt.Endpoint != "" && !slices.Contains(endpoints, rt.Endpoint) {
				endpoints = append(endpoints, rt.Endpoint)
			}
		}
		own, _ := rt.shadowed.at(below)
		for _, rt := range own {
			add(rt)
		}
		if native, _ := rt.nativeAt(method, below); native != nil {
			add(native)
		}
	}
	return endpoints
}

// Segments returns the segments of a path as the most lenient parser reads it: unescaped,
// without empty and dot segments and without the parameters that follow a semicolon.
func Segments(path string) (out []string) {
	for range maxUnescape {
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			break
		}
		path = plain
	}
	for _, s := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		s, _, _ = strings.Cut(s, ";")
		switch s = strings.TrimSpace(s); s {
		case "", ".":
		case "..":
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, s)
		}
	}
	return out
}

// batchPlaces are the last segments of paths to which providers take batches, by the segment
// before them, which is "" where that does not matter.
var batchPlaces = [...][2]string{
	{"", "batches"},      // OpenAI and hosts of its shape, Anthropic
	{"batch", "jobs"},    // Mistral
	{"", "embed-jobs"},   // Cohere
	{"", "async-invoke"}, // Bedrock
	{"", "model-invocation-job"},
	{"", "batchpredictionjobs"}, // Vertex
	{"", "batchinferencejobs"},  // Fireworks
}

// StartsBatch reports whether a passed-through request makes a provider process many requests,
// in any encoding of its path: a batch, or rows for an existing one.
func StartsBatch(method, escapedPath string) bool {
	if method != http.MethodPost {
		return false
	}
	segments := Segments(escapedPath)
	for i, s := range segments {
		segments[i] = strings.ToLower(s)
	}
	n := len(segments)
	if n == 0 {
		return false
	}
	last := segments[n-1]
	if strings.HasSuffix(last, ":batchgeneratecontent") || strings.HasSuffix(last, ":asyncbatchembedcontent") {
		return true // Gemini
	}
	for _, place := range batchPlaces {
		if last == place[1] && (place[0] == "" || n > 1 && segments[n-2] == place[0]) {
			return true
		}
	}
	// xAI takes rows below a batch.
	at := slices.Index(segments, "batches")
	return at >= 0 && n > at+2 && last != "cancel"
}
