package routes

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/dialect/live"
	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/session"
	"gateway/shared/resource"
	"gateway/shared/store"
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
	ServeDryRun(*DryRun) error      // responds with the effects that a request would have
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
type Secret struct{ Format SecretFormat }

// SecretFormat is the form of a request for a client secret and of its response.
type SecretFormat uint8

// The current form, and two of the beta interface.
const (
	ClientSecret SecretFormat = iota + 1
	SessionSecret
	TranscriptionSecret
)

// Handle implements Handler.
func (Secret) Handle(p Pipeline) error { return p.Mint() }

// DryRun sends a request through the pipeline without calling a provider.
type DryRun struct {
	Routes []Route // of the requests that can be rehearsed
	table  *Table  // of Of
}

// Handle implements Handler.
func (h *DryRun) Handle(p Pipeline) error { return p.ServeDryRun(h) }

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
	Sockets session.Sockets // creates its connections; nil if this process holds none
}

// Handle implements Handler.
func (h *Realtime) Handle(p Pipeline) error { return p.OpenSession() }

// Live is a WebSocket on both sides that names the model in its first message.
type Live struct {
	Sockets session.Sockets
	Wire    func() live.Wire    // reads the messages of one session
	opened  *session.ClientConn // nil until the client has sent its first message
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
	Sockets session.Sockets
	Path    string // of the route that messages are posted to
	route   *Route
}

// linked returns a copy with the route that messages are posted to, from those of its path.
func (h *Dialogue) linked(at []*Route) *Dialogue {
	post := slices.IndexFunc(at, func(rt *Route) bool { return rt.Method == http.MethodPost })
	if post < 0 {
		panic("relay: no route for messages at " + h.Path)
	}
	return &Dialogue{Sockets: h.Sockets, Path: h.Path, route: at[post]}
}

// Handle implements Handler.
func (h *Dialogue) Handle(p Pipeline) error { return p.Converse(h) }

// ResponsesRoute returns the route that messages are posted to.
func (h *Dialogue) ResponsesRoute() *Route { return h.route }

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

// SecretFormat returns the format of the route's client secrets; zero on other routes.
func (rt *Route) SecretFormat() SecretFormat { return handlerOf[Secret](rt).Format }

// TakesSecrets reports whether client secrets open the route.
func (rt *Route) TakesSecrets() bool { return handlerOf[*Realtime](rt) != nil }

// Converses reports whether the messages of a WebSocket are separate requests.
func (rt *Route) Converses() bool { return handlerOf[*Dialogue](rt) != nil }

// Live returns the handler of a route that names the model in its first message; nil on other
// routes.
func (rt *Route) Live() *Live { return handlerOf[*Live](rt) }

// Sockets returns the maker of WebSocket connections; nil on other routes, and if this process
// holds no connections.
func (rt *Route) Sockets() session.Sockets {
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

// WithConn returns the route of a session after its first message has arrived.
func (rt *Route) WithConn(o *session.ClientConn, sockets session.Sockets) *Route {
	own := *rt
	own.Handler, own.Errors = &Live{Sockets: sockets, Wire: rt.Live().Wire, opened: o}, nil // the wire writes rejections
	return &own
}

// ClientConn returns the session that has been opened; nil if the client has not sent its first message.
func (rt *Route) ClientConn() *session.ClientConn {
	if h := rt.Live(); h != nil {
		return h.opened
	}
	return nil
}

// Prompt renders the requests on a route of saved prompts. The request's body contains
// variables; the prompt that its path names renders the body for the provider. From then on the
// request is one of the route for the template's type.
type Prompt struct {
	Chat, Completion *Route
	// Render: the rendered body is the response, and no provider is called.
	Render bool
}

// Counterpart returns the gateway's own route for a passed-through POST: that of the same path without
// its version, such as /v1/responses. The response is metered as it would be there. It returns
// nil if there is none.
func (rt *Route) Counterpart(path string) *Route {
	if rt.shadowed == nil {
		return nil
	}
	path = belowVersion(path)
	for _, rt := range rt.shadowed.exact[path] {
		if rt.Method == http.MethodPost && (rt.Client != nil || rt.Meter != nil || rt.UnitsOf != nil) {
			return rt
		}
	}
	return nil
}

// belowVersion returns a path without its version, and without the vendor's name below which
// hosts with several dialects serve those of OpenAI and Anthropic.
func belowVersion(path string) string {
	first, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch second, below, more := strings.Cut(rest, "/"); {
	case ok && more && (first == "openai" || first == "anthropic") && isVersion(second),
		ok && more && second == "openai" && (isVersion(first) || first == "v1beta"):
		return "/" + below
	case ok && isVersion(first):
		return "/" + rest
	}
	return path
}

// isVersion knows v1, v2 and so on.
func isVersion(s string) bool {
	return len(s) == 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// Composed is a route with a response composed from the responses to other requests. They count
// as sent by its caller: each is admitted, limited, guarded, charged and logged separately.
type Composed struct {
	Inner *Route // of the other requests
	Serve func(*Composition) ([]byte, error)
}

// Composition holds the request and the operations of such a route.
type Composition struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Store   store.Store
	Now     func() time.Time
	ID      string // the variable of the route's path
	Body    []byte // of the request; it must not be retained
	// Send sends a request through the pipeline as the caller's own, with the caller's headers
	// that affect how requests are served. id is the variable of its path. The response was
	// truncated if broken is true.
	Send func(ctx context.Context, w http.ResponseWriter, id string, body []byte) (broken bool)
	// Guard reports whether a saved guardrail passes on a response, or without one on the
	// request.
	Guard func(ctx context.Context, name, endpoint string, request, response []byte) (passes bool, err error)
}

// At returns the path of the route with the given value of its variable.
func (rt *Route) At(id string) string {
	before, rest, _ := strings.Cut(rt.Path, "{")
	_, after, _ := strings.Cut(rest, "}")
	return before + url.PathEscape(id) + after
}

// nativePath is the path of a native route: the model is between both ends.
type nativePath struct {
	before, behind string
	route          *Route
}

// nameNative prepares the native routes of the route of AnyPath.
func (rt *Route) nameNative() {
	rt.Native, rt.native = slices.Clone(rt.Native), nil
	for i := range rt.Native {
		own := &rt.Native[i]
		own.passed = rt
		before, behind, _ := strings.Cut(own.Path, "{model+}")
		own.InPath = before != own.Path
		rt.native = append(rt.native, nativePath{before, behind, own})
	}
}

// nativeAt returns the native route of a path below BasePath, and the model in it.
func (rt *Route) nativeAt(method, below string) (own *Route, model string) {
	if method != http.MethodPost {
		return nil, ""
	}
	for i := range rt.native {
		n := &rt.native[i]
		switch rest, ok := strings.CutPrefix(below, n.before); {
		case !ok:
		case !n.route.InPath:
			if rest == "" {
				return n.route, ""
			}
		default:
			if model, ok := strings.CutSuffix(rest, n.behind); ok && model != "" {
				return n.route, model
			}
		}
	}
	return nil, ""
}

// Passed returns the route by which a request of a native route is forwarded unchanged; nil for
// other routes.
func (rt *Route) Passed() *Route { return rt.passed }

// ToolRun serves conversations in which the gateway itself calls the tools of MCP servers for
// the model. The response is composed from those to other requests, which count as sent by the
// caller: each turn of the model is a request to the route itself, each list and call of tools
// one to Calls. Each is admitted, limited, guarded, charged and logged separately.
type ToolRun struct {
	Calls *Route // by the slug of the server
	// Matches reports whether a request is one of these.
	Matches func(h http.Header, body []byte) bool
	Serve   func(*ToolLoop) error
}

// ToolLoop holds the request and the operations of such a run.
type ToolLoop struct {
	Context context.Context // ends when the client disconnects
	Body    []byte          // of the request; it must not be retained
	ID      string          // of the request
	Now     func() time.Time
	// Approvals are the workspace's approval requests for tool calls.
	Approvals *approval.Requests
	// SendTurn sends a body through the pipeline as the caller's own request for a turn of the model.
	// The response was truncated if broken is true.
	SendTurn func(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool)
	// Call sends a message to a server in the same way. It is safe for concurrent use.
	Call func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) (broken bool)
	// Judge has guardrails judge the result of a tool, an MCP object, and returns it as they
	// changed it. Nil: none judges results. It is safe for concurrent use.
	Judge func(ctx context.Context, tool string, result []byte) (now []byte, denied *fault.Fault)
	// Header returns the headers of the response, until it has started.
	Header func() http.Header
	// Send sends the response. failure is the reason if it is not a success; nil if it is.
	Send func(status int, media string, body []byte, failure *fault.Fault)
	// Event sends one event of a stream, which it starts; the last one ends it.
	Event func(event []byte, last bool, failure *fault.Fault)
	// Sign is a keep-alive that clients of a stream ignore; nil: there is none.
	Sign []byte
	// StreamError returns the bytes that end a stream of a response with an id, in the format of
	// the route. next is the number of its first event.
	StreamError func(f *fault.Fault, next int64, id string) []byte
}
