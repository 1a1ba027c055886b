package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/signin/browser"
)

// issuer is a strict identity provider: it rejects what the specifications have it
// reject. What it says about people can be changed.
type issuer struct {
	*httptest.Server
	t         *testing.T
	key       *rsa.PrivateKey
	client    *rsa.PublicKey // of private_key_jwt
	mu        sync.Mutex
	method    string
	redirect  string
	codes     map[string]url.Values            // code -> what was asked for
	claims    map[string]any                   // beside the standard
	sign      func(golangjwt.MapClaims) string // nil: as it should
	more      map[string]any                   // of discovery
	userinfo  map[string]any
	refresh   string // the token that renews a sign-in next
	renewed   int
	exchanged []string // codes that tokens were asked for with
}

// exchanges tells how often tokens were asked for with a code.
func (i *issuer) exchanges(code string) (n int) {
	i.set(func() {
		for _, c := range i.exchanged {
			if c == code {
				n++
			}
		}
	})
	return n
}

var issuerKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, key: issuerKey(), method: "client_secret_basic", codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		d := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "userinfo_endpoint": i.URL + "/me",
			"end_session_endpoint": i.URL + "/end", "authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": []string{"S256"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		maps.Copy(d, i.more)
		answer(w, 200, d)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "kid": "k1", "alg": "RS256", "n": b64(i.key.N.Bytes()), "e": b64(big.NewInt(int64(i.key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer the-access-token" {
			answer(w, 401, nil)
			return
		}
		answer(w, 200, i.userinfo)
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		tokens, err := i.token(r)
		if err != nil {
			answer(w, 400, map[string]any{"error": err.Error()})
			return
		}
		answer(w, 200, tokens)
	})
	return i
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	switch {
	case q.Get("response_type") != "code", q.Get("client_id") != "the-client", q.Get("redirect_uri") != i.redirect, q.Get("code_challenge_method") != "S256",
		len(q.Get("code_challenge")) != 43, len(q.Get("state")) < 32, len(q.Get("nonce")) < 32, !strings.Contains(" "+q.Get("scope")+" ", " openid "):
		http.Error(w, "invalid_request", 400)
		return
	}
	code := rand.Text()
	i.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode(), http.StatusFound)
}

func (i *issuer) token(r *http.Request) (map[string]any, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	if r.PostForm.Get("grant_type") == "refresh_token" {
		if i.refresh == "" || r.PostForm.Get("refresh_token") != i.refresh {
			return nil, errors.New("invalid_grant")
		}
		i.renewed++
		i.refresh = "refresh-" + rand.Text()
		return map[string]any{"access_token": "x", "token_type": "Bearer", "refresh_token": i.refresh}, nil
	}
	i.exchanged = append(i.exchanged, r.PostForm.Get("code"))
	grant, ok := i.codes[r.PostForm.Get("code")]
	delete(i.codes, r.PostForm.Get("code"))
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !ok || r.PostForm.Get("grant_type") != "authorization_code" || r.PostForm.Get("redirect_uri") != grant.Get("redirect_uri") || b64(sum[:]) != grant.Get("code_challenge") {
		return nil, errors.New("invalid_grant")
	}
	id, secret, basic := r.BasicAuth()
	switch i.method {
	case "client_secret_basic":
		if !basic || id != "the-client" || secret != "a%3Asecret%26" || r.PostForm.Has("client_secret") {
			return nil, errors.New("invalid_client")
		}
	case "client_secret_post":
		if basic || r.PostForm.Get("client_id") != "the-client" || r.PostForm.Get("client_secret") != "a:secret&" {
			return nil, errors.New("invalid_client")
		}
	default:
		var c golangjwt.RegisteredClaims
		_, err := golangjwt.ParseWithClaims(r.PostForm.Get("client_assertion"), &c, func(*golangjwt.Token) (any, error) { return i.client, nil }, golangjwt.WithValidMethods([]string{"RS256"}), golangjwt.WithAudience(i.URL+"/token"), golangjwt.WithIssuer("the-client"), golangjwt.WithSubject("the-client"), golangjwt.WithExpirationRequired())
		if err != nil || c.ID == "" || basic || r.PostForm.Has("client_secret") || r.PostForm.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
			return nil, errors.New("invalid_client")
		}
	}
	now := time.Now()
	c := golangjwt.MapClaims{"iss": i.URL, "aud": "the-client", "sub": "ann-1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "auth_time": now.Unix(), "nonce": grant.Get("nonce"), "email": "ann@corp.example.com", "given_name": "Ann", "family_name": "Lee", "email_verified": true}
	for k, v := range i.claims {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	sign := i.sign
	if sign == nil {
		sign = i.signed
	}
	out := map[string]any{"access_token": "the-access-token", "token_type": "Bearer", "expires_in": 60, "id_token": sign(c)}
	if strings.Contains(grant.Get("scope"), "offline_access") && grant.Get("prompt") == "consent" {
		i.refresh = "refresh-" + rand.Text()
		out["refresh_token"] = i.refresh
	}
	return out, nil
}

func (i *issuer) signed(c golangjwt.MapClaims) string {
	t := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, c)
	t.Header["kid"] = "k1"
	s, err := t.SignedString(i.key)
	if err != nil {
		i.t.Error(err)
	}
	return s
}

// set changes what the provider says next.
func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// entrance is a gateway with an identity provider and a verified domain.
type entrance struct {
	*running
	idp        *issuer
	configured string // id
	txt        sync.Map
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	e := &entrance{idp: newIssuer(t)}
	e.running = startIn(t, t.TempDir(), func(g *gateway) {
		g.core.LookUpTXT = func(_ context.Context, name string) ([]string, error) {
			if v, ok := e.txt.Load(name); ok {
				return []string{"v=spf1 -all", v.(string)}, nil
			}
			return nil, errors.New("no such host")
		}
	})
	e.idp.redirect = e.base + "/auth/callback/default"
	e.configured = e.admin("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"corp","issuer":%q,"client_id":"the-client","client_secret":"a:secret&"}`, e.idp.URL))["id"].(string)
	e.verify("example.com", true)
	return e
}

// verify adds a domain and shows whose it is.
func (e *entrance) verify(domain string, below bool) (id string) {
	e.t.Helper()
	made := e.admin("POST", "/auth/domains", fmt.Sprintf(`{"domain":%q,"allow_subdomains":%v}`, domain, below))
	id = made["id"].(string)
	e.wantStatus("before the record is there", e.call("POST", "/auth/domains/"+id+"/verify", "", "X-Gateway-Api-Key", adminKey), 409, "TXT")
	e.txt.Store(made["txt_name"], made["txt_value"])
	e.admin("POST", "/auth/domains/"+id+"/verify", "")
	return id
}

// hop goes to an address with the cookies of a browser, and keeps those that come.
func (e *entrance) hop(address string, jar map[string]string, headers ...string) reply {
	e.t.Helper()
	return e.navigate("GET", address, nil, jar, headers...)
}

// submit posts the form of a page as a browser does.
func (e *entrance) submit(page reply, jar map[string]string, headers ...string) reply {
	e.t.Helper()
	to := formAction.FindStringSubmatch(page.body)
	if to == nil {
		e.t.Fatalf("no form: %s", page.body)
	}
	form := url.Values{}
	for _, m := range inputs.FindAllStringSubmatch(page.body, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return e.navigate("POST", html.UnescapeString(to[1]), form, jar, headers...)
}

var formAction = regexp.MustCompile(`<form method="post" action="([^"]*)"`)

// navigate makes a request with the cookies of a browser and stores those of the response.
func (e *entrance) navigate(method, address string, form url.Values, jar map[string]string, headers ...string) reply {
	e.t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		e.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	for name, v := range jar {
		req.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	var raw strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		raw.Write(buf[:n])
		if err != nil {
			break
		}
	}
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			delete(jar, c.Name)
		} else {
			jar[c.Name] = c.Value
		}
	}
	return reply{resp.StatusCode, resp.Header, raw.String()}
}

// begin goes to the provider and gives the address that it sends the browser back to.
func (e *entrance) begin(query string, jar map[string]string) (callback string) {
	e.t.Helper()
	to := e.hop(e.base+"/auth/login?"+query, jar)
	if to.status != 302 {
		e.t.Fatalf("login: %d %s", to.status, to.body)
	}
	back := e.hop(to.header.Get("Location"), map[string]string{})
	if back.status != 302 {
		e.t.Fatalf("authorize: %d %s", back.status, back.body)
	}
	return back.header.Get("Location")
}

// enter signs in and gives the response of the callback with the session's token.
func (e *entrance) enter(query string) (reply, string) {
	e.t.Helper()
	jar := map[string]string{}
	got := e.hop(e.begin(query, jar), jar)
	return got, jar[browser.Cookie]
}

const ofAnn = "email=ann@corp.example.com&return_to=/console"

func TestPeopleSignInByOIDC(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	got, token := e.enter(ofAnn)
	if got.status != 302 || got.header.Get("Location") != "/console" || token == "" {
		t.Fatalf("%d %s %v", got.status, got.body, got.header)
	}
	for _, set := range got.header["Set-Cookie"] {
		if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "Secure") && !strings.Contains(set, "Max-Age=0") || !strings.Contains(set, "Path=/") {
			t.Errorf("Set-Cookie %s", set)
		}
	}
	self := e.as(token, "GET", "/auth/self", "")
	e.wantStatus("a new member", self, 200, `"email":"ann@corp.example.com","first_name":"Ann","last_name":"Lee","role":"member"`)
	again, second := e.enter("organisation_id=default&sso_client_id=" + e.configured)
	if again.status != 302 || again.header.Get("Location") != "/" || e.as(second, "GET", "/auth/self", "").json(t)["user"].(map[string]any)["id"] != self.json(t)["user"].(map[string]any)["id"] {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	out := e.as(token, "POST", "/auth/logout", "")
	e.wantStatus("log out", out, 200, e.idp.URL+"/end?client_id=the-client")
	e.wantStatus("after it", e.as(token, "GET", "/auth/self", ""), 401, "ended")
	e.wantStatus("described", e.call("POST", "/auth/sso-configurations/"+e.configured+"/verify", "", "X-Gateway-Api-Key", adminKey), 200, `"success":true`)

	// An invitation gives its role and workspaces, and a key to collect where the settings say so.
	e.admin("PUT", "/admin/organisation/settings", `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":true}}`)
	e.admin("POST", "/admin/users/invites", `{"email":"bea@example.com","role":"member","workspaces":[{"id":"default","role":"manager"}]}`)
	e.idp.set(func() { e.idp.claims = map[string]any{"email": "Bea@Example.com", "sub": "bea-1"} })
	_, bea := e.enter(ofAnn)
	e.wantStatus("invited", e.as(bea, "GET", "/auth/self", ""), 200, `"role":"manager"`)
	e.wantStatus("the invitation is used", e.call("GET", "/admin/users/invites?status=pending", "", "X-Gateway-Api-Key", adminKey), 200, `"total":0`)
	e.wantStatus("with a key", e.as(bea, "GET", "/api-keys", ""), 200, "Key of bea@example.com")

	// Invited only.
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"disable_auto_provision_user":true}`)
	e.idp.set(func() { e.idp.claims = map[string]any{"email": "cid@example.com", "sub": "cid-1"} })
	got, token = e.enter(ofAnn)
	e.wantStatus("not invited", got, 403, "not invited")
	if token != "" {
		t.Error("a session for somebody who is not invited")
	}
	e.wantStatus("nobody was made", e.call("GET", "/admin/users?email=cid@example.com", "", "X-Gateway-Api-Key", adminKey), 200, `"total":0`)
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"disable_auto_provision_user":false}`)
	e.admin("PUT", "/admin/organisation/settings", `{"scim_settings":{"scim_only":true}}`)
	if got, token = e.enter(ofAnn); token != "" {
		t.Error("a session for somebody whom the identity provider has not made")
	}
	e.wantStatus("users by SCIM alone", got, 403, "not invited")
	eventually(t, func() error {
		got := e.logins()
		if strings.Count(got, `"response_status_code":302`) != 3 || !strings.Contains(got, "not invited") || !strings.Contains(got, `"client_ip":"127.0.0.1"`) {
			return errors.New(got)
		}
		if strings.Contains(got, bea) || strings.Contains(got, "secret&") {
			return errors.New("a secret is in the audit log")
		}
		return nil
	})
}

func TestTheGatewayShowsWhoItIsToIdentityProviders(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	k := issuerKey()
	part := func(n *big.Int) string { return b64(n.Bytes()) }
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "mine", "n": part(k.N), "e": b64(big.NewInt(int64(k.E)).Bytes()), "d": part(k.D), "p": part(k.Primes[0]), "q": part(k.Primes[1])}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(set))
	if err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{"client_secret_post": `{"token_endpoint_auth_method":"client_secret_post"}`, "private_key_jwt": `{"token_endpoint_auth_method":null,"jwks":` + string(text) + `}`} {
		e.admin("PUT", "/auth/sso-configurations/"+e.configured, body)
		e.idp.set(func() { e.idp.method, e.idp.client = method, &k.PublicKey })
		if got, token := e.enter(ofAnn); got.status != 302 || token == "" {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
	}
	read := e.call("GET", "/auth/sso-configurations/"+e.configured, "", "X-Gateway-Api-Key", adminKey)
	if strings.Contains(read.body, part(k.D)) || strings.Contains(read.body, "secret&") {
		t.Errorf("a secret is shown: %s", read.body)
	}
}

// Each rejection has its twin: the same sign-in without the one thing that is wrong.
func TestIdentityProviderClaimsAreVerified(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	sign := func(m golangjwt.SigningMethod, key any, header map[string]any) func(golangjwt.MapClaims) string {
		return func(c golangjwt.MapClaims) string {
			tok := golangjwt.NewWithClaims(m, c)
			maps.Copy(tok.Header, header)
			s, err := tok.SignedString(key)
			if err != nil {
				t.Error(err)
			}
			return s
		}
	}
	kid := map[string]any{"kid": "k1"}
	type set = map[string]any
	for name, c := range map[string]struct {
		claims   set
		sign     func(golangjwt.MapClaims) string
		more     set
		userinfo set
		query    string
		message  string
		good     bool
	}{
		"another issuer":              {claims: set{"iss": "https://evil.example.com"}, message: "not valid"},
		"no issuer":                   {claims: set{"iss": nil}, message: "not valid"},
		"another audience":            {claims: set{"aud": "another"}, message: "not valid"},
		"no audience":                 {claims: set{"aud": nil}, message: "not valid"},
		"two audiences without azp":   {claims: set{"aud": []string{"the-client", "another"}}, message: "azp"},
		"two audiences, other azp":    {claims: set{"aud": []string{"the-client", "another"}, "azp": "another"}, message: "azp"},
		"two audiences and azp":       {claims: set{"aud": []string{"the-client", "another"}, "azp": "the-client"}, good: true},
		"another azp":                 {claims: set{"azp": "another"}, message: "azp"},
		"another nonce":               {claims: set{"nonce": "x"}, message: "nonce"},
		"no nonce":                    {claims: set{"nonce": nil}, message: "nonce"},
		"expired":                     {claims: set{"exp": now.Add(-time.Minute).Unix()}, message: "not valid"},
		"expiry in quotes":            {claims: set{"exp": strconv.FormatInt(now.Add(time.Hour).Unix(), 10)}, message: "not valid"},
		"no expiry":                   {claims: set{"exp": nil}, message: "not valid"},
		"not valid yet":               {claims: set{"nbf": now.Add(time.Hour).Unix()}, message: "not valid"},
		"issued in the future":        {claims: set{"iat": now.Add(time.Hour).Unix()}, message: "future"},
		"nobody":                      {claims: set{"sub": ""}, message: "no subject"},
		"another key":                 {sign: sign(golangjwt.SigningMethodRS256, other, kid), message: "not valid"},
		"another kid":                 {sign: sign(golangjwt.SigningMethodRS256, issuerKey(), set{"kid": "k2"}), message: "not valid"},
		"no signature":                {sign: sign(golangjwt.SigningMethodNone, golangjwt.UnsafeAllowNoneSignatureType, kid), message: "not valid"},
		"signed with the secret":      {sign: sign(golangjwt.SigningMethodHS256, []byte("a:secret&"), kid), message: "not valid"},
		"signed with the public key":  {sign: sign(golangjwt.SigningMethodHS256, issuerKey().N.Bytes(), kid), message: "not valid"},
		"an algorithm not announced":  {sign: sign(golangjwt.SigningMethodRS512, issuerKey(), kid), good: true},
		"a key in the header":         {sign: sign(golangjwt.SigningMethodRS256, other, set{"kid": "k1", "jwk": set{"kty": "RSA", "n": b64(other.N.Bytes()), "e": "AQAB"}}), message: "not valid"},
		"no token":                    {sign: func(golangjwt.MapClaims) string { return "" }, message: "no ID token"},
		"garbage":                     {sign: func(golangjwt.MapClaims) string { return "a.b.c" }, message: "not valid"},
		"a megabyte":                  {claims: set{"x": strings.Repeat("x", 2<<20)}, message: "no tokens"},
		"another access token":        {claims: set{"at_hash": "x"}, message: "at_hash"},
		"an address not verified":     {claims: set{"email_verified": false}, message: "not verified"},
		"not verified, as a text":     {claims: set{"email_verified": "false"}, message: "not verified"},
		"verified, as a text":         {claims: set{"email_verified": "true"}, good: true},
		"verified by something else":  {claims: set{"email_verified": 7}, message: "cannot be read"},
		"no address":                  {claims: set{"email": nil}, userinfo: set{"sub": "ann-1"}, message: "no e-mail address"},
		"the address of somebody":     {claims: set{"email": nil}, userinfo: set{"sub": "bea-1", "email": "bea@example.com"}, message: "about another user"},
		"the address asked for":       {claims: set{"email": nil}, userinfo: set{"sub": "ann-1", "email": "ann@corp.example.com"}, good: true},
		"not an address":              {claims: set{"email": "ann"}, message: "no valid email"},
		"two addresses":               {claims: set{"email": "ann@example.com, eve@example.org"}, message: "no valid email"},
		"a foreign domain":            {claims: set{"email": "ann@example.org"}, message: "not verified"},
		"a domain that ends alike":    {claims: set{"email": "ann@notexample.com"}, message: "not verified"},
		"asked anew":                  {query: "&fresh=true", good: true},
		"not asked anew":              {query: "&fresh=true", claims: set{"auth_time": now.Add(-time.Hour).Unix()}, message: "auth_time"},
		"asked anew, it does not say": {query: "&fresh=true", claims: set{"auth_time": nil}, message: "auth_time"},
		"metadata is valid":           {good: true},
	} {
		e.idp.set(func() { e.idp.claims, e.idp.sign, e.idp.more, e.idp.userinfo = c.claims, c.sign, c.more, c.userinfo })
		got, token := e.enter(ofAnn + c.query)
		if c.good != (got.status == 302 && token != "") || !c.good && (got.status != 401 && got.status != 403 || !strings.Contains(got.body, c.message)) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// logins is what the audit log says of sign-ins.
func (e *entrance) logins() string {
	e.t.Helper()
	q := url.Values{"start_time": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}, "end_time": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "resource_type": {"auth"}, "action": {"login"}}
	return e.call("GET", "/audit-logs?"+q.Encode(), "", "X-Gateway-Api-Key", adminKey).body
}

func TestTheWayBackIsHeldAgainstTheWayThere(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	change := func(address string, f func(q url.Values)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		f(q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	jar := map[string]string{}
	back := e.begin(ofAnn, jar)
	e.wantStatus("another browser", e.hop(back, map[string]string{}), 401, "state")
	e.wantStatus("another browser's sign-in", e.hop(back, map[string]string{"__Host-gateway-signin": "x"}), 401, "state")
	if got := e.hop(back, jar); got.status != 302 {
		t.Errorf("the browser that began it: %d %s", got.status, got.body)
	}
	e.wantStatus("a second time", e.hop(back, jar), 401, "state")

	eventually(t, func() error {
		if got, n := e.logins(), `"response_status_code":401`; strings.Count(got, n) != 2 || strings.Count(got, "started in another browser") != 2 || !strings.Contains(got, e.configured) {
			return fmt.Errorf("another browser's are not in the audit log twice: %s", got)
		}
		return nil
	})

	for name, c := range map[string]struct {
		change  func(q url.Values)
		status  int
		message string
	}{
		"no state":            {func(q url.Values) { q.Del("state") }, 401, "state"},
		"another state":       {func(q url.Values) { q.Set("state", strings.Repeat("A", 43)) }, 401, "state"},
		"a long state":        {func(q url.Values) { q.Set("state", strings.Repeat("A", 5000)) }, 400, "state"},
		"two states":          {func(q url.Values) { q.Add("state", "x") }, 400, "state"},
		"no issuer":           {func(q url.Values) { q.Del("iss") }, 401, "from another provider"},
		"another issuer":      {func(q url.Values) { q.Set("iss", "https://evil.example.com") }, 401, "from another provider"},
		"no code":             {func(q url.Values) { q.Del("code") }, 401, "no code"},
		"another code":        {func(q url.Values) { q.Set("code", "x") }, 401, "invalid_grant"},
		"refused":             {func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, 401, "access_denied"},
		"refused with markup": {func(q url.Values) { q.Del("code"); q.Set("error", "<script>\r\nX: y") }, 401, "??X"},
	} {
		jar := map[string]string{}
		got := e.hop(change(e.begin(ofAnn, jar), c.change), jar)
		if got.status != c.status || !strings.Contains(got.body, c.message) || jar[browser.Cookie] != "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, to := range []string{"//evil.example.com", "https://evil.example.com", `/\evil.example.com`, "/a\r\nSet-Cookie: x=y", "console", "/ä", "/" + strings.Repeat("a", 8192)} {
		e.wantStatus("return_to "+to[:min(len(to), 40)], e.hop(e.base+"/auth/login?email=ann@example.com&return_to="+url.QueryEscape(to), map[string]string{}), 400, "return_to")
	}
	for query, want := range map[string]int{"": 400, "email=ann": 400, "email=ann@example.org": 404, "organisation_id=nowhere": 404, "organisation_id=default%23X": 404, "organisation_id=default&sso_client_id=x": 404} {
		if got := e.hop(e.base+"/auth/login?"+query, map[string]string{}); got.status != want {
			t.Errorf("login?%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestDomainsAreShownToBeOnesOwn(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	for domain, problem := range map[string]string{"com": "registrable domain", "co.uk": "registrable domain", "github.io": "registrable domain", "localhost": "registrable domain", "10.0.0.1": "registrable domain", "-a.com": "registrable domain", "a..com": "registrable domain", "exa mple.com": "registrable domain", "example.com": "has already been added", "EXAMPLE.com.": "has already been added"} {
		got := e.call("POST", "/auth/domains", fmt.Sprintf(`{"domain":%q}`, domain), "X-Gateway-Api-Key", adminKey)
		if got.status != 400 && got.status != 409 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", domain, got.status, got.body)
		}
	}
	e.wantStatus("subdomains of a subdomain", e.call("POST", "/auth/domains", `{"domain":"a.example.net","allow_subdomains":true}`, "X-Gateway-Api-Key", adminKey), 400, "registrable domains")
	exact := e.verify("b.example.net", false)
	enter := func(email string) reply {
		e.idp.set(func() { e.idp.claims = map[string]any{"email": email, "sub": email} })
		got, _ := e.enter(ofAnn)
		return got
	}
	for email, status := range map[string]int{"a@b.example.net": 302, "a@example.net": 403, "a@c.b.example.net": 403, "a@example.com": 302, "a@x.y.example.com": 302} {
		if got := enter(email); got.status != status {
			t.Errorf("%s: %d %s", email, got.status, got.body)
		}
	}
	e.admin("DELETE", "/auth/domains/"+exact, "")
	e.wantStatus("a domain that was removed", enter("a@b.example.net"), 403, "not verified")
}
