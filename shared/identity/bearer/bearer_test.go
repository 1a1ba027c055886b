package bearer

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"
)

var start = time.Unix(1_800_000_000, 0)

func signed(t *testing.T, key *rsa.PrivateKey, claims golangjwt.MapClaims) string {
	t.Helper()
	tok := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, claims)
	tok.Header["kid"] = "a"
	raw, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func setOf(key *rsa.PrivateKey) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"a","n":%q,"e":%q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
}

// TestFailedSignatureFetchesAReplacedKey: an address is called again when a signature does not
// fit, not more than every ten seconds, and not for a token that has ended anyway.
func TestFailedSignatureFetchesAReplacedKey(t *testing.T) {
	t.Parallel()
	first, _ := rsa.GenerateKey(rand.Reader, 2048)
	second, _ := rsa.GenerateKey(rand.Reader, 2048)
	served, fetches := first, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches++
		fmt.Fprint(w, setOf(served))
	}))
	defer s.Close()
	clock := start
	c := NewChecker(func() time.Time { return clock })
	r := &Rules{JWKSURI: s.URL, KeySetTTL: time.Hour, Algorithms: []string{"RS256"}, NeedExpiry: true}
	exp := start.Add(time.Hour).Unix()
	step := func(what, raw, want string, times int) {
		t.Helper()
		tok, why, err := c.Check(context.Background(), s.Client(), r, raw)
		if err != nil || why != want || (tok == nil) != (want != "") || fetches != times {
			t.Errorf("%s: %v %q %v, asked %d times", what, tok, why, err, fetches)
		}
	}
	of := func(k *rsa.PrivateKey) string { return signed(t, k, golangjwt.MapClaims{"exp": exp}) }
	const unfit = "The signature of the token is not valid"
	step("over", signed(t, second, golangjwt.MapClaims{"exp": start.Unix()}), "The token has expired", 0)
	step("the first", of(first), "", 1)
	step("of another key, soon after", of(second), unfit, 1)
	clock = clock.Add(refetchInterval)
	step("of another key", of(second), unfit, 2)
	clock = clock.Add(refetchInterval)
	served = second
	step("it was replaced", of(second), "", 3)
	step("the first is over", of(first), unfit, 3)
	for _, name := range []string{"exp", "nbf", "iat"} {
		claims := golangjwt.MapClaims{"exp": exp}
		claims[name] = "4102444800"
		step(name+" in quotes", signed(t, second, claims), "The claim "+name+" of the token is not a number", 3)
	}
	step("no end", signed(t, second, golangjwt.MapClaims{"sub": "x"}), "The token has no exp", 3)
}

// TestIntrospectionResponsesAreCachedPerClient: what a service said to one caller is not told to another who
// identifies differently.
func TestIntrospectionResponsesAreCachedPerClient(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"active":%t}`, secret == "right")
	}))
	defer s.Close()
	c := NewChecker(func() time.Time { return start })
	for _, secret := range []string{"right", "wrong", ""} {
		r := &Rules{Introspect: s.URL, Kind: FormType, ClientID: "me", ClientSecret: secret, CacheFor: time.Hour}
		if tok, why, err := c.Check(context.Background(), s.Client(), r, "opaque"); err != nil || (tok != nil) != (secret == "right") {
			t.Errorf("%q: %v %q %v", secret, tok, why, err)
		}
	}
}
