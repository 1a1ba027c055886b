package routes

import (
	"context"
	"net/url"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/form"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Shape is the body handling of a route.
type Shape uint8

const (
	// Unified routes have a JSON body that is checked, and translated if the provider uses
	// another dialect.
	Unified Shape = iota + 1
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
	Shape    Shape
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
	// Demand returns the units of a request that its price depends on besides tokens, on routes
	// without a Client. With it, nothing is estimated from the body's length.
	Demand func(get Get, bytes int64) Demand
	// DefaultModel is used for requests that name no model.
	DefaultModel string
	NoModel      bool // the request has no model, or
	AnyModel     bool // models that the gateway cannot see: not for providers with a list of models
	Free         bool // providers charge nothing for it: budgets are not checked
	// Through: an OpenAI-compatible provider at a custom address is called at the route's own
	// path, even if its catalog row does not list the operation.
	Through bool
	// Media: a response that is not JSON is forwarded unchanged. Binary: every response is.
	Media, Binary bool
	// Meter reads the usage of a response, or of one event of its stream, on routes without a
	// Client; nil if responses report none.
	Meter    func(answer []byte) chat.Meter
	NoOutput bool // the operation has no output tokens (embeddings)
	// Local responds for providers that do not have the operation. The response must state that
	// it is not the provider's.
	Local func(body []byte) ([]byte, error)
	// Own: the gateway serves it itself if the request names the provider gateway, or no
	// provider.
	Own bool
	// Retold: the response was created for an earlier request. Output guardrails judge it like a
	// response to that. Nil: it is not judged.
	Retold   *Retold
	shadowed *Table // of the route of AnyPath: the routes that shadow it
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

// Retold describes an earlier response.
type Retold struct {
	Endpoint string             // type of its request
	Client   chat.TwoWayDialect // its dialect
}

// Get returns the text of a top-level field of the client's body, or of a field of its form; ""
// if it is absent or not a text.
type Get func(name string) string

// Demand holds the units that a request demands besides tokens.
type Demand struct {
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
