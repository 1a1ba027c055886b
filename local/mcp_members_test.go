package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bundled is what a virtual server lists: the names of tools, and the slugs of members that
// are missing.
type bundled struct {
	tools   []string
	missing map[string]string // where the user signs in; "": nowhere
	reasons string
}

// lookAt lists a virtual server as a client with headers does.
func (l *lobby) lookAt(slug string, headers ...string) (b bundled) {
	l.t.Helper()
	got := l.keyless("POST", "/mcp/"+slug+"/mcp", mcpBody("tools/list", ""), append([]string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}, headers...)...)
	var page struct {
		Result struct {
			Tools []struct{ Name string }
			Meta  map[string][]struct {
				Server, Reason string
				URL            string `json:"authorization_url"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		l.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	b.missing = map[string]string{}
	for _, tool := range page.Result.Tools {
		b.tools = append(b.tools, tool.Name)
	}
	for _, m := range page.Result.Meta["ai.gateway/missing"] {
		b.missing[m.Server], b.reasons = m.URL, b.reasons+m.Reason+"\n"
	}
	return b
}

// use calls a tool of a server, of a client that can send its user to an address or not.
func (l *lobby) use(slug, tool, abilities string, headers ...string) reply {
	l.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"r7","method":"tools/call","params":{"name":%q,"arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, tool, abilities)
	return l.keyless("POST", "/mcp/"+slug+"/mcp", body, append([]string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}, headers...)...)
}

// TestMembersThatWantMoreThanAKey: a virtual server has members at which users sign in, and
// members that need the token of an identity provider. Lists leave out what the caller
// cannot use yet and say why; calls are rejected as the member itself would reject them.
func TestMembersThatWantMoreThanAKey(t *testing.T) {
	t.Parallel()
	l, p := newLobby(t), newIdentityProvider(t)
	for _, speaks := range []string{stateless, sessions} {
		a := newAuthority(t, speaks)
		private, checked, all := "private-"+speaks, "checked-"+speaks, "all-"+speaks
		l.ofAuthority(a, private)
		up, _ := mcpServer(t, speaks)
		l.registerMCP(checked, up.URL, fmt.Sprintf(`,"configurations":{"jwt_validation":{"jwksUri":"%s/keys","requiredClaims":["email"],"headerKey":"X-User-Token"}}`, p.URL))
		l.bundle(all, fmt.Sprintf(`[{"server":"tools","prefix":"t_"},{"server":%q,"prefix":"p_"},{"server":%q,"prefix":"c_"}]`, private, checked), "")
		address := l.base + "/mcp/" + all + "/mcp"
		client := l.client()
		code := l.code(l.request(client, "resource", address), l.session)
		auth := []string{"Authorization", "Bearer " + l.tokens(exchangeOf(client, code, "resource", address)).Access}
		good := append(slices.Clone(auth), "X-User-Token", p.token(p.key, nil))
		wrong := append(slices.Clone(auth), "X-User-Token", p.token(p.key, map[string]any{"email": nil}))

		first := l.lookAt(all, auth...)
		if link, ok := first.missing[private]; !ok || !strings.HasPrefix(link, l.base+"/oauth/upstream-connect?link=") || len(first.missing) != 2 || !strings.Contains(first.reasons, "sign in at this server first") || !strings.Contains(first.reasons, "lacks the token") || len(first.tools) != 6 {
			t.Fatalf("%s: %+v", speaks, first)
		}
		l.wants("a member to sign in at", l.use(all, "p_tool1", "{}", auth...), 401, `"id":"r7"`, `"error":"sign_in_required"`, "/oauth/upstream-connect?link=")
		l.wants("by a client that opens addresses", l.use(all, "p_tool1", `{"elicitation":{"url":{}}}`, auth...), 200, `"resultType":"input_required"`, `"mode":"url"`)
		l.wants("a service", l.use(all, "p_tool1", "{}", "X-Gateway-Api-Key", workspaceKey), 403, "Each user signs in")
		if of := l.lookAt(all, "X-Gateway-Api-Key", workspaceKey); of.missing[private] != "" || len(of.missing) != 2 {
			t.Errorf("%s: a service: %+v", speaks, of)
		}
		l.wants("without the token", l.use(all, "c_tool1", "{}", auth...), 401, `"error":"unauthorized"`, "no token")
		l.wants("with a wrong one", l.use(all, "c_tool1", "{}", wrong...), 401, `"error":"unauthorized"`, "Missing required claims: email")
		l.wants("with a good one", l.use(all, "c_tool1", "{}", good...), 200, "said x")

		back, jar := l.connectAt(first.missing[private], l.session)
		l.wants("back", l.hop(back, jar), 200, "You are signed in")
		if now := l.lookAt(all, good...); len(now.missing) != 0 || len(now.tools) != 18 {
			t.Errorf("%s: signed in: %+v", speaks, now)
		}
		l.wants("signed in", l.use(all, "p_tool1", "{}", auth...), 200, "said x")
		a.stale()
		l.wants("renewed", l.use(all, "p_tool1", "{}", auth...), 200, "said x")
		if now := l.lookAt(all, wrong...); len(now.missing) != 1 || len(now.tools) != 12 {
			t.Errorf("%s: with a wrong token: %+v", speaks, now)
		}
	}
}
