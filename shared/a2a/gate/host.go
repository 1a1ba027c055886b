package gate

import (
	"context"
	"net/http"
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

// Options are what differs between installations.
type Options struct {
	// Timeout is how long an agent may be silent; 0: five minutes.
	Timeout time.Duration
	// MaxResult bounds an answer where answers are buffered (Lambda), in bytes.
	MaxResult int
}

// Host serves the agents of all workspaces. It is safe for concurrent use.
type Host struct {
	Options
	once   sync.Once
	opener *a2a.Opener
	cards  cards
}

// New makes a Host.
func New(o Options) *Host {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	return &Host{Options: o}
}

// Call is a request of a client whose caller is known.
type Call struct {
	Context  context.Context
	Request  *http.Request
	Path     string // below the address of all agents, escaped
	Base     string // that address, as clients write it
	Body     []byte
	Caller   *identity.Principal
	View     *resource.View
	TraceID  string
	Bearer   bool
	Now      func() time.Time
	Via      http.RoundTripper
	Sealer   seal.Sealer
	Secrets  *provider.Loaded
	CheckURL provider.URLCheck
	Signing  *signing.Keys
	Buffered bool // the process keeps nothing between requests
	Walk
}

// Walk counts, guards and records; see relay/routes.
type Walk interface {
	Still() (*identity.Principal, *resource.View, error)
	Forwards() http.Header
	CountRequest() error
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
	// Mine and Keep record which workspace has made a task, for agents that several
	// workspaces use.
	Mine(place string, ids ...string) ([]bool, error)
	Keep(place string, ids ...string) error
}

// visit is one request, what is known of it, and what the client is sent. Its steps are
// functions in the files of their topics.
type visit struct {
	call  *Call
	host  *Host
	facts *authz.Facts
	note  usage.Call
	req   *request
	began bool // the stream has begun
	up    *upstreamOf
	own   owned
}

// Serve answers a request.
func (h *Host) Serve(c *Call) {
	h.once.Do(func() { h.opener = &a2a.Opener{Sealer: c.Sealer, Via: c.Via, Secrets: c.Secrets} })
	v := &visit{call: c, host: h, note: usage.Call{Protocol: "a2a", Auth: "api_key", Method: c.Request.Method, Gateway: release.Version}}
	if c.Bearer {
		v.note.Auth = "Bearer"
	}
	if c.Caller.Has(authz.Invoke) {
		v.note.Scope = authz.Invoke
	}
	if err := serve(v); err != nil {
		fail(v, err)
	}
}

func serve(v *visit) error {
	parts, ok := split(v.call.Path)
	v.req = &request{rest: len(parts) != 1}
	if !ok || len(parts) == 0 {
		return authz.Missing()
	}
	slug, below := parts[0], parts[1:]
	var refused *refusal
	if !isCard(below) { // read first, so that the record of a refusal also tells what was asked for
		refused = readRequest(v, below)
	}
	var err error
	if v.facts, err = authz.Load(v.call.Context, v.call.View, v.call.Caller, slug); err != nil {
		if fault.From(err).Status() < http.StatusInternalServerError {
			v.note.Decision = authz.NoServer
		}
		v.call.Note("", "", v.note.Method, &v.note)
		return err
	}
	v.note.Server = v.facts.Server.Record.ID
	switch err := may(v, ""); {
	case err != nil:
		return err
	case isCard(below):
		return serveCard(v)
	case refused != nil:
		return refused
	}
	return callAgent(v)
}

// readRequest reads the request.
func readRequest(v *visit, below []string) *refusal {
	req, refused := read(v.call.Request, below, v.call.Body)
	v.req = req
	if v.note.Version = a2a.Version; req.old {
		v.note.Version = a2a.Older
	}
	if req.op != nil {
		v.note.Method = req.op.method(req.old)
	}
	return refused
}

// noted puts what is known so far into the record.
func noted(v *visit) {
	shown := v.note.Name
	if shown == "" {
		shown = v.note.Method
	}
	v.call.Note(v.facts.Server.Record.Slug, v.facts.Server.IntegrationID, shown, &v.note)
}

// may refuses unless the caller may use the agent and, if one is named, the skill.
func may(v *visit, skill string) error {
	v.note.Name, v.note.Decision = skill, v.facts.Decide(skill)
	noted(v)
	switch v.note.Decision {
	case authz.Allowed:
		return nil
	case authz.NoServer, authz.NoAccess:
		return fault.New(fault.NotAllowed, "", "This agent is not active in the workspace")
	case authz.NoUser:
		return fault.New(fault.NotAllowed, "", "This user has no access to the agent")
	case authz.NoSkill:
		return refuse(codeNotServed, "the agent has no such skill")
	}
	return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", authz.Invoke)
}

// callAgent serves what goes to the agent.
func callAgent(v *visit) error {
	q := v.req
	for _, skill := range skillsOf(q.params) {
		if err := may(v, skill); err != nil {
			return err
		}
	}
	if err := pick(v); err != nil {
		return err
	}
	if err := owns(v); err != nil {
		return err
	}
	if err := pushes(v); err != nil {
		return err
	}
	if err := v.call.CountRequest(); err != nil {
		return err
	}
	if err := guard(v); err != nil {
		return err
	}
	out, err := newOutgoing(v)
	if err != nil {
		return err
	}
	return exchange(v, out)
}

// skillsOf are the skills that a request names, in the message or beside it.
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

// guard has the guardrails judge the message.
func guard(v *visit) error {
	q := v.req
	if len(q.raw) == 0 {
		return nil
	}
	changed, denied, err := v.call.Guard(v.note.Name, q.raw)
	switch {
	case err != nil:
		return err
	case denied:
		return answerDenied(v)
	case changed == nil:
		return nil
	}
	q.raw, v.up.same = changed, v.up.same && q.rest // the message around it is written anew
	if refused := q.again(); refused != nil {
		return refused
	}
	return nil
}

func answerDenied(v *visit) error {
	v.note.Decision = "guardrail"
	return fault.New(fault.GuardrailDenied, "", "The guardrail checks of the workspace do not let this through")
}
