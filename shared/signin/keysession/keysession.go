// Package keysession keeps sessions of browsers that signed in with an API key. A session
// is a row with the hash of the key: it acts as the key does now, and ends with it. It must
// not contain permissions of its own.
package keysession

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// TTL is how long a session lasts, unless the settings of the organization or the expiry of
// the key end it earlier.
const TTL = 12 * time.Hour

// prefix begins the tokens of sessions; tokenLength is their length.
const (
	prefix      = "gk-"
	tokenLength = len(prefix) + 43
)

// credentialKind is the partition kind of rows that are found by a session's token.
const credentialKind = "KEYSESSION"

// Session is one sign-in with an API key.
type Session struct {
	Org     string
	Created time.Time
	Until   time.Time

	key  string // hash of the API key
	hash string // of the session's token
}

// IsToken reports whether a value has the form of a session's token.
func IsToken(value string) bool {
	return len(value) == tokenLength && strings.HasPrefix(value, prefix)
}

// Begin stages a session of an API key and returns its token, which is stored nowhere. p is
// the principal of the key.
func Begin(tx *resource.Tx, p *identity.Principal, key string) (token string, s *Session, err error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	token = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	settings, err := tenant.ReadSettings(tx, store.Scope{Org: p.Scope.Org})
	if err != nil {
		return "", nil, err
	}
	ttl := TTL
	if most := settings.Settings.MaxSession(); most > 0 && most < ttl {
		ttl = most
	}
	now := tx.Now().UTC().Truncate(time.Millisecond)
	s = &Session{Org: p.Scope.Org, Created: now, Until: now.Add(ttl), key: identity.HashToken(key), hash: identity.HashToken(token)}
	if !p.Until.IsZero() && p.Until.Before(s.Until) {
		s.Until = p.Until.UTC()
	}
	row := store.Row{Key: s.row(), Expires: s.Until, Item: store.Item{
		"org": s.Org, "id": p.KeyID, "key": s.key, "hash": s.hash, "created": s.Created.UnixMilli(), "until": s.Until.UnixMilli(),
	}}
	return token, s, tx.CreateCredential(row)
}

// End stages the end of a session.
func End(tx *resource.Tx, s *Session) { tx.DeleteCredential(s.row()) }

func (s *Session) row() store.Key { return store.Credential(credentialKind, s.hash) }

func decode(it store.Item) (*Session, error) {
	return &Session{
		Org: it.String("org"), key: it.String("key"), hash: it.String("hash"),
		Created: time.UnixMilli(it.Int("created")).UTC(), Until: time.UnixMilli(it.Int("until")).UTC(),
	}, nil
}

// Ended returns the one fault for sessions that are unknown, expired or ended, or whose key
// is no longer valid.
func Ended() *fault.Fault {
	return fault.New(fault.Unauthorized, "", "The session has ended. Sign in again")
}

// Find returns the session of a token and the present principal of its key. It returns
// Ended if there is none.
func Find(ctx context.Context, l *resource.Loader, keys *identity.Authenticator, now time.Time, token string) (*Session, *identity.Principal, error) {
	if !IsToken(token) {
		return nil, nil, Ended()
	}
	s, ok, err := resource.LoadCredential(ctx, l, credentialKind, identity.HashToken(token), decode)
	if err != nil {
		return nil, nil, err
	}
	if !ok || !now.Before(s.Until) {
		return nil, nil, Ended()
	}
	v, err := l.Fresh(ctx, s.Org)
	if err != nil {
		return nil, nil, err
	}
	settings, err := tenant.LoadSettings(ctx, v, store.Scope{Org: s.Org})
	if err != nil {
		return nil, nil, err
	}
	if most := settings.Settings.MaxSession(); most > 0 && now.Sub(s.Created) >= most {
		return nil, nil, Ended()
	}
	p, err := keys.ByHash(ctx, s.key)
	if f := fault.From(err); err != nil && f.Status() < 500 {
		return nil, nil, Ended()
	}
	return s, p, err
}
