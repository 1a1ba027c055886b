package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
)

const (
	// callTimeout limits one call of the key service. The call continues when the request that
	// started it has ended, because others may be waiting for it.
	callTimeout = 10 * time.Second
	// maxKeys bounds the cached data keys for opening, and those for sealing.
	maxKeys = 4096
	// maxSeals ends a data key early, long before GCM's counter could wrap.
	maxSeals = 1 << 32
)

// dataKey is a data key ready for use.
type dataKey struct {
	context Context
	master  KeyID
	wrapped []byte
	aead    cipher.AEAD
	expires time.Time

	// Nonces for sealing are four random bytes and a counter. Only this process seals with
	// the key, so they never repeat under it.
	prefix [4]byte
	count  atomic.Uint64
}

func newDataKey(c Context, master KeyID, wrapped, plain []byte, expires time.Time) (*dataKey, error) {
	if len(plain) != keyBytes {
		return nil, fmt.Errorf("seal: data key of %d bytes", len(plain))
	}
	block, err := aes.NewCipher(plain)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	k := &dataKey{context: c, master: master, wrapped: wrapped, aead: aead, expires: expires}
	_, _ = rand.Read(k.prefix[:]) // never fails
	return k, nil
}

// appendNonce appends a nonce that was not used before; false when the key has sealed
// enough values.
func (k *dataKey) appendNonce(dst []byte) ([]byte, bool) {
	n := k.count.Add(1)
	if n > maxSeals {
		return dst, false
	}
	dst = append(dst, k.prefix[:]...)
	return binary.BigEndian.AppendUint64(dst, n), true
}

// keyring caches data keys. For sealing, a key is looked up by its purpose, for opening by
// its wrapped form.
type keyring struct {
	wrapper Wrapper
	clock   func() time.Time
	ttl     time.Duration

	mu        sync.RWMutex
	sealing   map[Context]*dataKey
	opening   map[string]*dataKey
	flights   map[string]*flight
	lastSweep time.Time
}

// flight is a call of the key service that several requests wait for.
type flight struct {
	done chan struct{}
	key  *dataKey
	err  error
}

// current gives the key to seal with.
func (r *keyring) current(ctx context.Context, c Context) (*dataKey, error) {
	now := r.clock()
	cached := func() *dataKey {
		if k := r.sealing[c]; k != nil && now.Before(k.expires) && k.count.Load() < maxSeals {
			return k
		}
		return nil
	}
	r.mu.RLock()
	k := cached()
	r.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	// A key for sealing has no wrapped form yet, so its flight is named by the context. The
	// first byte distinguishes the two kinds.
	return r.fly(ctx, string(c.Append([]byte{'s'})), cached, func(ctx context.Context) (*dataKey, error) {
		expires := r.clock().Add(r.ttl) // counted from before the call
		d, err := r.wrapper.Generate(ctx, c)
		if err != nil {
			return nil, err
		}
		if len(d.Wrapped) == 0 || len(d.Wrapped) > 1<<16-1 {
			return nil, fmt.Errorf("seal: wrapped data key of %d bytes", len(d.Wrapped))
		}
		k, err := newDataKey(c, d.Master, d.Wrapped, d.Plain, expires)
		clear(d.Plain)
		return k, err
	}, func(k *dataKey) {
		r.sealing[c] = k
		r.opening[string(k.wrapped)] = k // sealed values are often opened in the same process
	})
}

// unwrapped gives the key to open an envelope.
func (r *keyring) unwrapped(ctx context.Context, c Context, e *envelope) (*dataKey, error) {
	now := r.clock()
	r.mu.RLock()
	k := r.opening[string(e.wrapped)]
	r.mu.RUnlock()
	if k != nil && now.Before(k.expires) {
		if k.context != c || k.master != e.master {
			return nil, ErrRefused
		}
		return k, nil
	}
	name := c.Append([]byte{'o'})
	name = append(append(name, e.master[:]...), e.wrapped...)
	master, wrapped := e.master, append([]byte(nil), e.wrapped...)
	cached := func() *dataKey {
		if k := r.opening[string(wrapped)]; k != nil && now.Before(k.expires) && k.context == c && k.master == master {
			return k
		}
		return nil
	}
	return r.fly(ctx, string(name), cached, func(ctx context.Context) (*dataKey, error) {
		expires := r.clock().Add(r.ttl)
		plain, err := r.wrapper.Unwrap(ctx, c, master, wrapped)
		if err != nil {
			return nil, err
		}
		k, err := newDataKey(c, master, wrapped, plain, expires)
		clear(plain)
		return k, err
	}, func(k *dataKey) { r.opening[string(wrapped)] = k })
}

// fly makes one call for all who want the same key at the same time. cached looks again,
// under the lock, because another call may have ended since the caller looked.
func (r *keyring) fly(ctx context.Context, name string, cached func() *dataKey, call func(context.Context) (*dataKey, error), keep func(*dataKey)) (*dataKey, error) {
	r.mu.Lock()
	f := r.flights[name]
	if f == nil {
		if k := cached(); k != nil {
			r.mu.Unlock()
			return k, nil
		}
		f = &flight{done: make(chan struct{})}
		r.flights[name] = f
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			key, err := call(ctx)
			r.mu.Lock()
			f.key, f.err = key, err
			delete(r.flights, name)
			if err == nil {
				r.sweep()
				keep(key)
			}
			r.mu.Unlock()
			close(f.done)
		}()
	}
	r.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err == nil || errors.Is(f.err, ErrRefused) {
		return f.key, f.err
	}
	return nil, fault.Unavailable(fmt.Errorf("seal: %w", f.err))
}

// sweep removes expired keys, and some others when there are too many. It is called with
// the lock held, before a key is added.
func (r *keyring) sweep() {
	now := r.clock()
	full := len(r.sealing) >= maxKeys || len(r.opening) >= maxKeys
	if !full && now.Sub(r.lastSweep) < time.Minute {
		return
	}
	r.lastSweep = now
	trim(r.sealing, now)
	trim(r.opening, now)
}

func trim[K comparable](keys map[K]*dataKey, now time.Time) {
	for name, k := range keys {
		if !now.Before(k.expires) {
			delete(keys, name)
		}
	}
	if len(keys) < maxKeys {
		return
	}
	for name := range keys { // a quarter at once, so that it is seldom done
		if len(keys) <= maxKeys*3/4 {
			return
		}
		delete(keys, name)
	}
}

// KeyID names a master key within an installation: the first bytes of a hash.
type KeyID [8]byte

// Context is the purpose of a data key. The key service authenticates it: a wrapped key
// opens only under the same context, and permissions for the service can depend on it
// (credentials are in another table than logged bodies).
type Context struct {
	Org     string
	Purpose string // the table of the binding
}

// Append appends the only encoding of c, for wrappers that authenticate it themselves.
func (c Context) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.Org)))
	dst = append(dst, c.Org...)
	dst = binary.AppendUvarint(dst, uint64(len(c.Purpose)))
	return append(dst, c.Purpose...)
}

// DataKey is a new data key.
type DataKey struct {
	Plain   []byte // 32 bytes
	Wrapped []byte // at most 65,535 bytes
	Master  KeyID
}

// Wrapper makes data keys and unwraps them: the key service.
type Wrapper interface {
	// Generate makes a data key for c.
	Generate(ctx context.Context, c Context) (DataKey, error)
	// Unwrap gives the plain data key. The error ErrRefused is final (wrong context,
	// altered, unknown master key); any other error means that the service could not
	// answer.
	Unwrap(ctx context.Context, c Context, master KeyID, wrapped []byte) ([]byte, error)
}
