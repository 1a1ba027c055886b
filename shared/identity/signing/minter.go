package signing

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// Issuer is the issuer of identity tokens.
const Issuer = "gateway-mcp-gateway"

// maxTokens is the number of cached tokens.
const maxTokens = 10_000

// Minter creates and caches identity tokens for servers. It is safe for concurrent use.
type Minter struct {
	Keys *Keys
	Now  func() time.Time

	mu    sync.Mutex
	order *list.List // of *minted, the most recently used first
	known map[[sha256.Size]byte]*list.Element
}

// minted is a cached token.
type minted struct {
	of    [sha256.Size]byte
	token string
	until time.Time
}

// Token returns a token with the claims of a user and a lifetime. The gateway sets iss, iat and
// exp. A cached token is returned only while most of its lifetime remains.
func (m *Minter) Token(ctx context.Context, user string, claims map[string]any, lasts time.Duration) (string, error) {
	key, err := m.Keys.For(ctx, RS256)
	if err != nil {
		return "", err
	}
	said, err := json.Marshal([]any{user, claims, lasts, key.ID}) // map keys are encoded in order
	if err != nil {
		return "", err
	}
	of, now := sha256.Sum256(said), m.Now()
	if token, ok := m.kept(of, now); ok {
		return token, nil
	}
	all := maps.Clone(claims)
	if all == nil {
		all = map[string]any{}
	}
	all["iss"], all["iat"], all["exp"] = Issuer, now.Unix(), now.Add(lasts).Unix()
	payload, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	protected, signature, err := key.Sign(map[string]any{"typ": "JWT"}, payload)
	if err != nil {
		return "", err
	}
	token := protected + "." + b64(payload) + "." + signature
	m.keep(&minted{of, token, now.Add(lasts - min(lasts/10, 30*time.Second))})
	return token, nil
}

func (m *Minter) kept(of [sha256.Size]byte, now time.Time) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.known[of]
	if e == nil {
		return "", false
	}
	t := e.Value.(*minted)
	if !now.Before(t.until) {
		m.order.Remove(e)
		delete(m.known, of)
		return "", false
	}
	m.order.MoveToFront(e)
	return t.token, true
}

func (m *Minter) keep(t *minted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.order, m.known = list.New(), map[[sha256.Size]byte]*list.Element{}
	}
	if e := m.known[t.of]; e != nil {
		e.Value = t // another call created the same token
		return
	}
	m.known[t.of] = m.order.PushFront(t)
	if m.order.Len() > maxTokens {
		oldest := m.order.Back()
		m.order.Remove(oldest)
		delete(m.known, oldest.Value.(*minted).of)
	}
}
