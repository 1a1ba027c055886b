package gate

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/bearer"
	"gateway/shared/identity/signing"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/cors"
	"gateway/shared/mcp/oauthclient"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/wire/release"
)

// Options are the settings of an installation.
type Options struct {
	// Timeout is how long a server may be silent. The default is one minute.
	Timeout time.Duration
	// Pages are the web origins that may call.
	Pages cors.Pages
	// Public is the gateway's public address. If empty, the address of the request is used.
	Public string
	// MaxResult is the size limit of a buffered response (Lambda) in bytes.
	MaxResult int
}

// Host serves the servers of all workspaces. It is safe for concurrent use.
type Host struct {
	Options
	once   sync.Once
	opener *mcp.Opener
	tokens *oauthclient.Tokens
	proofs *bearer.Checker
	minter *signing.Minter
	mu     sync.Mutex
	peers  map[peerKey]*peer
	rules  map[string]*bearer.Rules // by fingerprint
	// running maps runningKey to the cancel functions of requests.
	running sync.Map
	// questions maps runningKey to the channels that receive the input of clients with
	// sessions.
	questions sync.Map
	pending   pendingCalls
	settings  settings
}

// New returns a Host.
func New(o Options) *Host {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return &Host{Options: o, peers: map[peerKey]*peer{}, rules: map[string]*bearer.Rules{}}
}

// Call is a request of an authenticated client.
type Call struct {
	Context   context.Context
	Request   *http.Request
	Path      string // escaped path below mcp.PathPrefix
	Body      []byte
	Caller    *identity.Principal
	View      *resource.View
	TraceID   string
	Bearer    bool
	Now       func() time.Time
	Transport http.RoundTripper
	Hosts     http.RoundTripper // transport to the servers themselves; Transport if nil
	Sealer    seal.Sealer
	Secrets   *provider.Loaded
	Usage     store.Table // mutable data: the tokens of users at servers
	Signing   *signing.Keys
	Buffered  bool // responses are buffered: no streams and no state between requests
	Pipeline  Pipeline
}

// Pipeline counts, guards and records requests. It must not retain bodies and events. See
// relay/routes.
type Pipeline interface {
	Reauthenticate() (*identity.Principal, *resource.View, error)
	Forwards() http.Header
	Count(server, tool string) error
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	Judge(result []byte) (out []byte, denied bool)
	JudgeMessage(name string, message []byte, ofClient bool) (out []byte, denied bool, err error)
	RecordCall(server, integration, name string, call *usage.Call)
	StartResponse()
	Ended(status int)
	RecordSizes(up, down int)
	Send(status int, media string, body []byte, failure *fault.Fault)
	Event(event []byte, last bool, failure *fault.Fault)
	Header() http.Header
	Trace(within string) string
}

// requestState is one request of a client and the state of its response.
type requestState struct {
	call           *Call
	host           *Host
	facts          *authz.Facts
	record         usage.Call
	req            *protocolversion.Request
	streaming      bool // the response stream has begun
	urlElicitation bool // the client supports URL elicitation
	trace          string
	token          *verifiedToken
	// scopes are those that the server requires and that were not requested at the user's
	// sign-in.
	scopes []string
}

// Serve serves a request.
func (h *Host) Serve(c *Call) {
	h.once.Do(func() {
		h.opener = &mcp.Opener{Sealer: c.Sealer, Transport: c.Transport, Hosts: c.Hosts, Secrets: c.Secrets, Now: c.Now, CacheRecords: true}
		h.tokens = &oauthclient.Tokens{Table: c.Usage, Sealer: c.Sealer, Transport: c.Transport, Now: c.Now}
		h.proofs = bearer.NewChecker(c.Now)
		h.minter = &signing.Minter{Keys: c.Signing, Now: c.Now}
	})
	v := new(requestState)
	v.call, v.host, v.record = c, h, usage.Call{Protocol: "mcp", Auth: "api_key", Method: c.Request.Method, Gateway: release.Version, Scope: oauthserver.HeldScopes(c.Caller, authz.Invoke)}
	if c.Bearer {
		v.record.Auth = "Bearer"
	}
	if err := serve(v); err != nil {
		parseRejected(v)
		sendFailure(v, err)
	}
}

// parseRejected reads the id and method of a rejected message for the response and the record.
func parseRejected(v *requestState) {
	if v.req != nil || v.call.Request.Method != http.MethodPost {
		return
	}
	v.req, _ = protocolversion.Read(v.call.Request.Header, v.call.Body) // its faults are not the reason for the rejection
	if v.record.Version = v.req.Version; v.req.Method != "" {
		v.record.Method = v.req.Method
	}
	if updateRecord(v, v.req.Name()); v.facts == nil {
		v.call.Pipeline.RecordCall("", "", v.record.Method, &v.record)
	}
}

func serve(v *requestState) error {
	if !v.host.Pages.Allows(v.call.Request) {
		v.record.Decision = "origin"
		return fault.New(fault.NotAllowed, "origin", "Pages of this origin may not call MCP servers here")
	}
	slug, err := serverSlug(v)
	if err == nil {
		v.facts, err = authz.Load(v.call.Context, v.call.View, v.call.Caller, slug)
	}
	if err != nil {
		if fault.From(err).Status() < http.StatusInternalServerError {
			v.record.Decision = authz.NoServer
		}
		return err
	}
	v.record.Server = v.facts.Server.Record.ID
	v.record.Decision = v.facts.Decide(authz.Capability{})
	updateRecord(v, "")
	// Tokens are checked only for callers with access to the server. Whether the user has
	// access is reported only after a valid token.
	if v.record.Decision != authz.Allowed && v.record.Decision != authz.NoUser {
		return accessError(v.record.Decision)
	}
	if v.facts.Server.Virtual() {
		if v.record.Decision == authz.Allowed && v.call.Request.Method != http.MethodPost {
			return methodNotAllowed(v, "POST") // a virtual server sends no notifications and has no session to end
		}
	} else if ok, err := verifyToken(v); !ok || err != nil {
		return err
	}
	if v.record.Decision != authz.Allowed {
		return accessError(v.record.Decision)
	}
	v.trace = v.call.Pipeline.Trace("")
	switch v.call.Request.Method {
	case http.MethodGet:
		return serveGet(v)
	case http.MethodDelete:
		return endSession(v)
	}
	return servePost(v)
}

// updateRecord records the names of the capability and the server.
func updateRecord(v *requestState, name string) {
	if v.record.Name = name; v.facts == nil {
		return
	}
	shown := name
	if shown == "" {
		shown = v.record.Method
	}
	v.call.Pipeline.RecordCall(v.facts.Server.Record.Slug, v.facts.Server.IntegrationID, shown, &v.record)
}

// accessError returns the fault for a caller without access to a server.
func accessError(decision string) error {
	switch decision {
	case authz.NoServer, authz.NoAccess:
		return fault.New(fault.NotAllowed, "", "This MCP server is not active in the workspace")
	case authz.NoUser:
		return fault.New(fault.NotAllowed, "", "This user has no access to the MCP server")
	}
	return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", authz.Invoke)
}

// serverSlug returns the slug in the path: /{server}/mcp or /{workspace}/{server}/mcp.
func serverSlug(v *requestState) (slug string, err error) {
	parts := strings.Split(strings.Trim(v.call.Path, "/"), "/")
	for i, p := range parts {
		if parts[i], err = url.PathUnescape(p); err != nil {
			return "", authz.Missing()
		}
	}
	switch {
	case len(parts) == 2:
		return parts[0], nil
	case len(parts) == 3 && (parts[0] == v.call.Caller.WorkspaceSlug || parts[0] == v.call.Caller.Scope.Workspace):
		return parts[1], nil
	}
	return "", fault.New(fault.NotAllowed, "", "This API key belongs to another workspace than the address")
}

// servePost serves a message.
func servePost(v *requestState) error {
	req, refused := protocolversion.Read(v.call.Request.Header, v.call.Body)
	v.req = req
	if req.Method != "" {
		v.record.Method = req.Method
	}
	v.record.Version = req.Version
	v.trace = v.call.Pipeline.Trace(req.Traceparent())
	updateRecord(v, req.Name())
	if refused != nil {
		reject(v, refused)
		return nil
	}
	if err := checkTokenScope(v); err != nil {
		return err
	}
	if v.facts.Server.Virtual() {
		return serveVirtual(v)
	}
	if req.Kind == protocolversion.Stateless {
		return serveStateless(v)
	}
	return serveSession(v)
}

// checkTokenScope checks the scopes of an access token. Scopes of keys were checked before.
func checkTokenScope(v *requestState) error {
	who := v.call.Caller
	need := oauthserver.Read
	switch v.req.Method {
	case "initialize", "server/discover", "ping", "":
		return nil
	case "tools/call":
		need = oauthserver.Write
	}
	if who.Audience == "" || who.Has(oauthserver.All) || who.Has(identity.NormalScope(need)) || v.req.IsNotification() {
		return nil
	}
	v.record.Decision = authz.NoScope
	return fault.Newf(fault.InsufficientScope, "authorization", "The access token lacks the scope %s", need)
}

// principal identifies the caller in sealed values and cache keys.
func principal(v *requestState) string {
	if v.token != nil {
		return callerName(v) + "/" + v.token.subject
	}
	return callerName(v)
}

// callerName is the user, or the key if others than its user may know it: they share no sealed
// values and no cached results with the user.
func callerName(v *requestState) string {
	who := v.call.Caller
	user, err := actingUser(v)
	if err != nil {
		user = ""
	}
	for _, id := range []string{user, who.EndUser} {
		if id != "" {
			return string(who.Type) + ":" + id
		}
	}
	return string(who.Type) + ":" + who.KeyID
}
