package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/wire"
)

// headerRecordingTools is an MCP server that tells with which headers its tools were called.
func headerRecordingTools(t *testing.T) (address string, headers chan http.Header) {
	t.Helper()
	up, _ := mcpServer(t, stateless)
	target, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	headers = make(chan http.Header, 100)
	pass := httputil.NewSingleHostReverseProxy(target)
	seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Mcp-Method") == "tools/call" {
			headers <- q.Header.Clone()
		}
		pass.ServeHTTP(w, q)
	}))
	t.Cleanup(seen.Close)
	return seen.URL, headers
}

// signingKeys fetches the key set as a stranger does, from an address.
func signingKeys(t *testing.T, at string) (set jose.JSONWebKeySet) {
	t.Helper()
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(raw, &set); err != nil || resp.StatusCode != 200 || len(set.Keys) < 2 || !strings.HasPrefix(resp.Header.Get("Cache-Control"), "public, max-age=") {
		t.Fatalf("%d %v %s %v", resp.StatusCode, resp.Header, raw, err)
	}
	for _, k := range set.Keys {
		if !k.IsPublic() || strings.Contains(string(raw), `"d"`) {
			t.Fatalf("%s", raw)
		}
	}
	return set
}

// TestMCPServersGetSignedTokens: who calls, in a token that a stranger verifies by the
// published keys, and in no other.
func TestMCPServersGetSignedTokens(t *testing.T) {
	t.Parallel()
	r, p := start(t), newIdentityProvider(t)
	address, headers := headerRecordingTools(t)
	validated := `"jwt_validation":{"jwksUri":"` + p.URL + `/keys"},`
	for slug, conf := range map[string]string{
		"signed":  validated + `"user_identity_forwarding":{"method":"jwt_header"},"forward_headers":{"mode":"all-except","headers":[]}`,
		"chosen":  validated + `"user_identity_forwarding":{"method":"jwt_header","header_name":"Authorization","include_claims":["sub","aud","iss","exp","nbf","jti","workspace_id"],"jwt_expiry_seconds":60},"headers":{"Authorization":"static"},"passthrough_headers":{"X-User-JWT":"static"}`,
		"keysign": `"user_identity_forwarding":{"method":"jwt_header"}`,
	} {
		r.registerMCP(slug, address, `,"configurations":{`+conf+`}`)
	}
	root := strings.TrimSuffix(r.base, "/v1")
	set := signingKeys(t, root+"/.well-known/jwks.json")
	if below := signingKeys(t, r.base+"/.well-known/jwks.json"); len(below.Keys) != len(set.Keys) {
		t.Errorf("%v", below)
	}
	good := p.token(p.key, map[string]any{"workspace_id": "stolen", "organisation_id": "stolen", "user_id": "stolen", "jti": "theirs", "nbf": 1})
	call := func(slug, header string, more ...string) (string, golangjwt.MapClaims) {
		t.Helper()
		got := r.callTool(slug, "tool0", "x", append([]string{"Authorization", "Bearer " + good, "X-User-Claims", `{"sub":"forged"}`, "X-User-JWT", "forged"}, more...)...)
		if got.status != 200 || !strings.Contains(got.body, "said x") {
			t.Fatalf("%s: %d %s", slug, got.status, got.body)
		}
		h := <-headers
		if all := fmt.Sprint(h); strings.Contains(all, "forged") || strings.Contains(all, workspaceKey) {
			t.Errorf("%s: %v", slug, h)
		}
		raw, claims := strings.TrimPrefix(h.Get(header), "Bearer "), golangjwt.MapClaims{}
		_, err := golangjwt.ParseWithClaims(raw, claims, func(tok *golangjwt.Token) (any, error) {
			keys := set.Key(fmt.Sprint(tok.Header["kid"]))
			if len(keys) != 1 {
				return nil, fmt.Errorf("no key %v", tok.Header)
			}
			return keys[0].Key, nil
		}, golangjwt.WithValidMethods([]string{"RS256"}), golangjwt.WithIssuer("gateway-mcp-gateway"), golangjwt.WithExpirationRequired(), golangjwt.WithIssuedAt())
		if err != nil {
			t.Fatalf("%s: %v: %v", slug, err, h)
		}
		return raw, claims
	}
	lasts := func(c golangjwt.MapClaims) float64 { return c["exp"].(float64) - c["iat"].(float64) }
	first, c := call("signed", "X-User-JWT")
	if c["sub"] != "ann" || c["email"] != "ann@example.com" || c["workspace_id"] != r.workspace() || c["organisation_id"] != "default" || c["user_id"] != nil || c["jti"] != nil || c["aud"] != nil || lasts(c) != 300 {
		t.Errorf("%v", c)
	}
	if again, _ := call("signed", "X-User-JWT"); again != first {
		t.Error("a token was signed again for the same user")
	}
	good = p.token(p.key, map[string]any{"sub": "bob"})
	if other, c := call("signed", "X-User-JWT"); other == first || c["sub"] != "bob" {
		t.Errorf("%v", c)
	}
	if _, c := call("chosen", "Authorization"); c["sub"] != "bob" || c["aud"] != address || c["iss"] != "gateway-mcp-gateway" || c["nbf"] != nil || c["jti"] != nil || lasts(c) != 60 {
		t.Errorf("%v", c)
	}
	if _, c := call("keysign", "X-User-JWT"); c["sub"] == "bob" || c["sub"] == "" || c["workspace_id"] != r.workspace() || c["client_id"] == nil {
		t.Errorf("%v", c)
	}
	for what, conf := range map[string]string{
		"too long": `{"method":"jwt_header","jwt_expiry_seconds":86401}`, "no time": `{"method":"jwt_header","jwt_expiry_seconds":-1}`, "a text": `{"method":"jwt_header","jwt_expiry_seconds":"60"}`,
		"another way": `{"method":"jwt"}`, "no header": `{"method":"jwt_header","header_name":"X Y"}`, "ours": `{"method":"jwt_header","header_name":"Mcp-Name"}`,
	} {
		got := r.call("POST", "/mcp-integrations", `{"name":"x","slug":"bad","url":"`+address+`","auth_type":"none","transport":"http","workspace_id":"`+r.workspace()+`","configurations":{"user_identity_forwarding":`+conf+`}}`, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, "user_identity_forwarding") {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
}

// TestMCPHeadersAreMerged: what wins where several name one header.
func TestMCPHeadersAreMerged(t *testing.T) {
	t.Parallel()
	r := start(t)
	address, headers := headerRecordingTools(t)
	r.registerMCP("merged", address, `,"configurations":{
		"forward_headers":{"mode":"allowlist","headers":["X-A","X-B","X-C",{"from":"X-D","to":"X-E"},{"from":"X-F","to":"X-Who"}]},
		"headers":{"x-b":"static","X-C":"static","X-G":"static"},"passthrough_headers":{"X-c":"passed","X-Who":"passed"},
		"user_identity_forwarding":{"method":"claims_header","header_name":"X-Who","include_claims":["workspace_id"]}}`)
	got := r.callTool("merged", "tool0", "x", "X-A", "client", "X-B", "client", "X-C", "client", "X-D", "client", "X-F", "client", "X-G", "client", "X-H", "client", "X-Who", "client", "Cookie", "a=b")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h := <-headers
	for name, want := range map[string]string{
		"X-A": "client", "X-B": "static", "X-C": "passed", "X-D": "", "X-E": "client", "X-F": "", "X-G": "static", "X-H": "", "Cookie": "", "X-Gateway-Api-Key": "", "X-Who": `{"workspace_id":"` + r.workspace() + `"}`,
	} {
		if v := h.Values(name); strings.Join(v, "|") != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// TestAgentCardsAreSigned: a stranger verifies a card by the keys that it names.
func TestAgentCardsAreSigned(t *testing.T) {
	t.Parallel()
	r := start(t)
	up := newAgent(t, false, "")
	_, integration := r.registerAgent("signer", up.URL, "")
	if of := r.admin("GET", "/agent-integrations/"+integration+"?workspace_id="+r.workspace(), ""); fmt.Sprint(of["card_signature"]) != "map[status:unchecked]" {
		t.Errorf("%v", of["card_signature"])
	}
	got := r.call("GET", "/agent/signer/.well-known/agent-card.json", "")
	var card map[string]json.RawMessage
	var signatures []struct{ Protected, Signature string }
	if json.Unmarshal([]byte(got.body), &card) != nil || json.Unmarshal(card["signatures"], &signatures) != nil || len(signatures) != 2 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	delete(card, "signatures")
	raw, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := wire.AppendCanonical(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := jose.ParseSignedCompact(signatures[0].Protected+"."+base64.RawURLEncoding.EncodeToString(payload)+"."+signatures[0].Signature, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	head := jws.Signatures[0].Protected
	set := signingKeys(t, fmt.Sprint(head.ExtraHeaders["jku"]))
	if _, err := jws.Verify(set.Key(head.KeyID)[0].Key); err != nil {
		t.Error(err)
	}
	if again := r.call("GET", "/agent/signer/.well-known/agent-card.json", ""); again.body != got.body || again.header.Get("Etag") != got.header.Get("Etag") {
		t.Errorf("the card changes:\n%s\n%s", got.body, again.body)
	}
}
