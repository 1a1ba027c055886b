package signing

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// The row with the keys of an installation.
var row = store.System("SIGNING").Key("KEYS")

// sealed is the seal binding of the keys, which no organization's data key opens.
var sealed = seal.Binding{Org: "#installation", Table: "mcp", PK: row.PK(), SK: row.SK()}

// Times for reading the keys.
const (
	fresh   = 5 * time.Minute  // maximum age of cached keys
	pause   = 10 * time.Second // pause after a failed read
	timeout = 10 * time.Second // for reading and for writing
)

// maxRounds is the number of attempts of a concurrent change.
const maxRounds = 5

var errNone = errors.New("signing: there is no key")

// Keys are the keys of an installation. It is safe for concurrent use.
type Keys struct {
	table      store.Table
	sealer     seal.Sealer
	now        func() time.Time
	configured func() ([]*Key, error)

	mu    sync.Mutex
	known ring
	asOf  time.Time // time of the last successful read
	tried time.Time
	of    map[string]*Key // active keys of known by algorithm; cleared when the keys are read
}

// Options are the settings of an installation.
type Options struct {
	Table  store.Table // of mutable rows
	Sealer seal.Sealer // if nil, there are no keys but Given
	Now    func() time.Time
	// ConfiguredKey is an RSA private key in PEM, which signs tokens instead of a key from the tables.
	// Further keys may follow it; those are only published.
	ConfiguredKey string
}

// New returns the keys. They are read on first use.
func New(o Options) *Keys {
	return &Keys{table: o.Table, sealer: o.Sealer, now: o.Now, configured: sync.OnceValues(func() ([]*Key, error) { return parseConfigured(o.ConfiguredKey) })}
}

// unavailable returns the fault for a request that needs a key.
func unavailable(err error) *fault.Fault {
	return fault.New(fault.ServiceUnavailable, "", "The gateway has no signing key at present").WithCause(err)
}

// For returns the active key of an algorithm, or a 503 fault if there is none.
func (k *Keys) For(ctx context.Context, alg string) (*Key, error) {
	configured, err := k.configured()
	if err != nil {
		return nil, unavailable(err)
	}
	if alg == RS256 && len(configured) > 0 {
		return configured[0], nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.read(ctx); err != nil {
		return nil, unavailable(err)
	}
	if key := k.of[alg]; key != nil {
		return key, nil
	}
	key, err := k.known.active(alg, k.now())
	if err != nil {
		return nil, unavailable(err)
	}
	k.of[alg] = key
	return key, nil
}

// Set returns the key set for verification. It contains all keys that sign now, will sign
// later, or signed something that may still be in use. An installation without keys returns a
// 503 fault.
func (k *Keys) Set(ctx context.Context) (json.RawMessage, error) {
	all, err := k.configured()
	if err != nil {
		return nil, unavailable(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.read(ctx); err != nil {
		return nil, unavailable(err)
	}
	out := struct {
		Keys []Public `json:"keys"`
	}{}
	for _, key := range all {
		out.Keys = append(out.Keys, key.public)
	}
	for i := range k.known {
		key, err := k.known[i].key()
		if err != nil {
			return nil, unavailable(err)
		}
		out.Keys = append(out.Keys, key.public)
	}
	return json.Marshal(out)
}

// read ensures that the keys are loaded and current. While the tables do not respond, the
// cached keys are used. The lock is held.
func (k *Keys) read(ctx context.Context) error {
	now := k.now()
	if k.known != nil && (now.Sub(k.asOf) < fresh || now.Sub(k.tried) < pause) {
		return nil
	}
	if k.sealer == nil || k.table == nil {
		return errNone
	}
	k.tried = now
	found, err := k.load(context.WithoutCancel(ctx), now) // other calls need the result too
	switch {
	case err == nil:
		k.known, k.asOf, k.of = found, now, map[string]*Key{}
	case k.known == nil:
		return err
	}
	return nil
}

// load reads the keys, and rotates them if due.
func (k *Keys) load(ctx context.Context, now time.Time) (ring, error) {
	for range maxRounds {
		held, rev, err := k.stored(ctx)
		if err != nil {
			return nil, err
		}
		next, changed, err := held.next(now) // generating a key takes time, but no call waits for it
		if err != nil || !changed {
			return held, err
		}
		err = k.write(ctx, next, rev)
		if err == nil {
			return next, nil
		}
		var lost *store.ConditionError
		if !errors.As(err, &lost) {
			return nil, err
		}
	}
	return nil, store.ErrContended
}

// stored returns the keys in the tables and the revision of their row, or 0 if there is none.
func (k *Keys) stored(ctx context.Context) (r ring, rev int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	it, ok, err := k.table.Get(ctx, row, true)
	if err != nil || !ok {
		return nil, 0, err
	}
	plain, err := k.sealer.Open(ctx, sealed, it.Bytes("keys"))
	if err != nil {
		return nil, 0, fmt.Errorf("signing: %w", err)
	}
	r, err = readRing(plain)
	return r, it.Int("rev"), err
}

// write stores the keys, unless the row was written since they were read.
func (k *Keys) write(ctx context.Context, next ring, rev int64) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	plain, err := json.Marshal(next)
	if err != nil {
		return err
	}
	closed, err := k.sealer.Seal(ctx, sealed, plain)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	when := store.IfAbsent()
	if rev > 0 {
		when = store.IfEqual(store.At("rev"), rev)
	}
	return k.table.Put(ctx, store.Row{Key: row, Item: store.Item{"keys": closed, "rev": rev + 1}}, when)
}

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
	encoded, err := json.Marshal([]any{user, claims, lasts, key.ID}) // map keys are encoded in order
	if err != nil {
		return "", err
	}
	of, now := sha256.Sum256(encoded), m.Now()
	if token, ok := m.cached(of, now); ok {
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
	m.cache(&minted{of, token, now.Add(lasts - min(lasts/10, 30*time.Second))})
	return token, nil
}

func (m *Minter) cached(of [sha256.Size]byte, now time.Time) (string, bool) {
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

func (m *Minter) cache(t *minted) {
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
