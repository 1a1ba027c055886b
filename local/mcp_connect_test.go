package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// authority is a strict authorization server with an MCP server that takes its tokens.
type authority struct {
	*httptest.Server
	t        *testing.T
	resource string

	mu       sync.Mutex
	clients  map[string]string // redirect addresses
	codes    map[string]url.Values
	access   map[string]bool
	refresh  map[string]bool // true: good
	made     int
	renewals int
	reused   bool
	iss      string // that answers carry
}

func newAuthority(t *testing.T, speaks string) *authority {
	t.Helper()
	a := &authority{t: t, clients: map[string]string{}, codes: map[string]url.Values{}, access: map[string]bool{}, refresh: map[string]bool{}}
	up, _ := mcpServer(t, speaks)
	to, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(to)
	m := http.NewServeMux()
	m.HandleFunc("/about", func(w http.ResponseWriter, _ *http.Request) {
		a.json(w, 200, map[string]any{"resource": a.resource, "authorization_servers": []string{a.URL + "/tenant"}, "scopes_supported": []string{"tools.use"}})
	})
	m.HandleFunc("/.well-known/oauth-authorization-server/tenant", func(w http.ResponseWriter, _ *http.Request) {
		a.json(w, 200, map[string]any{
			"issuer": a.URL + "/tenant", "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	m.HandleFunc("POST /register", a.register)
	m.HandleFunc("GET /authorize", a.authorize)
	m.HandleFunc("POST /token", a.token)
	m.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		good := a.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		a.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+a.URL+`/about"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	})
	a.Server = httptest.NewServer(m)
	a.resource, a.iss = a.URL+"/mcp", a.URL+"/tenant"
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

func (a *authority) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Error(err)
	}
}

func (a *authority) refuse(w http.ResponseWriter, code string) {
	a.json(w, 400, map[string]string{"error": code, "error_description": "words of its own"})
}

func (a *authority) register(w http.ResponseWriter, r *http.Request) {
	var c struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Auth      string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&c) != nil || len(c.Redirects) != 1 || c.Auth != "none" || strings.Join(c.Grants, " ") != "authorization_code refresh_token" || !strings.HasPrefix(c.Name, "Gateway (") {
		a.refuse(w, "invalid_client_metadata")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := fmt.Sprintf("client %d&", len(a.clients))
	a.clients[id] = c.Redirects[0]
	a.json(w, 201, map[string]any{"client_id": id, "redirect_uris": c.Redirects, "token_endpoint_auth_method": "none"})
}

func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	redirect := a.clients[q.Get("client_id")]
	if redirect == "" || redirect != q.Get("redirect_uri") || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		q.Get("resource") != a.resource || q.Get("scope") != "tools.use" || len(q.Get("state")) < 32 {
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := fmt.Sprintf("code-%d", len(a.codes))
	a.codes[code] = q
	http.Redirect(w, r, redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.iss}}.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.ParseForm() != nil || r.Header.Get("Authorization") != "" || a.clients[r.PostForm.Get("client_id")] == "" || r.PostForm.Get("resource") != a.resource {
		a.refuse(w, "invalid_client")
		return
	}
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		grant := a.codes[r.PostForm.Get("code")]
		delete(a.codes, r.PostForm.Get("code"))
		if grant == nil || challengeOf(r.PostForm.Get("code_verifier")) != grant.Get("code_challenge") || r.PostForm.Get("redirect_uri") != grant.Get("redirect_uri") || r.PostForm.Get("client_id") != grant.Get("client_id") {
			a.refuse(w, "invalid_grant")
			return
		}
	case "refresh_token":
		good, known := a.refresh[r.PostForm.Get("refresh_token")]
		if !good {
			a.reused = a.reused || known
			clear(a.refresh) // a strict server ends the whole grant
			a.refuse(w, "invalid_grant")
			return
		}
		a.refresh[r.PostForm.Get("refresh_token")] = false
		a.renewals++
	default:
		a.refuse(w, "unsupported_grant_type")
		return
	}
	a.made++
	access, refresh := fmt.Sprintf("access-%d", a.made), fmt.Sprintf("refresh-%d", a.made)
	a.access[access], a.refresh[refresh] = true, true
	a.json(w, 200, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600})
}

// stale ends all access tokens.
func (a *authority) stale() { a.mu.Lock(); clear(a.access); a.mu.Unlock() }

// ofAuthority lets a user of the gateway call a server of an authority.
func (l *lobby) ofAuthority(a *authority, slug string) (server, token string) {
	l.t.Helper()
	at := fmt.Sprintf(`,"workspace_id":%q}`, l.workspace())
	l.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"url":%q,"auth_type":"oauth_auto","transport":"http"`, slug, slug, a.resource)+at)
	server = l.admin("POST", "/mcp-servers", fmt.Sprintf(`{"name":%q,"slug":%q,"mcp_integration_id":%q`, slug, slug, slug)+at)["id"].(string)
	client, address := l.client(), l.base+"/mcp/"+slug+"/mcp"
	code := l.code(l.request(client, "resource", address), l.session)
	return server, l.tokens(exchangeOf(client, code, "resource", address)).Access
}

// signInURL is where a rejected call sends the user.
func (l *lobby) signInURL(address, token string) string {
	l.t.Helper()
	got := l.lists(address, token)
	l.wants("before the sign-in", got, 401, `"error":"sign_in_required"`)
	var response struct {
		Error struct {
			Data struct {
				URL string `json:"authorization_url"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(got.body), &response); err != nil || !strings.HasPrefix(response.Error.Data.URL, l.base+"/oauth/upstream-connect?link=") {
		l.t.Fatalf("%v %s", err, got.body)
	}
	return response.Error.Data.URL
}

// connectAt takes a browser to the authority and back to the gateway's door.
func (l *lobby) connectAt(link, session string) (back string, jar map[string]string) {
	l.t.Helper()
	jar = map[string]string{"__Host-gateway-session": session}
	page := l.hop(link, jar)
	l.wants("asked first", page, 200, "Continue only if you have just called this server yourself", "bea@example.com")
	out := l.submit(page, jar)
	l.wants("to the authority", out, 303)
	there := l.hop(out.header.Get("Location"), nil)
	l.wants("at the authority", there, 302)
	return there.header.Get("Location"), jar
}

// TestUsersSignInAtServers: from the rejection, through the authorization server, to calls
// with the user's own token, which is renewed once for any number of calls.
func TestUsersSignInAtServers(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	for _, speaks := range []string{stateless, sessions} {
		a := newAuthority(t, speaks)
		slug := "private-" + speaks
		address := l.base + "/mcp/" + slug + "/mcp"
		server, token := l.ofAuthority(a, slug)
		link := l.signInURL(address, token)

		nobody := map[string]string{}
		l.wants("nobody", l.submit(l.hop(link, nobody), nobody), 200, "Sign in to the gateway first")
		back, jar := l.connectAt(link, l.session)
		l.wants("another browser", l.hop(back, nil), 400, "state")
		l.wants("back", l.hop(back, jar), 200, "You are signed in")
		l.wants("twice", l.hop(back, jar), 400, "state")
		l.wants("list", l.lists(address, token), 200, `"tool0"`)
		l.wants("capabilities", l.call("GET", "/mcp-servers/"+server+"/capabilities?workspace_id=default", "", "X-Gateway-Api-Key", adminKey), 200, `"tool0"`)

		a.stale()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { l.wants("stale", l.calls(slug, token, "{}", ""), 200, "said x") })
		}
		wg.Wait()
		if a.mu.Lock(); a.reused || a.renewals == 0 {
			t.Errorf("%s: renewals %d, used twice %t", speaks, a.renewals, a.reused)
		}
		a.mu.Unlock()

		l.wants("a service", l.lists(address, workspaceKey), 403, "Each user signs in")
		l.wants("forgotten", l.call("DELETE", "/mcp-servers/"+server+"/connections?workspace_id=default&user_id="+l.userOf("bea"), "", "X-Gateway-Api-Key", adminKey), 200)
		l.signInURL(address, token)
	}
}

// wants checks a response's status, and all that it must say.
func (l *lobby) wants(what string, got reply, status int, texts ...string) {
	l.t.Helper()
	if l.wantStatus(what, got, status, ""); len(texts) > 0 {
		for _, s := range texts {
			l.wantStatus(what, got, status, s)
		}
	}
}

// calls calls a tool as a client with abilities does.
func (l *lobby) calls(slug, token, abilities, more string) reply {
	l.t.Helper()
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tool1","arguments":{"text":"x"}` + more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + abilities + `}}}`
	return l.keyless("POST", "/mcp/"+slug+"/mcp", body, "Authorization", "Bearer "+token, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "tool1")
}

func (l *lobby) userOf(name string) string {
	l.t.Helper()
	for _, u := range l.admin("GET", "/admin/users", "")["data"].([]any) {
		if u := u.(map[string]any); u["email"] == name+"@example.com" {
			return u["id"].(string)
		}
	}
	l.t.Fatal("no such user")
	return ""
}

// TestClientsThatOpenAddressesAreSentOne: both eras' own way to have a user sign in.
func TestClientsThatOpenAddressesAreSentOne(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	a := newAuthority(t, stateless)
	_, token := l.ofAuthority(a, "private")
	const opens = `{"elicitation":{"url":{}}}`
	got := l.calls("private", token, opens, "")
	l.wants("without sessions", got, 200, `"resultType":"input_required"`, `"gateway-sign-in"`, `"mode":"url"`)

	headers := []string{"Authorization", "Bearer " + token, "Accept", "application/json, text/event-stream"}
	begun := l.keyless("POST", "/mcp/private/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+opens+`,"clientInfo":{"name":"c","version":"1"}}}`, headers...)
	l.wants("initialize", begun, 200, `"capabilities"`)
	headers = append(headers, "Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"))
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	l.wants("with a session", l.keyless("POST", "/mcp/private/mcp", list, headers...), 200, `"code":-32042`, `"elicitationId"`)

	back, jar := l.connectAt(l.signInURL(l.base+"/mcp/private/mcp", token), l.session)
	l.wants("back", l.hop(back, jar), 200, "You are signed in")
	l.wants("the call again", l.calls("private", token, opens, `,"inputResponses":{"gateway-sign-in":{"action":"accept"}}`), 200, "said x")
	l.wants("the session goes on", l.keyless("POST", "/mcp/private/mcp", list, headers...), 200, `"tool0"`)
}

// TestUpstreamConnectStartsOnlyFromItsPage covers links that are given to another user:
// nothing skips the page that states whose account is connected with what.
func TestUpstreamConnectStartsOnlyFromItsPage(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	a := newAuthority(t, stateless)
	_, token := l.ofAuthority(a, "private")
	link := l.signInURL(l.base+"/mcp/private/mcp", token)
	jar := func() map[string]string { return map[string]string{"__Host-gateway-session": l.session} }
	refused := func(what string, got reply) {
		t.Helper()
		if got.status < 400 || got.status > 499 || got.header.Get("Location") != "" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d to %q %s", what, got.status, got.header.Get("Location"), got.body)
		}
	}
	for _, more := range []string{"&here=true", "&confirmation=x", "&here=1&decision=allow"} {
		got := l.hop(link+more, jar(), "Sec-Fetch-Site", "cross-site")
		if l.wants(more, got, 200, "Continue only if you have just called this server yourself"); got.header.Get("Location") != "" {
			t.Errorf("%s leads to %s", more, got.header.Get("Location"))
		}
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	bare := url.Values{"link": {u.Query().Get("link")}}
	refused("a post without the page", l.navigate("POST", l.base+"/oauth/upstream-connect", bare, jar()))
	stolen := l.hop(link, map[string]string{})
	refused("a page that another browser was shown", l.submit(stolen, jar()))
	for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		own := jar()
		page := l.hop(link, own)
		refused(strings.Join(h, " "), l.submit(page, own, h...))
	}
	own := jar()
	page := l.hop(link, own, "Sec-Fetch-Site", "cross-site")
	retained := maps.Clone(own)
	l.wants("the page itself", l.submit(page, own, "Sec-Fetch-Site", "same-origin", "Origin", strings.TrimSuffix(l.base, "/v1")), 303)
	refused("a second time", l.submit(page, retained))
}

// TestSignInsAtServersAreRefused: with links and responses of others, and with authorization
// servers that are not what they claim to be.
func TestSignInsAtServersAreRefused(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	a := newAuthority(t, stateless)
	_, token := l.ofAuthority(a, "private")
	address := l.base + "/mcp/private/mcp"
	link := l.signInURL(address, token)
	for name, bad := range map[string]string{
		"none": l.base + "/oauth/upstream-connect", "cut": link[:len(link)-3], "changed": link[:len(link)-3] + "AAA", "of nobody": l.base + "/oauth/upstream-connect?link=ZGVmYXVsdA.AAAA", "no text": l.base + "/oauth/upstream-connect?link=%ff.%00",
	} {
		l.wants(name, l.hop(bad, nil), 400)
	}
	other := l.newcomer("cid")
	jarOfOther := map[string]string{"__Host-gateway-session": other}
	l.wants("of another", l.submit(l.hop(link, jarOfOther), jarOfOther), 403, "another user")

	back, jar := l.connectAt(link, l.session)
	l.wants("another issuer", l.hop(strings.Replace(back, url.QueryEscape("/tenant"), url.QueryEscape("/other"), 1), jar), 502, "from another authorization server")
	back, jar = l.connectAt(link, l.session)
	l.wants("refused there", l.hop(back[:strings.Index(back, "code=")]+"error=access_denied"+back[strings.Index(back, "&iss="):], jar), 502, "access_denied")
	back, jar = l.connectAt(link, l.session)
	l.wants("another code", l.hop(strings.Replace(back, "code=code-", "code=no-", 1), jar), 502, "invalid_grant")
	l.signInURL(address, token)
}
