package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
)

// A token of an issuer that the organization trusts calls models, reads what its
// scopes name, and is the user of the log; a rejected one is told to the audit log.
func TestSignedTokensAreCredentials(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"RSA","use":"sig","kid":"k1","n":%q,"e":%q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(set)) }))
	defer issuer.Close()
	token := func(change map[string]any) string {
		c := golangjwt.MapClaims{"organisation_id": "default", "workspace_slug": "default", "scope": "completions.write configs.list", "exp": time.Now().Add(time.Hour).Unix(), "email_id": "ann@example.com"}
		for k, v := range change {
			c[k] = v
		}
		tok := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, c)
		tok.Header["kid"] = "k1"
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := start(t)
	chat := func(credential string, headers ...string) reply {
		return r.without("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "hello", ""), append(headers, "Authorization", "Bearer "+credential)...)
	}
	if got := chat(token(nil)); got.status != 403 || !strings.Contains(got.body, "no key set") {
		t.Errorf("before keys are named: %d %s", got.status, got.body)
	}
	for name, settings := range map[string]string{"address": fmt.Sprintf(`{"jwks_url":%q,"jwks":null}`, issuer.URL), "in place": `{"jwks_url":null,"jwks":` + set + `}`} {
		if got := r.call("PUT", "/admin/organisation/settings", `{"auth_settings":`+settings+`}`, "X-Gateway-Api-Key", adminKey); got.status != 200 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		good := token(map[string]any{"n": name})
		if got := chat(good); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := r.without("GET", "/configs", "", "x-gateway-api-key", good); got.status != 200 {
			t.Errorf("%s, configs: %d %s", name, got.status, got.body)
		}
		if got := r.without("GET", "/integrations", "", "x-gateway-api-key", good); got.status != 403 {
			t.Errorf("%s, a scope that it has not: %d %s", name, got.status, got.body)
		}
		if got := r.without("POST", "/configs", `{"name":"x","config":{}}`, "x-gateway-api-key", good); got.status != 403 {
			t.Errorf("%s, a change: %d %s", name, got.status, got.body)
		}
	}
	if got := r.records(2); got[0].EndUser != "ann@example.com" || got[0].KeyType != "jwt" || !strings.HasPrefix(got[0].KeyID, "jwt-") {
		t.Errorf("the log has %q %q %q", got[0].EndUser, got[0].KeyType, got[0].KeyID)
	}
	limited := token(map[string]any{"rate_limits": []any{map[string]any{"type": "requests", "unit": "rpm", "value": 1}}})
	if a, b := chat(limited), chat(limited); a.status != 200 || b.status != 429 {
		t.Errorf("one request a minute: %d, %d", a.status, b.status)
	}
	if got := chat(token(map[string]any{"rate_limits": []any{map[string]any{"type": "requests", "unit": "rpm", "value": 1}}, "n": 2})); got.status != 200 {
		t.Errorf("another token has limits of its own: %d %s", got.status, got.body)
	}
	expired := token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
	if got := chat(expired); got.status != 401 || !strings.Contains(got.body, "expired") {
		t.Errorf("expired: %d %s", got.status, got.body)
	}
	if got := r.without("GET", "/configs?page_size=5&token=hidden-value", "", "X-Gateway-Api-Key", token(map[string]any{"exp": 1, "n": 3})); got.status != 401 {
		t.Errorf("expired, an administration call: %d %s", got.status, got.body)
	}
	for _, bad := range []string{`{"jwks_url":"ftp://x"}`, `{"jwks":{"keys":[]}}`, `{"jwks":{"keys":[{"kty":"RSA","kid":"a","d":"AQAB","n":"AQAB","e":"AQAB"}]}}`, `{"jwks":7}`, fmt.Sprintf(`{"jwks_url":%q,"jwks":%s}`, issuer.URL, set)} {
		if got := r.call("PUT", "/admin/organisation/settings", `{"auth_settings":`+bad+`}`, "X-Gateway-Api-Key", adminKey); got.status != 400 || !strings.Contains(got.body, "auth_settings.jwks") {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
	eventually(t, func() error {
		q := url.Values{"start_time": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}, "end_time": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "resource_type": {"auth"}}
		got := r.call("GET", "/audit-logs?"+q.Encode(), "", "X-Gateway-Api-Key", adminKey)
		var page struct {
			Records []struct {
				Details        map[string]string
				Method, URI    string
				ClientIP       string `json:"client_ip"`
				RequestID      string `json:"request_id"`
				RequestHeaders string `json:"request_headers"`
			}
		}
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.Records) != 3 {
			return fmt.Errorf("%d records, %v: %s", len(page.Records), err, got.body)
		}
		if strings.Contains(got.body, expired[20:60]) || strings.Contains(got.body, "hidden-value") || !strings.Contains(page.Records[0].Details["error"], "expired") {
			return fmt.Errorf("records %s", got.body)
		}
		for i, want := range []string{"GET /v1/configs", "POST /v1/chat/completions", "POST /v1/chat/completions"} {
			if one := page.Records[i]; one.Method+" "+one.URI != want || one.ClientIP != "127.0.0.1" || one.RequestHeaders == "" || (i == 0) != (one.RequestID != "") {
				return fmt.Errorf("record %d is of %s %s by %q, with headers %q and id %q; want %s", i, one.Method, one.URI, one.ClientIP, one.RequestHeaders, one.RequestID, want)
			}
		}
		return nil
	})
}
