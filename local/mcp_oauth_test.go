package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/signin/browser"
)

// lobby is a gateway with an MCP server and somebody who has signed in.
type lobby struct {
	*entrance
	session  string // token of Bea's
	resource string // address of the server
	server   string // its id
}

const (
	callback = "http://127.0.0.1:45678/callback"
	verifier = "the-verifier-of-a-test-which-has-43-characters"
)

func newLobby(t *testing.T) *lobby {
	t.Helper()
	l := &lobby{entrance: newEntrance(t)}
	up, _ := mcpServer(t, sessions)
	l.server, _ = l.registerMCP("tools", up.URL, "")
	l.resource = l.base + "/mcp/tools/mcp"
	l.session = l.newcomer("bea")
	return l
}

// newcomer invites somebody into the default workspace and signs it in.
func (e *entrance) newcomer(name string) (session string) {
	e.t.Helper()
	e.admin("POST", "/admin/users/invites", fmt.Sprintf(`{"email":"%s@example.com","role":"member","workspaces":[{"id":"default","role":"member"}]}`, name))
	e.idp.set(func() { e.idp.claims = map[string]any{"email": name + "@example.com", "sub": name + "-1"} })
	got, session := e.enter(ofAnn)
	if session == "" {
		e.t.Fatalf("%d %s", got.status, got.body)
	}
	return session
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return b64(sum[:])
}

// client registers an application.
func (l *lobby) client() string {
	l.t.Helper()
	got := l.call("POST", "/oauth/register", `{"client_name":"An <app>","redirect_uris":["http://127.0.0.1/callback","https://app.example.com/back"],"token_endpoint_auth_method":"none"}`)
	l.wantStatus("register", got, 201, `"client_id":"mcp-client.`)
	return got.json(l.t)["client_id"].(string)
}

// request is what a good client asks for; change sets parameters, "" takes one away.
func (l *lobby) request(client string, change ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {callback}, "state": {"a state&"}, "code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"},
		"resource": {l.resource},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if q.Set(change[i], change[i+1]); change[i+1] == "" {
			q.Del(change[i])
		}
	}
	return q
}

var (
	inputs  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	refresh = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]*)"`)
)

// open goes to the page as a browser does, and gives what it shows.
func (l *lobby) open(q url.Values, session string) reply {
	l.t.Helper()
	jar := map[string]string{}
	first := l.hop(l.base+"/oauth/authorize?"+q.Encode(), jar)
	next := refresh.FindStringSubmatch(first.body)
	if next == nil {
		return first
	}
	if session != "" {
		jar[browser.Cookie] = session
	}
	return l.hop(html.UnescapeString(next[1]), jar)
}

// decide sends the page's form; with more changed as in request.
func (l *lobby) decide(page reply, session, decision string, more ...string) reply {
	l.t.Helper()
	form := url.Values{"decision": {decision}}
	for _, m := range inputs.FindAllStringSubmatch(page.body, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return l.send("/oauth/postAuthorizeConsent", form, "Cookie", browser.Cookie+"="+session)
}

// send posts a form.
func (l *lobby) send(path string, form url.Values, headers ...string) reply {
	l.t.Helper()
	req, err := http.NewRequest("POST", l.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

// code has a person allow a client what it asks for.
func (l *lobby) code(q url.Values, session string) string {
	l.t.Helper()
	page := l.open(q, session)
	l.wantStatus("consent", page, 200, "Allow an application?")
	back := l.decide(page, session, "allow")
	to, err := url.Parse(back.header.Get("Location"))
	if err != nil || back.status != 303 || !strings.HasPrefix(to.String(), q.Get("redirect_uri")+"?") || to.Query().Get("iss") != l.base || to.Query().Get("state") != q.Get("state") {
		l.t.Fatalf("consent: %d %s %s", back.status, back.header.Get("Location"), back.body)
	}
	return to.Query().Get("code")
}

func exchangeOf(client, code string, change ...string) url.Values {
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return form
}

func renewalOf(client, token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}}
}

type issuedCode struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Scope   string `json:"scope"`
	Expires int    `json:"expires_in"`
}

// tokens exchanges a form for tokens.
func (l *lobby) tokens(form url.Values) (g issuedCode) {
	l.t.Helper()
	got := l.send("/oauth/token", form)
	l.wantStatus("tokens", got, 200, `"token_type":"Bearer"`)
	if err := json.Unmarshal([]byte(got.body), &g); err != nil || got.header.Get("Cache-Control") != "no-store" {
		l.t.Fatalf("%v %v", err, got.header)
	}
	return g
}

// keyless calls without a key.
func (r *running) keyless(method, path, body string, headers ...string) reply {
	r.t.Helper()
	req, err := http.NewRequest(method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

const listTools = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// lists calls the server with a bearer token.
func (l *lobby) lists(address, token string) reply {
	l.t.Helper()
	return l.keyless("POST", strings.TrimPrefix(address, l.base), listTools, "Authorization", "Bearer "+token, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
}

// TestClientsSignInByOAuth: from the rejection by way of both descriptions to tokens that
// open one server, are renewed, looked at and revoked.
func TestClientsSignInByOAuth(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	refused := l.keyless("POST", "/mcp/tools/mcp", listTools)
	about := strings.TrimSuffix(l.base, "/v1") + "/.well-known/oauth-protected-resource/v1/mcp/tools/mcp"
	if got := refused.header.Get("WWW-Authenticate"); refused.status != 401 || got != `Bearer resource_metadata="`+about+`", scope="mcp"` || strings.Contains(refused.body, `"id"`) {
		t.Fatalf("%d %s %s", refused.status, got, refused.body)
	}
	l.wantStatus("protected", l.hop(about, nil), 200, `{"resource":"`+l.resource+`","authorization_servers":["`+l.base+`"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"]}`)
	l.wantStatus("of a workspace", l.call("GET", "/.well-known/oauth-protected-resource/mcp/default/tools/mcp", ""), 200, `"resource":"`+l.base+`/mcp/default/tools/mcp"`)
	root := strings.TrimSuffix(l.base, "/v1")
	for _, at := range []string{root + "/.well-known/oauth-authorization-server/v1", root + "/.well-known/openid-configuration/v1", l.base + "/.well-known/openid-configuration", l.base + "/.well-known/oauth-authorization-server"} {
		l.wantStatus(at, l.hop(at, nil), 200, `{"issuer":"`+l.base+`","authorization_endpoint":"`+l.base+`/oauth/authorize"`)
	}

	client := l.client()
	page := l.open(l.request(client), l.session)
	l.wantStatus("consent", page, 200, "An &lt;app&gt;")
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("policy %s", csp)
	}
	l.wantStatus("not signed in", l.open(l.request(client), ""), 200, "Your e-mail address")
	tokens := l.tokens(exchangeOf(client, l.code(l.request(client), l.session), "resource", l.resource))
	if tokens.Scope != "mcp" || tokens.Expires != 3600 {
		t.Errorf("%+v", tokens)
	}
	l.wantStatus("list", l.lists(l.resource, tokens.Access), 200, `"id":7,"result"`)
	l.wantStatus("by its workspace", l.lists(l.base+"/mcp/default/tools/mcp", tokens.Access), 200, `"id":7,"result"`)
	l.wantStatus("look at", l.send("/oauth/introspect", url.Values{"token": {tokens.Access}}, "X-Gateway-Api-Key", adminKey), 200, `"active":true`)

	renewed := l.tokens(renewalOf(client, tokens.Refresh))
	l.wantStatus("the one before", l.lists(l.resource, tokens.Access), 401, "revoked")
	l.wantStatus("renewed", l.lists(l.resource, renewed.Access), 200, `"result"`)
	l.wantStatus("revoke", l.send("/oauth/revoke", url.Values{"token": {renewed.Refresh}, "client_id": {client}}), 200, "")
	l.wantStatus("revoked", l.lists(l.resource, renewed.Access), 401, "revoked")
	l.wantStatus("look at what is gone", l.send("/oauth/introspect", url.Values{"token": {renewed.Access}}, "X-Gateway-Api-Key", adminKey), 200, `{"active":false}`)
	l.wantStatus("revoke again", l.send("/oauth/revoke", url.Values{"token": {renewed.Refresh}}), 200, "")
	l.wantStatus("renew what is gone", l.send("/oauth/token", renewalOf(client, renewed.Refresh)), 400, `"error":"invalid_grant"`)
}

// TestTheOfficialClientUsesTokens: the SDK's own session, with a token of the gateway.
func TestTheOfficialClientUsesTokens(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	client := l.client()
	tokens := l.tokens(exchangeOf(client, l.code(l.request(client), l.session)))
	for _, speaks := range []string{sessions, stateless} {
		c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
		s, err := c.Connect(context.Background(), &sdk.StreamableClientTransport{
			Endpoint: l.resource, HTTPClient: &http.Client{Transport: bearing{speaks, tokens.Access}}, MaxRetries: -1,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "tool1", Arguments: map[string]any{"text": "x"}})
		if err != nil || got.Content[0].(*sdk.TextContent).Text != "said x" {
			t.Errorf("%s: %v %+v", speaks, err, got)
		}
		_ = s.Close()
	}
}

// bearing sends a token along, and no key.
type bearing struct{ era, token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return speaking{b.era, b.token}.RoundTrip(r)
}

// TestOAuthRefuses: everything that a thief or a careless client would try.
func TestOAuthRefuses(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	client := l.client()
	for name, c := range map[string]struct {
		change []string
		status int
		want   string // of the page, or of where the browser goes
	}{
		"no client":            {[]string{"client_id", ""}, 400, "client_id"},
		"unknown client":       {[]string{"client_id", "x"}, 400, "client_id"},
		"forged client":        {[]string{"client_id", "mcp-client." + b64([]byte(`{"r":["javascript:alert(1)"]}`))}, 400, "client_id"},
		"document inside":      {[]string{"client_id", "https://169.254.169.254/client"}, 400, "client_id"},
		"document at the root": {[]string{"client_id", "https://app.example.com/"}, 400, "client_id"},
		"no redirect":          {[]string{"redirect_uri", ""}, 400, "redirect_uri"},
		"another redirect":     {[]string{"redirect_uri", "https://evil.example.com/back"}, 400, "redirect_uri"},
		"redirect with more":   {[]string{"redirect_uri", "https://app.example.com/back?x=1"}, 400, "redirect_uri"},
		"redirect to a script": {[]string{"redirect_uri", "javascript:alert(1)"}, 400, "redirect_uri"},
		"redirect as a user":   {[]string{"redirect_uri", "http://127.0.0.1@evil.example.com/callback"}, 400, "redirect_uri"},
		"implicit":             {[]string{"response_type", "token"}, 303, "error=unsupported_response_type"},
		"no challenge":         {[]string{"code_challenge", ""}, 303, "error=invalid_request"},
		"plain challenge":      {[]string{"code_challenge_method", "plain"}, 303, "error=invalid_request"},
		"short challenge":      {[]string{"code_challenge", "abc"}, 303, "error=invalid_request"},
		"no resource":          {[]string{"resource", ""}, 303, "error=invalid_target"},
		"another's resource":   {[]string{"resource", "https://other.example.com/v1/mcp/tools/mcp"}, 303, "error=invalid_target"},
		"resource and more":    {[]string{"resource", l.resource + "?x=1"}, 303, "error=invalid_target"},
		"escaped resource":     {[]string{"resource", l.base + "/mcp/%74ools/mcp"}, 303, "error=invalid_target"},
		"no such server":       {[]string{"resource", l.base + "/mcp/nothing/mcp"}, 303, "error=access_denied"},
		"of no such workspace": {[]string{"resource", l.base + "/mcp/nowhere/tools/mcp"}, 303, "error=access_denied"},
	} {
		got := l.open(l.request(client, c.change...), l.session)
		if got.status != c.status || !strings.Contains(got.body+got.header.Get("Location"), c.want) {
			t.Errorf("%s: %d %s %s", name, got.status, got.header.Get("Location"), got.body)
		}
		if to := got.header.Get("Location"); to != "" && (!strings.HasPrefix(to, callback+"?") || !strings.Contains(to, "iss=") || !strings.Contains(to, "state=a+state%26")) {
			t.Errorf("%s: goes to %s", name, to)
		}
	}
	// Anybody can register a client, so no browser is sent to another host before a user has decided.
	const remote = "https://app.example.com/back"
	for name, change := range map[string][]string{"implicit": {"response_type", "token"}, "no challenge": {"code_challenge", ""}, "no resource": {"resource", ""}, "no such server": {"resource", l.base + "/mcp/nothing/mcp"}} {
		got := l.open(l.request(client, append(change, "redirect_uri", remote)...), l.session)
		if got.status != 400 || got.header.Get("Location") != "" || !strings.Contains(got.body, `href="`+remote+"?") {
			t.Errorf("%s, on another host: %d %s %s", name, got.status, got.header.Get("Location"), got.body)
		}
	}
	if no := l.decide(l.open(l.request(client, "redirect_uri", remote), l.session), l.session, "deny"); no.status != 303 || !strings.HasPrefix(no.header.Get("Location"), remote+"?error=access_denied") {
		t.Errorf("refused, on another host: %d %s", no.status, no.header.Get("Location"))
	}
	twice := l.request(client)
	twice.Add("state", "another")
	l.wantStatus("twice", l.open(twice, l.session), 400, "state")

	// The decision is the person's own, by the gateway's page.
	page := l.open(l.request(client), l.session)
	l.wantStatus("without its token", l.decide(page, l.session, "allow", "csrf", "x"), 403, "access_denied")
	l.wantStatus("without a session", l.decide(page, "", "allow"), 401, "")
	l.wantStatus("changed on the way", l.decide(page, l.session, "allow", "redirect_uri", "https://evil.example.com"), 400, "redirect_uri")
	l.wantStatus("no decision", l.decide(page, l.session, "maybe"), 400, "decision")
	if no := l.decide(page, l.session, "deny"); no.status != 303 || !strings.Contains(no.header.Get("Location"), "error=access_denied") {
		t.Errorf("refused: %d %s", no.status, no.header.Get("Location"))
	}

	// Codes and tokens.
	good := func() string { return l.code(l.request(client), l.session) }
	other := l.call("POST", "/oauth/register", `{"redirect_uris":["http://localhost/callback"]}`).json(t)["client_id"].(string)
	for name, form := range map[string]url.Values{
		"no code":            exchangeOf(client, ""),
		"unknown code":       exchangeOf(client, "x"),
		"of another client":  exchangeOf(other, good()),
		"another redirect":   exchangeOf(client, good(), "redirect_uri", "http://127.0.0.1:45679/callback"),
		"another verifier":   exchangeOf(client, good(), "code_verifier", verifier+"x"),
		"no verifier":        exchangeOf(client, good(), "code_verifier", ""),
		"the challenge":      exchangeOf(client, good(), "code_verifier", challengeOf(verifier)),
		"unknown refreshing": renewalOf(client, "gr-"+strings.Repeat("A", 69)),
		"access for refresh": renewalOf(client, l.tokens(exchangeOf(client, good())).Access),
	} {
		l.wantStatus(name, l.send("/oauth/token", form), 400, `"error":"invalid_grant"`)
	}
	l.wantStatus("another server", l.send("/oauth/token", exchangeOf(client, good(), "resource", l.base+"/mcp/other/mcp")), 400, "invalid_target")
	l.wantStatus("password", l.send("/oauth/token", exchangeOf(client, good(), "grant_type", "password")), 400, "unsupported_grant_type")
	l.wantStatus("no client", l.send("/oauth/token", exchangeOf("", good())), 400, "client_id")
	l.wantStatus("with a secret", l.send("/oauth/token", exchangeOf(client, good()), "Authorization", "Basic eDp5"), 401, "invalid_client")
	l.wantStatus("more scopes", l.send("/oauth/token", func() url.Values {
		v := renewalOf(client, l.tokens(exchangeOf(client, l.code(l.request(client, "scope", "mcp:read"), l.session))).Refresh)
		v.Set("scope", "mcp")
		return v
	}()), 400, "invalid_scope")
	l.wantStatus("JSON", l.call("POST", "/oauth/token", `{"grant_type":"authorization_code"}`), 400, "content-type")

	// Scopes that are not the gateway's are omitted, and the response says what was granted.
	made := l.tokens(exchangeOf(client, l.code(l.request(client, "scope", "mcp:read offline_access"), l.session)))
	renewal := renewalOf(client, made.Refresh)
	renewal.Set("scope", "mcp:read offline_access")
	if renewed := l.tokens(renewal); made.Scope != "mcp:read" || renewed.Scope != "mcp:read" {
		t.Errorf("scopes %q and %q", made.Scope, renewed.Scope)
	}
	editor := l.call("POST", "/oauth/register", `{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","javascript:alert(1)","http://localhost:8787/callback"],"scope":"openid mcp","token_endpoint_auth_method":"none"}`)
	l.wantStatus("an editor", editor, 201, `"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","http://localhost:8787/callback"]`)
	l.wantStatus("an editor", editor, 201, `"scope":"mcp"`)

	for name, body := range map[string]string{
		"no redirects": `{}`, "none": `{"redirect_uris":[]}`, "http": `{"redirect_uris":["http://app.example.com/"]}`, "fragment": `{"redirect_uris":["https://app.example.com/#x"]}`,
		"script": `{"redirect_uris":["javascript:alert(1)"]}`, "data": `{"redirect_uris":["data:text/html,x"]}`, "a number": `{"redirect_uris":[1]}`, "too many": `{"redirect_uris":["https://a.b/1","https://a.b/2","https://a.b/3","https://a.b/4","https://a.b/5","https://a.b/6","https://a.b/7","https://a.b/8","https://a.b/9"]}`,
		"lines": `{"redirect_uris":["https://a.b/"],"client_name":"a\nb"}`, "implicit": `{"redirect_uris":["https://a.b/"],"response_types":["token"]}`, "deep": strings.Repeat(`{"a":`, 200), "cut": `{"redirect_uris":`,
	} {
		l.wantStatus(name, l.call("POST", "/oauth/register", body), 400, `"error":"invalid_`)
	}
}

// TestUseOfATokenTwiceEndsItsGrant: codes and refresh tokens are good once, and a second
// use ends what was given for the first.
func TestUseOfATokenTwiceEndsItsGrant(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	client := l.client()
	code := l.code(l.request(client), l.session)
	first := l.tokens(exchangeOf(client, code))
	l.wantStatus("the code again", l.send("/oauth/token", exchangeOf(client, code)), 400, "invalid_grant")
	l.wantStatus("what it gave", l.lists(l.resource, first.Access), 401, "")
	l.wantStatus("what it gave", l.send("/oauth/token", renewalOf(client, first.Refresh)), 400, "invalid_grant")

	second := l.tokens(exchangeOf(client, l.code(l.request(client), l.session)))
	third := l.tokens(renewalOf(client, second.Refresh))
	l.wantStatus("an old one", l.send("/oauth/token", renewalOf(client, second.Refresh)), 400, "invalid_grant")
	l.wantStatus("the family", l.lists(l.resource, third.Access), 401, "")
	l.wantStatus("the family", l.send("/oauth/token", renewalOf(client, third.Refresh)), 400, "invalid_grant")

	// Of many who send one code at once, one gets tokens at most.
	code = l.code(l.request(client), l.session)
	var won sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got := l.send("/oauth/token", exchangeOf(client, code)); got.status == 200 {
				won.Store(i, true)
			} else if got.status != 400 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	wg.Wait()
	n := 0
	won.Range(func(any, any) bool { n++; return true })
	if n > 1 {
		t.Errorf("a code was exchanged %d times", n)
	}
}

// TestTokensOpenOneServer and nothing else, for what they were given, and die with what
// they lean on.
func TestTokensOpenOneServer(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	client := l.client()
	up, _ := mcpServer(t, sessions)
	l.registerMCP("others", up.URL, "")
	tokens := l.tokens(exchangeOf(client, l.code(l.request(client), l.session)))
	other := l.lists(l.base+"/mcp/others/mcp", tokens.Access)
	l.wantStatus("another server", other, 401, "another MCP server")
	if got := other.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) || !strings.Contains(got, "/mcp/others/mcp") {
		t.Errorf("%s", got)
	}
	for _, at := range []string{"GET /auth/self", "GET /mcp-servers", "GET /models", "POST /chat/completions", "GET /configs", "POST /oauth/introspect"} {
		method, path, _ := strings.Cut(at, " ")
		body := ""
		if method == "POST" {
			body = `{}`
		}
		l.wantStatus(at, l.keyless(method, path, body, "Authorization", "Bearer "+tokens.Access), 401, "")
	}
	reads := l.tokens(exchangeOf(client, l.code(l.request(client, "scope", "mcp:read"), l.session)))
	l.wantStatus("read", l.lists(l.resource, reads.Access), 200, `"result"`)
	call := l.keyless("POST", "/mcp/tools/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool1","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Authorization", "Bearer "+reads.Access, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "tool1")
	l.wantStatus("call with mcp:read", call, 403, `"id":1`)
	if got := call.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="insufficient_scope", scope="mcp:read mcp:write"`) {
		t.Errorf("%s", got)
	}
	// Access is taken, then the membership.
	user := l.as(l.session, "GET", "/auth/self", "").json(t)["user"].(map[string]any)["id"].(string)
	l.admin("PUT", "/mcp-servers/"+l.server+"/user-access?workspace_id=default", fmt.Sprintf(`{"user_access":[{"user_id":%q,"enabled":false}]}`, user))
	l.wantStatus("no access", l.lists(l.resource, tokens.Access), 403, "no access")
	l.wantStatus("no consent", l.open(l.request(client), l.session), 303, "")
	l.admin("DELETE", "/admin/users/"+user, "")
	l.wantStatus("gone", l.lists(l.resource, tokens.Access), 401, "")
	l.wantStatus("gone", l.send("/oauth/token", renewalOf(client, tokens.Refresh)), 400, "invalid_grant")
	l.wantStatus("another organization looks", func() reply {
		l.tenant("second", "second-admin-key", "second-workspace-key")
		return l.send("/oauth/introspect", url.Values{"token": {reads.Access}}, "X-Gateway-Api-Key", "second-admin-key")
	}(), 200, `{"active":false}`)
}
