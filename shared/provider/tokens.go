package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Signer is what Target.Authorize needs for schemes that exchange the credential for a
// short-lived one or that sign with the time. *Tokens is the only implementation.
type Signer interface {
	// Get returns the short-lived credential cached under cacheKey, or the result of
	// fetch. cacheKey must come from TokenKey.
	Get(ctx context.Context, cacheKey string, fetch Fetch) (string, error)
	// Now is the clock for expiry times and signatures.
	Now() time.Time
}

// Fetch requests a short-lived credential with rt, the guarded transport. Its error must
// be a *fault.Fault without any part of the credential.
type Fetch func(ctx context.Context, rt http.RoundTripper) (token string, expires time.Time, err error)

const (
	maxCached    = 2000             // tokens at a time
	tokenMargin  = time.Minute      // a token is not used in its last minute
	tokenTimeout = 15 * time.Second // for one fetch
)

// Tokens caches the short-lived credentials that providers issue for stored ones (Google
// access tokens, AWS session credentials, Entra tokens) until shortly before they expire.
// It is safe for concurrent use; callers that concurrently miss the same key share one
// fetch.
type Tokens struct {
	transport http.RoundTripper
	now       func() time.Time

	mu     sync.Mutex
	cached map[string]token
	flight map[string]*tokenFetch
}

type token struct {
	value string
	until time.Time // it is not used after this time
}

type tokenFetch struct {
	done  chan struct{}
	value string
	err   error
}

// NewTokens returns a cache that fetches with transport.
func NewTokens(transport http.RoundTripper, now func() time.Time) *Tokens {
	return &Tokens{transport: transport, now: now, cached: map[string]token{}, flight: map[string]*tokenFetch{}}
}

// TokenKey returns a cache key of everything that a token depends on, including secrets.
// It is a hash, so that no secret is stored or logged with it.
func TokenKey(scheme string, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p))))
		h.Write([]byte{':'})
		h.Write([]byte(p))
	}
	return scheme + "/" + hex.EncodeToString(h.Sum(nil))
}

// Now is the time by the cache's clock.
func (k *Tokens) Now() time.Time { return k.now() }

// Get returns the token cached under cacheKey, or the result of fetch. A fetch continues
// when the caller that began it leaves, because others may wait for it. Failures are not
// cached.
func (k *Tokens) Get(ctx context.Context, cacheKey string, fetch Fetch) (string, error) {
	k.mu.Lock()
	if t, ok := k.cached[cacheKey]; ok && k.now().Before(t.until) {
		k.mu.Unlock()
		return t.value, nil
	}
	f, running := k.flight[cacheKey]
	if !running {
		f = &tokenFetch{done: make(chan struct{})}
		k.flight[cacheKey] = f
		go k.run(context.WithoutCancel(ctx), cacheKey, f, fetch)
	}
	k.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return "", fault.New(fault.RequestTimeout, "", "The request ended while the gateway requested an access token from the provider")
	}
}

func (k *Tokens) run(ctx context.Context, cacheKey string, f *tokenFetch, fetch Fetch) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	var expires time.Time
	f.value, expires, f.err = fetch(ctx, k.transport)
	k.mu.Lock()
	delete(k.flight, cacheKey)
	if f.err == nil {
		k.cache(cacheKey, f.value, expires)
	}
	k.mu.Unlock()
	close(f.done)
}

// cache stores a token for its life less a margin. Under k.mu.
func (k *Tokens) cache(cacheKey, value string, expires time.Time) {
	now := k.now()
	life := expires.Sub(now)
	until := expires.Add(-min(tokenMargin, life/4))
	if life <= 0 {
		return
	}
	if len(k.cached) >= maxCached {
		for key, t := range k.cached {
			if !now.Before(t.until) {
				delete(k.cached, key)
			}
		}
		for key := range k.cached { // any one: it is fetched again when it is needed
			if len(k.cached) < maxCached {
				break
			}
			delete(k.cached, key)
		}
	}
	k.cached[cacheKey] = token{value, until}
}

// signer is the target's Signer, or a fault when the installation has none.
func (t *Target) signer() (Signer, error) {
	if t.Signer == nil {
		return nil, fault.Newf(fault.UnsupportedOperation, "provider", "%s needs an access token that is only available while a request is served", t.Provider.ID)
	}
	return t.Signer, nil
}

// maxTokenResponse bounds the response of a token endpoint, in bytes.
const maxTokenResponse = 256 << 10

// tokenCall sends a request for a token and gives the response's status and body.
// who names the service in errors, such as Google.
func tokenCall(rt http.RoundTripper, req *http.Request, who string) (int, []byte, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, nil, tokenUnreachable(err, who)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenResponse))
	if err != nil {
		return 0, nil, tokenUnreachable(err, who)
	}
	return resp.StatusCode, body, nil
}

func tokenUnreachable(err error, who string) *fault.Fault {
	if egress.IsBlocked(err) {
		return fault.From(err)
	}
	why := "did not answer"
	if errors.Is(err, context.DeadlineExceeded) {
		why = "did not respond in time"
	}
	f := fault.Newf(fault.ProviderUnreachable, "", "The token service of %s %s", who, why).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}

// tokenRejected is the fault for a token service's rejection. reason is the service's own
// short error code; anything that is not one is omitted.
func tokenRejected(status int, who, field, reason string) *fault.Fault {
	message := ""
	if reason != "" && len(reason) <= 64 && strings.Trim(reason, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" {
		message = " (" + reason + ")"
	}
	var f *fault.Fault
	if status >= 500 || status == http.StatusTooManyRequests {
		f = fault.Newf(fault.ProviderUnreachable, field, "The token service of %s responded with %d%s; try again", who, status, message)
	} else {
		f = fault.Newf(fault.ProviderError, field, "%s does not accept the credential of %s%s", who, field, message)
		f.StatusCode = http.StatusUnauthorized
	}
	f.Source = fault.SourceProvider
	return f
}

// oauthToken sends an OAuth 2.0 token request to endpoint and reads the access
// token and the seconds that it lives.
func oauthToken(ctx context.Context, rt http.RoundTripper, endpoint string, form url.Values, who, field string) (string, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, fault.Invalid(field, "the address of the token service is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	status, body, err := tokenCall(rt, req, who)
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
		Error       any         `json:"error"`
	}
	bad := json.Unmarshal(body, &answer) != nil
	if status < 200 || status > 299 {
		reason, _ := answer.Error.(string)
		return "", 0, tokenRejected(status, who, field, reason)
	}
	seconds, err := answer.ExpiresIn.Float64()
	if bad || answer.AccessToken == "" || !printable(answer.AccessToken) || err != nil || seconds < 0 || seconds > 1e7 {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The token service of %s returned a response without an access token", who)
		f.Source = fault.SourceProvider
		return "", 0, f
	}
	return answer.AccessToken, time.Duration(seconds) * time.Second, nil
}
