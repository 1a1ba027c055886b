package signing_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/fault"
	"gateway/shared/identity/signing"
	"gateway/shared/seal"
	seallocal "gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// installation is a store and a key of it, with a clock.
type installation struct {
	mu     sync.Mutex
	at     time.Time
	table  store.Table
	sealer seal.Sealer
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	in := &installation{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{Clock: in.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	master, err := seallocal.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	in.table, in.sealer = s.Table(store.Usage), seal.New(master, in.now)
	return in
}

func (in *installation) now() time.Time { in.mu.Lock(); defer in.mu.Unlock(); return in.at }

func (in *installation) later(d time.Duration) { in.mu.Lock(); in.at = in.at.Add(d); in.mu.Unlock() }

// process is what a process of the installation has.
func (in *installation) process(pemText string) *signing.Keys {
	return signing.New(signing.Options{Table: in.table, Sealer: in.sealer, Now: in.now, ConfiguredKey: pemText})
}

func setOf(t *testing.T, k *signing.Keys) (set jose.JSONWebKeySet) {
	t.Helper()
	raw, err := k.Set(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		if !key.IsPublic() || !key.Valid() {
			t.Fatalf("the set has %+v", key)
		}
	}
	return set
}

// verify checks a token by another library than the one that made it.
func verify(t *testing.T, set jose.JSONWebKeySet, token string, now time.Time) golangjwt.MapClaims {
	t.Helper()
	claims := golangjwt.MapClaims{}
	_, err := golangjwt.ParseWithClaims(token, claims, func(tok *golangjwt.Token) (any, error) {
		kid, _ := tok.Header["kid"].(string)
		keys := set.Key(kid)
		if len(keys) != 1 {
			return nil, fmt.Errorf("the set has %d keys of the name %q", len(keys), kid)
		}
		return keys[0].Key, nil
	}, golangjwt.WithValidMethods([]string{"RS256"}), golangjwt.WithIssuer("gateway-mcp-gateway"), golangjwt.WithExpirationRequired(), golangjwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		t.Fatalf("%s: %v", token, err)
	}
	return claims
}

// TestKeysAreRenewed: over a year, a key set that somebody fetched up to a day before
// verifies each token; keys change, and old keys disappear.
func TestKeysAreRenewed(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	one, other := in.process(""), in.process("")
	mint := &signing.Minter{Keys: one, Now: in.now}
	seen := map[string]bool{}
	before := setOf(t, other)
	for day := range 400 {
		token, err := mint.Token(context.Background(), "u", map[string]any{"sub": "ann", "n": day, "iss": "stolen", "exp": 1}, 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if claims := verify(t, before, token, in.now()); claims["sub"] != "ann" {
			t.Fatal(claims)
		}
		now := setOf(t, other)
		verify(t, now, token, in.now())
		if len(now.Keys) > 6 {
			t.Fatalf("day %d: %d keys are published", day, len(now.Keys))
		}
		head, _, _ := strings.Cut(token, ".")
		seen[head] = true
		before = now
		in.later(24 * time.Hour)
	}
	if len(seen) != 5 {
		t.Errorf("%d keys signed within 400 days", len(seen))
	}
	// After years of silence the key still signs until the next one has been known for a week.
	in.later(5 * 365 * 24 * time.Hour)
	old := setOf(t, in.process(""))
	token, err := mint.Token(context.Background(), "u", nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, old, token, in.now())
}

// TestConcurrentProcessesCreateOneKeySet: processes that begin together have the same keys.
func TestConcurrentProcessesCreateOneKeySet(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	var wg sync.WaitGroup
	sets := make([]string, 3)
	for i := range sets {
		wg.Go(func() {
			raw, err := in.process("").Set(context.Background())
			if err != nil {
				t.Error(err)
			}
			sets[i] = string(raw)
		})
	}
	wg.Wait()
	for _, s := range sets {
		if s != sets[0] || !strings.Contains(s, `"RS256"`) || !strings.Contains(s, `"ES256"`) {
			t.Errorf("%s\n%s", s, sets[0])
		}
	}
	it, ok, err := in.table.Get(context.Background(), store.System("SIGNING").Key("KEYS"), true)
	if err != nil || !ok || strings.Contains(fmt.Sprint(it), "private") || strings.Contains(string(it.Bytes("keys")), "private") {
		t.Errorf("the keys are not sealed: %v %v %v", it, ok, err)
	}
}

// TestSignaturesAreValid: of both algorithms, by another library, and the same for
// the same.
func TestSignaturesAreValid(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	k := in.process("")
	for _, alg := range []string{signing.RS256, signing.ES256} {
		key, err := k.For(context.Background(), alg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 { // halves of ES256 that begin with zeros
			payload := []byte(fmt.Sprint("payload ", i))
			protected, signature, err := key.Sign(map[string]any{"typ": "JOSE"}, payload)
			if err != nil {
				t.Fatal(err)
			}
			_, again, _ := key.Sign(map[string]any{"typ": "JOSE"}, payload)
			if again != signature {
				t.Errorf("%s: two signatures of one payload", alg)
			}
			jws, err := jose.ParseSignedCompact(protected+"."+base64.RawURLEncoding.EncodeToString(payload)+"."+signature, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
			if err != nil {
				t.Fatal(err)
			}
			set := setOf(t, k)
			if _, err := jws.Verify(set.Key(key.ID)[0].Key); err != nil {
				t.Errorf("%s: %v", alg, err)
			}
		}
	}
}

// TestTokensAreCached: until shortly before their end, apart by user, claims and time.
func TestTokensAreCached(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	m := &signing.Minter{Keys: in.process(""), Now: in.now}
	token := func(user, sub string, lasts time.Duration) string {
		t.Helper()
		s, err := m.Token(context.Background(), user, map[string]any{"sub": sub}, lasts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := token("u", "a", 300*time.Second)
	in.later(200 * time.Second)
	if token("u", "a", 300*time.Second) != first {
		t.Error("a token was made twice")
	}
	for what, other := range map[string]string{"claims": token("u", "b", 300*time.Second), "time": token("u", "a", 200*time.Second), "user": token("v", "a", 300*time.Second)} {
		if other == first {
			t.Errorf("another %s has the same token", what)
		}
	}
	in.later(75 * time.Second)
	next := token("u", "a", 300*time.Second)
	if next == first {
		t.Error("a token is given out that is about to end")
	}
	if claims := verify(t, setOf(t, m.Keys), next, in.now()); claims["exp"].(float64)-claims["iat"].(float64) != 300 {
		t.Error(claims)
	}
}

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestKeysFromTheEnvironment: the first key of the variable signs tokens, and all are published; the key
// for cards is the one in the tables. A wrong key fails and is not shown.
func TestKeysFromTheEnvironment(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	a, _ := rsa.GenerateKey(rand.Reader, 2048)
	b, _ := rsa.GenerateKey(rand.Reader, 2048)
	short, _ := rsa.GenerateKey(rand.Reader, 1024)
	curve, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(a)
	first := pemOf(t, "PRIVATE KEY", pkcs8, err)
	both := first + pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(b), nil)
	for _, pemText := range []string{both, strings.ReplaceAll(both, "\n", `\n`), "\n" + both + "\n"} {
		if err := signing.Check(pemText); err != nil {
			t.Fatal(err)
		}
		k := in.process(pemText)
		m := &signing.Minter{Keys: k, Now: in.now}
		token, err := m.Token(context.Background(), "u", nil, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := golangjwt.Parse(token, func(*golangjwt.Token) (any, error) { return &a.PublicKey, nil }, golangjwt.WithTimeFunc(in.now)); err != nil {
			t.Error(err)
		}
		set := setOf(t, k)
		verify(t, set, token, in.now())
		if len(set.Keys) != 4 {
			t.Errorf("%d keys", len(set.Keys))
		}
	}
	ec, err := x509.MarshalPKCS8PrivateKey(curve)
	for what, bad := range map[string]string{
		"no PEM": "hello", "a short key": pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(short), nil), "a curve": pemOf(t, "PRIVATE KEY", ec, err),
		"a part": first[:len(first)-60], "more behind it": first + "secret words", "an empty block": pemOf(t, "PRIVATE KEY", nil, nil),
	} {
		checkErr := signing.Check(bad)
		if checkErr == nil || strings.Contains(checkErr.Error(), "secret words") {
			t.Errorf("%s: %v", what, checkErr)
		}
		m := &signing.Minter{Keys: in.process(bad), Now: in.now}
		if _, err := m.Token(context.Background(), "u", nil, time.Minute); fault.From(err).Status() != 503 {
			t.Errorf("%s signs: %v", what, err)
		}
		if _, err := in.process(bad).Set(context.Background()); fault.From(err).Status() != 503 {
			t.Errorf("%s is published: %v", what, err)
		}
	}
}

// TestWithoutKeysNothingIsSigned: where nothing is sealed, and while what was sealed
// cannot be opened.
func TestWithoutKeysNothingIsSigned(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	other := newInstallation(t)
	if _, err := in.process("").For(context.Background(), signing.RS256); err != nil {
		t.Fatal(err)
	}
	for what, k := range map[string]*signing.Keys{
		"no sealer":      signing.New(signing.Options{Table: in.table, Now: in.now}),
		"absent":         signing.New(signing.Options{Table: in.table, Sealer: seal.Absent{}, Now: in.now}),
		"another master": signing.New(signing.Options{Table: in.table, Sealer: other.sealer, Now: in.now}),
	} {
		if _, err := k.For(context.Background(), signing.RS256); err == nil || fault.From(err).Status() != 503 {
			t.Errorf("%s: %v", what, err)
		}
	}
}
