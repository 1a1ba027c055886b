package bearer

import (
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/identity/jwk"
	"gateway/shared/wire"
)

// Limits of key sets.
const (
	maxSet          = 256 << 10 // bytes
	maxSets         = 1000      // addresses cached per process
	refetchInterval = 10 * time.Second
)

// keys caches the key sets of addresses.
type keys struct {
	now  func() time.Time
	mu   sync.Mutex
	sets map[string]*KeySet
}

// KeySet is the key set of one address, or the inline set of rules.
type KeySet struct {
	mu    sync.Mutex // held during a request to the address; others wait for the same response
	fixed bool
	keys  []jwk.Key
	read  time.Time
	tried time.Time
	err   error
}

// CheckSet returns an error for an invalid key set.
func CheckSet(raw json.RawMessage) error {
	keys, err := readSet(raw)
	if err != nil {
		return errors.New(`must be a JSON object with "keys", an array of at least one key`)
	}
	for i := range keys {
		if keys[i].Secret() {
			return errors.New("contains a secret or a private key; the set must contain only public keys")
		}
	}
	return nil
}

func readSet(raw []byte) ([]jwk.Key, error) {
	if wire.CheckStrict(raw, wire.MaxDepth) != nil {
		return nil, errors.New("the key set cannot be read")
	}
	keys, err := jwk.ReadSet(raw)
	if err != nil {
		return nil, errors.New("the key set cannot be read")
	}
	return keys, nil
}

// verify checks the signature and the times of a token. why is the reason of a rejection; err
// is set if the token could not be checked.
func (k *keys) verify(ctx context.Context, client *http.Client, r *Rules, raw string, now time.Time) (t *Token, why string, err error) {
	h, ok := headOf(raw)
	if !ok {
		return nil, "The token cannot be read", nil
	}
	alg, _ := h["alg"].(string)
	kid, _ := h["kid"].(string)
	switch {
	case !slices.Contains(r.Algorithms, alg):
		return nil, "The token is signed in a way that is not allowed", nil
	case kid == "":
		return nil, "The token does not name its key", nil
	}
	if bad := badTime(raw); bad != "" {
		return nil, "The claim " + bad + " of the token is not a number", nil
	}
	if expired(raw, now, r.Tolerance) {
		return nil, "The token has expired", nil
	}
	set := r.Inline
	if set == nil {
		set = k.set(r.JWKSURI)
	}
	options := []golangjwt.ParserOption{golangjwt.WithValidMethods(r.Algorithms), golangjwt.WithLeeway(r.Tolerance), golangjwt.WithIssuedAt(),
		golangjwt.WithStrictDecoding(), golangjwt.WithTimeFunc(func() time.Time { return now })}
	if r.NeedExpiry {
		options = append(options, golangjwt.WithExpirationRequired())
	}
	parser := golangjwt.NewParser(options...)
	claims := golangjwt.MapClaims{}
	var used keyOnTrial
	for range 2 { // a second time if the address now has another key under the same id
		var public crypto.PublicKey
		if public, err = k.find(ctx, client, r, set, kid, alg, used); err != nil {
			return nil, "", err
		}
		switch {
		case public == nil:
			return nil, "The key of the token is not in the key set", nil
		case used != nil && used.Equal(public):
			return nil, "The signature of the token is not valid", nil
		}
		clear(claims)
		if _, err = parser.ParseWithClaims(raw, claims, func(*golangjwt.Token) (any, error) { return public, nil }); err == nil {
			break
		}
		if used, _ = public.(keyOnTrial); !errors.Is(err, golangjwt.ErrTokenSignatureInvalid) || used == nil {
			break
		}
	}
	if err != nil {
		return nil, reasonOf(err), nil
	}
	if r.MaxAge > 0 {
		issued, err := claims.GetIssuedAt()
		if err != nil || issued == nil {
			return nil, "The token has no iat", nil
		}
		if now.Sub(issued.Time) > r.MaxAge+r.Tolerance {
			return nil, "The token is too old", nil
		}
	}
	return &Token{h, claims}, "", nil
}

// keyOnTrial is a comparable public key; every public key type implements it.
type keyOnTrial interface{ Equal(x crypto.PublicKey) bool }

// expired reports whether an unverified token has expired, which needs no request and no
// cryptography.
func expired(raw string, now time.Time, tolerance time.Duration) bool {
	_, rest, _ := strings.Cut(raw, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		Exp float64 `json:"exp"`
	}
	return err == nil && json.Unmarshal(text, &claims) == nil && claims.Exp > 0 && claims.Exp < 1<<40 && !now.Before(time.Unix(int64(claims.Exp), 0).Add(tolerance))
}

// badTime returns the name of a time in a token that is not a number, or "".
func badTime(raw string) string {
	_, rest, _ := strings.Cut(raw, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "" // an unreadable token is rejected later
	}
	return jwk.BadTime(text)
}

// headOf returns the token's header. It rejects headers that contain a key or require an
// unknown extension.
func headOf(raw string) (map[string]any, bool) {
	first, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	var h map[string]any
	if err != nil || strings.Count(raw, ".") != 2 || wire.CheckStrict(text, 8) != nil || json.Unmarshal(text, &h) != nil {
		return nil, false
	}
	_, crit := h["crit"]
	return h, !crit
}

// reasonOf translates the library's errors; the result quotes nothing of the token.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, golangjwt.ErrTokenSignatureInvalid):
		return "The signature of the token is not valid"
	case errors.Is(err, golangjwt.ErrTokenExpired):
		return "The token has expired"
	case errors.Is(err, golangjwt.ErrTokenRequiredClaimMissing):
		return "The token has no exp"
	case errors.Is(err, golangjwt.ErrTokenNotValidYet), errors.Is(err, golangjwt.ErrTokenUsedBeforeIssued):
		return "The token is not valid yet"
	}
	return "The token cannot be read"
}

func (k *keys) set(uri string) *KeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil {
		if len(k.sets) >= maxSets {
			clear(k.sets)
		}
		s = &KeySet{}
		k.sets[uri] = s
	}
	return s
}

// find returns the key of a token, or nil if the set has none. It fetches the set when it is
// old, and also for a key that is missing or failed, but at most every ten seconds. While the
// address fails, the last set is used.
func (k *keys) find(ctx context.Context, client *http.Client, r *Rules, s *KeySet, kid, alg string, used keyOnTrial) (crypto.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fixed {
		return pick(s.keys, kid, alg), s.err
	}
	now := k.now()
	old := s.keys == nil || now.Sub(s.read) >= r.KeySetTTL
	if !old {
		if public := pick(s.keys, kid, alg); public != nil && (used == nil || !used.Equal(public)) {
			return public, nil
		}
	}
	if s.tried.IsZero() || now.Sub(s.tried) >= refetchInterval {
		s.tried = now
		var got []jwk.Key
		if got, s.err = fetch(ctx, client, r.JWKSURI); s.err == nil {
			s.keys, s.read = got, now
		} else if ctx.Err() != nil {
			s.tried = time.Time{} // allows the next caller to fetch
		}
	}
	if s.keys == nil {
		return nil, s.err
	}
	return pick(s.keys, kid, alg), nil
}

// pick returns the key of a set for an algorithm.
func pick(set []jwk.Key, kid, alg string) crypto.PublicKey {
	for i := range set {
		k := &set[i]
		if k.Kid != kid || k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != alg || k.Secret() {
			continue
		}
		public, ok := k.Public()
		if short, is := public.(*rsa.PublicKey); is && ok && short.N.BitLen() < jwk.MinRSA {
			ok = false
		}
		if ok {
			return public
		}
	}
	return nil
}

// fetchTimeout is the timeout of a request to a host of the customer.
const fetchTimeout = 5 * time.Second

func fetch(ctx context.Context, client *http.Client, uri string) ([]jwk.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, errors.New("the address of the key set cannot be called")
	}
	req.Header.Set("Accept", "application/json")
	raw, err := fetchFrom(client, req, "the address of the key set")
	if err != nil {
		return nil, err
	}
	return readSet(raw)
}

// fetchFrom returns a successful response of a host; what names the host's role in errors.
func fetchFrom(client *http.Client, req *http.Request, what string) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.New(what + " cannot be reached")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", what, resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxSet+1))
	switch {
	case err != nil:
		return nil, errors.New("the response of " + what + " was truncated")
	case len(raw) > maxSet:
		return nil, errors.New("the response of " + what + " is too long")
	}
	return raw, nil
}
