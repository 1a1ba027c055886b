package routes

import (
	"gateway/shared/dialect/live"
	"gateway/shared/relay/session"
)

// Handler serves the requests of a route, after authentication and after the body was read.
type Handler interface {
	Handle(Pipeline) error
}

// Pipeline holds the operations by which handlers serve a request. Package relay implements it.
type Pipeline interface {
	Model() error                   // calls a provider: the targets of the plan in turn
	List(*ModelList) error          // lists from the gateway's own data, or from a provider
	Render() error                  // responds with the body that a saved prompt renders
	Compose(*Composed) error        // composes a response from other requests
	Mint() error                    // responds with a client secret
	Rehearse(*DryRun) error         // responds with the effects that a request would have
	Call(Protocol) error            // serves a protocol that calls no model
	RunTools(*ToolRun) error        // calls tools for the model
	OpenSession() error             // opens a WebSocket on both sides
	AwaitOpening(*Live) error       // accepts a WebSocket that names the model in its first message
	Converse(turns *Dialogue) error // accepts a WebSocket with requests as messages
}

// Model is the handler of routes that name none.
type Model struct{}

// Handle implements Handler.
func (Model) Handle(p Pipeline) error { return p.Model() }

// ModelList lists from the gateway's own data, or a provider's list in the client's format if the
// request names a provider. On a path with a variable it responds with that model.
type ModelList struct {
	List func(*Caller) ([]byte, error)
}

// Handle implements Handler.
func (h *ModelList) Handle(p Pipeline) error { return p.List(h) }

// Secret responds with a client secret of the gateway; no provider is called.
type Secret struct{ Shape SecretShape }

// SecretShape is the form of a request for a client secret and of its response.
type SecretShape uint8

// The current form, and two of the beta interface.
const (
	ClientSecret SecretShape = iota + 1
	SessionSecret
	TranscriptionSecret
)

// Handle implements Handler.
func (Secret) Handle(p Pipeline) error { return p.Mint() }

// DryRun sends a request through the pipeline without calling a provider.
type DryRun struct {
	Of    []Route // of the requests that can be rehearsed
	table *Table  // of Of
}

// Handle implements Handler.
func (h *DryRun) Handle(p Pipeline) error { return p.Rehearse(h) }

// Find returns the route that a dry run rehearses and the value of its path's variable; nil if
// there is none.
func (h *DryRun) Find(method, path string) (*Route, string) {
	return h.table.Match(method, BasePath+path)
}

// Handle implements Handler.
func (h *Prompt) Handle(p Pipeline) error {
	if h.Render {
		return p.Render()
	}
	return p.Model()
}

// Handle implements Handler.
func (h *Composed) Handle(p Pipeline) error { return p.Compose(h) }

// Calls serves a protocol that calls no model. Bodies are not parsed as JSON before.
type Calls struct{ Protocol Protocol }

// Handle implements Handler.
func (h Calls) Handle(p Pipeline) error { return p.Call(h.Protocol) }

// Handle implements Handler.
func (h *ToolRun) Handle(p Pipeline) error { return p.RunTools(h) }

// Realtime becomes a WebSocket on both sides. Client secrets can open it as well.
type Realtime struct {
	Sockets session.Maker // creates its connections; nil if this process holds none
}

// Handle implements Handler.
func (h *Realtime) Handle(p Pipeline) error { return p.OpenSession() }

// Live is a WebSocket on both sides that names the model in its first message.
type Live struct {
	Sockets session.Maker
	Wire    func() live.Wire // reads the messages of one session
	opened  *session.Opened  // nil until the client has sent its first message
}

// Handle implements Handler.
func (h *Live) Handle(p Pipeline) error {
	if h.opened == nil {
		return p.AwaitOpening(h)
	}
	return p.OpenSession()
}

// Dialogue is a WebSocket that calls no provider itself: each message that requests a response
// is posted to another route.
type Dialogue struct {
	Sockets session.Maker
	Path    string // of the route that messages are posted to
	route   *Route
}

// Handle implements Handler.
func (h *Dialogue) Handle(p Pipeline) error { return p.Converse(h) }

// Turn returns the route that messages are posted to.
func (h *Dialogue) Turn() *Route { return h.route }

// Handle serves a request with the handler of the route.
func (rt *Route) Handle(p Pipeline) error {
	if rt.Handler == nil {
		return p.Model()
	}
	return rt.Handler.Handle(p)
}

// handlerOf returns the handler of the route if it has the type T.
func handlerOf[T any](rt *Route) T {
	h, _ := rt.Handler.(T)
	return h
}

// Protocol returns the protocol of a route that calls no model; nil on other routes.
func (rt *Route) Protocol() Protocol { return handlerOf[Calls](rt).Protocol }

// Prompt returns the handler of a route of saved prompts; nil on other routes.
func (rt *Route) Prompt() *Prompt { return handlerOf[*Prompt](rt) }

// Mints returns the format of the route's client secrets; zero on other routes.
func (rt *Route) Mints() SecretShape { return handlerOf[Secret](rt).Shape }

// TakesSecrets reports whether client secrets open the route.
func (rt *Route) TakesSecrets() bool { return handlerOf[*Realtime](rt) != nil }

// Converses reports whether the messages of a WebSocket are separate requests.
func (rt *Route) Converses() bool { return handlerOf[*Dialogue](rt) != nil }

// Live returns the handler of a route that names the model in its first message; nil on other
// routes.
func (rt *Route) Live() *Live { return handlerOf[*Live](rt) }

// Sockets returns the maker of WebSocket connections; nil on other routes, and if this process
// holds no connections.
func (rt *Route) Sockets() session.Maker {
	switch h := rt.Handler.(type) {
	case *Realtime:
		return h.Sockets
	case *Live:
		return h.Sockets
	case *Dialogue:
		return h.Sockets
	}
	return nil
}

// WithoutSockets returns the route for a process that holds no connections.
func (rt Route) WithoutSockets() Route {
	switch h := rt.Handler.(type) {
	case *Realtime:
		rt.Handler = new(Realtime)
	case *Live:
		rt.Handler = &Live{Wire: h.Wire}
	case *Dialogue:
		rt.Handler = &Dialogue{Path: h.Path, route: h.route}
	}
	return rt
}

// With returns the route of a session after its first message has arrived.
func (rt *Route) With(o *session.Opened, sockets session.Maker) *Route {
	own := *rt
	own.Handler, own.Errors = &Live{Sockets: sockets, Wire: rt.Live().Wire, opened: o}, nil // the wire writes rejections
	return &own
}

// Opened returns the session that has been opened; nil if the client has not sent its first message.
func (rt *Route) Opened() *session.Opened {
	if h := rt.Live(); h != nil {
		return h.opened
	}
	return nil
}
