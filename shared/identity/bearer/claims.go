package bearer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/wire"
)

// ClaimRules are the requirements for the claims of a token.
type ClaimRules struct {
	Required []string
	Values   []ValueRule
	Match    []string // fields that header and claims must both have with the same value
	Pattern  Pattern  // nil if no value is a pattern
}

// ValueRule requires a claim to equal one of the wanted values (exact), contain one (contains)
// or all of them (containsAll), or match a pattern (regex).
type ValueRule struct {
	Claim   string
	Allowed []string
	Match   string
}

// Pattern reports whether a text matches a pattern.
type Pattern func(pattern, text string) (bool, error)

// Failings are the names of failed claims by reason.
type Failings struct{ Missing, Wrong, Mismatched []string }

// None reports whether no claim failed.
func (f *Failings) None() bool { return len(f.Missing)+len(f.Wrong)+len(f.Mismatched) == 0 }

// Check checks the claims of a valid token. An error comes from a pattern.
func (r *ClaimRules) Check(t *Token) (f Failings, err error) {
	for _, name := range r.Required {
		if v, ok := t.Claims[name]; !ok || v == nil {
			f.Missing = append(f.Missing, name)
		}
	}
	for _, v := range r.Values {
		fits, err := v.fits(t.Claims[v.Claim], r.Pattern)
		if err != nil {
			return f, err
		}
		if !fits {
			f.Wrong = append(f.Wrong, v.Claim)
		}
	}
	for _, name := range r.Match {
		a, b := Texts(t.Header[name]), Texts(t.Claims[name])
		if len(a) == 0 || !slices.Equal(a, b) {
			f.Mismatched = append(f.Mismatched, name)
		}
	}
	return f, nil
}

// Matches reports whether a value equals one of the wanted values (exact), contains one of them
// (contains) or all of them (containsAll), or matches one as a pattern (regex).
func Matches(how, value string, wanted []string, pattern Pattern) (bool, error) {
	switch how {
	case "contains":
		return slices.ContainsFunc(wanted, func(w string) bool { return strings.Contains(value, w) }), nil
	case "containsAll":
		return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(value, w) }), nil
	case "regex":
		var failed error
		for _, w := range wanted {
			fits, err := pattern(w, value)
			if fits {
				return true, failed
			}
			if err != nil {
				failed = err
			}
		}
		return false, failed
	}
	return slices.Contains(wanted, value), nil
}

// fits reports whether a claim satisfies the rule. If the claim is a list, one of its entries
// must satisfy it; for containsAll every wanted value must be an entry.
func (v ValueRule) fits(claim any, pattern Pattern) (bool, error) {
	_, many := claim.([]any)
	have := Texts(claim)
	switch {
	case len(have) == 0:
		return false, nil
	case many && v.Match == "containsAll":
		return len(v.Allowed) > 0 && !slices.ContainsFunc(v.Allowed, func(w string) bool { return !slices.Contains(have, w) }), nil
	case many && v.Match == "contains":
		return slices.ContainsFunc(v.Allowed, func(w string) bool { return slices.Contains(have, w) }), nil
	}
	for _, one := range have {
		if ok, err := Matches(v.Match, one, v.Allowed, pattern); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Texts returns a string, or the strings of a list.
func Texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		var out []string
		for _, e := range v {
			if _, nested := e.([]any); !nested {
				out = append(out, Texts(e)...)
			}
		}
		return out
	}
	return nil
}

// MaxToken is the size limit of a token in bytes.
const MaxToken = 16 << 10

// Rules configure the verification of tokens: by a key set at an address or inline, or by
// introspection. Rules are safe for concurrent use.
type Rules struct {
	JWKSURI      string
	Inline       *KeySet // nil if the set is at an address
	Introspect   string
	Kind         string        // content type of introspection requests
	ClientID     string        // the gateway's client id at the endpoint; may be empty
	ClientSecret string        // may be empty
	CacheFor     time.Duration // how long introspection responses are cached; zero means not at all
	KeySetTTL    time.Duration
	Tolerance    time.Duration // for clock differences
	MaxAge       time.Duration // since iat; zero means no limit
	NeedExpiry   bool          // a token must have an expiry
	Algorithms   []string
	Claims       ClaimRules
}

// Checker caches key sets and introspection responses for all Rules. It is safe for concurrent
// use.
type Checker struct {
	now       func() time.Time
	keys      *keys
	responses *responseCache
}

// NewChecker returns a Checker.
func NewChecker(now func() time.Time) *Checker {
	return &Checker{now, &keys{now: now, sets: map[string]*KeySet{}}, &responseCache{now: now, known: map[responseKey]response{}}}
}

// Token is a valid token, or the introspection response for one.
type Token struct {
	Header, Claims map[string]any
}

var errNoClient = errors.New("no host can be called")

// Check reports whether a token is valid, apart from its claims. why is the reason of a
// rejection and does not quote the token; err is set if the token could not be checked. client
// is used for requests to the hosts in the rules.
func (c *Checker) Check(ctx context.Context, client *http.Client, r *Rules, raw string) (t *Token, why string, err error) {
	switch {
	case raw == "":
		return nil, "The header has no token", nil
	case len(raw) > MaxToken:
		return nil, "The token is too long", nil
	case client == nil && r.Inline == nil:
		return nil, "", errNoClient
	case r.Introspect != "":
		return c.responses.introspect(ctx, client, r, raw)
	}
	return c.keys.verify(ctx, client, r, raw, c.now())
}

// InPlace returns an inline key set.
func InPlace(raw json.RawMessage) *KeySet {
	s := &KeySet{fixed: true}
	s.keys, s.err = readSet(raw)
	return s
}

// Of returns the token in a header, without the scheme. The name may be in any case.
func Of(h http.Header, name string) string {
	v := strings.TrimSpace(h.Get(name))
	if len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") {
		v = strings.TrimSpace(v[7:])
	}
	return v
}

// Detached is a JWS signature without its payload; both parts are in base64url.
type Detached struct{ Protected, Signature string }

// asymmetric lists the signature algorithms with public keys.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// maxProtected is the size limit of a protected header in bytes.
const maxProtected = 8 << 10

// Head returns fields of the protected header. ok is false for a signature that cannot be
// verified: it does not name its key, uses another algorithm, or requires an unknown extension.
func (d *Detached) Head() (alg, kid, jku string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(d.Protected)
	var h map[string]json.RawMessage
	if err != nil || len(text) > maxProtected || wire.CheckStrict(text, 8) != nil || json.Unmarshal(text, &h) != nil {
		return "", "", "", false
	}
	for name, to := range map[string]*string{"alg": &alg, "kid": &kid, "jku": &jku} {
		_ = json.Unmarshal(h[name], to) // another type counts as absent
	}
	return alg, kid, jku, h["crit"] == nil && kid != "" && slices.Contains(asymmetric, alg)
}

// Detached reports whether a signature signs one of several forms of a payload, using the key
// set at an address. known is false if the set has no such key; err is set if the set could not
// be read.
func (c *Checker) Detached(ctx context.Context, client *http.Client, uri string, d *Detached, forms ...[]byte) (good, known bool, err error) {
	alg, kid, _, ok := d.Head()
	sig, wrong := base64.RawURLEncoding.DecodeString(strings.TrimRight(d.Signature, "="))
	if !ok || wrong != nil {
		return false, false, nil
	}
	public, err := c.keys.find(ctx, client, &Rules{JWKSURI: uri}, c.keys.set(uri), kid, alg, nil)
	if err != nil || public == nil {
		return false, false, err
	}
	method := golangjwt.GetSigningMethod(alg)
	for _, form := range forms {
		if method.Verify(d.Protected+"."+base64.RawURLEncoding.EncodeToString(form), sig, public) == nil {
			return true, true, nil
		}
	}
	return false, true, nil
}

const (
	FormType     = "application/x-www-form-urlencoded" // of the introspection request
	maxResponses = 10_000                              // cached per process
)

// responseCache caches introspection responses (RFC 7662).
type responseCache struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[responseKey]response
}

// responseKey identifies an endpoint, its client and a token, so that no other response is used.
type responseKey [sha256.Size]byte

type response struct {
	token *Token
	until time.Time
}

// introspect returns whether a token is valid according to the introspection endpoint.
func (a *responseCache) introspect(ctx context.Context, client *http.Client, r *Rules, raw string) (*Token, string, error) {
	key := responseKey(sha256.Sum256([]byte(r.Introspect + "\x00" + r.Kind + "\x00" + r.ClientID + "\x00" + r.ClientSecret + "\x00" + raw)))
	now := a.now()
	t := a.recall(key, now)
	if t == nil {
		claims, err := introspect(ctx, client, r, raw)
		if err != nil {
			return nil, "", err
		}
		if active, _ := claims["active"].(bool); !active {
			return nil, "The token is not active", nil
		}
		h, _ := headOf(raw) // an opaque token has none
		t = &Token{h, claims}
		a.store(key, t, now, r.CacheFor)
	}
	for _, c := range []struct {
		claim, why string
		wrong      func(time.Time) bool
	}{
		{"exp", "The token has expired", func(at time.Time) bool { return !now.Before(at.Add(r.Tolerance)) }},
		{"nbf", "The token is not valid yet", func(at time.Time) bool { return now.Add(r.Tolerance).Before(at) }},
		{"iat", "The token is too old", func(at time.Time) bool { return r.MaxAge > 0 && now.Sub(at) > r.MaxAge+r.Tolerance }},
	} {
		n, ok := t.Claims[c.claim].(float64)
		if t.Claims[c.claim] != nil && !ok {
			return nil, "The claim " + c.claim + " of the token is not a number", nil
		}
		if ok && c.wrong(time.Unix(int64(n), 0)) {
			return nil, c.why, nil
		}
	}
	return t, "", nil
}

func (a *responseCache) recall(key responseKey, now time.Time) *Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.known[key]; ok && now.Before(k.until) {
		return k.token
	}
	return nil
}

func (a *responseCache) store(key responseKey, t *Token, now time.Time, age time.Duration) {
	if age <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxResponses {
		clear(a.known)
	}
	a.known[key] = response{t, now.Add(age)}
}

func introspect(ctx context.Context, client *http.Client, r *Rules, raw string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	body := url.Values{"token": {raw}}.Encode()
	if strings.HasPrefix(r.Kind, "application/json") {
		body = string(append(wire.AppendJSONString([]byte(`{"token":`), raw), '}'))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Introspect, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("the token service cannot be called")
	}
	req.Header.Set("Content-Type", r.Kind)
	req.Header.Set("Accept", "application/json")
	if r.ClientID != "" || r.ClientSecret != "" {
		req.SetBasicAuth(url.QueryEscape(r.ClientID), url.QueryEscape(r.ClientSecret))
	}
	text, err := fetchFrom(client, req, "the token service")
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if wire.CheckStrict(text, wire.MaxDepth) != nil || json.Unmarshal(text, &claims) != nil {
		return nil, errors.New("the response of the token service cannot be read")
	}
	return claims, nil
}
