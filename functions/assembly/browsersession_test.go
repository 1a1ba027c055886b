package assembly_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/store"
)

// tab is a browser with the cookies of its session by key.
type tab struct {
	in      *installation
	cookies []*http.Cookie
	csrf    string
	scopes  []string
}

const ownOrigin = "http://gateway.example"

// send sends a request with the tab's cookies and the given headers.
func (b *tab) send(method, path, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, ownOrigin+"/v1"+path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.8:4711"
	r.Header.Set("Content-Type", "application/json")
	for _, c := range b.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	for name, v := range header {
		r.Header[http.CanonicalHeaderKey(name)] = v
	}
	w := httptest.NewRecorder()
	b.in.handler.ServeHTTP(w, r)
	return w
}

// page is send as a page of the gateway does it.
func (b *tab) page(method, path, body string) *httptest.ResponseRecorder {
	return b.send(method, path, body, http.Header{"Origin": {ownOrigin}, browser.WriteHeader: {b.csrf}})
}

// enter signs a tab in with an API key.
func (in *installation) enter(key string) *tab {
	in.t.Helper()
	b := &tab{in: in}
	got := b.send("POST", "/session", fmt.Sprintf(`{"api_key":%q}`, key), http.Header{"Origin": {ownOrigin}})
	if got.Code != http.StatusOK {
		in.t.Fatalf("sign in: %d %s", got.Code, got.Body)
	}
	b.read(got)
	return b
}

func (b *tab) read(got *httptest.ResponseRecorder) {
	b.in.t.Helper()
	var out struct {
		Write  string   `json:"csrf_token"`
		Scopes []string `json:"scopes"`
	}
	if err := json.Unmarshal(got.Body.Bytes(), &out); err != nil {
		b.in.t.Fatal(err)
	}
	b.csrf, b.scopes = out.Write, out.Scopes
	for _, c := range got.Result().Cookies() {
		if c.MaxAge >= 0 {
			b.cookies = append(b.cookies, c)
		}
	}
}

func (in *installation) status(what string, got *httptest.ResponseRecorder, status int, has string) {
	in.t.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), has) {
		in.t.Errorf("%s: %d %s, want %d with %q", what, got.Code, got.Body, status, has)
	}
}

func TestKeySessionCookieIsStrictAndHoldsNoKey(t *testing.T) {
	in := install(t, nil)
	for origin, name := range map[string]string{ownOrigin: browser.PlainKeyCookie, "https://gateway.example": browser.KeyCookie} {
		b := &tab{in: in}
		got := b.send("POST", "/session", fmt.Sprintf(`{"api_key":%q}`, firstKey), http.Header{"Origin": {origin}})
		in.status("sign in", got, 200, `"csrf_token":"`)
		b.read(got)
		if len(b.cookies) != 1 {
			t.Fatalf("cookies %v", b.cookies)
		}
		c := b.cookies[0]
		if c.Name != name || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != strings.HasPrefix(origin, "https") || c.Path != "/" || c.Domain != "" {
			t.Errorf("%s: %+v", origin, c)
		}
		if strings.Contains(got.Body.String()+fmt.Sprint(got.Header()), firstKey) {
			t.Error("the response repeats the key")
		}
	}
}

func TestKeySessionsActAsTheirKeyAndNeverMore(t *testing.T) {
	in := install(t, nil)
	narrow := in.must("POST", "/api-keys/workspace/service", rootKey, `{"name":"narrow","workspace_id":"first-space","scopes":["configs.list","configs.create"]}`)
	b := in.enter(narrow["key"].(string))
	if got := strings.Join(b.scopes, " "); got != "configs.create configs.list" {
		t.Errorf("scopes %q", got)
	}
	const config = `{"name":"by cookie","config":{"retry":{"attempts":1}}}`
	in.status("what the key may", b.page("GET", "/configs", ""), 200, "data")
	in.status("what the key may change", b.page("POST", "/configs", config), 200, "slug")
	in.status("what the key may not", b.page("GET", "/prompts", ""), 403, "AB03")
	in.status("another workspace", b.page("GET", "/configs?workspace_id=other-space", ""), 403, "AB03")
	in.status("another organization", b.page("GET", "/configs?organisation_id=other", ""), 403, "AB03")
	in.status("its own", b.page("GET", "/session", ""), 200, `"type":"workspace-service"`)
	other := in.enter(otherRoot)
	in.status("the key of another organization", other.page("GET", "/configs/"+"by-cookie?workspace_id=first-space", ""), 404, "AB08")

	// A key that loses a scope takes it from its sessions.
	in.must("PUT", "/api-keys/"+narrow["id"].(string), rootKey, `{"scopes":["configs.create"]}`)
	in.status("a scope that was taken", b.page("GET", "/configs", ""), 403, "AB03")
}

func TestWritesWithAKeySessionNeedOriginAndWriteToken(t *testing.T) {
	in := install(t, nil)
	b, other := in.enter(rootKey), in.enter(otherRoot)
	const path, body = "/configs", `{"name":"c","workspace_id":"first-space","config":{"retry":{"attempts":1}}}`
	for what, h := range map[string]http.Header{
		"no header at all":          {},
		"no write token":            {"Origin": {ownOrigin}},
		"no origin":                 {browser.WriteHeader: {b.csrf}},
		"a foreign origin":          {"Origin": {"https://evil.example"}, browser.WriteHeader: {b.csrf}},
		"an opaque origin":          {"Origin": {"null"}, browser.WriteHeader: {b.csrf}},
		"a foreign site":            {"Origin": {ownOrigin}, "Sec-Fetch-Site": {"cross-site"}, browser.WriteHeader: {b.csrf}},
		"the token of another":      {"Origin": {ownOrigin}, browser.WriteHeader: {other.csrf}},
		"the cookie as write token": {"Origin": {ownOrigin}, browser.WriteHeader: {b.cookies[0].Value}},
	} {
		in.status(what, b.send("POST", path, body, h), 403, "x-gateway-csrf")
		in.status("end with "+what, b.send("DELETE", "/session", "", h), 403, "x-gateway-csrf")
	}
	if all := in.must("GET", path+"?workspace_id=first-space", rootKey, "")["total"]; all != 0.0 {
		t.Errorf("%v configs were made", all)
	}
	in.status("its own page", b.page("POST", path, body), 200, "slug")
	for _, h := range offSite {
		in.status(fmt.Sprint("sign in from ", h), (&tab{in: in}).send("POST", "/session", fmt.Sprintf(`{"api_key":%q}`, rootKey), h), 403, "own pages")
	}
}

func TestKeySessionTokensAreCookiesOnly(t *testing.T) {
	in := install(t, nil)
	b := in.enter(rootKey)
	token := b.cookies[0].Value
	for _, h := range []http.Header{{"Authorization": {"Bearer " + token}}, {"X-Gateway-Api-Key": {token}}, {"X-Api-Key": {token}}} {
		in.status(fmt.Sprint(h), (&tab{in: in}).send("GET", "/admin/workspaces", "", h), 401, "Invalid API key")
	}
	in.status("about a user", b.page("GET", "/auth/self", ""), 401, "not API keys")
	twice := &tab{in: in, cookies: append([]*http.Cookie{{Name: browser.PlainKeyCookie, Value: "gk-" + strings.Repeat("A", 43)}}, b.cookies...)}
	in.status("two cookies", twice.page("GET", "/admin/workspaces", ""), 401, "")
	if !identity.HoldsCredential(token) {
		t.Error("the token could be forwarded to a provider")
	}
}

func TestKeySessionsEndWithTheirKey(t *testing.T) {
	in := install(t, nil)
	made := func(more string) (id, key string) {
		k := in.must("POST", "/api-keys/workspace/service", rootKey, `{"name":"k","workspace_id":"first-space","scopes":["configs.list"]`+more+`}`)
		return k["id"].(string), k["key"].(string)
	}
	for what, end := range map[string]func(b *tab, id string){
		"revoked": func(_ *tab, id string) { in.must("DELETE", "/api-keys/"+id, rootKey, "") },
		"ended":   func(b *tab, _ string) { in.status("end", b.page("DELETE", "/session", ""), 200, "logout_url") },
		"rotated": func(_ *tab, id string) {
			in.must("POST", "/api-keys/"+id+"/rotate", rootKey, "")
			in.must("POST", "/api-keys/"+id+"/rotate", rootKey, `{"during_transition":"end"}`)
		},
	} {
		id, key := made("")
		b := in.enter(key)
		in.status("before it is "+what, b.page("GET", "/configs", ""), 200, "data")
		end(b, id)
		in.status(what, b.page("GET", "/configs", ""), 401, "ended")
		in.status(what, b.page("GET", "/session", ""), 200, `"type":"none"`)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	_, key := made(fmt.Sprintf(`,"expires_at":%q`, until.Format(time.RFC3339)))
	b := in.enter(key)
	in.status("no longer than the key", b.page("GET", "/session", ""), 200, `"expires_at":"`+until.Format("2006-01-02T15:04:05"))
}

func TestKeySessionOfAUserEndsWithTheUser(t *testing.T) {
	in := install(t, nil)
	id := in.user(rootKey, "ann@example.com", "member", "first-space", "manager")
	key := in.must("POST", "/api-keys/workspace/user", rootKey, fmt.Sprintf(`{"name":"k","workspace_id":"first-space","user_id":%q,"scopes":["configs.list","configs.create"]}`, id))
	b := in.enter(in.collect(key["id"].(string), "ann@example.com"))
	const config = `{"name":"c","config":{"retry":{"attempts":1}}}`
	in.status("as a manager", b.page("POST", "/configs", config), 200, "slug")
	in.must("PUT", "/admin/workspaces/first-space/users/"+id, rootKey, `{"role":"member"}`)
	in.status("as a member", b.page("POST", "/configs", config), 403, "AB03")
	in.must("DELETE", "/admin/users/"+id, rootKey, "")
	in.status("removed", b.page("GET", "/configs", ""), 401, "")
}

func TestWrongSignInsAreLimited(t *testing.T) {
	in := install(t, nil)
	b := &tab{in: in}
	own := http.Header{"Origin": {ownOrigin}}
	refused := false
	for n := 0; n < 100 && !refused; n++ {
		got := b.send("POST", "/session", `{"api_key":"wrong"}`, own)
		refused = got.Code == 429
		if !refused && got.Code != 401 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	if !refused {
		t.Error("wrong keys may be tried without a limit")
	}
	in.status("both", b.send("POST", "/session", `{"api_key":"a","invitation":"b"}`, http.Header{"Origin": {ownOrigin}, "X-Forwarded-For": {"192.0.2.99"}}), 429, "attempts")
}

func TestInvitationOpensASessionWithItsKey(t *testing.T) {
	in := install(t, nil)
	own := http.Header{"Origin": {ownOrigin}}
	invite := func(more string) string {
		link := in.must("POST", "/admin/users/invites", rootKey, `{"email":"new@example.com","role":"member","workspaces":[{"id":"first-space","role":"member"}]`+more+`}`)["invite_link"].(string)
		return link[strings.LastIndex(link, "=")+1:]
	}
	without := invite("")
	b := &tab{in: in}
	in.status("an invitation without a key", b.send("POST", "/session", fmt.Sprintf(`{"invitation":%q}`, without), own), 409, "no API key")
	pending := in.must("GET", "/admin/users/invites", rootKey, "")["data"].([]any)[0].(map[string]any)
	if pending["status"] != "pending" {
		t.Errorf("it was accepted: %v", pending)
	}
	in.must("DELETE", "/admin/users/invites/"+pending["id"].(string), rootKey, "")
	token := invite(`,"workspace_api_key_details":{"scopes":["configs.list"]}`)
	body := fmt.Sprintf(`{"invitation":%q,"first_name":"New"}`, token)
	got := b.send("POST", "/session", body, own)
	in.status("an invitation with a key", got, 200, `"api_keys":[{"id":`)
	b.read(got)
	in.status("acts", b.page("GET", "/configs", ""), 200, "data")
	in.status("no more than the key", b.page("GET", "/prompts", ""), 403, "AB03")
	in.status("once", (&tab{in: in}).send("POST", "/session", body, own), 404, "no longer valid")
}

// TestSignedInUsersEndTheirSessionAtTheSameAddress uses a session of single sign-on.
func TestSignedInUsersEndTheirSessionAtTheSameAddress(t *testing.T) {
	in := install(t, nil)
	in.user(rootKey, "ann@example.com", "admin", "", "")
	session := in.session("ann@example.com")
	b := &tab{in: in, cookies: []*http.Cookie{{Name: browser.Cookie, Value: session}}}
	got := b.page("GET", "/session", "")
	in.status("who", got, 200, `"type":"session"`)
	b.read(got)
	if b.csrf != signin.WriteToken(session) {
		t.Error("the write token is another one")
	}
	in.status("end", b.page("DELETE", "/session", ""), 200, "logout_url")
	in.status("ended", b.page("GET", "/admin/users", ""), 401, "")
}

func TestKeySessionsEndAsConfigured(t *testing.T) {
	in := install(t, nil)
	b := in.enter(rootKey)
	in.must("PUT", "/admin/organisation/settings", rootKey, `{"session_settings":{"max_session_ttl":900}}`)
	var created time.Time
	row := store.Credential("KEYSESSION", identity.HashToken(b.cookies[0].Value))
	it, ok, err := in.core.Store.Table(store.Keys).Get(context.Background(), row, true)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	created = time.UnixMilli(it.Int("created")).Add(-15 * time.Minute)
	it["created"] = created.UnixMilli()
	if strings.Contains(fmt.Sprint(it), rootKey) || strings.Contains(fmt.Sprint(it), b.cookies[0].Value) {
		t.Error("the row has a secret")
	}
	if err := in.core.Resources.Change(context.Background(), store.Scope{Org: "first"}, func(tx *resource.Tx) error {
		return tx.PutCredential(store.Row{Key: row, Item: it})
	}); err != nil {
		t.Fatal(err)
	}
	in.status("older than the settings allow", b.page("GET", "/admin/workspaces", ""), 401, "ended")
}
