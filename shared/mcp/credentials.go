package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/mcp/tokenresponse"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// Opener resolves the credentials of integrations so that they can be called.
type Opener struct {
	Sealer    seal.Sealer
	Transport http.RoundTripper
	Hosts     http.RoundTripper // transport to the servers themselves, which may be trusted hosts; Via if nil
	Secrets   *provider.Loaded  // if nil, integrations with secret mappings cannot be called
	Now       func() time.Time
	// CacheRecords states that records are immutable, so that a decoded record is cached by its
	// revision.
	CacheRecords bool

	tokens sync.Map // client credentials: recordKey to *cachedToken

	mu    sync.Mutex
	cache map[recordKey]*cachedIntegration
}

// cachedIntegration is a decoded integration with its secrets. It is immutable.
type cachedIntegration struct {
	integration   *Integration
	configuration *Configuration
}

// maxCached is the number of integrations in the cache.
const maxCached = 1000

// ErrSignIn is returned when the upstream requires a sign-in by each user.
var ErrSignIn = errors.New("mcp: the server requires a sign-in by each user")

// Open returns the address and the credentials of an integration for a workspace or for the
// organization. Errors of the upstream are *upstream.Failure; with ErrSignIn the other results
// are valid.
func (o *Opener) Open(ctx context.Context, rec *resource.Record, in store.Scope) (*Upstream, *Configuration, error) {
	i, c, err := o.Configuration(ctx, rec, in)
	if err != nil {
		return nil, nil, err
	}
	u := &Upstream{URL: i.URL, Transport: i.Transport, RoundTripper: o.hosts(), Headers: c.Static(), Secret: provider.MappedHeaders(i.SecretMappings)}
	switch i.AuthType {
	case AuthOAuth:
		return u, c, ErrSignIn
	case AuthClientCredentials:
		token, err := o.token(ctx, rec, i, c.OAuth)
		if err != nil {
			return nil, nil, err
		}
		u.Headers.Set("Authorization", "Bearer "+token)
	}
	return u, c, nil
}

// Configuration returns an integration and its configuration with secrets. Both are shared:
// callers must not change them.
func (o *Opener) Configuration(ctx context.Context, rec *resource.Record, in store.Scope) (*Integration, *Configuration, error) {
	key := keyOf(rec)
	o.mu.Lock()
	known := o.cache[key]
	o.mu.Unlock()
	if known != nil {
		return known.integration, known.configuration, nil
	}
	i, c, err := o.read(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	if !o.CacheRecords || len(i.SecretMappings) > 0 { // values of a secret manager may change at any time
		return i, c, o.resolveSecrets(ctx, in, i, c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache == nil || len(o.cache) >= maxCached {
		o.cache = map[recordKey]*cachedIntegration{}
	}
	o.cache[key] = &cachedIntegration{i, c}
	return i, c, nil
}

func (o *Opener) read(ctx context.Context, rec *resource.Record) (*Integration, *Configuration, error) {
	i, err := DecodeIntegration(*rec)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := rec.OpenSecrets(ctx, o.Sealer)
	if err != nil {
		return nil, nil, err
	}
	c, err := i.Configuration(sealed)
	if err != nil {
		return nil, nil, err
	}
	return i, c, nil
}

func (o *Opener) hosts() http.RoundTripper {
	if o.Hosts != nil {
		return o.Hosts
	}
	return o.Transport
}

// Static returns the headers that are sent with each call.
func (c *Configuration) Static() http.Header {
	h := http.Header{}
	for _, of := range [...]map[string]string{c.CustomHeaders, c.Headers, c.PassthroughHeader, c.PassthroughHeaders} {
		if len(of) == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			h.Set(name, of[name])
		}
	}
	return h
}

// Inspect lists what the server of an integration offers. If the server rejects cached
// credentials, Inspect fetches them again once.
func (o *Opener) Inspect(ctx context.Context, rec *resource.Record, in store.Scope) (*Snapshot, error) {
	snap, err := o.inspect(ctx, rec, in)
	var failed *upstream.Failure
	if !errors.As(err, &failed) || failed.Status != http.StatusUnauthorized {
		return snap, err
	}
	i, decoded := DecodeIntegration(*rec)
	if decoded != nil || i.AuthType != AuthClientCredentials && len(i.SecretMappings) == 0 {
		return snap, err // no other credentials could be fetched
	}
	o.EvictToken(rec)
	if o.Secrets != nil {
		o.Secrets.MarkRejected(ctx, in, i.SecretMappings)
	}
	return o.inspect(ctx, rec, in)
}

func (o *Opener) inspect(ctx context.Context, rec *resource.Record, in store.Scope) (*Snapshot, error) {
	u, _, err := o.Open(ctx, rec, in)
	if err != nil {
		return nil, err
	}
	return Inspect(ctx, u)
}

// resolveSecrets sets the fields that secret mappings name.
func (o *Opener) resolveSecrets(ctx context.Context, in store.Scope, i *Integration, c *Configuration) error {
	if len(i.SecretMappings) == 0 {
		return nil
	}
	if o.Secrets == nil {
		return upstream.Fail(0, "the server's credentials are in a secret manager that is not available here")
	}
	values, err := o.Secrets.Values(ctx, in, i.SecretMappings)
	if err != nil {
		return upstream.Unresolved(err)
	}
	for _, m := range i.SecretMappings {
		if err := c.set(strings.TrimPrefix(m.TargetField, configPrefix), values[m.TargetField]); err != nil {
			return err
		}
	}
	return nil
}

// set sets a field such as headers.Authorization. Without a dot the value is the JSON of the
// entire field.
func (c *Configuration) set(target, value string) error {
	top, below, deep := strings.Cut(target, ".")
	patch := map[string]json.RawMessage{top: json.RawMessage(value)}
	if deep {
		inner, err := json.Marshal(map[string]string{below: value})
		if err != nil {
			return err
		}
		patch[top] = inner
	}
	raw, err := json.Marshal(patch)
	if err != nil || json.Unmarshal(raw, c) != nil { // unmarshaling retains the fields that patch does not contain
		return upstream.Fail(0, "a secret of the server's credentials does not match its field")
	}
	return nil
}

// cachedToken is an access token of the client credentials grant.
type cachedToken struct {
	fetching chan struct{} // semaphore of one: held while a token is fetched
	mu       sync.Mutex
	token    string
	expires  time.Time // zero if the server named no lifetime
}

type recordKey struct {
	org, workspace, id string
	rev                int64
}

func keyOf(rec *resource.Record) recordKey {
	return recordKey{rec.Scope.Org, rec.Scope.Workspace, rec.ID, rec.Rev}
}

const (
	tokenLeeway  = 30 * time.Second // a token is replaced this long before it expires
	maxToken     = 64 << 10
	tokenTimeout = 20 * time.Second // includes waiting for another request that fetches the token
)

// token returns an access token of the client credentials grant. Concurrent callers share one
// fetch.
func (o *Opener) token(ctx context.Context, rec *resource.Record, i *Integration, m *OAuthMetadata) (string, error) {
	v, ok := o.tokens.Load(keyOf(rec))
	if !ok {
		v, _ = o.tokens.LoadOrStore(keyOf(rec), &cachedToken{fetching: make(chan struct{}, 1)})
	}
	g := v.(*cachedToken)
	if token := g.valid(o.Now()); token != "" {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	select {
	case g.fetching <- struct{}{}:
		defer func() { <-g.fetching }()
	case <-ctx.Done():
		return "", upstream.Fail(0, "the server's token endpoint did not respond in time")
	}
	if token := g.valid(o.Now()); token != "" {
		return token, nil
	}
	token, expires, err := o.fetchToken(ctx, i, m)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.expires = token, expires
	return token, nil
}

// valid returns the token, or "" if there is none or it has expired.
func (g *cachedToken) valid(now time.Time) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expires.IsZero() || now.Before(g.expires) {
		return g.token
	}
	return ""
}

// EvictToken drops the cached token of an integration, after the upstream rejected it.
func (o *Opener) EvictToken(rec *resource.Record) {
	o.tokens.Delete(keyOf(rec))
}

func (o *Opener) fetchToken(ctx context.Context, i *Integration, m *OAuthMetadata) (string, time.Time, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {i.URL}}
	if m.Scope != "" {
		form.Set("scope", m.Scope)
	}
	for name, v := range m.AuthorizationParams {
		form.Set(name, v)
	}
	post := m.TokenEndpointAuth == "client_secret_post"
	if post {
		form.Set("client_id", m.ClientID)
		form.Set("client_secret", m.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", time.Time{}, upstream.Fail(0, "the token endpoint's address is invalid")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !post {
		req.SetBasicAuth(url.QueryEscape(m.ClientID), url.QueryEscape(m.ClientSecret))
	}
	resp, err := o.Transport.RoundTrip(req)
	if err != nil {
		return "", time.Time{}, upstream.Unreachable("the server", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxToken))
	var got tokenresponse.Response
	if err == nil {
		got, err = tokenresponse.Read(resp.Header.Get("Content-Type"), raw)
	}
	if err != nil || resp.StatusCode != http.StatusOK || got.Access == "" {
		return "", time.Time{}, upstream.Fail(resp.StatusCode, "the server's token endpoint issued no token for the client credentials")
	}
	if got.Expires == 0 {
		return got.Access, time.Time{}, nil
	}
	return got.Access, o.Now().Add(max(min(got.Expires, 24*time.Hour)-tokenLeeway, time.Second)), nil
}
