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

// Opener makes integrations callable.
type Opener struct {
	Sealer  seal.Sealer
	Via     http.RoundTripper
	Hosts   http.RoundTripper // to the servers themselves, which may be trusted hosts; nil: Via
	Secrets *provider.Loaded  // nil: integrations with secret mappings cannot be called
	Now     func() time.Time
	// Keeps says that records are unchanged copies of what is stored, so that what was read
	// from one holds for its revision.
	Keeps bool

	tokens sync.Map // of client credentials: *grant by the integration and its revision

	mu     sync.Mutex
	opened map[grantKey]*opened
}

// opened is an integration with its own secrets, as it was read last. Nothing of it is
// changed.
type opened struct {
	integration   *Integration
	configuration *Configuration
}

// maxOpened bounds how many are kept.
const maxOpened = 1000

// ErrSignIn says that the upstream needs a sign-in of each user.
var ErrSignIn = errors.New("mcp: the server needs a sign-in by each user")

// Open gives the address and the credentials of an integration, which is used in a
// workspace or by the organisation. A *Failure is the upstream's.
func (o *Opener) Open(ctx context.Context, rec *resource.Record, in store.Scope) (*Upstream, *Configuration, error) {
	i, c, err := o.Configuration(ctx, rec, in)
	if err != nil {
		return nil, nil, err
	}
	u := &Upstream{URL: i.URL, Transport: i.Transport, Via: o.hosts(), Headers: c.Static(), Secret: provider.MappedHeaders(i.SecretMappings)}
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

// Configuration is that of an integration with its secrets. Neither may be changed.
func (o *Opener) Configuration(ctx context.Context, rec *resource.Record, in store.Scope) (*Integration, *Configuration, error) {
	key := keyOf(rec)
	o.mu.Lock()
	known := o.opened[key]
	o.mu.Unlock()
	if known != nil {
		return known.integration, known.configuration, nil
	}
	i, c, err := o.read(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	if !o.Keeps || len(i.SecretMappings) > 0 { // values of a secret manager may change at any time
		return i, c, o.fill(ctx, in, i, c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened == nil || len(o.opened) >= maxOpened {
		o.opened = map[grantKey]*opened{}
	}
	o.opened[key] = &opened{i, c}
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
	return o.Via
}

// Static are the headers that are sent with each call.
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

// Look asks the server of an integration what it can do. When it refuses the
// credentials, those that were fetched are fetched anew, once.
func (o *Opener) Look(ctx context.Context, rec *resource.Record, in store.Scope) (*Snapshot, error) {
	snap, err := o.look(ctx, rec, in)
	var failed *upstream.Failure
	if !errors.As(err, &failed) || failed.Status != http.StatusUnauthorized {
		return snap, err
	}
	i, decoded := DecodeIntegration(*rec)
	if decoded != nil || i.AuthType != AuthClientCredentials && len(i.SecretMappings) == 0 {
		return snap, err // there is nothing that could be another
	}
	o.Forget(rec)
	if o.Secrets != nil {
		o.Secrets.Doubt(ctx, in, i.SecretMappings)
	}
	return o.look(ctx, rec, in)
}

func (o *Opener) look(ctx context.Context, rec *resource.Record, in store.Scope) (*Snapshot, error) {
	u, _, err := o.Open(ctx, rec, in)
	if err != nil {
		return nil, err
	}
	return Look(ctx, u)
}

// fill puts the values of secret mappings into their places.
func (o *Opener) fill(ctx context.Context, in store.Scope, i *Integration, c *Configuration) error {
	if len(i.SecretMappings) == 0 {
		return nil
	}
	if o.Secrets == nil {
		return upstream.Fail(0, "the server's credentials are in a secret manager, which is not reached from here")
	}
	values, err := o.Secrets.Values(ctx, in, i.SecretMappings)
	if err != nil {
		return upstream.Unresolved(err)
	}
	for _, m := range i.SecretMappings {
		if err := c.put(strings.TrimPrefix(m.TargetField, configPrefix), values[m.TargetField]); err != nil {
			return err
		}
	}
	return nil
}

// put sets a member, such as headers.Authorization, to a value. A whole member takes
// the JSON of an object.
func (c *Configuration) put(target, value string) error {
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
	if err != nil || json.Unmarshal(raw, c) != nil { // members that are there stay
		return upstream.Fail(0, "a secret of the server's credentials does not have the form of its field")
	}
	return nil
}

// grant is a token of client credentials.
type grant struct {
	asking  chan struct{} // holds one: of the caller that asks for it
	mu      sync.Mutex
	token   string
	expires time.Time // zero: the server has not said when
}

type grantKey struct {
	org, workspace, id string
	rev                int64
}

func keyOf(rec *resource.Record) grantKey {
	return grantKey{rec.Scope.Org, rec.Scope.Workspace, rec.ID, rec.Rev}
}

const (
	early    = 30 * time.Second // before its end a token is replaced
	maxToken = 64 << 10
	askTime  = 20 * time.Second // for the wait for another that asks, and the answer
)

// token gives a token of the client credentials, asked for once until it expires.
func (o *Opener) token(ctx context.Context, rec *resource.Record, i *Integration, m *OAuthMetadata) (string, error) {
	v, ok := o.tokens.Load(keyOf(rec))
	if !ok {
		v, _ = o.tokens.LoadOrStore(keyOf(rec), &grant{asking: make(chan struct{}, 1)})
	}
	g := v.(*grant)
	if token := g.good(o.Now()); token != "" {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return "", upstream.Fail(0, "the server's address of tokens did not answer in time")
	}
	if token := g.good(o.Now()); token != "" {
		return token, nil
	}
	token, expires, err := o.ask(ctx, i, m)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.expires = token, expires
	return token, nil
}

// good is the token while it lasts; "": there is none.
func (g *grant) good(now time.Time) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expires.IsZero() || now.Before(g.expires) {
		return g.token
	}
	return ""
}

// Forget drops the token of an integration that its upstream refuses.
func (o *Opener) Forget(rec *resource.Record) {
	o.tokens.Delete(keyOf(rec))
}

func (o *Opener) ask(ctx context.Context, i *Integration, m *OAuthMetadata) (string, time.Time, error) {
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
		return "", time.Time{}, upstream.Fail(0, "the address of tokens cannot be called")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !post {
		req.SetBasicAuth(url.QueryEscape(m.ClientID), url.QueryEscape(m.ClientSecret))
	}
	resp, err := o.Via.RoundTrip(req)
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
		return "", time.Time{}, upstream.Fail(resp.StatusCode, "the server's address of tokens gives none for the client's credentials")
	}
	if got.Expires == 0 {
		return got.Access, time.Time{}, nil
	}
	return got.Access, o.Now().Add(max(min(got.Expires, 24*time.Hour)-early, time.Second)), nil
}
