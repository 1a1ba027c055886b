package token

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

// Bounds of key sets.
const (
	maxSet   = 256 << 10 // bytes
	maxSets  = 1000      // addresses that a process remembers
	askAgain = 10 * time.Second
)

// keys are the key sets of addresses.
type keys struct {
	now  func() time.Time
	mu   sync.Mutex
	sets map[string]*keySet
}

// keySet is what is known of one address, or what stands in a check itself.
type keySet struct {
	mu    sync.Mutex // held while the address is asked: others wait for the same answer
	fixed bool
	keys  []jwk.Key
	read  time.Time
	tried time.Time
	err   error
}

func inPlace(raw json.RawMessage) *keySet {
	s := &keySet{fixed: true}
	s.keys, s.err = readSet(raw)
	return s
}

func readSet(raw []byte) ([]jwk.Key, error) {
	var whole struct{ Keys []jwk.Key }
	if wire.CheckStrict(raw, wire.MaxDepth) != nil || json.Unmarshal(raw, &whole) != nil || len(whole.Keys) == 0 {
		return nil, errors.New("the key set cannot be read")
	}
	return whole.Keys, nil
}

// parsed is a token that was found good, or what a service told of one.
type parsed struct {
	header, claims map[string]any
}

// verify checks the signature and the times of a token. why is what is wrong with it;
// an error says that it could not be checked.
func (k *keys) verify(ctx context.Context, client *http.Client, r *rules, set *keySet, raw string, now time.Time) (t *parsed, why string, err error) {
	h, ok := headOf(raw)
	if !ok {
		return nil, "The token cannot be read", nil
	}
	alg, _ := h["alg"].(string)
	kid, _ := h["kid"].(string)
	switch {
	case !slices.Contains(r.algorithms, alg):
		return nil, "The token is signed in a way that is not allowed", nil
	case kid == "":
		return nil, "The token does not name its key", nil
	}
	if set == nil {
		set = k.set(r.jwksURI)
	}
	public, err := k.find(ctx, client, r, set, kid, alg)
	if err != nil {
		return nil, "", err
	}
	if public == nil {
		return nil, "The key of the token is not in the key set", nil
	}
	parser := golangjwt.NewParser(golangjwt.WithValidMethods(r.algorithms), golangjwt.WithLeeway(r.tolerance), golangjwt.WithIssuedAt(),
		golangjwt.WithStrictDecoding(), golangjwt.WithTimeFunc(func() time.Time { return now }))
	claims := golangjwt.MapClaims{}
	if _, err := parser.ParseWithClaims(raw, claims, func(*golangjwt.Token) (any, error) { return public, nil }); err != nil {
		return nil, said(err), nil
	}
	if r.maxAge > 0 {
		issued, err := claims.GetIssuedAt()
		if err != nil || issued == nil {
			return nil, "The token does not say when it was issued", nil
		}
		if now.Sub(issued.Time) > r.maxAge+r.tolerance {
			return nil, "The token is too old", nil
		}
	}
	return &parsed{h, claims}, "", nil
}

// headOf is what a token says of itself. One that brings a key, or asks for what is not
// known here, cannot be read.
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

// said gives the library's refusals in our words; they quote nothing of the token.
func said(err error) string {
	switch {
	case errors.Is(err, golangjwt.ErrTokenSignatureInvalid):
		return "The signature of the token does not fit"
	case errors.Is(err, golangjwt.ErrTokenExpired):
		return "The token has expired"
	case errors.Is(err, golangjwt.ErrTokenNotValidYet), errors.Is(err, golangjwt.ErrTokenUsedBeforeIssued):
		return "The token is not valid yet"
	}
	return "The token cannot be read"
}

func (k *keys) set(uri string) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil {
		if len(k.sets) >= maxSets {
			clear(k.sets)
		}
		s = &keySet{}
		k.sets[uri] = s
	}
	return s
}

// find gives the key of a token; nil where the set has none. The address is asked when
// the set is old, and once more for a key that is not in it, but not more than every
// ten seconds. A set that was read is used on while its address fails.
func (k *keys) find(ctx context.Context, client *http.Client, r *rules, s *keySet, kid, alg string) (crypto.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fixed {
		return pick(s.keys, kid, alg), s.err
	}
	now := k.now()
	old := s.keys == nil || now.Sub(s.read) >= r.keepSet
	if !old {
		if public := pick(s.keys, kid, alg); public != nil {
			return public, nil
		}
	}
	if s.tried.IsZero() || now.Sub(s.tried) >= askAgain {
		s.tried = now
		var got []jwk.Key
		if got, s.err = fetch(ctx, client, r.jwksURI); s.err == nil {
			s.keys, s.read = got, now
		} else if ctx.Err() != nil {
			s.tried = time.Time{} // the next one may ask
		}
	}
	if s.keys == nil {
		return nil, s.err
	}
	return pick(s.keys, kid, alg), nil
}

// pick is the key of a set for signatures in a way.
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

// askTime bounds one question to a host of the customer.
const askTime = 5 * time.Second

func fetch(ctx context.Context, client *http.Client, uri string) ([]jwk.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, errors.New("the address of the key set cannot be called")
	}
	req.Header.Set("Accept", "application/json")
	raw, err := answerOf(client, req, "the address of the key set")
	if err != nil {
		return nil, err
	}
	return readSet(raw)
}

// answerOf is a good answer of a host; what says in words who was asked.
func answerOf(client *http.Client, req *http.Request, what string) ([]byte, error) {
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
		return nil, errors.New("the answer of " + what + " broke off")
	case len(raw) > maxSet:
		return nil, errors.New("the answer of " + what + " is too long")
	}
	return raw, nil
}
