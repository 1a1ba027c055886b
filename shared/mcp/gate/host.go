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

// Options are what installations differ in.
type Options struct {
	// Timeout is how long a server may be silent; 0: a minute.
	Timeout time.Duration
	// Pages are the web pages that may call.
	Pages cors.Pages
	// Public is the address that clients reach the gateway at; "": where the request went.
	Public string
	// MaxResult bounds a result where answers are buffered (Lambda), in bytes.
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
	rules  map[string]*bearer.Rules // by what they say
	// running has the cancel functions of requests, by runningKey.
	running sync.Map
	// questions has channels for the answers of clients with sessions, by runningKey.
	questions sync.Map
	held      shelf
	settings  settings
}

// New makes a Host.
func New(o Options) *Host {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return &Host{Options: o, peers: map[peerKey]*peer{}, rules: map[string]*bearer.Rules{}}
}

// Call is a request of a client whose caller is known.
type Call struct {
	Context  context.Context
	Request  *http.Request
	Path     string // behind the address that all servers stand below, escaped
	Body     []byte
	Caller   *identity.Principal
	View     *resource.View
	TraceID  string
	Bearer   bool
	Now      func() time.Time
	Via      http.RoundTripper
	Hosts    http.RoundTripper // to the servers themselves; nil: Via
	Sealer   seal.Sealer
	Secrets  *provider.Loaded
	Kept     store.Table // of what changes with use: tokens of users at servers
	Signing  *signing.Keys
	Buffered bool // the process keeps nothing between requests, and holds no stream open
	Walk
}

// Walk counts, guards and records; see relay/routes. Nothing of the bodies and events that
// it is given is kept when it returns.
type Walk interface {
	Still() (*identity.Principal, *resource.View, error)
	Forwards() http.Header
	Count(server, tool string) error
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	Judge(result []byte) (out []byte, denied bool)
	Note(server, integration, name string, call *usage.Call)
	Began()
	Ended(status int)
	Used(up, down int)
	Send(status int, media string, body []byte, failure *fault.Fault)
	Event(event []byte, last bool, failure *fault.Fault)
	Header() http.Header
	Trace(within string) string
}

// visit is one request, what is known of it, and what the client is sent. Its steps are
// functions in the files of their topics.
type visit struct {
	call  *Call
	host  *Host
	facts *authz.Facts
	note  usage.Call
	req   *protocolversion.Request
	began bool // the stream has
	opens bool // the client can send its user to an address
	trace string
	proof *proof
	// scopes are what the server wants of its user besides what was asked for.
	scopes []string
}

// Serve answers a request.
func (h *Host) Serve(c *Call) {
	h.once.Do(func() {
		h.opener = &mcp.Opener{Sealer: c.Sealer, Via: c.Via, Hosts: c.Hosts, Secrets: c.Secrets, Now: c.Now, Keeps: true}
		h.tokens = &oauthclient.Tokens{Table: c.Kept, Sealer: c.Sealer, Via: c.Via, Now: c.Now}
		h.proofs = bearer.NewChecker(c.Now)
		h.minter = &signing.Minter{Keys: c.Signing, Now: c.Now}
	})
	v := new(visit)
	v.call, v.host, v.note = c, h, usage.Call{Protocol: "mcp", Auth: "api_key", Method: c.Request.Method, Gateway: release.Version, Scope: oauthserver.Under(c.Caller, authz.Invoke)}
	if c.Bearer {
		v.note.Auth = "Bearer"
	}
	if err := serve(v); err != nil {
		unread(v)
		fail(v, err)
	}
}

// unread reads the id and method of a message that is refused, so that the answer has its
// id and the record says what was asked for.
func unread(v *visit) {
	if v.req != nil || v.call.Request.Method != http.MethodPost {
		return
	}
	v.req, _ = protocolversion.Read(v.call.Request.Header, v.call.Body) // its own faults are not why it is refused
	if v.note.Version = v.req.Version; v.req.Method != "" {
		v.note.Method = v.req.Method
	}
	if noted(v, v.req.Name()); v.facts == nil {
		v.call.Note("", "", v.note.Method, &v.note)
	}
}

func serve(v *visit) error {
	if !v.host.Pages.Welcomes(v.call.Request) {
		v.note.Decision = "origin"
		return fault.New(fault.NotAllowed, "origin", "Pages of this origin may not call MCP servers here")
	}
	slug, err := place(v)
	if err == nil {
		v.facts, err = authz.Load(v.call.Context, v.call.View, v.call.Caller, slug)
	}
	if err != nil {
		if fault.From(err).Status() < http.StatusInternalServerError {
			v.note.Decision = authz.NoServer
		}
		return err
	}
	v.note.Server = v.facts.Server.Record.ID
	v.note.Decision = v.facts.Decide(authz.Capability{})
	noted(v, "")
	// A caller who may not reach the server at all has no token checked. Only a caller
	// whose token is valid learns whether the user may use it.
	if v.note.Decision != authz.Allowed && v.note.Decision != authz.NoUser {
		return denied(v.note.Decision)
	}
	if v.facts.Server.Virtual() {
		if v.note.Decision == authz.Allowed && v.call.Request.Method != http.MethodPost {
			return only(v, "POST") // it says nothing by itself, and keeps nothing that could end
		}
	} else if ok, err := proven(v); !ok || err != nil {
		return err
	}
	if v.note.Decision != authz.Allowed {
		return denied(v.note.Decision)
	}
	v.trace = v.call.Trace("")
	switch v.call.Request.Method {
	case http.MethodGet:
		return listen(v)
	case http.MethodDelete:
		return endSession(v)
	}
	return post(v)
}

// noted puts into the record what is known.
func noted(v *visit, name string) {
	if v.note.Name = name; v.facts == nil {
		return
	}
	shown := name
	if shown == "" {
		shown = v.note.Method
	}
	v.call.Note(v.facts.Server.Record.Slug, v.facts.Server.IntegrationID, shown, &v.note)
}

// denied is the error for a caller that may not use a server.
func denied(decision string) error {
	switch decision {
	case authz.NoServer, authz.NoAccess:
		return fault.New(fault.NotAllowed, "", "This MCP server is not active in the workspace")
	case authz.NoUser:
		return fault.New(fault.NotAllowed, "", "This user has no access to the MCP server")
	}
	return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", authz.Invoke)
}

// place is the slug that the path names: /{server}/mcp or /{workspace}/{server}/mcp.
func place(v *visit) (slug string, err error) {
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
	return "", fault.New(fault.NotAllowed, "", "This API key is of another workspace than the address")
}

// post answers a message.
func post(v *visit) error {
	req, refused := protocolversion.Read(v.call.Request.Header, v.call.Body)
	v.req = req
	if req.Method != "" {
		v.note.Method = req.Method
	}
	v.note.Version = req.Version
	v.trace = v.call.Trace(req.Traceparent())
	noted(v, req.Name())
	if refused != nil {
		refuse(v, refused)
		return nil
	}
	if err := checkToken(v); err != nil {
		return err
	}
	if v.facts.Server.Virtual() {
		return virtual(v)
	}
	if req.Era == protocolversion.Stateless {
		return stateless(v)
	}
	return sessions(v)
}

// checkToken refuses what the caller's access token was not given for. Keys are not asked:
// their scopes were.
func checkToken(v *visit) error {
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
	v.note.Decision = authz.NoScope
	return fault.Newf(fault.InsufficientScope, "authorization", "The access token lacks the scope %s", need)
}

// principal names the caller towards what is sealed for it and kept apart by it.
func principal(v *visit) string {
	if v.proof != nil {
		return callerName(v) + "/" + v.proof.who
	}
	return callerName(v)
}

func callerName(v *visit) string {
	who := v.call.Caller
	for _, id := range []string{who.UserID, who.EndUser} {
		if id != "" {
			return string(who.Type) + ":" + id
		}
	}
	return string(who.Type) + ":" + who.KeyID
}
