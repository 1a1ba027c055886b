package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/bearer"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
	"gateway/shared/usage"
)

// Limits of listing several servers.
const (
	listTimeout        = 8 * time.Second  // for all pages of one server
	timeoutPause       = 10 * time.Second // pause after a server timed out
	maxConcurrentLists = 8
	maxListed          = 200 // pages of one server
)

// metaMissing is the metadata field that lists the servers missing from a list.
const metaMissing = "ai.gateway/missing"

// listedTool is a tool that the caller may use, as the virtual server exposes it.
type listedTool struct {
	name string
	raw  json.RawMessage
}

// missingMember is a member with tools that could not be listed.
type missingMember struct {
	Server  string `json:"server"`
	Reason  string `json:"reason"`
	Address string `json:"authorization_url,omitempty"` // where the user must sign in first
}

// list responds with all tools that the caller may use, in one page, or with the search tool.
func (b *virtualServer) list() error {
	if b.state.req.Fields["cursor"] != nil {
		sendError(b.state, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.cursor is unknown; use nextCursor of the previous page"})
		return nil
	}
	if err := b.loadMembers(); err != nil {
		return err
	}
	all, gaps := b.tools()
	if b.state.facts.Server.ListsSearch(len(all)) {
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
		raw, err := json.Marshal(map[string][]missingMember{metaMissing: gaps})
		if err != nil {
			return err
		}
		out = append(append(out, `,"_meta":`...), raw...)
	}
	if b.state.req.Kind == protocolversion.Stateless {
		out = appendAge(append(out, `,"resultType":"complete"`...), 0)
	}
	return b.sendWithinLimit(append(out, '}'))
}

// sendWithinLimit sends a result unless it exceeds the limit for buffered responses.
func (b *virtualServer) sendWithinLimit(result []byte) error {
	if limit := b.state.host.MaxResult; b.state.call.Buffered && limit > 0 && len(result) > limit {
		return upstream.Fail(http.StatusOK, "the result has more than %d bytes, which is too large here: use the address of the long-running service, or search", limit)
	}
	sendResult(b.state, result)
	return nil
}

// memberList is the result of listing one member.
type memberList struct {
	entries  []entry
	received int    // bytes received
	address  string // where the user must sign in
	err      error
}

// tools returns the tools of all members that the caller may use, in the order of the members
// and of their lists, and the members that could not be listed. Calls use the same
// authorization.
func (b *virtualServer) tools() (all []listedTool, gaps []missingMember) {
	lists := b.listMembers()
	taken := map[string]bool{}
	for i := range b.members {
		m, got := &b.members[i], &lists[i]
		if got.err != nil {
			slug := m.Facts.Server.Record.Slug
			slog.Warn("listing a member of a virtual MCP server failed", "trace_id", b.state.call.TraceID, "server", b.state.facts.Server.Record.ID, "member", m.Facts.Server.Record.ID, "error", got.err.Error())
			gaps = append(gaps, missingMember{slug, missingReason(got.err), got.address})
		}
		for n := range got.entries {
			e := &got.entries[n]
			name := m.ExposedName(e.key)
			to, tool, decision := b.state.facts.Route(b.members, name)
			if b.state.req.Kind == protocolversion.Stateless && e.invalid || to != m || tool != e.key || decision != authz.Allowed || taken[name] {
				continue
			}
			if raw, ok := renameTool(e.raw, e.key, name); ok {
				taken[name] = true
				all = append(all, listedTool{name, raw})
			}
		}
	}
	raws := make([]json.RawMessage, len(all))
	for i := range all {
		raws[i] = all[i].raw
	}
	for i, raw := range allowedEntries(b.state, "name", raws) {
		all[i].raw = raw
	}
	return slices.DeleteFunc(all, func(t listedTool) bool { return t.raw == nil }), gaps
}

// listMembers lists all members concurrently.
func (b *virtualServer) listMembers() []memberList {
	lists := make([]memberList, len(b.members))
	forwards := b.state.call.Pipeline.Forwards()
	free := make(chan struct{}, maxConcurrentLists)
	var wg sync.WaitGroup
	b.state.call.Pipeline.StartResponse()
	for i := range b.members {
		if m := &b.members[i]; m.Facts.Decide(authz.Capability{}) == authz.Allowed {
			wg.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				b.listMember(m, forwards, &lists[i])
			})
		}
	}
	wg.Wait()
	down := 0
	for i := range lists {
		down += lists[i].received
	}
	b.state.call.Pipeline.Ended(http.StatusOK)
	b.state.call.Pipeline.RecordSizes(len(b.state.call.Body), down)
	return lists
}

// listMember lists one member.
func (b *virtualServer) listMember(m *authz.Member, forwards http.Header, got *memberList) {
	ctx, cancel := context.WithTimeout(b.state.call.Context, min(b.state.host.Timeout, listTimeout))
	defer cancel()
	pipeline := &memberPipeline{Pipeline: b.state.call.Pipeline, forwards: forwards, header: http.Header{}}
	c := *b.state.call
	c.Context, c.Request, c.Pipeline = ctx, b.state.call.Request.WithContext(ctx), pipeline
	sub := b.memberRequest(m, &c, &protocolversion.Request{
		Message: mcp.Message{ID: json.RawMessage("1"), Method: "tools/list"}, Kind: protocolversion.Stateless, Version: protocolversion.Version, Fields: map[string]json.RawMessage{},
	})
	p := peerOf(sub)
	p.mu.Lock()
	paused := sub.call.Now().Before(p.skipUntil)
	p.mu.Unlock()
	if paused {
		got.err = upstream.Fail(0, "the server timed out a moment ago")
		return
	}
	got.entries, got.err = listAll(sub)
	if errors.Is(got.err, mcp.ErrSignIn) && sub.call.Caller.UserID != "" {
		address, err := signInAt(sub)
		if got.address = address; err != nil {
			got.err = err
		}
	}
	if got.received = pipeline.received; got.err != nil && ctx.Err() != nil {
		got.err = upstream.Fail(0, "the server did not respond in time")
		if b.state.call.Context.Err() == nil {
			p.mu.Lock()
			p.skipUntil = sub.call.Now().Add(timeoutPause)
			p.mu.Unlock()
		}
	}
}

// errTokenRequired is returned when the request lacks a valid token for a member.
var errTokenRequired = errors.New("gate: the token that the server requires is missing or invalid")

// listAll returns the tools of a server from all pages.
func listAll(v *requestState) ([]entry, error) {
	if ok, err := verifyToken(v); err != nil {
		return nil, err
	} else if !ok {
		return nil, errTokenRequired
	}
	w, err := newBridge(v)
	if err != nil {
		return nil, err
	}
	w.chooseWithoutSession()
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
		v.req.Fields["cursor"] = page.next
	}
	return nil, upstream.Fail(http.StatusOK, "the server's list has too many pages")
}

// missingReason returns the reason that clients see for a missing member.
func missingReason(err error) string {
	var failed *upstream.Failure
	switch {
	case errors.As(err, &failed):
		return failed.Why
	case errors.Is(err, mcp.ErrSignIn):
		return "each user must sign in at this server first"
	case errors.Is(err, errTokenRequired):
		return "the request lacks the token that this server requires"
	}
	return "the server could not be called"
}

// renameTool returns a tool definition with another name.
func renameTool(raw json.RawMessage, was, name string) (json.RawMessage, bool) {
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

// memberPipeline replaces the pipeline for requests to members, since the request is recorded
// once for all members.
type memberPipeline struct {
	Pipeline
	forwards, header http.Header
	received         int
}

func (u *memberPipeline) Forwards() http.Header                          { return u.forwards }
func (u *memberPipeline) Header() http.Header                            { return u.header }
func (u *memberPipeline) RecordCall(string, string, string, *usage.Call) {}
func (u *memberPipeline) StartResponse()                                 {}
func (u *memberPipeline) Ended(int)                                      {}
func (u *memberPipeline) RecordSizes(_, down int)                        { u.received += down }
func (u *memberPipeline) Send(int, string, []byte, *fault.Fault)         {}
func (u *memberPipeline) Event([]byte, bool, *fault.Fault)               {}

// maxRules is the number of cached validation rules.
const maxRules = 1000

// verifiedToken is a valid token of the organization's identity provider.
type verifiedToken struct {
	raw       string
	token     *bearer.Token
	subject   string // identifies the user among those who share a key
	tolerance time.Duration
}

// expired reports whether the token has expired. An introspected token may have no expiry.
func (p *verifiedToken) expired(now time.Time) bool {
	end, ok := p.token.Claims["exp"].(float64)
	return ok && !now.Before(time.Unix(int64(end), 0).Add(p.tolerance))
}

// verifyToken checks the token that clients of the server must send in addition to their key,
// if one is required. ok is false if a response was sent.
func verifyToken(v *requestState) (ok bool, err error) {
	of := v.facts.Integration
	if !of.RequiresToken() {
		return true, nil
	}
	_, conf, err := v.host.opener.Configuration(v.call.Context, of.Record, v.facts.Server.Record.Scope)
	if err != nil || conf.JWT == nil {
		return err == nil, err
	}
	rules := v.host.rulesOf(conf.JWT)
	raw := bearer.Of(v.call.Request.Header, conf.JWT.Header())
	if raw != "" && isGatewayCredential(v, raw) {
		return rejectToken(v, fault.Unauthorized, conf.JWT, "The header contains a credential of the gateway and no token of the organization's identity provider")
	}
	t, why, err := v.host.proofs.Check(v.call.Context, validationClient(v), rules, raw)
	switch {
	case err != nil:
		return false, fault.New(fault.ServiceUnavailable, strings.ToLower(conf.JWT.Header()), "The token cannot be checked now").WithCause(err)
	case t == nil:
		return rejectToken(v, fault.Unauthorized, conf.JWT, why)
	}
	failed, err := rules.Claims.Check(t)
	switch {
	case err != nil:
		return false, err
	case len(failed.Missing) > 0:
		return rejectToken(v, fault.Unauthorized, conf.JWT, "Missing required claims: "+strings.Join(failed.Missing, ", "))
	case len(failed.Mismatched) > 0:
		return rejectToken(v, fault.Unauthorized, conf.JWT, "Claims that differ between header and payload: "+strings.Join(failed.Mismatched, ", "))
	case len(failed.Wrong) > 0:
		return rejectToken(v, fault.NotAllowed, conf.JWT, "Claims with values that are not allowed: "+strings.Join(failed.Wrong, ", "))
	}
	v.token = &verifiedToken{raw, t, tokenSubject(t, raw), rules.Tolerance}
	return true, nil
}

// tokenSubject identifies the user of a token across renewals. A token without a subject
// identifies itself.
func tokenSubject(t *bearer.Token, raw string) string {
	issuer, _ := t.Claims["iss"].(string)
	subject, _ := t.Claims["sub"].(string)
	if subject == "" {
		issuer, subject = "", raw
	}
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}

// isGatewayCredential reports whether a value is a key or token of the gateway, which must not
// be sent to other hosts. A token that the organization's identity provider signed is none,
// even if it authenticates the caller.
func isGatewayCredential(v *requestState, raw string) bool {
	if oauthserver.IsGatewayToken(raw) {
		return true
	}
	own, _, err := identity.Token(v.call.Request.Header)
	return err == nil && own == raw && !(v.call.Caller.Type == identity.SignedToken && strings.Count(raw, ".") == 2)
}

// validationClient returns a client for the hosts of a validation. It does not follow
// redirects.
func validationClient(v *requestState) *http.Client {
	return &http.Client{Transport: v.call.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// rulesOf returns the cached rules of a validation.
func (h *Host) rulesOf(j *mcp.JWTValidation) *bearer.Rules {
	print := j.Fingerprint()
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rules[print]
	if r == nil {
		if len(h.rules) >= maxRules {
			clear(h.rules)
		}
		r = j.Rules()
		h.rules[print] = r
	}
	return r
}

// rejectToken rejects a request for its token, as RFC 6750 specifies. The body is an OAuth
// error instead of a message of the protocol, because clients treat it as a failed connection.
// It does not refer to the gateway's authorization server, which issues no such token.
func rejectToken(v *requestState, code fault.Code, j *mcp.JWTValidation, why string) (bool, error) {
	f := fault.New(code, strings.ToLower(j.Header()), why)
	v.record.Code, v.record.Decision = int64(f.Status()), "token"
	reason, name := "unauthorized", "invalid_token"
	if f.Status() == http.StatusForbidden {
		reason, name = "forbidden", "insufficient_scope"
	}
	raw, err := json.Marshal(map[string]string{"error": reason, "error_description": why, "field": f.Field, "trace_id": v.call.TraceID})
	if err != nil {
		return false, err
	}
	v.call.Pipeline.Header().Set("WWW-Authenticate", `Bearer error=`+strconv.Quote(name))
	parseRejected(v)
	v.call.Pipeline.Send(f.Status(), "application/json", raw, f)
	return false, nil
}
