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
	// relistAfter is how long the list of a server is taken as it was, for one caller that
	// names tools that are not in it.
	relistAfter = 10 * time.Second
	maxNames    = 100_000 // of listed tools of one server
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

// named reports whether the server listed a tool.
func (p *peer) named(tool string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names[tool]
}

// relisting is what came of listing the tools of a server again for a caller.
type relisting struct {
	at      time.Time
	decides bool // the server lists no tools or could not be asked: it decides by itself
}

// relisted returns what came of listing the tools again for a caller; false if that was
// relistAfter ago, or never.
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

// listsTool reports whether the server lists a tool: as it was synchronized, as clients
// were told, or as it says now, which is asked at most once in relistAfter for a caller.
func listsTool(v *visit, w *way, tool string) bool {
	if w.peer.named(tool) || v.facts.Lists(authz.Capability{Type: mcp.Tool, Key: tool}) {
		return true
	}
	caller := principal(v) + "\x00" + v.req.Session
	last, ok := w.peer.relisted(caller, v.call.Now())
	if !ok {
		n, err := relist(v, w)
		last = relisting{v.call.Now(), err != nil || n == 0}
		w.peer.recordRelisting(caller, last)
	}
	return last.decides || w.peer.named(tool)
}

// relist asks the server for its tools, in the session of the request if it has one, and
// returns how many there are.
func relist(v *visit, w *way) (n int, err error) {
	sub := new(visit)
	c := *v.call
	c.Walk = &unheard{Walk: v.call.Walk, forwards: v.call.Forwards(), header: http.Header{}}
	sub.call, sub.host, sub.facts, sub.trace, sub.proof = &c, v.host, v.facts, v.trace, v.proof
	id, _ := json.Marshal("list-" + rand.Text()) // a text
	sub.req = &protocolversion.Request{
		Message: mcp.Message{ID: id, Method: "tools/list"}, Era: v.req.Era, Version: v.req.Version, Session: v.req.Session, Members: map[string]json.RawMessage{},
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
		sub.req.Members["cursor"] = page.next
	}
	return n, nil
}
