package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"gateway/shared/a2a"
	"gateway/shared/a2a/authz"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/wire/release"
)

// Options are the settings of an installation.
type Options struct {
	// Timeout is how long an agent may be silent. The default is five minutes.
	Timeout time.Duration
	// MaxResult is the size limit of a buffered response (Lambda) in bytes.
	MaxResult int
}

// Host serves the agents of all workspaces. It is safe for concurrent use.
type Host struct {
	Options
	once   sync.Once
	opener *a2a.Opener
	cards  cardCache
}

// New returns a Host.
func New(o Options) *Host {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	return &Host{Options: o}
}

// Call is a request of an authenticated client.
type Call struct {
	Context   context.Context
	Request   *http.Request
	Path      string // escaped path below the address of all agents
	Base      string // that address as clients see it
	Body      []byte
	Caller    *identity.Principal
	View      *resource.View
	TraceID   string
	Bearer    bool
	Now       func() time.Time
	Transport http.RoundTripper
	Sealer    seal.Sealer
	Secrets   *provider.Loaded
	CheckURL  provider.URLCheck
	Signing   *signing.Keys
	Buffered  bool // responses are buffered: no state between requests
	Pipeline
}

// Pipeline counts, guards and records requests; see relay/routes.
type Pipeline interface {
	Reauthenticate() (*identity.Principal, *resource.View, error)
	Forwards() http.Header
	CountRequest() error
	Guard(name string, call []byte) (changed []byte, denied bool, err error)
	Judge(result []byte) (out []byte, denied bool)
	RecordCall(server, integration, name string, call *usage.Call)
	StartResponse()
	Ended(status int)
	RecordSizes(up, down int)
	Send(status int, media string, body []byte, failure *fault.Fault)
	Event(event []byte, last bool, failure *fault.Fault)
	Header() http.Header
	Trace(within string) string
	// OwnedByCaller and RecordOwnership check and record which workspace created a task of an agent that serves
	// several workspaces.
	OwnedByCaller(place string, ids ...string) ([]bool, error)
	RecordOwnership(place string, ids ...string) error
}

// requestState is one request of a client and the state of its response.
type requestState struct {
	call      *Call
	host      *Host
	facts     *authz.Facts
	record    usage.Call
	req       *request
	streaming bool // the response stream has begun
	agent     *agentRoute
	ownership ownership
	artifacts map[string]string // of a stream: the end of each artifact's text, by id
}

// Serve serves a request.
func (h *Host) Serve(c *Call) {
	h.once.Do(func() { h.opener = &a2a.Opener{Sealer: c.Sealer, Transport: c.Transport, Secrets: c.Secrets} })
	v := &requestState{call: c, host: h, record: usage.Call{Protocol: "a2a", Auth: "api_key", Method: c.Request.Method, Gateway: release.Version}}
	if c.Bearer {
		v.record.Auth = "Bearer"
	}
	if c.Caller.Has(authz.Invoke) {
		v.record.Scope = authz.Invoke
	}
	if err := serve(v); err != nil {
		sendFailure(v, err)
	}
}

func serve(v *requestState) error {
	parts, ok := splitPath(v.call.Path)
	v.req = &request{rest: len(parts) != 1}
	if !ok || len(parts) == 0 {
		return authz.Missing()
	}
	slug, below := parts[0], parts[1:]
	var refused *protocolError
	if !isCard(below) { // parsed first, so that the record of a rejection contains the method
		refused = readRequest(v, below)
	}
	var err error
	if v.facts, err = authz.Load(v.call.Context, v.call.View, v.call.Caller, slug); err != nil {
		if fault.From(err).Status() < http.StatusInternalServerError {
			v.record.Decision = authz.NoServer
		}
		v.call.RecordCall("", "", v.record.Method, &v.record)
		return err
	}
	v.record.Server = v.facts.Server.Record.ID
	switch err := authorize(v, ""); {
	case err != nil:
		return err
	case isCard(below):
		return serveCard(v)
	case refused != nil:
		return refused
	}
	return callAgent(v)
}

// readRequest parses the request.
func readRequest(v *requestState, below []string) *protocolError {
	req, refused := read(v.call.Request, below, v.call.Body)
	v.req = req
	if v.record.Version = a2a.Version; req.old {
		v.record.Version = a2a.OldVersion
	}
	if req.op != nil {
		v.record.Method = req.op.method(req.old)
	}
	return refused
}

// updateRecord records the parsed parts of the request.
func updateRecord(v *requestState) {
	shown := v.record.Name
	if shown == "" {
		shown = v.record.Method
	}
	v.call.RecordCall(v.facts.Server.Record.Slug, v.facts.Server.IntegrationID, shown, &v.record)
}

// authorize checks that the caller may use the agent and, if skill is not empty, the skill.
func authorize(v *requestState, skill string) error {
	v.record.Name, v.record.Decision = skill, v.facts.Decide(skill)
	updateRecord(v)
	switch v.record.Decision {
	case authz.Allowed:
		return nil
	case authz.NoServer, authz.NoAccess:
		return fault.New(fault.NotAllowed, "", "This agent is not active in the workspace")
	case authz.NoUser:
		return fault.New(fault.NotAllowed, "", "This user has no access to the agent")
	case authz.NoSkill:
		return newError(codeNotServed, "the agent has no such skill")
	}
	return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", authz.Invoke)
}

// callAgent serves a request to the agent.
func callAgent(v *requestState) error {
	q := v.req
	for _, skill := range skillsOf(q.params) {
		if err := authorize(v, skill); err != nil {
			return err
		}
	}
	if err := selectInterface(v); err != nil {
		return err
	}
	if err := checkOwnership(v); err != nil {
		return err
	}
	if err := checkPush(v); err != nil {
		return err
	}
	if err := v.call.CountRequest(); err != nil {
		return err
	}
	if err := guardMessage(v); err != nil {
		return err
	}
	out, err := newOutgoing(v)
	if err != nil {
		return err
	}
	return forward(v, out)
}

// skillsOf returns the skills that a request names, in the message or in its params.
func skillsOf(params map[string]any) (skills []string) {
	look := func(o any) {
		m, _ := o.(map[string]any)
		for _, name := range [...]string{"skillId", "skill_id", "skill"} {
			if s, ok := m[name].(string); ok && s != "" {
				skills = append(skills, s)
			}
		}
	}
	look(params)
	look(params["metadata"])
	if m, ok := params["message"].(map[string]any); ok {
		look(m["metadata"])
	}
	return skills
}

// guardMessage runs the guardrails on the message.
func guardMessage(v *requestState) error {
	q := v.req
	params := q.raw
	if len(params) == 0 {
		params = []byte("{}") // the result is judged nevertheless
	}
	changed, denied, err := v.call.Guard(v.record.Name, params)
	switch {
	case err != nil:
		return err
	case denied:
		return respondDenied(v)
	case changed == nil || len(q.raw) == 0:
		return nil
	}
	q.raw, v.agent.verbatim = changed, v.agent.verbatim && q.rest // the JSON-RPC envelope is encoded again
	if refused := q.rereadParams(); refused != nil {
		return refused
	}
	return nil
}

func respondDenied(v *requestState) error {
	v.record.Decision = "guardrail"
	return fault.New(fault.GuardrailDenied, "", "The guardrail checks of the workspace denied this message")
}

// isCard reports whether a path below an agent's address is that of its card.
func isCard(below []string) bool {
	return len(below) == 2 && below[0] == ".well-known" && (below[1] == "agent-card.json" || below[1] == "agent.json")
}

// serveCard responds with the agent's card.
func serveCard(v *requestState) error {
	v.record.Method = "agent-card"
	v.req.rest = true
	updateRecord(v)
	if v.call.Request.Method == http.MethodDelete {
		v.call.Header().Set("Allow", "GET, POST")
		return fault.New(fault.MethodNotAllowed, "", "This address accepts GET, POST")
	}
	card, err := cardOf(v)
	if err != nil {
		return err
	}
	shown, err := rewriteCard(v, card)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(shown)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := v.call.Header()
	h.Set("Etag", tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "x-gateway-api-key, authorization")
	if strings.Contains(v.call.Request.Header.Get("If-None-Match"), tag) {
		v.call.Send(http.StatusNotModified, "", nil, nil)
		return nil
	}
	v.call.Send(http.StatusOK, "application/json", shown, nil)
	return nil
}

// rewriteCard returns a card for the caller: with the gateway's addresses and signature, and
// only with skills that the caller may use.
func rewriteCard(v *requestState, card json.RawMessage) (json.RawMessage, error) {
	if a2a.CheckCard(card) != nil {
		return nil, malformed(v, http.StatusOK, "is not a card")
	}
	made, err := a2a.Rewrite(card, a2a.CardOptions{
		Address: v.call.Base + "/" + v.facts.Server.Record.Slug, Agent: v.facts.Integration.URL, Push: v.facts.Integration.AllowsPush(),
		Disabled: func(skill string) bool { return v.facts.Decide(skill) != authz.Allowed },
	})
	if err != nil || v.call.Signing == nil {
		return made, err
	}
	key, err := v.call.Signing.For(v.call.Context, signing.ES256)
	if err != nil {
		return nil, err
	}
	return a2a.Sign(made, key, strings.TrimSuffix(v.call.Base, pathPrefix)+keySetPath)
}

// pathPrefix is the path of all agents; keySetPath is the path of the public keys.
const (
	pathPrefix = "/agent"
	keySetPath = "/.well-known/jwks.json"
)

// cardOf returns the agent's card: the stored one, otherwise the current one.
func cardOf(v *requestState) (json.RawMessage, error) {
	i := v.facts.Integration
	if len(i.Card) > 0 {
		return i.Card, nil
	}
	return v.host.cards.get(i.Fingerprint, v.call.Now(), func() (json.RawMessage, error) {
		ctx, cancel := context.WithTimeout(v.call.Context, min(v.host.Timeout, cardWait))
		defer cancel()
		return v.host.opener.Card(ctx, i.Record, v.facts.Server.Record.Scope)
	})
}

// Limits of cards that are not stored because they are large or because the agent was
// unreachable at registration.
const (
	cardLife = time.Minute
	cardWait = 10 * time.Second
	maxCards = 64
)

// cardCache caches such cards.
type cardCache struct {
	mu      sync.Mutex
	entries map[string]cachedCard
}

type cachedCard struct {
	card  json.RawMessage
	err   error
	until time.Time
}

func (c *cardCache) get(print string, now time.Time, fetch func() (json.RawMessage, error)) (json.RawMessage, error) {
	c.mu.Lock()
	held, ok := c.entries[print]
	c.mu.Unlock()
	if ok && now.Before(held.until) {
		return held.card, held.err
	}
	card, err := fetch()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCards {
		c.entries = map[string]cachedCard{}
	}
	c.entries[print] = cachedCard{card, err, now.Add(cardLife)}
	return card, err
}
