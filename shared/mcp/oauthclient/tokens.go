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

// Tokens gives access tokens of users for calls. It is safe for concurrent use.
type Tokens struct {
	Table  store.Table // of rows that change with use
	Sealer seal.Sealer
	Via    http.RoundTripper
	Now    func() time.Time

	mu    sync.Mutex
	known map[Place]*known
}

// Place is a user at a server.
type Place struct {
	Scope        store.Scope
	Server, User string
}

// known is what the process remembers of a place.
type known struct {
	mu     sync.Mutex // one renewal at a time
	serial string
	rev    int64
	held   *Held
	doubt  string // an access token that the server refuses
}

const (
	maxKnown  = 10_000
	leaseLife = 40 * time.Second // a renewal takes no longer than askTime
	again     = 100 * time.Millisecond
	unused    = 180 * 24 * time.Hour // tokens that nobody renews are forgotten
)

func (p Place) key() store.Key { return p.Scope.Partition("MCP_TOKENS", p.Server).Key(p.User) }

func (p Place) binding() seal.Binding {
	k := p.key()
	return sealed(p.Scope.Org, k.PK(), k.SK())
}

// Stage stages the row of tokens that a user was just given. serial is that of the
// connection's record, so that tokens of an earlier connection are no longer used.
func (h *Held) Stage(ctx context.Context, tx *resource.Tx, s seal.Sealer, p Place, serial string) error {
	it, err := h.item(ctx, s, p, serial, 1)
	if err != nil {
		return err
	}
	tx.Do(store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{Key: p.key(), Item: it, Expires: tx.Now().Add(unused)}}}, nil)
	return nil
}

// StageEnd stages that a user's tokens go.
func StageEnd(tx *resource.Tx, p Place) {
	tx.Do(store.Action{Table: store.Usage, Delete: &store.Delete{Key: p.key()}}, nil)
}

func (h *Held) item(ctx context.Context, s seal.Sealer, p Place, serial string, rev int64) (store.Item, error) {
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

// Access gives the access token of a user for a server that is called at target;
// mcp.ErrSignIn where the user has to sign in first.
func (t *Tokens) Access(ctx context.Context, v *resource.View, p Place, target string) (string, error) {
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
	if k.held.Target != target {
		return "", mcp.ErrSignIn // they were given for another address
	}
	return k.held.Access, nil
}

// Asked are the scopes that were asked for when the user signed in whose token Access gave.
func (t *Tokens) Asked(p Place) []string {
	k := t.place(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		return nil
	}
	return k.held.Asked
}

// Doubt makes the next Access renew a token that the server has refused.
func (t *Tokens) Doubt(p Place, access string) {
	k := t.place(p)
	k.mu.Lock()
	k.doubt = access
	k.mu.Unlock()
}

func (k *known) usable(serial string, now time.Time) bool {
	return k.held != nil && k.serial == serial && k.held.good(now) && k.held.Access != k.doubt
}

func (t *Tokens) place(p Place) *known {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.known[p]
	if k == nil {
		if t.known == nil || len(t.known) >= maxKnown {
			t.known = map[Place]*known{}
		}
		k = new(known)
		t.known[p] = k
	}
	return k
}

// read reads the tokens and renews them when that is due. Only one process renews, because
// a refresh token can be used once; the others wait for what it writes.
func (t *Tokens) read(ctx context.Context, k *known, p Place, serial string) error {
	deadline := time.Now().Add(leaseLife + askTime)
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
		held := new(Held)
		if err := json.Unmarshal(plain, held); err != nil {
			return err
		}
		k.serial, k.rev, k.held = serial, it.Int("rev"), held
		if k.usable(serial, t.Now()) {
			return nil
		}
		if held.Refresh == "" {
			return mcp.ErrSignIn
		}
		if mine, err := t.lease(ctx, p, k.rev); err != nil {
			return err
		} else if mine {
			return t.renew(context.WithoutCancel(ctx), k, p) // what was rotated must not be lost
		}
		if time.Now().After(deadline) {
			return upstream.Fail(0, "the user's tokens are being renewed, which takes too long")
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lease takes the right to renew; false where another process has it.
func (t *Tokens) lease(ctx context.Context, p Place, rev int64) (bool, error) {
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

func (t *Tokens) renew(ctx context.Context, k *known, p Place) error {
	next := *k.held
	err := next.renew(ctx, t.Via, t.Now())
	switch {
	case err == nil:
	case tokenresponse.EndsGrant(next.refused): // what is stored is of no use any more
		k.held = nil
		if err := t.Table.Delete(ctx, p.key(), store.IfEqual(store.At("rev"), k.rev)); err != nil {
			if _, changed := store.AsCondition(err); !changed {
				return fault.Unavailable(err)
			}
		}
		return mcp.ErrSignIn
	default: // the lease is given back, or ends by itself
		_, _, _ = t.Table.Update(ctx, store.Update{Key: p.key(), Set: []store.Assign{{Path: store.At("lease"), Value: int64(0)}}, If: []store.Cond{store.IfEqual(store.At("rev"), k.rev)}})
		return err
	}
	it, err := next.item(ctx, t.Sealer, p, k.serial, k.rev+1)
	if err != nil {
		return err
	}
	if err := t.Table.Put(ctx, store.Row{Key: p.key(), Item: it, Expires: t.Now().Add(unused)}, store.IfEqual(store.At("rev"), k.rev), store.IfEqual(store.At("serial"), k.serial)); err != nil {
		if _, changed := store.AsCondition(err); changed {
			return mcp.ErrSignIn // the connection was ended meanwhile, or made anew
		}
		return fault.Unavailable(err)
	}
	k.held, k.rev = &next, k.rev+1
	return nil
}
