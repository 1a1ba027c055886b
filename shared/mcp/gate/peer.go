package gate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/wire"
)

// Limits of what the process stores about servers.
const (
	maxPeers    = 10_000
	maxSessions = 1000 // per server
	peerLife    = 10 * time.Minute
)

// peerKey identifies a server and its configuration: after a change it is another server.
type peerKey struct{ org, workspace, id, print string }

// peer is the process's state about an upstream server.
type peer struct {
	mu        sync.Mutex
	expires   time.Time
	known     bool
	stateless bool            // supports the stateless version
	sessioned bool            // supports sessions
	hello     json.RawMessage // self-description
	skipUntil time.Time       // lists of several servers skip it until then
	probing   chan struct{}   // closed when the version probe ends; nil if there is none
	sessions  map[string]*mcp.Session
	lists     map[listKey]*list
	marks     map[string][]protocolversion.HeaderParam // mirrored arguments of listed tools
	names     map[string]bool                          // listed tools
	// relistings are keyed by the callers that named tools which are not listed.
	relistings map[string]relisting
}

// peerOf returns the state about the request's server.
func peerOf(v *requestState) *peer {
	rec := v.facts.Integration.Record
	key := peerKey{rec.Scope.Org, rec.Scope.Workspace, rec.ID, v.facts.Integration.Fingerprint}
	h, now := v.host, v.call.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.peers[key]
	if p == nil || now.After(p.expires) {
		if len(h.peers) >= maxPeers {
			clear(h.peers)
		}
		p = &peer{expires: now.Add(peerLife), sessions: map[string]*mcp.Session{}, lists: map[listKey]*list{}, marks: map[string][]protocolversion.HeaderParam{}}
		h.peers[key] = p
	}
	return p
}

// resetPeer drops the state about the server, so that it is probed again.
func resetPeer(v *requestState, p *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = false
	clear(p.sessions)
	clear(p.lists)
}

// openUpstream returns the upstream with its credentials and the forwarded headers of the
// client.
func openUpstream(v *requestState) (*mcp.Upstream, error) {
	of := v.facts.Integration.Record
	up, conf, err := v.host.opener.Open(v.call.Context, of, v.facts.Server.Record.Scope)
	if errors.Is(err, mcp.ErrSignIn) {
		err = addUserToken(v, up)
	}
	if err != nil {
		return nil, err
	}
	if conf.ForwardHeaders != nil || v.trace != "" { // configured headers take precedence
		own := up.Headers
		up.Headers = http.Header{}
		if conf.ForwardHeaders != nil {
			conf.ForwardHeaders.Copy(up.Headers, v.call.Pipeline.Forwards())
		}
		for name := range up.Headers {
			if own[name] == nil {
				up.Client = append(up.Client, name)
			}
		}
		if v.trace != "" {
			up.Headers.Set("Traceparent", v.trace)
		}
		for name, values := range own {
			up.Headers[name] = values
		}
	}
	err = forwardIdentity(v, up, conf.Identity)
	egress.DropLookalikes(up.Headers, func(name string) bool { return slices.Contains(up.Client, name) })
	return up, err
}

// detectVersions finds out which protocol versions a server supports. One caller probes while
// the others wait. If the probe fails, the others probe themselves, because their credentials
// may differ.
func detectVersions(v *requestState, p *peer, up *mcp.Upstream) error {
	p.mu.Lock()
	if up.Transport == mcp.TransportSSE {
		p.known, p.sessioned, p.stateless = true, true, false
	}
	known := p.known
	p.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(v.call.Context, v.host.Timeout)
	defer cancel()
	first, known := p.claimProbe(ctx)
	if known {
		return nil
	}
	hello, versions, err := up.Discover(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		close(p.probing)
		p.probing = nil
	}
	if err != nil {
		return err
	}
	p.known, p.stateless, p.sessioned, p.hello = true, hello != nil, hello == nil, hello
	for _, version := range versions {
		p.sessioned = p.sessioned || slices.Contains(mcp.Versions, version)
	}
	return nil
}

// versions returns the detected kinds of protocol versions.
func (p *peer) versions() (modern, legacy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stateless, p.sessioned
}

// claimProbe reports whether the caller must probe the server, or whether the result is known.
// It waits for a probe in progress.
func (p *peer) claimProbe(ctx context.Context) (first, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return false, true
	}
	if p.probing == nil {
		p.probing = make(chan struct{})
		return true, false
	}
	probing := p.probing
	p.mu.Unlock()
	select {
	case <-probing:
	case <-ctx.Done():
	}
	p.mu.Lock()
	return false, p.known
}

// capabilities returns the server's capabilities by name.
func (p *peer) capabilities() map[string]json.RawMessage {
	var hello struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	_ = json.Unmarshal(p.description(), &hello) // an unexpected type counts as empty
	return hello.Capabilities
}

// pooledSession returns the gateway's session with a server for a caller. declared are the
// client capabilities that it declares there.
func pooledSession(v *requestState, ctx context.Context, p *peer, up *mcp.Upstream, carried json.RawMessage) (*mcp.Session, error) {
	key := poolKey(v, carried)
	p.mu.Lock()
	s := p.sessions[key]
	p.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := up.Connect(ctx, carried)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sessions) >= maxSessions {
		clear(p.sessions)
	}
	if other := p.sessions[key]; other != nil {
		return other, nil
	}
	p.sessions[key], p.hello = s, s.Hello
	return s, nil
}

// poolKey identifies the sessions of a caller with the same declared capabilities.
func poolKey(v *requestState, carried json.RawMessage) string {
	return principal(v) + "\x00" + string(carried)
}

// dropEnded drops a pooled session that the server has ended.
func dropEnded(v *requestState, p *peer, s *mcp.Session, carried json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := poolKey(v, carried); p.sessions[key] == s {
		delete(p.sessions, key)
	}
}

// statelessParams adds the metadata of a stateless request to fields, which it changes.
func statelessParams(members map[string]json.RawMessage, abilities, client json.RawMessage, level string) map[string]json.RawMessage {
	meta := mcp.Fields(members["_meta"])
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	if len(abilities) == 0 {
		abilities = json.RawMessage("{}")
	}
	if len(client) == 0 {
		client = mcp.ClientInfo
	}
	meta[mcp.MetaVersion], meta[mcp.MetaCapabilities], meta[mcp.MetaClient] = json.RawMessage(`"`+protocolversion.Version+`"`), abilities, client
	if level != "" {
		meta[mcp.MetaLogLevel], _ = json.Marshal(level) // a string
	}
	if members == nil {
		members = make(map[string]json.RawMessage, 1)
	}
	members["_meta"] = mcp.AppendFields(nil, meta)
	return members
}

// statelessHeaders returns the headers of a stateless request.
func statelessHeaders(req *protocolversion.Request) http.Header {
	h := http.Header{mcp.HeaderVersion: {protocolversion.Version}}
	req.SetHeaders(h)
	return h
}

// encode encodes a message with the given params.
func encode(req *protocolversion.Request, id json.RawMessage, params map[string]json.RawMessage) []byte {
	out := append(make([]byte, 0, len(req.Params)+256), `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		out = append(append(out, `,"id":`...), id...)
	}
	out = wire.AppendJSONString(append(out, `,"method":`...), req.Method)
	if params != nil {
		out = mcp.AppendFields(append(out, `,"params":`...), params)
	}
	return append(out, '}')
}

const (
	// relistAfter is the interval at which a caller can cause the tools of a server to be
	// listed again.
	relistAfter = 10 * time.Second
	maxNames    = 100_000 // listed tools of one server
)

// recordNames remembers the tools that a server listed.
func (p *peer) recordNames(entries []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil || len(p.names)+len(entries) > maxNames {
		p.names = make(map[string]bool, len(entries))
	}
	for i := range entries {
		p.names[entries[i].key] = true
	}
}

// hasTool reports whether the server listed a tool.
func (p *peer) hasTool(tool string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names[tool]
}

// relisting is the result of listing the tools of a server again for a caller.
type relisting struct {
	at      time.Time
	decides bool // the server lists no tools or could not be called, so it decides itself
}

// relisted returns the last relisting of a caller. ok is false if it is older than relistAfter.
func (p *peer) relisted(caller string, now time.Time) (relisting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.relistings[caller]
	return last, ok && now.Before(last.at.Add(relistAfter))
}

func (p *peer) recordRelisting(caller string, r relisting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.relistings == nil || len(p.relistings) >= maxLists {
		p.relistings = map[string]relisting{}
	}
	p.relistings[caller] = r
}

// listsTool reports whether the server lists a tool: at the last synchronization, in a list
// sent to a client, or now. The server is called at most once per relistAfter and caller.
func listsTool(v *requestState, w *bridge, tool string) bool {
	if w.peer.hasTool(tool) || v.facts.Lists(authz.Capability{Type: mcp.Tool, Key: tool}) {
		return true
	}
	caller := principal(v) + "\x00" + v.req.Session
	last, ok := w.peer.relisted(caller, v.call.Now())
	if !ok {
		n, err := relist(v, w)
		last = relisting{v.call.Now(), err != nil || n == 0}
		w.peer.recordRelisting(caller, last)
	}
	return last.decides || w.peer.hasTool(tool)
}

// relist lists the tools of the server, in the session of the request if there is one, and
// returns their number.
func relist(v *requestState, w *bridge) (n int, err error) {
	sub := new(requestState)
	c := *v.call
	c.Pipeline = &memberPipeline{Pipeline: v.call.Pipeline, forwards: v.call.Pipeline.Forwards(), header: http.Header{}}
	sub.call, sub.host, sub.facts, sub.trace, sub.token = &c, v.host, v.facts, v.trace, v.token
	id, _ := json.Marshal("list-" + rand.Text()) // a string
	sub.req = &protocolversion.Request{
		Message: mcp.Message{ID: id, Method: "tools/list"}, Kind: v.req.Kind, Version: v.req.Version, Session: v.req.Session, Fields: map[string]json.RawMessage{},
	}
	to := *w
	to.v = sub
	for range maxListed {
		page, err := listPage(sub, &to)
		if err != nil {
			return 0, err
		}
		if n += len(page.entries); page.next == nil || n > mcp.MaxCapabilities {
			break
		}
		sub.req.Fields["cursor"] = page.next
	}
	return n, nil
}
