package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/store"
)

// person makes a user of the organization; in are pairs of workspace and role.
func (r *running) person(email, role string, in ...string) (id string) {
	r.t.Helper()
	var spaces []string
	for i := 0; i+1 < len(in); i += 2 {
		spaces = append(spaces, fmt.Sprintf(`{"id":%q,"role":%q}`, in[i], in[i+1]))
	}
	link := r.admin("POST", "/admin/users/invites", fmt.Sprintf(`{"email":%q,"role":%q,"workspaces":[%s]}`, email, role, strings.Join(spaces, ",")))["invite_link"].(string)
	got := r.without("POST", "/invites/accept?token="+link[strings.LastIndex(link, "=")+1:], `{"first_name":"Ann","last_name":"Lee"}`)
	if got.status != 200 {
		r.t.Fatalf("%d %s", got.status, got.body)
	}
	return got.json(r.t)["user_id"].(string)
}

// signIn begins a session of somebody who showed who it is some time ago.
func (r *running) signIn(user string, ago time.Duration) (token string) {
	r.t.Helper()
	org := store.Scope{Org: "default"}
	if err := r.g.core.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		if _, _, ok, err := membership.ByID(tx, org, user); err != nil || !ok {
			return fmt.Errorf("no user %s: %w", user, err)
		}
		var err error
		token, err = signin.Begin(tx, &signin.Session{Org: org.Org, User: user, Method: signin.ByOIDC, Authenticated: tx.Now().Add(-ago)})
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return token
}

// as calls with a session as a bearer.
func (r *running) as(token, method, path, body string, headers ...string) reply {
	r.t.Helper()
	return r.without(method, path, body, append(headers, "Authorization", "Bearer "+token)...)
}

func (r *running) wantStatus(what string, got reply, status int, has string) {
	r.t.Helper()
	if got.status != status || !strings.Contains(got.body, has) {
		r.t.Errorf("%s: %d %s, want %d with %q", what, got.status, got.body, status, has)
	}
}

func TestASessionIsWhatItsUserIs(t *testing.T) {
	t.Parallel()
	r := start(t)
	second := r.admin("POST", "/admin/workspaces", `{"name":"Second"}`)["id"].(string)
	boss, ann := r.person("boss@example.com", "admin"), r.person("ann@example.com", "member", "default", "member", second, "manager")
	ben := r.person("ben@example.com", "member", "default", "member")
	config := func(ws string) string {
		return fmt.Sprintf(`{"name":"c","workspace_id":%q,"config":{"retry":{"attempts":1}}}`, ws)
	}
	admin, member, only := r.signIn(boss, 0), r.signIn(ann, 0), r.signIn(ben, 0)

	r.wantStatus("admin, users", r.as(admin, "GET", "/admin/users", ""), 200, "ann@example.com")
	r.wantStatus("admin, config", r.as(admin, "POST", "/configs", config("default")), 200, "slug")
	r.wantStatus("member, users", r.as(member, "GET", "/admin/users", ""), 403, "AB03")
	r.wantStatus("member of several, none named", r.as(member, "GET", "/configs", ""), 400, "one of your workspaces")
	r.wantStatus("where it is a member it reads", r.as(member, "GET", "/configs?workspace_id=default", ""), 200, "data")
	r.wantStatus("and makes nothing", r.as(member, "POST", "/configs", config("default")), 403, "AB03")
	r.wantStatus("where it is a manager it makes", r.as(member, "POST", "/configs", config(second)), 200, "slug")
	r.wantStatus("the path names one", r.as(member, "GET", "/admin/workspaces/"+second, ""), 200, "Second")
	r.wantStatus("both are listed", r.as(member, "GET", "/admin/workspaces", ""), 200, `"total":2`)
	r.wantStatus("its only one", r.as(only, "GET", "/configs", ""), 200, "data")
	r.wantStatus("no other", r.as(only, "GET", "/configs?workspace_id="+second, ""), 403, "AB03")
	missing, foreign := r.as(only, "GET", "/admin/workspaces/nowhere", ""), r.as(only, "GET", "/admin/workspaces/"+second, "")
	id := func(a reply) string { return strings.ReplaceAll(a.body, a.header.Get("X-Gateway-Request-Id"), "") }
	if missing.status != foreign.status || id(missing) != id(foreign) {
		t.Errorf("a foreign workspace is told from a missing one: %s, %s", missing.body, foreign.body)
	}
	self := r.as(member, "GET", "/auth/self", "")
	r.wantStatus("self", self, 200, `"email":"ann@example.com"`)
	r.wantStatus("its workspaces", self, 200, `"role":"manager"`)
	r.wantStatus("a key is nobody", r.without("GET", "/auth/self", "", "Authorization", "Bearer "+adminKey), 401, "API keys")
	r.wantStatus("the data plane is for keys", r.as(admin, "POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "hi", "")), 401, "invalid")

	// What the user loses the session loses.
	r.admin("PUT", "/admin/users/"+boss, `{"role":"member"}`)
	r.wantStatus("an admin no more, in no workspace", r.as(admin, "GET", "/admin/users", ""), 403, "AB03")
	r.wantStatus("and still somebody", r.as(admin, "GET", "/auth/self", ""), 200, "boss@example.com")
	r.admin("DELETE", "/admin/users/"+ben, "")
	r.wantStatus("removed", r.as(only, "GET", "/auth/self", ""), 401, "ended")
	r.wantStatus("removed", r.as(only, "GET", "/configs", ""), 401, "ended")
}

func TestACookieChangesNothingWithoutItsWriteToken(t *testing.T) {
	t.Parallel()
	r := start(t)
	token := r.signIn(r.person("ann@example.com", "admin"), 0)
	cookie := browser.Cookie + "=" + token
	with := func(method, path, body string, headers ...string) reply {
		return r.without(method, path, body, append(headers, "Cookie", cookie)...)
	}
	self := with("GET", "/auth/self", "")
	r.wantStatus("reading", self, 200, "csrf_token")
	write := self.json(t)["csrf_token"].(string)
	const body = `{"name":"c","workspace_id":"default","config":{"provider":"@mock"}}`
	r.wantStatus("without", with("POST", "/configs", body), 403, "x-gateway-csrf")
	r.wantStatus("a wrong one", with("POST", "/configs", body, browser.WriteHeader, write[1:]+"A"), 403, "x-gateway-csrf")
	r.wantStatus("another session's", with("POST", "/configs", body, browser.WriteHeader, signin.WriteToken("gs-"+strings.Repeat("A", 43))), 403, "x-gateway-csrf")
	r.wantStatus("from another site", with("POST", "/configs", body, browser.WriteHeader, write, "Sec-Fetch-Site", "cross-site"), 403, "x-gateway-csrf")
	r.wantStatus("nothing was made", with("GET", "/configs?workspace_id=default", ""), 200, `"total":0`)
	r.wantStatus("with it", with("POST", "/configs", body, browser.WriteHeader, write, "Sec-Fetch-Site", "same-origin"), 200, "slug")
	r.wantStatus("two cookies", r.without("GET", "/auth/self", "", "Cookie", cookie+"; "+browser.Cookie+"=gs-"+strings.Repeat("A", 43)), 401, "")
	r.wantStatus("no token", r.without("GET", "/auth/self", "", "Cookie", browser.Cookie+"=x"), 401, "")
	r.wantStatus("a key comes first", with("GET", "/admin/users", "", "X-Gateway-Api-Key", workspaceKey), 403, "AB03")
	out := with("POST", "/auth/logout", "", browser.WriteHeader, write)
	r.wantStatus("log out", out, 200, "logout_url")
	if set := out.header.Get("Set-Cookie"); !strings.HasPrefix(set, browser.Cookie+"=;") || !strings.Contains(set, "Max-Age=0") || !strings.Contains(set, "Secure") || !strings.Contains(set, "SameSite=Strict") {
		t.Errorf("Set-Cookie %q", set)
	}
	r.wantStatus("after it", with("GET", "/auth/self", ""), 401, "ended")
}

func TestPeopleEndTheirOwnSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann, ben := r.person("ann@example.com", "admin"), r.person("ben@example.com", "admin")
	one, two, three, other := r.signIn(ann, 0), r.signIn(ann, 0), r.signIn(ann, 0), r.signIn(ben, 0)
	idOf := func(token string) string {
		return r.as(token, "GET", "/auth/self", "").json(t)["session"].(map[string]any)["id"].(string)
	}
	list := r.as(one, "GET", "/auth/sessions", "")
	r.wantStatus("the list", list, 200, `"total":3`)
	r.wantStatus("another's", r.as(one, "DELETE", "/auth/sessions/"+idOf(other), ""), 404, "sessionId")
	r.wantStatus("nobody's", r.as(one, "DELETE", "/auth/sessions/00000000-0000-4000-8000-000000000000", ""), 404, "sessionId")
	r.wantStatus("the other is there", r.as(other, "GET", "/auth/self", ""), 200, "ben@")
	ended := idOf(two)
	r.wantStatus("one of them", r.as(one, "DELETE", "/auth/sessions/"+ended, ""), 200, "{}")
	r.wantStatus("it ended", r.as(two, "GET", "/auth/self", ""), 401, "ended")
	r.wantStatus("all others", r.as(one, "DELETE", "/auth/sessions", ""), 200, "{}")
	r.wantStatus("they ended", r.as(three, "GET", "/auth/self", ""), 401, "ended")
	r.wantStatus("one stays", r.as(one, "GET", "/auth/sessions", ""), 200, `"total":1`)
	eventually(t, func() error {
		q := url.Values{"start_time": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}, "end_time": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "resource_type": {"sessions"}, "user_id": {ann}}
		got := r.call("GET", "/audit-logs?"+q.Encode(), "", "X-Gateway-Api-Key", adminKey)
		if !strings.Contains(got.body, ended) || !strings.Contains(got.body, `"response_status_code":404`) {
			return fmt.Errorf("%s", got.body)
		}
		return nil
	})
}

func TestDangerousChangesRequireARecentSignIn(t *testing.T) {
	t.Parallel()
	r := start(t)
	ann := r.person("ann@example.com", "admin")
	const body = `{"name":"k","scopes":["completions.write"],"workspace_id":"default"}`
	late, now := r.signIn(ann, 16*time.Minute), r.signIn(ann, 0)
	r.wantStatus("late", r.as(late, "POST", "/api-keys/workspace/service", body), 403, "sign in again")
	r.wantStatus("reading", r.as(late, "GET", "/api-keys", ""), 200, "data")
	made := r.as(now, "POST", "/api-keys/workspace/service", body)
	r.wantStatus("just now", made, 200, "key")
	rotate := "/api-keys/" + made.json(t)["id"].(string) + "/rotate"
	r.wantStatus("late", r.as(late, "POST", rotate, "{}"), 403, "sign in again")
	r.wantStatus("just now", r.as(now, "POST", rotate, "{}"), 200, "key")
	const hook = `{"name":"hook","url":"https://example.com/hook"}`
	r.wantStatus("late, a webhook", r.as(late, "POST", "/webhooks", hook), 403, "sign in again")
	made = r.as(now, "POST", "/webhooks", hook)
	r.wantStatus("just now, a webhook", made, 200, "secret")
	rotate = "/webhooks/" + made.json(t)["id"].(string) + "/rotate-secret"
	r.wantStatus("late, its secret", r.as(late, "POST", rotate, ""), 403, "sign in again")
	r.wantStatus("keys are not asked", r.without("POST", "/api-keys/workspace/service", body, "X-Gateway-Api-Key", adminKey), 200, "key")
}
