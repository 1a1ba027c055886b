package main

import (
	"fmt"
	"testing"
	"time"
)

// until polls a call until it has a status; what ends does so within two seconds, and
// slow machines have more.
func (r *running) until(what string, status int, call func() reply) {
	r.t.Helper()
	var got reply
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got = call(); got.status == status {
			return
		}
	}
	r.t.Errorf("%s: %d %s, want %d", what, got.status, got.body, status)
}

// When an identity provider stops a user, the user's sessions and keys end, and what the
// user allowed clients. When the user returns, the key works again, but neither sessions
// nor grants do.
func TestAStoppedUserHasLetNobodyIn(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	client := l.client()
	tokens := l.tokens(exchangeOf(client, l.code(l.request(client), l.session)))
	l.wantStatus("a grant", l.lists(l.resource, tokens.Access), 200, "")
	l.admin("PUT", "/admin/organisation/settings", `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":true}}`)
	s := l.device("scope", "api_key")
	l.wantStatus("a device", l.sendForm(l.visit(s.complete, l.session), l.session, "allow", "workspace", "default"), 200, "It is in")
	key := l.poll(s).json(t)["access_token"].(string)
	waiting := l.device()
	l.wantStatus("another device", l.sendForm(l.visit(waiting.complete, l.session), l.session, "allow"), 200, "It is in")

	user := l.as(l.session, "GET", "/auth/self", "").json(t)["user"].(map[string]any)["id"].(string)
	scim := l.admin("POST", "/scim/tokens", `{"name":"idp"}`)["token"].(string)
	active := func(is bool) {
		t.Helper()
		body := fmt.Sprintf(`{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","path":"active","value":%v}]}`, is)
		l.wantStatus("scim", l.without("PATCH", "/scim/Users/"+user, body, "Authorization", "Bearer "+scim, "Content-Type", "application/scim+json"), 200, fmt.Sprintf(`"active":%v`, is))
	}
	models := func() reply { return l.without("GET", "/models", "", "Authorization", "Bearer "+key) }
	lists := func() reply { return l.lists(l.resource, tokens.Access) }
	self := func() reply { return l.as(l.session, "GET", "/auth/self", "") }
	active(false)
	l.until("the session", 401, self)
	l.until("the key", 401, models)
	l.until("the grant", 401, lists)
	l.wantStatus("its refresh token", l.send("/oauth/token", renewalOf(client, tokens.Refresh)), 400, "invalid_grant")
	l.wantStatus("what a device was allowed", l.poll(waiting), 400, "access_denied")

	active(true)
	l.until("the key is back", 200, models)
	l.wantStatus("the session is not", self(), 401, "ended")
	l.wantStatus("the grant is not", lists(), 401, "")
	l.wantStatus("its refresh token is not", l.send("/oauth/token", renewalOf(client, tokens.Refresh)), 400, "invalid_grant")
	l.wantStatus("what a device was allowed is not", l.poll(waiting), 400, "access_denied")
	session := l.signIn(user, 0)
	again := l.tokens(exchangeOf(client, l.code(l.request(client), session)))
	l.until("another grant", 200, func() reply { return l.lists(l.resource, again.Access) })
}

// Settings of who may sign in are changed by people who have signed in just now.
func TestSignInSettingsRequireARecentSignIn(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann := r.person("ann@example.com", "admin")
	late, now := r.signIn(ann, 16*time.Minute), r.signIn(ann, 0)
	for _, body := range []string{`{"auth_settings":{"jwks_url":null}}`, `{"session_settings":{"max_idle_time":3600}}`, `{"scim_settings":{"scim_only":false}}`, `{"auth_settings":{"jwks_url":null},"cache_settings":{"max_age":60}}`} {
		r.wantStatus(body, r.as(late, "PUT", "/admin/organisation/settings", body), 403, "sign in again")
		r.wantStatus(body, r.as(now, "PUT", "/admin/organisation/settings", body), 200, "")
		r.wantStatus(body, r.without("PUT", "/admin/organisation/settings", body, "X-Gateway-Api-Key", adminKey), 200, "")
	}
	r.wantStatus("another section", r.as(late, "PUT", "/admin/organisation/settings", `{"cache_settings":{"max_age":90}}`), 200, "")
}
