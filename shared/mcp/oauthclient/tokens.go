package oauthclient

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/tokenresponse"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// Tokens supplies access tokens of users. It is safe for concurrent use.
type Tokens struct {
	Table     store.Table // of mutable rows
	Sealer    seal.Sealer
	Transport http.RoundTripper
	Now       func() time.Time

	mu     sync.Mutex
	places map[UserKey]*cached
}

// UserKey identifies a user at a server.
type UserKey struct {
	Scope        store.Scope
	Server, User string
}

// cached is the cached state of a UserKey.
type cached struct {
	mu       sync.Mutex // held during a renewal
	serial   string
	rev      int64
	tokens   *StoredTokens
	rejected string // an access token that the server rejected
}

const (
	maxCached = 10_000
	leaseLife = 40 * time.Second // longer than requestTimeout, the limit of a renewal
	again     = 100 * time.Millisecond
	unused    = 180 * 24 * time.Hour // tokens that are not renewed for this long are deleted
)

func (p UserKey) key() store.Key { return p.Scope.Partition("MCP_TOKENS", p.Server).Key(p.User) }

func (p UserKey) binding() seal.Binding {
	k := p.key()
	return sealed(p.Scope.Org, k.PK(), k.SK())
}

// Stage stages the row of a user's new tokens. serial is that of the connection's record, so
// that tokens of an earlier connection become invalid.
func (h *StoredTokens) Stage(ctx context.Context, tx *resource.Tx, s seal.Sealer, p UserKey, serial string) error {
	it, err := h.item(ctx, s, p, serial, 1)
	if err != nil {
		return err
	}
	tx.Do(store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{Key: p.key(), Item: it, Expires: tx.Now().Add(unused)}}}, nil)
	return nil
}

// StageEnd stages the deletion of a user's tokens.
func StageEnd(tx *resource.Tx, p UserKey) {
	tx.Do(store.Action{Table: store.Usage, Delete: &store.Delete{Key: p.key()}}, nil)
}

func (h *StoredTokens) item(ctx context.Context, s seal.Sealer, p UserKey, serial string, rev int64) (store.Item, error) {
	plain, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	closed, err := s.Seal(ctx, p.binding(), plain)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	return store.Item{"org": p.Scope.Org, "serial": serial, "rev": rev, "lease": int64(0), "held": closed}, nil
}

// Access returns the access token of a user for the server at target. It returns mcp.ErrSignIn
// if the user must sign in first.
func (t *Tokens) Access(ctx context.Context, v *resource.View, p UserKey, target string) (string, error) {
	c, ok, err := resource.Load(ctx, v, p.Scope, mcp.KindConnection.Of(p.Server), p.User, mcp.DecodeConnection)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", mcp.ErrSignIn
	}
	k := t.place(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.usable(c.Serial, t.Now()) {
		if err := t.read(ctx, k, p, c.Serial); err != nil {
			return "", err
		}
	}
	if k.tokens.Target != target {
		return "", mcp.ErrSignIn // the tokens are for another address
	}
	return k.tokens.Access, nil
}

// RequestedScopes returns the scopes that were requested for the token that Access returned.
func (t *Tokens) RequestedScopes(p UserKey) []string {
	k := t.place(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tokens == nil {
		return nil
	}
	return k.tokens.Requested
}

// MarkRejected makes the next Access renew a token that the server rejected.
func (t *Tokens) MarkRejected(p UserKey, access string) {
	k := t.place(p)
	k.mu.Lock()
	k.rejected = access
	k.mu.Unlock()
}

func (k *cached) usable(serial string, now time.Time) bool {
	return k.tokens != nil && k.serial == serial && k.tokens.valid(now) && k.tokens.Access != k.rejected
}

func (t *Tokens) place(p UserKey) *cached {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.places[p]
	if k == nil {
		if t.places == nil || len(t.places) >= maxCached {
			t.places = map[UserKey]*cached{}
		}
		k = new(cached)
		t.places[p] = k
	}
	return k
}

// read loads the tokens and renews them if necessary. Only one process renews, because a
// refresh token is valid once; the others wait for its result.
func (t *Tokens) read(ctx context.Context, k *cached, p UserKey, serial string) error {
	deadline := time.Now().Add(leaseLife + requestTimeout)
	for {
		it, ok, err := t.Table.Get(ctx, p.key(), true)
		if err != nil {
			return fault.Unavailable(err)
		}
		if !ok || it.String("serial") != serial {
			return mcp.ErrSignIn
		}
		plain, err := t.Sealer.Open(ctx, p.binding(), it.Bytes("held"))
		if err != nil {
			return fault.Unavailable(err)
		}
		held := new(StoredTokens)
		if err := json.Unmarshal(plain, held); err != nil {
			return err
		}
		k.serial, k.rev, k.tokens = serial, it.Int("rev"), held
		if k.usable(serial, t.Now()) {
			return nil
		}
		if held.Refresh == "" {
			return mcp.ErrSignIn
		}
		if mine, err := t.lease(ctx, p, k.rev); err != nil {
			return err
		} else if mine {
			return t.renew(context.WithoutCancel(ctx), k, p) // a rotated refresh token must be stored
		}
		if time.Now().After(deadline) {
			return upstream.Fail(0, "the renewal of the user's tokens takes too long")
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lease acquires the right to renew. It returns false if another process has it.
func (t *Tokens) lease(ctx context.Context, p UserKey, rev int64) (bool, error) {
	now := t.Now()
	_, _, err := t.Table.Update(ctx, store.Update{
		Key: p.key(), Set: []store.Assign{{Path: store.At("lease"), Value: now.Add(leaseLife).UnixMilli()}},
		If: []store.Cond{store.IfEqual(store.At("rev"), rev), store.IfAtMost(store.At("lease"), now.UnixMilli())},
	})
	if _, taken := store.AsCondition(err); taken {
		return false, nil
	}
	if err != nil {
		return false, fault.Unavailable(err)
	}
	return true, nil
}

// renew refreshes the tokens of a user while this process holds the lease, and stores them.
func (t *Tokens) renew(ctx context.Context, k *cached, p UserKey) error {
	next := *k.tokens
	err := next.refresh(ctx, t.Transport, t.Now())
	switch {
	case err == nil:
	case tokenresponse.EndsGrant(next.rejected): // the stored tokens are useless
		k.tokens = nil
		if err := t.Table.Delete(ctx, p.key(), store.IfEqual(store.At("rev"), k.rev)); err != nil {
			if _, changed := store.AsCondition(err); !changed {
				return fault.Unavailable(err)
			}
		}
		return mcp.ErrSignIn
	default: // releases the lease, which otherwise expires
		_, _, _ = t.Table.Update(ctx, store.Update{Key: p.key(), Set: []store.Assign{{Path: store.At("lease"), Value: int64(0)}}, If: []store.Cond{store.IfEqual(store.At("rev"), k.rev)}})
		return err
	}
	it, err := next.item(ctx, t.Sealer, p, k.serial, k.rev+1)
	if err != nil {
		return err
	}
	if err := t.Table.Put(ctx, store.Row{Key: p.key(), Item: it, Expires: t.Now().Add(unused)}, store.IfEqual(store.At("rev"), k.rev), store.IfEqual(store.At("serial"), k.serial)); err != nil {
		if _, changed := store.AsCondition(err); changed {
			return mcp.ErrSignIn // the connection was ended or replaced
		}
		return fault.Unavailable(err)
	}
	k.tokens, k.rev = &next, k.rev+1
	return nil
}
