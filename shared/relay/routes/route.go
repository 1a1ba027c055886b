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

// Shape is how a route treats bodies.
type Shape uint8

const (
	// Unified routes have a JSON body that is checked, and translated where the
	// provider speaks another dialect.
	Unified Shape = iota + 1
	// Raw routes pass path, query, body and answer through byte for byte.
	Raw
	// Listing routes answer from the gateway's own books, or with a provider's
	// list in the OpenAI shape when the request names a provider.
	Listing
	// Resource routes act on what a provider keeps. No body is sent; the answer is
	// the provider's.
	Resource
	// Multipart routes have a multipart/form-data body. Long ones are streamed
	// through.
	Multipart
	// Socket routes become a WebSocket on both sides.
	Socket
)

// Route is one data-plane route: what a family declares.
type Route struct {
	Method   string   // one method, or
	Methods  []string // several, for the route of AnyPath
	Path     string   // below the base URL, e.g. /chat/completions or /files/{id}
	Name     string   // in the document, where several routes have one Endpoint
	Endpoint string   // request type in logs, limits and guardrails: chatComplete, embed, proxy, ...
	Shape    Shape
	Scope    string   // scope that the key must hold, or
	OrScopes []string // one of these
	MaxBody  int64    // bytes; 0: DefaultMaxBody

	// Client is the dialect that the caller speaks; nil on routes that are not
	// conversations.
	Client chat.Spoken
	// Errors writes the errors of a route without a Client, for clients that do not
	// read OpenAI's shape; nil: OpenAI's.
	Errors chat.ErrorWriter
	// Verbatim: errors of a provider that speaks the client's shape are sent byte for
	// byte, since clients read their wording; the gateway's code is a header.
	Verbatim bool
	// Operation is the provider's operation that serves the route.
	Operation provider.Operation
	// Check tests a body's bounds on Unified routes without a Client; CheckForm
	// those of the fields that were read on Multipart routes.
	Check     func(body []byte) error
	CheckForm func(Form) error
	// Demand says what of a request its price depends on besides tokens, on
	// routes without a Client. With it nothing is estimated from the body's length.
	Demand func(get Get, bytes int64) Demand
	// DefaultModel is used for requests that name no model.
	DefaultModel string
	NoModel      bool // the request is about no model, or
	AnyModel     bool // about models that the gateway cannot see: not for providers with a list of models
	Free         bool // providers charge nothing for it: budgets are not asked
	// Through: where a provider of OpenAI's shape has an address of its own, it is called
	// at the route's own path, even if its row of the catalogue does not list the
	// operation.
	Through bool
	// Media: an answer that is not JSON is passed on as it comes. Binary: every
	// answer is.
	Media, Binary bool
	// Meter reads the usage of an answer, or of one event of its stream, on routes
	// without a Client; nil when answers report none.
	Meter    func(answer []byte) chat.Meter
	NoOutput bool // the operation makes no output tokens (embeddings)
	// Local answers for providers that do not have the operation. It must say that
	// it is not the provider who speaks.
	Local func(body []byte) ([]byte, error)
	// Own: the gateway does it itself when asked for the provider named gateway, or
	// when nothing names a provider.
	Own bool
	// Retold: the answer is one that was made for an earlier request. Guardrails behind
	// answers judge it as they judge those. Nil: nothing of it is judged.
	Retold   *Retold
	shadowed *Table // of the route of AnyPath: the routes that it reaches past
	// Handler serves the requests; nil: Model.
	Handler Handler
	// Native are, for the route of AnyPath, the conversations of clients that speak a
	// provider's own shape. A target that speaks the shape gets the request as it came, by
	// the route of AnyPath; other targets get it translated. {model+} in a path also
	// matches slashes.
	Native  []Route
	native  []nativePath
	passed  *Route // of a native route: that of AnyPath
	InPath  bool   // the path names the model, not the body, and says whether
	Streams bool   // the answer is a stream
}

// Retold is what an answer that was made before is.
type Retold struct {
	Endpoint string      // request type that it answers
	Client   chat.Spoken // whose shape it has
}

// Get gives the text of a top-level member of the client's body, or of a field of
// its form; "" when it is not there or no text.
type Get func(name string) string

// Demand is what a request asks for besides tokens.
type Demand struct {
	Quality, Size string        // of images
	Mode          string        // of the price: batch; "" is standard
	Pixels        int64         // of one image; zero if the request does not state its size
	Steps         int64         // inference steps of an image; zero if the request states none
	Most          pricing.Usage // the most units, besides the tokens of the body, that it may use
	Assumed       pricing.Usage // what it is charged for when the answer reports nothing
}

// Bounds of bodies, in bytes.
const (
	DefaultMaxBody = 20 << 20
)

// Output bounds that a reservation assumes when the request states none.
const DefaultReserveOutput = 4096

// Caller is what a Listing route knows of its request.
type Caller struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Query   url.Values
	Slugs   []string // saved providers that the request's route is limited to; nil: all
	// Anthropic: the client reads the list in Anthropic's shape.
	Anthropic bool
}

// Form is what a route's check may look at: the fields that were read.
type Form = *form.Form

// BodyLimit is the most bytes that a body may have.
func (rt *Route) BodyLimit() int64 {
	if rt.MaxBody > 0 {
		return rt.MaxBody
	}
	return DefaultMaxBody
}
