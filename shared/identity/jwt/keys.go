package jwt

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity/jwk"
)

// Times and limits of key sets.
const (
	keySetTTL       = 24 * time.Hour  // age at which a set is fetched again
	refetchInterval = time.Minute     // interval of fetching for a missing key, and after a failure
	fetchTimeout    = 5 * time.Second // of one request
	maxSet          = 256 << 10       // bytes
	maxSets         = 10_000          // organizations with cached sets per process
)

// Settings locate an organization's keys: at an address or inline.
type Settings struct {
	URL string
	Set json.RawMessage // {"keys":[...]}
	// MaxAge is how long after iat a token is valid. If zero, only exp applies.
	MaxAge time.Duration
}

// On reports whether tokens are accepted.
func (s Settings) On() bool { return s.URL != "" || len(s.Set) > 0 }

// fingerprint returns a fingerprint of the settings.
func (s Settings) fingerprint() [sha256.Size]byte {
	return sha256.Sum256(append([]byte(s.URL+"\x00"), s.Set...))
}

// CheckSet returns an error for an invalid key set in an organization's settings.
func CheckSet(raw json.RawMessage) error {
	if len(raw) > maxSet {
		return fmt.Errorf("must have at most %d bytes", maxSet)
	}
	all, err := jwk.ReadSet(raw)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Secret() {
			return fmt.Errorf("keys[%d] contains a secret or a private key; the set must contain only public keys", i)
		}
	}
	keys, err := parseSet(raw)
	for kid, k := range keys {
		if k.N.BitLen() < jwk.MinRSA {
			return fmt.Errorf("the key %q must have at least %d bits", kid, jwk.MinRSA)
		}
	}
	return err
}

// CheckURL returns an error for an invalid address of a key set.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("must be an https address without user and fragment")
	}
	return nil
}

// keySet is the cached key set of an organisation.
type keySet struct {
	of [sha256.Size]byte // fingerprint of the settings

	mu   sync.Mutex
	keys map[string]*rsa.PublicKey
	read time.Time // when the address last responded

	fetching sync.Mutex // held during a fetch; others wait for the same response
	tried    time.Time  // time of the last fetch
	failed   error      // error of the last fetch
}

func (s *keySet) now() (map[string]*rsa.PublicKey, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.read
}

func (s *keySet) put(k map[string]*rsa.PublicKey, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.read = k, at
}

// parseSet returns the RS256 keys of a set by kid, at least one. It skips other and invalid
// keys.
func parseSet(raw []byte) (map[string]*rsa.PublicKey, error) {
	keys, err := jwk.ReadSet(raw)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*rsa.PublicKey, len(keys))
	for i := range keys {
		k := &keys[i]
		if k.Secret() || k.Kty != "RSA" || k.Kid == "" || k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != "RS256" {
			continue
		}
		public, ok := k.RSA()
		if ok && out[k.Kid] == nil {
			out[k.Kid] = public
		}
	}
	if len(out) == 0 {
		return nil, errors.New("must contain an RSA key with a kid, for RS256 signatures")
	}
	return out, nil
}

// key returns the key of a token. It fetches the set when it is old, and at most once a minute
// for a missing key. While the address fails, the last set is used.
func (v *Verifier) key(ctx context.Context, s *keySet, at Settings, h header) (*rsa.PublicKey, error) {
	keys, read := s.now()
	if at.URL == "" {
		if keys == nil {
			var err error
			if keys, err = parseSet(at.Set); err != nil {
				return nil, fault.New(fault.NotAllowed, "x-gateway-api-key", "The organization's key set for tokens "+err.Error())
			}
			s.put(keys, v.now())
		}
		return find(keys, h)
	}
	if keys != nil && v.now().Sub(read) < keySetTTL {
		if k, err := find(keys, h); err == nil {
			return k, nil
		}
	}
	failed := v.refresh(ctx, s, at.URL, read)
	if keys, _ = s.now(); keys == nil {
		return nil, fault.New(fault.ServiceUnavailable, "x-gateway-api-key", "The organization's keys for tokens cannot be read from their address").WithCause(failed)
	}
	return find(keys, h)
}

// refresh fetches the set, unless it was fetched within the last minute or while the caller waited;
// read is the age of the set that the caller used. It returns the error of the last fetch.
func (v *Verifier) refresh(ctx context.Context, s *keySet, address string, read time.Time) error {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if _, last := s.now(); !last.Equal(read) {
		return nil
	}
	now := v.now()
	if !s.tried.IsZero() && now.Sub(s.tried) < refetchInterval {
		return s.failed
	}
	s.tried = now
	var set map[string]*rsa.PublicKey
	if set, s.failed = v.fetch(ctx, address); s.failed == nil {
		s.put(set, now)
	}
	return s.failed
}

func (v *Verifier) fetch(ctx context.Context, address string) (map[string]*rsa.PublicKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := v.client.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the address responded with %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxSet+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSet {
		return nil, fmt.Errorf("the address responded with more than %d bytes", maxSet)
	}
	return parseSet(raw)
}

// find returns the key that a header names.
func find(set map[string]*rsa.PublicKey, h header) (*rsa.PublicKey, error) {
	k := set[h.Kid]
	switch {
	case k == nil:
		return nil, invalid("signing key not found")
	case k.N.BitLen() < jwk.MinRSA:
		return nil, invalid("its signing key has fewer than %d bits", jwk.MinRSA)
	}
	return k, nil
}
