package relay

import (
	"gateway/shared/chat"
	"gateway/shared/provider"
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
)

// Route is one data-plane route: what a family declares.
type Route struct {
	Method   string   // one method, or
	Methods  []string // several, for the route of AnyPath
	Path     string   // below the base URL, e.g. /chat/completions
	Endpoint string   // request type in logs, limits and guardrails: chatComplete, embed, proxy, ...
	Shape    Shape
	Scope    string   // scope that the key must hold, or
	OrScopes []string // one of these
	MaxBody  int64    // bytes; 0: DefaultMaxBody

	// Client is the dialect that the caller speaks; nil on routes that are not
	// conversations.
	Client chat.Dialect
	// Operation is the provider's operation that serves the route.
	Operation provider.Operation
	// Check tests a body's bounds on Unified routes without a Client.
	Check func(body []byte) error
	// Meter reads the usage of an answer on Unified routes without a Client.
	Meter    func(answer []byte) chat.Meter
	NoOutput bool // the operation makes no output tokens (embeddings)
	Free     bool // providers charge nothing for it: budgets are not asked
	// Local answers for providers that do not have the operation. It must say that
	// it is not the provider who speaks.
	Local func(body []byte) ([]byte, error)
	// List makes the answer of a Listing route.
	List func(c *Caller) ([]byte, error)
}

// Bounds of bodies, in bytes.
const (
	DefaultMaxBody = 20 << 20
)

// Output bounds that a reservation assumes when the request states none.
const defaultReserveOutput = 4096
