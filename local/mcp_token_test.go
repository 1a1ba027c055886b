package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
)

// identityProvider is an identity provider of an organization: its key set and its
// service of tokens.
type identityProvider struct {
	t   *testing.T
	key *rsa.PrivateKey
	*httptest.Server
	mu            sync.Mutex
	tokenRequests []string // of the service of tokens: the bodies
}

func newIdentityProvider(t *testing.T) *identityProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &identityProvider{t: t, key: key}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/keys":
			b64 := base64.RawURLEncoding.EncodeToString
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":%q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
		case "/introspect":
			raw, _ := io.ReadAll(r.Body)
			p.mu.Lock()
			p.tokenRequests = append(p.tokenRequests, string(raw))
			p.mu.Unlock()
			user, secret, _ := r.BasicAuth()
			secret, _ = url.QueryUnescape(secret) // RFC 6749, section 2.3.1
			fmt.Fprintf(w, `{"active":%t,"sub":"ann"}`, user == "gate" && secret == "its secret" && strings.Contains(string(raw), "opaque"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// token signs what is changed of a token that is good; nil takes a claim away.
func (p *identityProvider) token(key *rsa.PrivateKey, change map[string]any) string {
	p.t.Helper()
	c := golangjwt.MapClaims{"iss": "https://idp.example.com", "aud": "files", "sub": "ann", "email": "ann@example.com", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range change {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	tok := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, c)
	tok.Header["kid"] = "k"
	raw, err := tok.SignedString(key)
	if err != nil {
		p.t.Fatal(err)
	}
	return raw
}

// initializeMCP begins a session by hand.
func (r *running) initializeMCP(slug string, headers ...string) reply {
	r.t.Helper()
	return r.call("POST", "/mcp/"+slug+"/mcp", `{"jsonrpc":"2.0","id":"r1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		append([]string{"Accept", "application/json, text/event-stream"}, headers...)...)
}

// TestMCPTokensAreChecked: each token that is rejected, beside the one that is good, for
// lists, calls and both eras alike.
func TestMCPTokensAreChecked(t *testing.T) {
	t.Parallel()
	r, p := start(t), newIdentityProvider(t)
	up, _ := mcpServer(t, stateless)
	r.registerMCP("files", up.URL, fmt.Sprintf(`,"configurations":{"jwt_validation":{"jwksUri":"%s/keys","maxTokenAge":"12h","requiredClaims":["email"],"claimValues":{"iss":{"values":"https://idp.example.com"},"aud":{"values":["files"]},"email":{"values":"@example\\.com$","matchType":"regex"}}}}`, p.URL))
	r.registerMCP("opaque", up.URL, fmt.Sprintf(`,"configurations":{"jwt_validation":{"introspectEndpoint":"%s/introspect","introspectClientId":"gate","introspectClientSecret":"its secret","headerKey":"X-User-Token"}}`, p.URL))
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := p.token(p.key, nil)
	unsigned, _ := golangjwt.NewWithClaims(golangjwt.SigningMethodNone, golangjwt.MapClaims{"email": "a@example.com", "exp": time.Now().Add(time.Hour).Unix()}).SignedString(golangjwt.UnsafeAllowNoneSignatureType)
	session := r.initializeMCP("files", "Authorization", "Bearer "+good)
	id := session.header.Get("Mcp-Session-Id")
	if session.status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", session.status, session.body)
	}
	send := func(what, slug string, status int, wantText string, headers ...string) {
		t.Helper()
		old := append([]string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}, headers...)
		var bodies []string
		for name, got := range map[string]reply{
			"list":               r.callMCP(slug, "tools/list", "", "", headers...),
			"call":               r.callTool(slug, "tool0", "x", headers...),
			"discovery":          r.callMCP(slug, "server/discover", "", "", headers...),
			"unknown method":     r.callMCP(slug, "no/such", "", "", headers...),
			"initialize":         r.initializeMCP(slug, headers...),
			"list in a session":  r.call("POST", "/mcp/"+slug+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, old...),
			"call in a session":  r.call("POST", "/mcp/"+slug+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool0","arguments":{"text":"x"}}}`, old...),
			"stream":             r.call("GET", "/mcp/"+slug+"/mcp", "", headers...),
			"end of the session": r.call("DELETE", "/mcp/"+slug+"/mcp", "", headers...),
		} {
			if status == 200 {
				if got.status == 401 || got.status == 403 || (name == "list" || name == "call") && got.status != 200 {
					t.Errorf("%s: %s: %d %s", what, name, got.status, got.body)
				}
				continue
			}
			var body map[string]string
			word := map[int]string{401: "unauthorized", 403: "forbidden"}[status]
			if json.Unmarshal([]byte(got.body), &body) != nil || got.status != status || body["error"] != word || !strings.Contains(body["error_description"], wantText) || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), `Bearer error="in`) {
				t.Errorf("%s: %s: %d %s %v", what, name, got.status, got.body, got.header)
			}
			bodies = append(bodies, body["error_description"])
		}
		for _, other := range bodies {
			if other != bodies[0] {
				t.Errorf("%s: %q and %q", what, other, bodies[0])
			}
		}
	}
	auth := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	send("good", "files", 200, "", auth(good)...)
	send("none", "files", 401, "no token")
	for what, c := range map[string]struct {
		token   string
		status  int
		message string
	}{
		"garbage":         {"garbage", 401, "cannot be read"},
		"a stranger's":    {p.token(stranger, nil), 401, "is not valid"},
		"unsigned":        {unsigned, 401, "not allowed"},
		"expired":         {p.token(p.key, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), 401, "has expired"},
		"without end":     {p.token(p.key, map[string]any{"exp": nil}), 401, "has no exp"},
		"not yet":         {p.token(p.key, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), 401, "not valid yet"},
		"too old":         {p.token(p.key, map[string]any{"iat": time.Now().Add(-13 * time.Hour).Unix()}), 401, "too old"},
		"without a claim": {p.token(p.key, map[string]any{"email": nil}), 401, "Missing required claims: email"},
		"another issuer":  {p.token(p.key, map[string]any{"iss": "https://other.example.com"}), 403, "iss"},
		"another's":       {p.token(p.key, map[string]any{"aud": "other"}), 403, "aud"},
		"another domain":  {p.token(p.key, map[string]any{"email": "ann@example.com.evil"}), 403, "email"},
		"our own key":     {workspaceKey, 401, "credential of the gateway"},
	} {
		send(what, "files", c.status, c.message, auth(c.token)...)
	}
	// Clocks differ by seconds.
	send("just over", "files", 200, "", auth(p.token(p.key, map[string]any{"exp": time.Now().Add(-time.Second).Unix(), "iat": time.Now().Add(time.Second).Unix()}))...)

	// A session is of the person whom the token names, also of one key.
	other := p.token(p.key, map[string]any{"sub": "bob"})
	renewed := p.token(p.key, map[string]any{"jti": "another"})
	for token, want := range map[string]int{good: 200, renewed: 200, other: 404} {
		if got := r.call("POST", "/mcp/files/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25", "Authorization", "Bearer "+token); got.status != want {
			t.Errorf("a session: %d, want %d: %s", got.status, want, got.body)
		}
	}

	// A service is asked of tokens, with the gateway's name there, and never of a key.
	send("opaque", "opaque", 200, "", "X-User-Token", "opaque-1")
	send("not active", "opaque", 401, "not active", "X-User-Token", "other-1")
	send("in another header", "opaque", 401, "no token", "Authorization", "Bearer opaque-1")
	p.mu.Lock()
	before := len(p.tokenRequests)
	p.mu.Unlock()
	send("a key", "opaque", 401, "credential of the gateway", "X-User-Token", workspaceKey)
	send("a token of ours", "opaque", 401, "credential of the gateway", "X-User-Token", "ga-opaque")
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tokenRequests) != before || strings.Contains(strings.Join(p.tokenRequests, " "), workspaceKey) {
		t.Errorf("asked %q", p.tokenRequests[before:])
	}
}

// TestMCPServersLearnWhoCalls: what a server is told of its caller, and what it is not.
func TestMCPServersLearnWhoCalls(t *testing.T) {
	t.Parallel()
	r, p := start(t), newIdentityProvider(t)
	up, _ := mcpServer(t, stateless)
	target, _ := url.Parse(up.URL)
	headers := make(chan http.Header, 100)
	pass := httputil.NewSingleHostReverseProxy(target)
	seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Mcp-Method") == "tools/call" {
			headers <- q.Header.Clone()
		}
		pass.ServeHTTP(w, q)
	}))
	defer seen.Close()
	token := `"jwt_validation":{"jwksUri":"` + p.URL + `/keys"}`
	for slug, conf := range map[string]string{
		"claims":  token + `,"user_identity_forwarding":{"method":"claims_header"},"forward_headers":{"mode":"all-except","headers":[]}`,
		"chosen":  token + `,"user_identity_forwarding":{"method":"claims_header","header_name":"X-Who","include_claims":["sub","workspace_id","name","absent"]},"forward_headers":["X-Who"],"headers":{"X-Who":"static"}`,
		"keyed":   `"user_identity_forwarding":{"method":"claims_header"}`,
		"bearer":  token + `,"user_identity_forwarding":{"method":"bearer"}`,
		"keyonly": `"user_identity_forwarding":{"method":"bearer"}`,
	} {
		r.registerMCP(slug, seen.URL, `,"configurations":{`+conf+`}`)
	}
	// A token cannot say where its caller belongs.
	good := p.token(p.key, map[string]any{"name": "Änn 🦊", "workspace_id": "stolen", "organisation_id": "stolen", "user_id": "stolen"})
	call := func(slug string, more ...string) http.Header {
		t.Helper()
		got := r.callTool(slug, "tool0", "x", append([]string{"Authorization", "Bearer " + good, "X-User-Claims", `{"sub":"forged"}`, "X-User-JWT", "forged"}, more...)...)
		if got.status != 200 || !strings.Contains(got.body, "said x") {
			t.Fatalf("%s: %d %s", slug, got.status, got.body)
		}
		h := <-headers
		for name, values := range h {
			if joined := strings.Join(values, " "); strings.Contains(joined, workspaceKey) || strings.Contains(joined, "forged") || strings.Contains(joined, "stolen") {
				t.Errorf("%s: the server is sent %s: %s", slug, name, joined)
			}
		}
		return h
	}
	claims := func(value string) (c map[string]string) {
		t.Helper()
		if err := json.Unmarshal([]byte(value), &c); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		return c
	}
	if c := claims(call("claims").Get("X-User-Claims")); c["sub"] != "ann" || c["email"] != "ann@example.com" || c["workspace_id"] != r.workspace() || c["organisation_id"] == "" || c["name"] != "" || c["user_id"] != "" {
		t.Errorf("%v", c)
	}
	if c := claims(call("chosen", "X-Who", "forged").Get("X-Who")); fmt.Sprint(c) != fmt.Sprint(map[string]string{"sub": "ann", "workspace_id": r.workspace(), "name": "Änn 🦊"}) {
		t.Errorf("%v", c)
	}
	if c := claims(call("keyed").Get("X-User-Claims")); c["sub"] == "ann" || c["sub"] == "" || c["email"] != "" || c["workspace_id"] != r.workspace() {
		t.Errorf("a token that nobody checked tells: %v", c)
	}
	if h := call("bearer"); h.Get("Authorization") != "Bearer "+good {
		t.Errorf("%v", h)
	} else if _, err := golangjwt.Parse(strings.TrimPrefix(h.Get("Authorization"), "Bearer "), func(*golangjwt.Token) (any, error) { return &p.key.PublicKey, nil }); err != nil {
		t.Errorf("the server cannot verify the token: %v", err)
	}
	// Without a token that was checked nothing goes, least of all the key.
	for what, headers := range map[string][]string{"with an unchecked token": {"Authorization", "Bearer " + good}, "with a key alone": nil, "with the key in Authorization": {"X-Gateway-Api-Key", "", "Authorization", "Bearer " + workspaceKey}} {
		if got := r.callTool("keyonly", "tool0", "x", headers...); got.status != 401 {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	select {
	case h := <-headers:
		t.Errorf("the server was called: %v", h)
	default:
	}
}
