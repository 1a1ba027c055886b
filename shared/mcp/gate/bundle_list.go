package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
	"gateway/shared/usage"
)

// Bounds of a list of several servers.
const (
	listTime    = 8 * time.Second  // that one server has for all its pages
	leftAlone   = 10 * time.Second // a server that did not answer in time is not asked again for so long
	askedAtOnce = 8
	maxListed   = 200 // pages of one server
)

// metaMissing is the member of a list that names the servers whose tools should be in it
// and are not.
const metaMissing = "ai.gateway/missing"

// offer is a tool that the caller may use, as clients of a virtual server see it.
type offer struct {
	name string
	raw  json.RawMessage
}

// gap is a member that could not be asked.
type gap struct {
	Server  string `json:"server"`
	Reason  string `json:"reason"`
	Address string `json:"authorization_url,omitempty"` // where the user signs in first
}

// list answers with the tools of all members that the caller may use, in one page, or
// with the tool to search them.
func (b *bundle) list() error {
	if b.visit.req.Members["cursor"] != nil {
		wrong(b.visit, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.cursor is not one that was given"})
		return nil
	}
	if err := b.load(); err != nil {
		return err
	}
	all, gaps := b.tools()
	if b.visit.facts.Server.ListsSearch(len(all)) {
		all = b.searchable(all)
	}
	out := append(make([]byte, 0, 4096), `{"tools":[`...)
	for i := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, all[i].raw...)
	}
	out = append(out, ']')
	if len(gaps) > 0 {
		raw, err := json.Marshal(map[string][]gap{metaMissing: gaps})
		if err != nil {
			return err
		}
		out = append(append(out, `,"_meta":`...), raw...)
	}
	if b.visit.req.Era == protocolversion.Stateless {
		out = appendAge(append(out, `,"resultType":"complete"`...), 0)
	}
	return b.fits(append(out, '}'))
}

// fits answers with a result, if it can be passed on from here.
func (b *bundle) fits(result []byte) error {
	if limit := b.visit.host.MaxResult; b.visit.call.Buffered && limit > 0 && len(result) > limit {
		return upstream.Fail(http.StatusOK, "the result has more than %d bytes, which cannot be passed on from here: use the address of the long-running service, or search", limit)
	}
	sendResult(b.visit, result)
	return nil
}

// heard is what a member lists.
type heard struct {
	entries []entry
	down    int    // bytes
	address string // where the user is to sign in
	err     error
}

// tools are the tools of all members that the caller may use, in the order of the members
// and of their own lists, and the members that have some and could not be asked. Lists and
// calls are decided by the same function.
func (b *bundle) tools() (all []offer, gaps []gap) {
	lists := b.ask()
	taken := map[string]bool{}
	for i := range b.members {
		m, got := &b.members[i], &lists[i]
		if got.err != nil {
			slug := m.Facts.Server.Record.Slug
			slog.Warn("a member of a virtual MCP server is missing in its list", "trace_id", b.visit.call.TraceID, "server", b.visit.facts.Server.Record.ID, "member", m.Facts.Server.Record.ID, "error", got.err.Error())
			gaps = append(gaps, gap{slug, whyMissing(got.err), got.address})
		}
		for n := range got.entries {
			e := &got.entries[n]
			name := m.Given(e.key)
			to, tool, decision := b.visit.facts.Route(b.members, name)
			if b.visit.req.Era == protocolversion.Stateless && e.bad || to != m || tool != e.key || decision != authz.Allowed || taken[name] {
				continue
			}
			if raw, ok := renamed(e.raw, e.key, name); ok {
				taken[name] = true
				all = append(all, offer{name, raw})
			}
		}
	}
	return all, gaps
}

// ask asks all members for their lists at the same time.
func (b *bundle) ask() []heard {
	lists := make([]heard, len(b.members))
	forwards := b.visit.call.Forwards()
	free := make(chan struct{}, askedAtOnce)
	var wg sync.WaitGroup
	b.visit.call.Began()
	for i := range b.members {
		if m := &b.members[i]; m.Facts.Decide(authz.Capability{}) == authz.Allowed {
			wg.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				b.hear(m, forwards, &lists[i])
			})
		}
	}
	wg.Wait()
	down := 0
	for i := range lists {
		down += lists[i].down
	}
	b.visit.call.Ended(http.StatusOK)
	b.visit.call.Used(len(b.visit.call.Body), down)
	return lists
}

// hear asks one member.
func (b *bundle) hear(m *authz.Member, forwards http.Header, got *heard) {
	ctx, cancel := context.WithTimeout(b.visit.call.Context, min(b.visit.host.Timeout, listTime))
	defer cancel()
	walk := &unheard{Walk: b.visit.call.Walk, forwards: forwards, header: http.Header{}}
	c := *b.visit.call
	c.Context, c.Request, c.Walk = ctx, b.visit.call.Request.WithContext(ctx), walk
	sub := b.to(m, &c, &protocolversion.Request{
		Message: mcp.Message{ID: json.RawMessage("1"), Method: "tools/list"}, Era: protocolversion.Stateless, Version: protocolversion.Version, Members: map[string]json.RawMessage{},
	})
	p := peerOf(sub)
	p.mu.Lock()
	alone := sub.call.Now().Before(p.alone)
	p.mu.Unlock()
	if alone {
		got.err = upstream.Fail(0, "the server did not answer in time a moment ago")
		return
	}
	got.entries, got.err = listAll(sub)
	if errors.Is(got.err, mcp.ErrSignIn) && sub.call.Caller.UserID != "" {
		address, err := signInAt(sub)
		if got.address = address; err != nil {
			got.err = err
		}
	}
	if got.down = walk.down; got.err != nil && ctx.Err() != nil {
		got.err = upstream.Fail(0, "the server did not answer in time")
		if b.visit.call.Context.Err() == nil {
			p.mu.Lock()
			p.alone = sub.call.Now().Add(leftAlone)
			p.mu.Unlock()
		}
	}
}

// errUnproven says that the request has not the token that a member wants.
var errUnproven = errors.New("gate: the token that the server wants is missing or not good")

// listAll gives all pages of a server's tools.
func listAll(v *visit) ([]entry, error) {
	if ok, err := proven(v); err != nil {
		return nil, err
	} else if !ok {
		return nil, errUnproven
	}
	w, err := stand(v)
	if err != nil {
		return nil, err
	}
	w.plain()
	var out []entry
	for range maxListed {
		page, err := listPage(v, w)
		if err != nil {
			return nil, err
		}
		if out = append(out, page.entries...); page.next == nil {
			return out, nil
		}
		if len(out) > mcp.MaxCapabilities {
			return nil, upstream.Fail(http.StatusOK, "the server lists more than %d tools", mcp.MaxCapabilities)
		}
		v.req.Members["cursor"] = page.next
	}
	return nil, upstream.Fail(http.StatusOK, "the server's lists do not end")
}

// whyMissing is what clients are told of a member that could not be asked.
func whyMissing(err error) string {
	var failed *upstream.Failure
	switch {
	case errors.As(err, &failed):
		return failed.Why
	case errors.Is(err, mcp.ErrSignIn):
		return "each user has to sign in at this server first"
	case errors.Is(err, errUnproven):
		return "the request has not the token that this server wants"
	}
	return "the server could not be asked"
}

// renamed is a tool under another name.
func renamed(raw json.RawMessage, was, name string) (json.RawMessage, bool) {
	if was == name {
		return raw, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, false
	}
	members["name"] = json.RawMessage(strconv.Quote(name))
	out, err := json.Marshal(members)
	return out, err == nil
}

// unheard stands in for the walk when a member is asked: it is one of several, and the
// request's own walk hears of all of them together.
type unheard struct {
	Walk
	forwards, header http.Header
	down             int
}

func (u *unheard) Forwards() http.Header                    { return u.forwards }
func (u *unheard) Header() http.Header                      { return u.header }
func (u *unheard) Note(string, string, string, *usage.Call) {}
func (u *unheard) Began()                                   {}
func (u *unheard) Ended(int)                                {}
func (u *unheard) Used(_, down int)                         { u.down += down }
func (u *unheard) Send(int, string, []byte, *fault.Fault)   {}
func (u *unheard) Event([]byte, bool, *fault.Fault)         {}
