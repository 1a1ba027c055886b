package routes

import (
	"gateway/shared/dialect/live"
	"gateway/shared/relay/ephemeral"
	"gateway/shared/relay/session"
)

// Handler serves the requests of a route, once their caller is known and their body was read.
type Handler interface {
	Handle(Pipeline) error
}

// Pipeline is what handlers serve a request with. Package relay implements it.
type Pipeline interface {
	Model() error                   // calls a provider: the targets of the plan in turn
	List(*ModelList) error          // lists from the gateway's own data, or from a provider
	Render() error                  // responds with the body that a saved prompt makes
	Compose(*Composed) error        // responds with what is made of other requests
	Mint() error                    // responds with a client secret
	Rehearse(*DryRun) error         // responds with what a request would do
	Call(Protocol) error            // has a protocol respond that calls no model
	RunTools(*ToolRun) error        // has the gateway call tools for the model
	OpenSession() error             // opens a WebSocket on both sides
	AwaitOpening(*Live) error       // accepts a WebSocket whose first message names the model
	Converse(turns *Dialogue) error // accepts a WebSocket whose messages are requests
}

// Model is the handler of routes that name none.
type Model struct{}

// Handle implements Handler.
func (Model) Handle(p Pipeline) error { return p.Model() }

// ModelList lists from the gateway's own data, or a provider's list in OpenAI's format if the
// request names a provider.
type ModelList struct {
	List func(*Caller) ([]byte, error)
}

// Handle implements Handler.
func (h *ModelList) Handle(p Pipeline) error { return p.List(h) }

// Secret responds with a client secret of the gateway; no provider is called.
type Secret struct{ Shape ephemeral.Shape }

// Handle implements Handler.
func (Secret) Handle(p Pipeline) error { return p.Mint() }

// DryRun takes a request through the pipeline without sending anything.
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

// Calls has a protocol respond that calls no model. Bodies are not read as JSON before.
type Calls struct{ Protocol Protocol }

// Handle implements Handler.
func (h Calls) Handle(p Pipeline) error { return p.Call(h.Protocol) }

// Handle implements Handler.
func (h *ToolRun) Handle(p Pipeline) error { return p.RunTools(h) }

// Realtime becomes a WebSocket on both sides. Client secrets open it, too.
type Realtime struct {
	Sockets session.Maker // makes its connections; nil if this process holds none
}

// Handle implements Handler.
func (h *Realtime) Handle(p Pipeline) error { return p.OpenSession() }

// Live is a WebSocket on both sides whose first message names the model.
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

// Dialogue is a WebSocket that calls no provider itself: each message that asks for a response is
// posted to another route.
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

// Protocol returns what responds on a route that calls no model; nil on other routes.
func (rt *Route) Protocol() Protocol { return handlerOf[Calls](rt).Protocol }

// Prompt returns what a route of saved prompts makes of a request; nil on other routes.
func (rt *Route) Prompt() *Prompt { return handlerOf[*Prompt](rt) }

// Mints returns the format of the client secrets that the route makes; zero on other routes.
func (rt *Route) Mints() ephemeral.Shape { return handlerOf[Secret](rt).Shape }

// TakesSecrets reports whether client secrets open the route.
func (rt *Route) TakesSecrets() bool { return handlerOf[*Realtime](rt) != nil }

// Converses reports whether the messages of a WebSocket are requests of their own.
func (rt *Route) Converses() bool { return handlerOf[*Dialogue](rt) != nil }

// Live returns the handler of a route whose first message names the model; nil on other routes.
func (rt *Route) Live() *Live { return handlerOf[*Live](rt) }

// Sockets makes the connections of a WebSocket; nil on other routes, and if this process holds
// no connections.
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

// WithoutSockets returns the route as a process serves it that holds no connections.
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

// With returns the route of a session whose first message has arrived.
func (rt *Route) With(o *session.Opened, sockets session.Maker) *Route {
	own := *rt
	own.Handler, own.Errors = &Live{Sockets: sockets, Wire: rt.Live().Wire, opened: o}, nil // what is rejected is written by the wire
	return &own
}

// Opened returns the session that has been opened; nil if the client has not sent its first message.
func (rt *Route) Opened() *session.Opened {
	if h := rt.Live(); h != nil {
		return h.opened
	}
	return nil
}
