package gate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/wire"
)

// Bounds of what is kept of servers in the process.
const (
	maxPeers    = 10_000
	maxSessions = 1000 // of one server
	peerLife    = 10 * time.Minute
)

// peerKey names a server by the way it is called, so that a changed configuration counts as
// another server.
type peerKey struct{ org, workspace, id, print string }

// peer is what is known of a server behind.
type peer struct {
	mu       sync.Mutex
	expires  time.Time
	known    bool
	modern   bool            // it speaks without sessions
	legacy   bool            // with sessions
	hello    json.RawMessage // what it says of itself
	alone    time.Time       // lists of several servers leave it out until then
	asking   chan struct{}   // closed when it was asked which eras it speaks; nil: nobody asks
	sessions map[string]*mcp.Session
	lists    map[listKey]*list
	marks    map[string][]protocolversion.Mark // of tools that were listed with some
	names    map[string]bool                   // of tools that were listed
	// relistings are those of callers that named tools which are not listed.
	relistings map[string]relisting
}

// peerOf gives what is known of the visit's server.
func peerOf(v *visit) *peer {
	rec := v.facts.Integration.Record
	key := peerKey{rec.Scope.Org, rec.Scope.Workspace, rec.ID, v.facts.Integration.Print}
	h, now := v.host, v.call.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.peers[key]
	if p == nil || now.After(p.expires) {
		if len(h.peers) >= maxPeers {
			clear(h.peers)
		}
		p = &peer{expires: now.Add(peerLife), sessions: map[string]*mcp.Session{}, lists: map[listKey]*list{}, marks: map[string][]protocolversion.Mark{}}
		h.peers[key] = p
	}
	return p
}

// forget drops what is known of the server: it is asked anew.
func forget(v *visit, p *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = false
	clear(p.sessions)
	clear(p.lists)
}

// openUpstream returns the way to the server, with its credentials and what is forwarded of the
// client's headers.
func openUpstream(v *visit) (*mcp.Upstream, error) {
	of := v.facts.Integration.Record
	up, conf, err := v.host.opener.Open(v.call.Context, of, v.facts.Server.Record.Scope)
	if errors.Is(err, mcp.ErrSignIn) {
		err = asUser(v, up)
	}
	if err != nil {
		return nil, err
	}
	if conf.ForwardHeaders != nil || v.trace != "" { // below what is configured
		own := up.Headers
		up.Headers = http.Header{}
		if conf.ForwardHeaders != nil {
			conf.ForwardHeaders.Copy(up.Headers, v.call.Forwards())
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
	err = introduceUser(v, up, conf.Identity)
	egress.DropLookalikes(up.Headers, func(name string) bool { return slices.Contains(up.Client, name) })
	return up, err
}

// learn finds out which eras a server speaks. One caller asks while those who come
// meanwhile wait. If it learns nothing, they ask for themselves, because their credentials
// may differ. Nobody waits longer than a server may take that is asked at once.
func learn(v *visit, p *peer, up *mcp.Upstream) error {
	p.mu.Lock()
	if up.Transport == mcp.TransportSSE {
		p.known, p.legacy, p.modern = true, true, false
	}
	told := p.known
	p.mu.Unlock()
	if told {
		return nil
	}
	ctx, cancel := context.WithTimeout(v.call.Context, v.host.Timeout)
	defer cancel()
	first, known := p.ask(ctx)
	if known {
		return nil
	}
	hello, versions, err := up.Discover(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		close(p.asking)
		p.asking = nil
	}
	if err != nil {
		return err
	}
	p.known, p.modern, p.legacy, p.hello = true, hello != nil, hello == nil, hello
	for _, version := range versions {
		p.legacy = p.legacy || slices.Contains(mcp.Versions, version)
	}
	return nil
}

// eras tells what is known of the eras that the server speaks.
func (p *peer) eras() (modern, legacy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.modern, p.legacy
}

// ask tells whether the caller is the first to ask a server, or what it says is known by
// now.
func (p *peer) ask(ctx context.Context) (first, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return false, true
	}
	if p.asking == nil {
		p.asking = make(chan struct{})
		return true, false
	}
	asking := p.asking
	p.mu.Unlock()
	select {
	case <-asking:
	case <-ctx.Done():
	}
	p.mu.Lock()
	return false, p.known
}

// capabilities are what the server says that it can do, by name.
func (p *peer) capabilities() map[string]json.RawMessage {
	var said struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	_ = json.Unmarshal(p.greeting(), &said) // another form has none
	return said.Capabilities
}

// pooled is the gateway's own session with a server for a caller. carried are the
// capabilities that it declares there.
func pooled(v *visit, ctx context.Context, p *peer, up *mcp.Upstream, carried json.RawMessage) (*mcp.Session, error) {
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

// poolKey identifies the sessions of a caller that declare the same capabilities.
func poolKey(v *visit, carried json.RawMessage) string {
	return principal(v) + "\x00" + string(carried)
}

// dropEnded drops a pooled session that the server has ended.
func dropEnded(v *visit, p *peer, s *mcp.Session, carried json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := poolKey(v, carried); p.sessions[key] == s {
		delete(p.sessions, key)
	}
}

// statelessParams are params of a request without session for a client that declared
// abilities and set a level of log messages: members, which are changed.
func statelessParams(members map[string]json.RawMessage, abilities, client json.RawMessage, level string) map[string]json.RawMessage {
	meta := mcp.Members(members["_meta"])
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	if len(abilities) == 0 {
		abilities = json.RawMessage("{}")
	}
	if len(client) == 0 {
		client = mcp.OwnName
	}
	meta[mcp.MetaVersion], meta[mcp.MetaAbilities], meta[mcp.MetaClient] = json.RawMessage(`"`+protocolversion.Version+`"`), abilities, client
	if level != "" {
		meta[mcp.MetaLogLevel], _ = json.Marshal(level) // a text
	}
	if members == nil {
		members = make(map[string]json.RawMessage, 1)
	}
	members["_meta"] = mcp.AppendMembers(nil, meta)
	return members
}

// statelessHeaders are those of a request without session.
func statelessHeaders(req *protocolversion.Request) http.Header {
	h := http.Header{mcp.HeaderVersion: {protocolversion.Version}}
	req.SetHeaders(h)
	return h
}

// encode writes a message with params member by member.
func encode(req *protocolversion.Request, id json.RawMessage, params map[string]json.RawMessage) []byte {
	out := append(make([]byte, 0, len(req.Params)+256), `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		out = append(append(out, `,"id":`...), id...)
	}
	out = wire.AppendJSONString(append(out, `,"method":`...), req.Method)
	if params != nil {
		out = mcp.AppendMembers(append(out, `,"params":`...), params)
	}
	return append(out, '}')
}
