package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
)

// TestIDTokensAreVerifiedBesideKeysThatCannotBeUsed puts each kind of unusable key before
// and behind the one that has signed the token.
func TestIDTokensAreVerifiedBesideKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	good := fmt.Sprintf(`{"kty":"RSA","kid":"good","use":"sig","n":%q,"e":%q}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
	sign := func(claims golangjwt.MapClaims) string {
		token := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, claims)
		token.Header["kid"] = "good"
		raw, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	keys := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, keys)
	}))
	t.Cleanup(s.Close)
	c := &Client{Issuer: "https://issuer.example", ID: "client", Transport: http.DefaultTransport, Now: time.Now}
	claims := func(name string, v any) golangjwt.MapClaims {
		out := golangjwt.MapClaims{"iss": c.Issuer, "aud": c.ID, "sub": "x", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
		if name != "" {
			out[name] = v
		}
		return out
	}
	for _, bad := range []string{
		`{"kty":"AKP","kid":"a","alg":"ML-DSA-65","pub":"AAAA"}`, `{"kty":"EC","kid":"a","crv":"P-999","x":"AA","y":"AA"}`, `{"kty":"EC","kid":"a","crv":"P-256","x":"!","y":"AA"}`, `{"kty":"OKP","kid":"a","crv":"Ed448","x":"AA"}`,
		`{"kty":"RSA","kid":"a","n":"!","e":"AQAB"}`, `{"kty":"RSA","kid":"a","n":5,"e":"AQAB"}`, `{"kty":7}`, `{}`, `null`, `"text"`, `{"kty":"RSA","kid":"a","n":"","e":""}`, `{"kty":"EC","kid":"a","crv":"secp256k1","x":"AA","y":"AA"}`,
	} {
		for _, set := range []string{bad + "," + good, good + "," + bad} {
			keys = `{"keys":[` + set + `]}`
			if _, err := c.verify(context.Background(), s.URL, sign(claims("", nil))); err != nil {
				t.Errorf("beside %s: %v", bad, err)
			}
		}
	}
	for _, name := range []string{"exp", "iat", "nbf", "auth_time"} {
		_, err := c.verify(context.Background(), s.URL, sign(claims(name, json.Number("4102444800").String())))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s in quotes: %v", name, err)
		}
	}
}
