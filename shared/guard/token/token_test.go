package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/guard/judge"
)

var (
	strong, _ = rsa.GenerateKey(rand.Reader, 2048)
	weak, _   = rsa.GenerateKey(rand.Reader, 1024)
	curve, _  = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edw, _ = ed25519.GenerateKey(rand.Reader)
)

var b64 = base64.RawURLEncoding.EncodeToString

func ofRSA(kid string, k *rsa.PrivateKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":%q%s}`, kid, b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes()), more)
}

func set(t testing.TB) string {
	point, err := curve.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return `{"keys":[` + strings.Join([]string{
		ofRSA("a", strong, `,"alg":"RS256"`), ofRSA("short", weak, ``), ofRSA("enc", strong, `,"use":"enc"`), ofRSA("any", strong, ``),
		fmt.Sprintf(`{"kty":"EC","kid":"ec","crv":"P-256","x":%q,"y":%q}`, b64(point[1:33]), b64(point[33:])),
		fmt.Sprintf(`{"kty":"OKP","kid":"ed","crv":"Ed25519","x":%q}`, b64(edw.Public().(ed25519.PublicKey))),
	}, ",") + `]}`
}

var now = time.Unix(1_800_000_000, 0)

// sign returns a token; claims without iat get one of a minute ago, and exp of an hour.
func sign(t testing.TB, method golangjwt.SigningMethod, key crypto.PrivateKey, head, claims map[string]any) string {
	c := golangjwt.MapClaims{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix()}
	for k, v := range claims {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	tok := golangjwt.NewWithClaims(method, c)
	for k, v := range head {
		tok.Header[k] = v
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(f judge.Func, headers ...string) judge.Verdict {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return f(context.Background(), &judge.Subject{Headers: h, Client: http.DefaultClient})
}

func made(t testing.TB, params string) judge.Func {
	var p map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		t.Fatal(err)
	}
	return Makers(func() time.Time { return now })[ID](p)
}

// TestTokens: each rule with a token that passes and a twin that does not, or that
// cannot be judged.
func TestTokens(t *testing.T) {
	t.Parallel()
	const yes, no, bad = "passes", "fails", "cannot judge"
	type m = map[string]any
	rs, ed, es := golangjwt.SigningMethodRS256, golangjwt.SigningMethodEdDSA, golangjwt.SigningMethodES256
	good := sign(t, rs, strong, m{"kid": "a"}, nil)
	for i, c := range []struct{ params, token, want string }{
		{``, good, yes}, {``, "Bearer " + good, yes}, {``, "bearer " + good, yes}, {``, "", no}, {``, "none", no}, {``, good[:len(good)-4] + "AAAA", no},
		{`,"headerKey":"x-TOKEN"`, "", no},
		{``, sign(t, rs, strong, m{"kid": "other"}, nil), no}, {``, sign(t, rs, strong, nil, nil), no}, {``, sign(t, rs, strong, m{"kid": "enc"}, nil), no},
		{``, sign(t, rs, weak, m{"kid": "short"}, nil), no}, {``, sign(t, rs, weak, m{"kid": "a"}, nil), no}, {``, sign(t, rs, strong, m{"kid": "a", "crit": []string{"x"}}, nil), no},
		{``, sign(t, es, curve, m{"kid": "ec"}, nil), no}, {`,"algorithms":["ES256"]`, sign(t, es, curve, m{"kid": "ec"}, nil), yes}, {`,"algorithms":["EdDSA"]`, sign(t, ed, edw, m{"kid": "ed"}, nil), yes},
		{`,"algorithms":["RS256","PS256"]`, sign(t, golangjwt.SigningMethodPS256, strong, m{"kid": "a"}, nil), no}, {`,"algorithms":["PS256"]`, sign(t, golangjwt.SigningMethodPS256, strong, m{"kid": "any"}, nil), yes},
		{`,"algorithms":["HS256"]`, sign(t, golangjwt.SigningMethodHS256, []byte(set(t)), m{"kid": "a"}, nil), no},
		{``, sign(t, golangjwt.SigningMethodNone, golangjwt.UnsafeAllowNoneSignatureType, m{"kid": "a"}, nil), no},
		{``, sign(t, rs, strong, m{"kid": "a"}, m{"exp": now.Add(-6 * time.Second).Unix()}), no}, {``, sign(t, rs, strong, m{"kid": "a"}, m{"exp": now.Add(-4 * time.Second).Unix()}), yes},
		{`,"clockTolerance":60`, sign(t, rs, strong, m{"kid": "a"}, m{"exp": now.Add(-50 * time.Second).Unix()}), yes},
		{``, sign(t, rs, strong, m{"kid": "a"}, m{"nbf": now.Add(time.Minute).Unix()}), no}, {``, sign(t, rs, strong, m{"kid": "a"}, m{"iat": now.Add(time.Minute).Unix()}), no},
		{``, sign(t, rs, strong, m{"kid": "a"}, m{"iat": now.Add(-25 * time.Hour).Unix()}), no}, {`,"maxTokenAge":"2d"`, sign(t, rs, strong, m{"kid": "a"}, m{"iat": now.Add(-25 * time.Hour).Unix()}), yes},
		{``, sign(t, rs, strong, m{"kid": "a"}, m{"iat": nil}), no}, {`,"maxTokenAge":"0s"`, sign(t, rs, strong, m{"kid": "a"}, m{"iat": nil}), yes}, {`,"maxTokenAge":"soon"`, good, bad},
		{`,"requiredClaims":["sub"]`, sign(t, rs, strong, m{"kid": "a"}, m{"sub": "x"}), yes}, {`,"requiredClaims":["sub"]`, good, no},
		{`,"claimValues":{"aud":{"values":["x","y"]}}`, sign(t, rs, strong, m{"kid": "a"}, m{"aud": "y"}), yes}, {`,"claimValues":{"aud":{"values":"x"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"aud": []string{"z", "x"}}), yes},
		{`,"claimValues":{"aud":{"values":"x"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"aud": "xx"}), no}, {`,"claimValues":{"aud":{"values":"x"}}`, good, no},
		{`,"claimValues":{"roles":{"values":["a","b"],"matchType":"containsAll"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"roles": []string{"b", "c", "a"}}), yes},
		{`,"claimValues":{"roles":{"values":["a","b"],"matchType":"containsAll"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"roles": []string{"ab", "c"}}), no},
		{`,"claimValues":{"roles":{"values":["a"],"matchType":"contains"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"roles": []string{"admin"}}), no}, {`,"claimValues":{"scope":{"values":["read"],"matchType":"contains"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"scope": "read write"}), yes},
		{`,"claimValues":{"mail":{"values":"@example\\.com$","matchType":"regex"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"mail": "a@example.com"}), yes}, {`,"claimValues":{"mail":{"values":"@example\\.com$","matchType":"regex"}}`, sign(t, rs, strong, m{"kid": "a"}, m{"mail": "a@example.com.evil"}), no},
		{`,"claimValues":{"n":{"values":[5]}}`, sign(t, rs, strong, m{"kid": "a"}, m{"n": 5}), yes}, {`,"claimValues":{"n":{}}`, good, bad},
		{`,"headerPayloadMatch":["tenant"]`, sign(t, rs, strong, m{"kid": "a", "tenant": "t"}, m{"tenant": "t"}), yes}, {`,"headerPayloadMatch":["tenant"]`, sign(t, rs, strong, m{"kid": "a", "tenant": "t"}, m{"tenant": "u"}), no}, {`,"headerPayloadMatch":["tenant"]`, good, no},
	} {
		v := run(made(t, `{"jwks":`+set(t)+c.params+`}`), "authorization", c.token)
		got := no
		switch {
		case v.Err != nil:
			got = bad
		case v.Pass:
			got = yes
		}
		if got != c.want {
			t.Errorf("%d %s: %s, want %s: %+v %+v", i, c.params, got, c.want, v.Err, v.Data)
		}
	}
}

func TestExtractedClaimsBecomeHeaders(t *testing.T) {
	t.Parallel()
	tok := sign(t, golangjwt.SigningMethodRS256, strong, map[string]any{"kid": "a"}, map[string]any{"user_id": "u1", "roles": []string{"a", "b"}, "evil": "x\r\ny", "deep": map[string]any{"a": 1}})
	v := run(made(t, `{"jwks":`+set(t)+`,"extractClaims":["user_id","roles","evil","deep","gone"]}`), "Authorization", tok)
	want := http.Header{"X-Jwt-User-Id": {"u1"}, "X-Jwt-Roles": {"a,b"}, "X-Jwt-Evil": nil, "X-Jwt-Deep": nil, "X-Jwt-Gone": nil}
	if fmt.Sprint(v.Headers) != fmt.Sprint(want) {
		t.Errorf("%v", v.Headers)
	}
	v = run(made(t, `{"jwks":`+set(t)+`,"claimPrefix":"","extractClaims":["authorization","host","x-gateway-config","cookie","x y"]}`), "Authorization", tok)
	if len(v.Headers) != 0 || !v.Pass {
		t.Errorf("%+v", v)
	}
	if v = run(made(t, `{"jwks":`+set(t)+`,"requiredClaims":["sub"],"extractClaims":["user_id"]}`), "Authorization", tok); v.Headers != nil {
		t.Errorf("a refused token gives %v", v.Headers)
	}
}

// TestKeySetsOfAddresses: a set is called once, again for a key that it has not, and is used on
// while its address fails.
func TestKeySetsOfAddresses(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	var body, status atomic.Value
	body.Store(set(t))
	status.Store(200)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.WriteHeader(status.Load().(int))
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	defer s.Close()
	clock := now
	var p map[string]json.RawMessage
	_ = json.Unmarshal([]byte(`{"jwksUri":"`+s.URL+`","cacheMaxAge":3600,"maxTokenAge":"30d"}`), &p)
	f := Makers(func() time.Time { return clock })[ID](p)
	far := map[string]any{"exp": now.Add(100 * time.Hour).Unix()}
	good, other := sign(t, golangjwt.SigningMethodRS256, strong, map[string]any{"kid": "a"}, far), sign(t, golangjwt.SigningMethodRS256, strong, map[string]any{"kid": "new"}, far)
	step := func(name, token string, pass, errs bool, fetches int64) {
		t.Helper()
		if v := run(f, "Authorization", token); v.Pass != pass || (v.Err != nil) != errs || hits.Load() != fetches {
			t.Errorf("%s: %+v %+v, %d asked", name, v.Data, v.Err, hits.Load())
		}
	}
	status.Store(500)
	step("the address fails", good, false, true, 1)
	step("at once again", good, false, true, 1)
	clock = clock.Add(10 * time.Second)
	status.Store(200)
	step("it answers", good, true, false, 2)
	step("it is remembered", good, true, false, 2)
	step("not a key of it, soon after", other, false, false, 2)
	clock = clock.Add(10 * time.Second)
	body.Store(`{"keys":[` + ofRSA("new", strong, "") + `,` + ofRSA("a", strong, "") + `]}`)
	step("a new key", other, true, false, 3)
	clock = clock.Add(2 * time.Hour)
	body.Store("garbage")
	step("an old set while the address is broken", good, true, false, 4)
}

func TestServicesOfTokens(t *testing.T) {
	t.Parallel()
	hits := 0
	var sent, kind string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		raw, _ := io.ReadAll(r.Body)
		sent, kind = string(raw), r.Header.Get("Content-Type")
		switch {
		case strings.Contains(sent, "gone"):
			_, _ = io.WriteString(w, `{"active":false}`)
		case strings.Contains(sent, "down"):
			w.WriteHeader(503)
		case strings.Contains(sent, "old"):
			fmt.Fprintf(w, `{"active":true,"exp":%d}`, now.Add(-time.Hour).Unix())
		default:
			_, _ = io.WriteString(w, `{"active":true,"sub":"x"}`)
		}
	}))
	defer s.Close()
	f := made(t, `{"introspectEndpoint":"`+s.URL+`","introspectCacheMaxAge":60,"requiredClaims":["sub"]}`)
	for range 2 {
		if v := run(f, "Authorization", "Bearer opaque+1"); !v.Pass || hits != 1 || sent != "token=opaque%2B1" {
			t.Errorf("%+v, %d asked, %s", v, hits, sent)
		}
	}
	for token, errs := range map[string]bool{"gone": false, "old": false, "down": true} {
		if v := run(f, "Authorization", token); v.Pass || (v.Err != nil) != errs {
			t.Errorf("%s: %+v", token, v)
		}
	}
	if v := run(made(t, `{"introspectEndpoint":"`+s.URL+`","introspectContentType":"application/json"}`), "Authorization", `a"b`); !v.Pass || sent != `{"token":"a\"b"}` || kind != "application/json" {
		t.Errorf("%+v %s %s", v, sent, kind)
	}
}

// FuzzTokens: whatever a header holds, it is rejected and nothing breaks.
func FuzzTokens(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.e30.AAAA")
	check := made(f, `{"jwks":`+set(f)+`,"headerPayloadMatch":["kid"],"extractClaims":["a"]}`)
	f.Fuzz(func(t *testing.T, token string) {
		if v := check(context.Background(), &judge.Subject{Headers: http.Header{"Authorization": {token}}}); v.Pass {
			t.Fatalf("%q passes", token)
		}
	})
}
