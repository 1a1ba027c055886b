package jwt_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/jwt"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
)

const (
	org, other = "organisation-1", "organisation-2"
	configKind = resource.Kind("CONFIG")
)

// Keys are made once: a key of 2,048 bits takes a while.
var (
	signing = sync.OnceValue(func() *rsa.PrivateKey { return makeKey(2048) })
	foreign = sync.OnceValue(func() *rsa.PrivateKey { return makeKey(2048) })
	short   = sync.OnceValue(func() *rsa.PrivateKey { return makeKey(1024) })
)

func makeKey(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return k
}

func jwk(kid string, k *rsa.PublicKey, more ...string) map[string]any {
	m := map[string]any{
		"kty": "RSA", "kid": kid,
		"n": base64.RawURLEncoding.EncodeToString(k.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.E)).Bytes()),
	}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func set(keys ...map[string]any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return raw
}

// installation is an installation with two organizations, of which each has a workspace.
type installation struct {
	t         testing.TB
	resources *resource.Resources
	v         *jwt.Verifier
	workspace map[string]string // id by organization
	settings  atomic.Pointer[map[string]jwt.Settings]
	clock     atomic.Int64
	refusals  []jwt.Rejection
	mu        sync.Mutex
}

func newInstallation(t testing.TB, client http.RoundTripper) *installation {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := &installation{t: t, workspace: map[string]string{}}
	h.clock.Store(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).UnixMilli())
	h.resources = resource.New(s, resource.Clock(h.now), resource.Embedded())
	loader := resource.NewLoader(h.resources)
	for _, o := range []string{org, other} {
		h.create(store.Scope{Org: o}, tenant.KindOrganisation, o, "", tenant.Organisation{})
		h.workspace[o] = h.create(store.Scope{Org: o}, tenant.KindWorkspace, "", "ws-team", tenant.Workspace{})
	}
	h.create(store.Scope{Org: org}, tenant.KindWorkspace, "", "ws-closed", tenant.Workspace{})
	h.create(store.Scope{Org: org, Workspace: h.workspace[org]}, configKind, "config-1", "pc-route", map[string]any{})
	h.use(map[string]jwt.Settings{org: {Set: set(jwk("k1", &signing().PublicKey))}})
	h.v = jwt.New(jwt.Options{
		Loader: loader, Client: client, Now: h.now, ConfigKind: configKind,
		Settings: func(id string, _ *tenant.Organisation) jwt.Settings { return (*h.settings.Load())[id] },
		OnRejected: func(_ context.Context, o string, r jwt.Rejection) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refusals = append(h.refusals, r)
		},
	})
	return h
}

func (h *installation) now() time.Time { return time.UnixMilli(h.clock.Load()) }

func (h *installation) pass(d time.Duration) { h.clock.Add(d.Milliseconds()) }

func (h *installation) use(m map[string]jwt.Settings) { h.settings.Store(&m) }

func (h *installation) create(sc store.Scope, k resource.Kind, id, slug string, form any) string {
	h.t.Helper()
	body, err := json.Marshal(form)
	if err != nil {
		h.t.Fatal(err)
	}
	rec := resource.Record{Scope: sc, Kind: k, ID: id, Slug: slug, Name: "n", Status: tenant.StatusActive, Body: body}
	if err := h.resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		h.t.Fatal(err)
	}
	return rec.ID
}

// claims returns those of a good token; change sets members, or removes those set to nil.
func (h *installation) claims(change map[string]any) golangjwt.MapClaims {
	c := golangjwt.MapClaims{
		"organisation_id": org, "workspace_slug": "ws-team", "scope": "completions.write logs.view",
		"exp": h.now().Add(time.Hour).Unix(), "sub": "user-7",
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// sign returns a token with a header.
func sign(t testing.TB, key any, m golangjwt.SigningMethod, header map[string]any, c golangjwt.Claims) string {
	t.Helper()
	tok := golangjwt.NewWithClaims(m, c)
	tok.Header["kid"] = "k1"
	for k, v := range header {
		if tok.Header[k] = v; v == nil {
			delete(tok.Header, k)
		}
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *installation) good(change map[string]any) string {
	h.t.Helper()
	return sign(h.t, signing(), golangjwt.SigningMethodRS256, nil, h.claims(change))
}

func TestPrincipalOfAToken(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	full := map[string]any{
		"gateway_oid": org, "gateway_workspace": h.workspace[org], "workspace_slug": nil, "scope": nil,
		"scopes":   []string{"gateway.completions.write", "policies:read", "workspace_service_api_keys.list", "completions.read", "audit_logs.list", "workspace_service_api_keys.create", "nonsense"},
		"email_id": "ann@example.com", "uid": "u",
		"defaults":     map[string]any{"config_id": "pc-route", "metadata": map[string]string{"team": "red"}},
		"usage_limits": []any{map[string]any{"id": "1", "type": "cost", "credit_limit": 5, "status": "active"}},
		"rate_limits":  []any{map[string]any{"type": "requests", "unit": "rpm", "value": 10}},
	}
	p, err := h.v.Verify(context.Background(), h.good(full), identity.AuthenticationAttempt{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Type != identity.SignedToken || p.Scope != (store.Scope{Org: org, Workspace: h.workspace[org]}) || p.WorkspaceSlug != "ws-team" {
		t.Errorf("a token for %v %v %s", p.Type, p.Scope, p.WorkspaceSlug)
	}
	if got := strings.Join(p.Scopes.Sorted(), " "); got != "completions.read completions.write policies.read workspace_service_api_keys.list" {
		t.Errorf("scopes %s", got)
	}
	if p.EndUser != "ann@example.com" || p.UserID != "" || p.Defaults.ConfigID != "pc-route" || p.Defaults.Metadata["team"] != "red" {
		t.Errorf("user %q %q, defaults %+v", p.EndUser, p.UserID, p.Defaults)
	}
	if p.Subject == nil || len(p.Subject.Rates) != 1 || len(p.Subject.Budgets) != 1 || p.Subject.ID != p.KeyID || !strings.HasPrefix(p.KeyID, "jwt-") {
		t.Errorf("limits %+v of %s", p.Subject, p.KeyID)
	}
	again, err := h.v.Verify(context.Background(), h.good(map[string]any{"defaults": map[string]any{"config_id": "of-nobody"}, "scope": "completions.write,logs.view"}), identity.AuthenticationAttempt{})
	if err != nil || again.Defaults.ConfigID != "" || again.Subject != nil || again.KeyID == p.KeyID || again.EndUser != "user-7" || len(again.Scopes) != 2 {
		t.Errorf("a plain token: %+v, %v", again, err)
	}
}

// Every forgery of the usual list, and every token that says too little, too much or is too
// long. Beside each is the valid token that differs only in that.
func TestInvalidTokensAreRejected(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	rs := golangjwt.SigningMethodRS256
	public := []byte(jwk("k1", &signing().PublicKey)["n"].(string))
	parts := strings.Split(h.good(nil), ".")
	otherParts := strings.Split(h.good(map[string]any{"scope": "logs.list"}), ".")
	raw := func(header, payload string) string {
		b := base64.RawURLEncoding
		return b.EncodeToString([]byte(header)) + "." + b.EncodeToString([]byte(payload)) + "." + parts[2]
	}
	for name, c := range map[string]struct {
		token  string
		status int
		reason string
	}{
		"none":                 {sign(t, golangjwt.UnsafeAllowNoneSignatureType, golangjwt.SigningMethodNone, nil, h.claims(nil)), 401, "RS256"},
		"none in capitals":     {raw(`{"alg":"NONE","typ":"JWT","kid":"k1"}`, `{"organisation_id":"`+org+`"}`), 401, "RS256"},
		"HS256 by public key":  {sign(t, public, golangjwt.SigningMethodHS256, nil, h.claims(nil)), 401, "RS256"},
		"RS512":                {sign(t, signing(), golangjwt.SigningMethodRS512, nil, h.claims(nil)), 401, "RS256"},
		"PS256":                {sign(t, signing(), golangjwt.SigningMethodPS256, nil, h.claims(nil)), 401, "RS256"},
		"jku":                  {sign(t, signing(), rs, map[string]any{"jku": "https://evil.example/keys"}, h.claims(nil)), 401, "jku"},
		"x5u":                  {sign(t, signing(), rs, map[string]any{"x5u": "https://evil.example/cert"}, h.claims(nil)), 401, "x5u"},
		"x5c":                  {sign(t, signing(), rs, map[string]any{"x5c": []string{"MII"}}, h.claims(nil)), 401, "x5c"},
		"jwk":                  {sign(t, foreign(), rs, map[string]any{"jwk": jwk("k1", &foreign().PublicKey)}, h.claims(nil)), 401, "jwk"},
		"crit":                 {sign(t, signing(), rs, map[string]any{"crit": []string{"b64"}}, h.claims(nil)), 401, "crit"},
		"b64":                  {sign(t, signing(), rs, map[string]any{"b64": false}, h.claims(nil)), 401, "b64"},
		"typ of another kind":  {sign(t, signing(), rs, map[string]any{"typ": "at+jwt"}, h.claims(nil)), 401, "typ"},
		"no typ":               {sign(t, signing(), rs, map[string]any{"typ": nil}, h.claims(nil)), 401, "typ"},
		"no kid":               {sign(t, signing(), rs, map[string]any{"kid": nil}, h.claims(nil)), 401, "kid"},
		"kid is no string":     {sign(t, signing(), rs, map[string]any{"kid": 1}, h.claims(nil)), 401, "kid"},
		"unknown kid":          {sign(t, signing(), rs, map[string]any{"kid": "k2"}, h.claims(nil)), 401, "signing key not found"},
		"signed by another":    {sign(t, foreign(), rs, nil, h.claims(nil)), 401, "signature"},
		"tampered payload":     {parts[0] + "." + otherParts[1] + "." + parts[2], 401, "signature"},
		"tampered signature":   {parts[0] + "." + parts[1] + "." + otherParts[2], 401, "signature"},
		"cut signature":        {parts[0] + "." + parts[1] + "." + parts[2][:100], 401, "signature"},
		"no signature":         {parts[0] + "." + parts[1] + ".", 401, "not valid"},
		"padding":              {parts[0] + "." + parts[1] + "." + parts[2] + "==", 401, "not valid"},
		"a key twice":          {raw(`{"alg":"RS256","typ":"JWT","kid":"k1"}`, `{"organisation_id":"`+org+`","organisation_id":"`+other+`"}`), 401, "every key once"},
		"alg twice":            {raw(`{"alg":"RS256","alg":"none","typ":"JWT","kid":"k1"}`, `{"organisation_id":"`+org+`"}`), 401, "every key once"},
		"expired":              {h.good(map[string]any{"exp": h.now().Add(-6 * time.Second).Unix()}), 401, "expired"},
		"no exp":               {h.good(map[string]any{"exp": nil}), 401, "exp"},
		"exp in quotes":        {h.good(map[string]any{"exp": strconv.FormatInt(h.now().Add(time.Hour).Unix(), 10)}), 401, "exp"},
		"nbf in quotes":        {h.good(map[string]any{"nbf": strconv.FormatInt(h.now().Unix(), 10)}), 401, "nbf"},
		"iat in quotes":        {h.good(map[string]any{"iat": strconv.FormatInt(h.now().Unix(), 10)}), 401, "iat"},
		"exp is text":          {h.good(map[string]any{"exp": "tomorrow"}), 401, "exp"},
		"not yet":              {h.good(map[string]any{"nbf": h.now().Add(time.Minute).Unix()}), 401, "nbf"},
		"issued later":         {h.good(map[string]any{"iat": h.now().Add(time.Minute).Unix()}), 401, "iat"},
		"no organisation":      {h.good(map[string]any{"organisation_id": nil}), 401, "organisation_id is missing"},
		"unknown organisation": {h.good(map[string]any{"organisation_id": "nobody"}), 401, "organization is unknown"},
		"two organisations":    {h.good(map[string]any{"gateway_oid": other}), 401, "contradict each other"},
		"organization 7":       {h.good(map[string]any{"organisation_id": 7}), 401, "must be a string"},
		"without keys":         {h.good(map[string]any{"organisation_id": other}), 403, "no key set"},
		"no workspace":         {h.good(map[string]any{"workspace_slug": nil}), 401, "workspace_slug is missing"},
		"unknown workspace":    {h.good(map[string]any{"workspace_slug": "ws-nobody"}), 403, "workspace"},
		"foreign workspace":    {h.good(map[string]any{"workspace_slug": h.workspace[other]}), 403, "workspace"},
		"no scope":             {h.good(map[string]any{"scope": nil}), 403, "no scope"},
		"scopes of others":     {h.good(map[string]any{"scope": "audit_logs.list organisation_users.create"}), 403, "no scope"},
		"scope 7":              {h.good(map[string]any{"scope": 7}), 401, "claim scope"},
		"limits of no form":    {h.good(map[string]any{"usage_limits": []any{map[string]any{"type": "cost"}}}), 401, "usage_limits"},
		"negative rate":        {h.good(map[string]any{"rate_limits": []any{map[string]any{"type": "requests", "unit": "rpm", "value": -1}}}), 401, "rate_limits"},
		"defaults of no form":  {h.good(map[string]any{"defaults": []string{"a"}}), 401, "defaults"},
		"too long":             {h.good(map[string]any{"more": strings.Repeat("x", 8<<10)}), 401, "bytes"},
		"too deep":             {h.good(map[string]any{"more": json.RawMessage(strings.Repeat("[", 20) + strings.Repeat("]", 20))}), 401, "levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := h.v.Verify(context.Background(), c.token, identity.AuthenticationAttempt{})
			f := fault.From(err)
			if p != nil || err == nil || f.Status() != c.status || !strings.Contains(f.Message, c.reason) {
				t.Fatalf("%v, %v; want %d with %q", p, err, c.status, c.reason)
			}
			if strings.Contains(f.Message, "evil") || len(f.Message) > 300 {
				t.Errorf("the message quotes the token: %s", f.Message)
			}
		})
	}
	if _, err := h.v.Verify(context.Background(), h.good(nil), identity.AuthenticationAttempt{}); err != nil {
		t.Errorf("the good token is refused: %v", err)
	}
	if _, err := h.v.Verify(context.Background(), h.good(map[string]any{"exp": h.now().Add(-4 * time.Second).Unix(), "nbf": h.now().Add(4 * time.Second).Unix()}), identity.AuthenticationAttempt{}); err != nil {
		t.Errorf("clocks may be five seconds apart: %v", err)
	}
}

func TestIsDistinguishesTokensFromKeys(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	for credential, want := range map[string]bool{
		h.good(nil): true, "eyJhbGciOiJSUzI1NiJ9.e30.": true,
		"gw-0123456789": false, "a.b": false, "a.b.c.d": false, "my.admin.key": false, "": false, "..": false, "eyJ.x y.z": false,
	} {
		if jwt.Is(credential) != want {
			t.Errorf("%q: %t", credential, !want)
		}
	}
}

func TestTokenIsRejectedAfterItsDependenciesEnd(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	ctx := context.Background()
	verify := func(token string, status int) {
		t.Helper()
		_, err := h.v.Verify(ctx, token, identity.AuthenticationAttempt{})
		if err == nil && status != 200 || err != nil && fault.From(err).Status() != status {
			t.Errorf("%v, want %d", err, status)
		}
	}
	token := h.good(nil)
	verify(token, 200)
	h.use(map[string]jwt.Settings{org: {Set: set(jwk("k1", &foreign().PublicKey))}})
	verify(token, 401) // other keys: what was known under the old ones is checked again
	h.use(map[string]jwt.Settings{})
	verify(token, 403)
	h.use(map[string]jwt.Settings{org: {Set: set(jwk("k1", &signing().PublicKey))}})
	verify(token, 200)
	closed := h.good(map[string]any{"workspace_slug": "ws-closed"})
	verify(closed, 200)
	org1 := store.Scope{Org: org}
	err := h.resources.Change(ctx, org1, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(org1, tenant.KindWorkspace, "ws-closed")
		if err != nil {
			return err
		}
		return tx.Archive(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	verify(closed, 403)
	verify(token, 200)
	h.pass(time.Hour + 6*time.Second)
	verify(token, 401)
}

// members knows one user.
type members struct{ id, email, workspace string }

func (m members) Member(_ context.Context, _ *resource.View, sc store.Scope, email string) (string, bool, error) {
	if email != m.email {
		return "", false, nil
	}
	return m.id, sc.Workspace == m.workspace, nil
}

func TestTokenOfAPlatformUserRequiresMembership(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	users := members{"u-1", "ann@example.com", h.workspace[org]}
	h.v.Users = users
	token := h.good(map[string]any{"email_id": users.email})
	if p, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{}); err != nil || p.UserID != "u-1" || p.EndUser != users.email {
		t.Errorf("a member: %+v, %v", p, err)
	}
	if p, err := h.v.Verify(context.Background(), h.good(map[string]any{"email_id": "bob@example.com"}), identity.AuthenticationAttempt{}); err != nil || p.UserID != "" {
		t.Errorf("somebody else: %+v, %v", p, err)
	}
	users.workspace = "another"
	h.v.Users = users
	if _, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{}); fault.From(err).Status() != 403 {
		t.Errorf("no member any more: %v", err)
	}
}

// issuer responds with a key set that can be changed, and counts.
type issuer struct {
	*httptest.Server
	answer   atomic.Pointer[func(http.ResponseWriter)]
	requests atomic.Int64
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.requests.Add(1)
		(*i.answer.Load())(w)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) respond(body string, status int) {
	f := func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
	i.answer.Store(&f)
}

func TestKeysAtAnAddress(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	h := newInstallation(t, http.DefaultTransport)
	h.use(map[string]jwt.Settings{org: {URL: i.URL}})
	rs := golangjwt.SigningMethodRS256
	step := func(name string, token string, status int, fetches int64) {
		t.Helper()
		_, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{})
		if err == nil && status != 200 || err != nil && fault.From(err).Status() != status {
			t.Errorf("%s: %v, want %d", name, err, status)
		}
		if n := i.requests.Load(); n != fetches {
			t.Errorf("%s: the address was asked %d times, want %d", name, n, fetches)
		}
	}
	fresh := 0
	token := func(kid string, key *rsa.PrivateKey) string {
		fresh++ // no token is known before
		return sign(t, key, rs, map[string]any{"kid": kid}, h.claims(map[string]any{"exp": h.now().Add(time.Hour).Unix(), "n": fresh}))
	}
	i.respond("", 500)
	step("down", token("k1", signing()), 503, 1)
	step("down, asked once a minute", token("k1", signing()), 503, 1)
	h.pass(time.Minute)
	i.respond(string(set(jwk("k1", &signing().PublicKey))), 200)
	step("up", token("k1", signing()), 200, 2)
	step("kept", token("k1", signing()), 200, 2)
	step("unknown key within the minute", token("k2", foreign()), 401, 2)
	h.pass(time.Minute)
	i.respond(string(set(jwk("k1", &signing().PublicKey), jwk("k2", &foreign().PublicKey))), 200)
	step("a new key", token("k2", foreign()), 200, 3)
	step("an unknown key", token("k3", foreign()), 401, 3)
	h.pass(time.Minute)
	step("an unknown key a minute later", token("k3", foreign()), 401, 4)
	h.pass(25 * time.Hour)
	i.respond("<html>", 200)
	step("an old set while the address fails", token("k1", signing()), 200, 5)
	h.pass(time.Minute)
	i.respond(string(set(jwk("k2", &foreign().PublicKey))), 200)
	step("a key that was taken away", token("k1", signing()), 401, 6)
	h.pass(25 * time.Hour)
	i.respond(strings.Repeat(" ", 300<<10), 200)
	step("an answer without end", token("k2", foreign()), 200, 7)
}

func TestKeySetIsFetchedOnceAtATime(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	release := make(chan struct{})
	f := func(w http.ResponseWriter) {
		<-release
		_, _ = w.Write(set(jwk("k1", &signing().PublicKey)))
	}
	i.answer.Store(&f)
	h := newInstallation(t, http.DefaultTransport)
	h.use(map[string]jwt.Settings{org: {URL: i.URL}})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for n := range 20 {
		token := h.good(map[string]any{"n": n})
		wg.Go(func() {
			if _, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{}); err != nil {
				failed.Add(1)
			}
		})
	}
	for i.requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	if failed.Load() != 0 || i.requests.Load() != 1 {
		t.Errorf("%d of 20 failed, the address was asked %d times", failed.Load(), i.requests.Load())
	}
}

func TestKeySetsAreChecked(t *testing.T) {
	t.Parallel()
	secret := jwk("k1", &signing().PublicKey, "d", "AQAB")
	for name, c := range map[string]struct {
		set  string
		want string
	}{
		"good":              {string(set(jwk("k1", &signing().PublicKey))), ""},
		"with use and alg":  {string(set(jwk("k1", &signing().PublicKey, "use", "sig", "alg", "RS256"))), ""},
		"among others":      {string(set(jwk("e", &foreign().PublicKey, "use", "enc"), map[string]any{"kty": "OKP", "kid": "x", "crv": "Ed25519", "x": "AA"}, jwk("k1", &signing().PublicKey))), ""},
		"among unreadable":  {string(set(map[string]any{"kty": "RSA", "kid": "a", "n": 5}, map[string]any{"kty": 7}, map[string]any{"kty": "RSA", "kid": "b", "n": "!", "e": "AQAB"}, jwk("k1", &signing().PublicKey))), ""},
		"no JSON":           {"keys", "JSON object"},
		"an array":          {"[]", "JSON object"},
		"no keys":           {`{"keys":[]}`, "at least one key"},
		"a private key":     {string(set(secret)), "keys[0] contains a secret or a private key"},
		"a shared secret":   {`{"keys":[{"kty":"oct","kid":"a","k":"c2VjcmV0"}]}`, "keys[0] contains a secret"},
		"for encryption":    {string(set(jwk("k1", &signing().PublicKey, "use", "enc"))), "for RS256 signatures"},
		"another algorithm": {string(set(jwk("k1", &signing().PublicKey, "alg", "RS512"))), "for RS256 signatures"},
		"without kid":       {string(set(jwk("", &signing().PublicKey))), "with a kid"},
		"too short":         {string(set(jwk("k1", &signing().PublicKey), jwk("k2", &short().PublicKey))), "2048 bits"},
		"broken":            {`{"keys":[{"kty":"RSA","kid":"a","n":"!","e":"AQAB"}]}`, "for RS256 signatures"},
	} {
		err := jwt.CheckSet([]byte(c.set))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	h := newInstallation(t, nil)
	h.use(map[string]jwt.Settings{org: {Set: set(jwk("k1", &short().PublicKey))}})
	_, err := h.v.Verify(context.Background(), sign(t, short(), golangjwt.SigningMethodRS256, nil, h.claims(nil)), identity.AuthenticationAttempt{})
	if err == nil || !strings.Contains(err.Error(), "2048") {
		t.Errorf("a short key: %v", err)
	}
	for address, want := range map[string]bool{
		"https://issuer.example/.well-known/jwks.json": true, "http://127.0.0.1:9/keys": true,
		"issuer.example": false, "file:///etc/passwd": false, "https://u:p@issuer.example/": false, "https://issuer.example/#a": false, "https:///x": false,
	} {
		if err := jwt.CheckURL(address); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The audit log hears of a rejected token once a minute, and never sees the token.
func TestRejectionsAreReported(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	ctx := context.Background()
	bad := h.good(map[string]any{"exp": h.now().Add(-time.Hour).Unix()})
	for range 3 {
		_, _ = h.v.Verify(ctx, bad, identity.AuthenticationAttempt{})
	}
	_, _ = h.v.Verify(ctx, h.good(map[string]any{"organisation_id": "nobody"}), identity.AuthenticationAttempt{})
	_, _ = h.v.Verify(ctx, h.good(nil), identity.AuthenticationAttempt{})
	if len(h.refusals) != 1 || h.refusals[0].Status != 401 || !strings.Contains(h.refusals[0].Reason, "expired") || len(h.refusals[0].Masked) > 20 {
		t.Fatalf("told %+v", h.refusals)
	}
	h.pass(time.Minute)
	_, _ = h.v.Verify(ctx, bad, identity.AuthenticationAttempt{})
	if len(h.refusals) != 2 {
		t.Errorf("a minute later told %d times", len(h.refusals))
	}
	for n := range 3000 { // a flood does not fill the log
		_, _ = h.v.Verify(ctx, bad[:len(bad)-8]+strings.Repeat("A", 4)+string(rune('A'+n%26))+string(rune('A'+n/26%26))+string(rune('A'+n/676))+"A", identity.AuthenticationAttempt{})
	}
	if len(h.refusals) > 1100 {
		t.Errorf("a flood was told %d times", len(h.refusals))
	}
}

func FuzzVerify(f *testing.F) {
	h := newInstallation(f, nil)
	f.Add("eyJhbGciOiJSUzI1NiJ9.e30.AA")
	f.Add("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0.eyJvcmdhbmlzYXRpb25faWQiOiJvcmdhbmlzYXRpb24tMSJ9.AA")
	f.Fuzz(func(t *testing.T, token string) {
		if p, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{}); err == nil || p != nil {
			t.Fatalf("accepted: %+v", p)
		} else if s := fault.From(err).Status(); s != 401 && s != 403 {
			t.Fatalf("%d: %v", s, err)
		}
	})
}
