package gate

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
)

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
	c.Pipeline = &memberPipeline{Pipeline: v.call.Pipeline, forwards: v.call.Forwards(), header: http.Header{}}
	sub.call, sub.host, sub.facts, sub.trace, sub.token = &c, v.host, v.facts, v.trace, v.token
	id, _ := json.Marshal("list-" + rand.Text()) // a string
	sub.req = &protocolversion.Request{
		Message: mcp.Message{ID: id, Method: "tools/list"}, Era: v.req.Era, Version: v.req.Version, Session: v.req.Session, Fields: map[string]json.RawMessage{},
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
