package main

import (
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/shared/signin/browser"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// deviceCodes are what a device gets first.
type deviceCodes struct{ device, user, page, complete string }

func (l *lobby) device(form ...string) (s deviceCodes) {
	l.t.Helper()
	q := url.Values{"client_id": {"gateway-cli"}}
	for i := 0; i+1 < len(form); i += 2 {
		q.Set(form[i], form[i+1])
	}
	got := l.send("/oauth/device_authorization", q)
	l.wantStatus("device authorization", got, 200, `"interval":5`)
	m := got.json(l.t)
	if got.header.Get("Cache-Control") != "no-store" || m["expires_in"] != 600.0 {
		l.t.Errorf("%v %s", got.header, got.body)
	}
	return deviceCodes{m["device_code"].(string), m["user_code"].(string), m["verification_uri"].(string), m["verification_uri_complete"].(string)}
}

// visit goes to a page as a browser does that has a session.
func (l *lobby) visit(address, session string) reply {
	l.t.Helper()
	jar := map[string]string{}
	first := l.hop(address, jar)
	next := refresh.FindStringSubmatch(first.body)
	if next == nil {
		return first
	}
	if session != "" {
		jar[browser.Cookie] = session
	}
	return l.hop(html.UnescapeString(next[1]), jar)
}

// sendForm sends the form of a device's page.
func (l *lobby) sendForm(page reply, session, decision string, more ...string) reply {
	l.t.Helper()
	form := url.Values{"decision": {decision}}
	for _, m := range inputs.FindAllStringSubmatch(page.body, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return l.send("/oauth/device", form, "Cookie", browser.Cookie+"="+session)
}

func (l *lobby) poll(s deviceCodes, change ...string) reply {
	l.t.Helper()
	q := url.Values{"grant_type": {deviceGrant}, "client_id": {"gateway-cli"}, "device_code": {s.device}}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return l.send("/oauth/token", q)
}

func TestADeviceSignsInAsItsPerson(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	s := l.device()
	l.wantStatus("before", l.poll(s), 400, `"error":"authorization_pending"`)
	l.wantStatus("at once again", l.poll(s), 400, `"error":"slow_down"`)
	stranger := l.visit(s.complete, "")
	l.wantStatus("nobody signed in", stranger, 200, "Your e-mail address")
	// Coming back from another site, a browser has no session's cookie for this page yet.
	l.wantStatus("the way back", stranger, 200, `name="return_to" value="/v1/oauth/device?user_code=`+s.user+`"`)
	l.wantStatus("without a code", l.visit(s.page, l.session), 200, "Code shown on your device")
	page := l.visit(s.complete, l.session)
	l.wantStatus("the page", page, 200, s.user)
	l.wantStatus("the page", page, 200, "bea@example.com")
	if page.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(page.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("%v", page.header)
	}
	l.wantStatus("allowed", l.sendForm(page, l.session, "allow"), 200, "It is in")
	l.wantStatus("allowed twice", l.sendForm(page, l.session, "allow"), 404, "invalid, has expired, or was already used")
	l.wantStatus("another client", l.poll(s, "client_id", l.client()), 400, `"error":"invalid_grant"`)
	got := l.poll(s)
	l.wantStatus("the token", got, 200, `"scope":"session"`)
	token := got.json(t)["access_token"].(string)
	l.wantStatus("twice", l.poll(s), 400, `"error":"invalid_grant"`)
	self := l.as(token, "GET", "/auth/self", "")
	l.wantStatus("the session", self, 200, `"email":"bea@example.com"`)
	l.wantStatus("the session", self, 200, `"method":"device"`)
	l.wantStatus("its end", l.as(token, "POST", "/auth/logout", ""), 200, "logout_url")
	l.wantStatus("after it", l.as(token, "GET", "/auth/self", ""), 401, "ended")
	l.wantStatus("the browser's", l.as(l.session, "GET", "/auth/self", ""), 200, `"method":"oidc"`)

	l.inAuditLog(`"resource_type":"device_authorizations"`, `"action":"accept"`, `"decision":"allow"`, `"client_id":"gateway-cli"`, `"client_ip":"127.0.0.1"`)
	l.inAuditLog(`"resource_type":"device_authorizations"`, `"action":"login"`)
	l.inAuditLog(`"resource_type":"device_authorizations"`, `"error":"unknown or expired code"`)
}

// A device's session ends no later than the one that let it in, and somebody who has
// signed out lets nobody in.
func TestADeviceOutlivesNoSession(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	let := func(session string) deviceCodes {
		s := l.device()
		l.wantStatus("allowed", l.sendForm(l.visit(s.complete, session), session, "allow"), 200, "It is in")
		return s
	}
	ends := func(session string) string {
		self := l.as(session, "GET", "/auth/self", "").json(t)
		of, _ := self["session"].(map[string]any)
		until, _ := of["expires_at"].(string)
		if until == "" {
			t.Fatalf("%v", self)
		}
		return until
	}
	token := l.poll(let(l.session)).json(t)["access_token"].(string)
	again := l.poll(let(token)).json(t)["access_token"].(string)
	if first := ends(l.session); ends(token) != first || ends(again) != first {
		t.Errorf("%s, %s, %s", first, ends(token), ends(again))
	}
	s := let(token)
	l.wantStatus("signed out", l.as(token, "POST", "/auth/logout", ""), 200, "logout_url")
	l.wantStatus("after it", l.poll(s), 400, `"error":"access_denied"`)
}

// inAuditLog waits for one record that has all of these.
func (r *running) inAuditLog(has ...string) {
	r.t.Helper()
	var got reply
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now := time.Now()
		times := url.Values{"page_size": {"100"}, "start_time": {now.Add(-time.Hour).Format(time.RFC3339)}, "end_time": {now.Add(time.Hour).Format(time.RFC3339)}}
		got = r.call("GET", "/audit-logs?"+times.Encode(), "", "X-Gateway-Api-Key", adminKey)
		if got.status != 200 {
			r.t.Fatalf("%d %s", got.status, got.body)
		}
		records, _ := got.json(r.t)["records"].([]any)
		for _, rec := range records {
			raw, err := json.Marshal(rec)
			if err != nil {
				r.t.Fatal(err)
			}
			text, all := string(raw), true
			for _, h := range has {
				all = all && strings.Contains(text, h)
			}
			if all {
				return
			}
		}
	}
	r.t.Errorf("no record has %q in %s", has, got.body)
}

func TestADeviceGetsAKeyOfItsPerson(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	request := func(more ...string) (deviceCodes, reply) {
		s := l.device(append([]string{"scope", "api_key"}, more...)...)
		page := l.visit(s.complete, l.session)
		l.wantStatus("the page", page, 200, "Workspace of the key")
		return s, page
	}
	s, page := request()
	l.wantStatus("members have none unless the settings say so", l.sendForm(page, l.session, "allow", "workspace", "default"), 403, "you may not create a key in it")
	l.admin("PUT", "/admin/organisation/settings", `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":true,"user_api_key_ttl":7200}}`)
	l.wantStatus("no such workspace", l.sendForm(page, l.session, "allow", "workspace", "elsewhere"), 403, "you may not create a key in it")
	l.wantStatus("no workspace", l.sendForm(page, l.session, "allow", "workspace", ""), 403, "you may not create a key in it")
	l.wantStatus("allowed", l.sendForm(page, l.session, "allow", "workspace", "default"), 200, "It is in")
	got := l.poll(s)
	l.wantStatus("the key", got, 200, `"scope":"api_key"`)
	made := got.json(t)
	if n := made["expires_in"].(float64); n < 7000 || n > 7200 || made["workspace_id"] == "" {
		t.Error(got.body)
	}
	key := made["access_token"].(string)
	l.wantStatus("calls", l.without("POST", "/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer "+key, "X-Gateway-Provider", "@mock"), 200, "choices")
	read := l.call("GET", "/api-keys/"+made["api_key_id"].(string), "", "X-Gateway-Api-Key", adminKey)
	l.wantStatus("the key", read, 200, `"type":"workspace-user"`)

	// Who signed in long ago shows who it is again.
	bea := read.json(t)["user_id"].(string)
	late := l.signIn(bea, 16*time.Minute)
	s, page = request("workspace", "default")
	l.wantStatus("preset", page, 200, `value="default"`)
	l.wantStatus("late", l.visit(s.complete, late), 403, "Sign in again")
	form := l.visit(s.complete, late)
	l.wantStatus("late", l.sendForm(form, late, "allow", "user_code", s.user, "csrf", l.as(late, "GET", "/auth/self", "").json(t)["csrf_token"].(string), "workspace", "default"), 403, "Sign in again")

	// Who leaves meanwhile gets nothing.
	l.wantStatus("allowed", l.sendForm(page, l.session, "allow", "workspace", "default"), 200, "It is in")
	l.admin("DELETE", "/admin/users/"+bea, "")
	l.wantStatus("gone", l.poll(s), 400, `"error":"access_denied"`)
	l.wantStatus("and its key", l.without("GET", "/models", "", "Authorization", "Bearer "+key), 401, "")
}

func TestDevicesAreRefused(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	for name, of := range map[string]struct {
		form url.Values
		has  string
	}{
		"no client":       {url.Values{}, "client_id"},
		"unknown client":  {url.Values{"client_id": {"x"}}, `"error":"invalid_client"`},
		"an inside host":  {url.Values{"client_id": {"https://127.0.0.1/client.json"}}, `"error":"invalid_client"`},
		"another scope":   {url.Values{"client_id": {"gateway-cli"}, "scope": {"session api_key"}}, `"error":"invalid_scope"`},
		"a workspace":     {url.Values{"client_id": {"gateway-cli"}, "workspace": {"default"}}, "workspace"},
		"not UTF-8":       {url.Values{"client_id": {"gateway-cli"}, "workspace": {"\xff"}, "scope": {"api_key"}}, "error"},
		"client too long": {url.Values{"client_id": {strings.Repeat("x", 5000)}}, "client_id"},
		"client twice":    {url.Values{"client_id": {"gateway-cli", "gateway-cli"}}, "client_id"},
	} {
		l.wantStatus(name, l.send("/oauth/device_authorization", of.form), 400, of.has)
	}
	s := l.device()
	page := l.visit(s.complete, l.session)
	form := func(more ...string) reply { return l.sendForm(page, l.session, "allow", more...) }
	l.wantStatus("another page's", form("csrf", "x"), 403, "csrf")
	l.wantStatus("another site's", l.send("/oauth/device", url.Values{"decision": {"allow"}, "user_code": {s.user}, "csrf": {l.as(l.session, "GET", "/auth/self", "").json(t)["csrf_token"].(string)}}, "Cookie", browser.Cookie+"="+l.session, "Sec-Fetch-Site", "cross-site"), 403, "csrf")
	l.wantStatus("no session", l.send("/oauth/device", url.Values{"decision": {"allow"}, "user_code": {s.user}}), 401, "")
	l.wantStatus("another decision", form("decision", "perhaps"), 400, "decision")
	l.wantStatus("nothing came of it", l.poll(s), 400, "authorization_pending")
	for _, code := range []string{"", "x", s.user, strings.Repeat("A", 43)} {
		l.wantStatus("device code "+code, l.poll(s, "device_code", code), 400, `"error":"invalid_grant"`)
	}
	l.wantStatus("refused", l.sendForm(page, l.session, "deny"), 200, "Refused")
	l.wantStatus("refused", l.poll(s), 400, `"error":"access_denied"`)

	// Codes are not guessed: after a few the person waits, with a good one too.
	other := l.device()
	for i := range 200 { // a window may end meanwhile
		got := l.visit(s.page+"?user_code=BCDF-GHJK", l.session)
		if got.status == 429 {
			if got.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			break
		}
		if got.status != 404 || i == 199 {
			t.Fatalf("%d: %d %s", i, got.status, got.body)
		}
	}
	l.wantStatus("a good one", l.visit(other.complete, l.session), 429, "too many")
	cid := l.newcomer("cid")
	l.wantStatus("another person", l.visit(s.page+"?user_code=BCDF-GHJK", cid), 404, "invalid, has expired, or was already used")

	// Nothing that a device says of itself becomes a part of the page.
	got := l.send("/oauth/device_authorization", url.Values{"client_id": {l.client()}}, "User-Agent", `<script>alert(1)</script>`)
	l.wantStatus("a registered client", got, 200, "user_code")
	shownPage := l.visit(s.page+"?user_code="+got.json(t)["user_code"].(string), cid)
	if shownPage.status != 200 || strings.Contains(shownPage.body, "<script>") || !strings.Contains(shownPage.body, "An &lt;app&gt;") {
		t.Error(shownPage.body)
	}
}

func TestTheWaysInAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := 0; ; i++ {
		got := r.without("GET", "/auth/login?email=ann@nowhere.example", "")
		if got.status == 429 {
			if i < 120 || i > 2*120 || got.header.Get("Retry-After") == "" { // a window may end meanwhile
				t.Errorf("after %d: %v", i, got.header)
			}
			break
		}
		if got.status != 404 || i > 300 {
			t.Fatalf("%d: %d %s", i, got.status, got.body)
		}
	}
	r.wantStatus("clients have their own count", r.without("POST", "/oauth/token", "", "Content-Type", "application/x-www-form-urlencoded"), 400, "grant_type")
}
