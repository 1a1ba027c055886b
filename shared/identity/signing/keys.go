package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Where the keys of an installation stand.
var row = store.System("SIGNING").Key("KEYS")

// sealed is what they are sealed for: no organisation's data key opens them.
var sealed = seal.Binding{Org: "#installation", Table: "mcp", PK: row.PK(), SK: row.SK()}

// Times of reading them.
const (
	fresh   = 5 * time.Minute  // how old what was read may be
	pause   = 10 * time.Second // between a reading that failed and the next
	timeout = 10 * time.Second // of reading, and of writing
)

// maxRounds bounds how often a change is tried that others make too.
const maxRounds = 5

var errNone = errors.New("signing: there is no key")

// Keys are the keys of an installation. It is safe for concurrent use.
type Keys struct {
	table  store.Table
	sealer seal.Sealer
	now    func() time.Time
	given  func() ([]*Key, error)

	mu    sync.Mutex
	known ring
	asOf  time.Time // of the last reading that succeeded
	tried time.Time
	of    map[string]*Key // of known, by algorithm; emptied when they are read
}

// Options are what installations differ in.
type Options struct {
	Table  store.Table // of rows that change with use
	Sealer seal.Sealer // nil: there are no keys but Given
	Now    func() time.Time
	// Given is a private key of RSA in PEM, which signs tokens in place of one of the
	// tables. Behind it there may be others that are only published.
	Given string
}

// New gives the keys. Nothing is read before one is needed.
func New(o Options) *Keys {
	return &Keys{table: o.Table, sealer: o.Sealer, now: o.Now, given: sync.OnceValues(func() ([]*Key, error) { return readGiven(o.Given) })}
}

// unavailable is the refusal of what needed a key.
func unavailable(err error) *fault.Fault {
	return fault.New(fault.ServiceUnavailable, "", "The gateway has no key to sign with now").WithCause(err)
}

// For gives the key of an algorithm that signs now. There being none is a 503 fault.
func (k *Keys) For(ctx context.Context, alg string) (*Key, error) {
	given, err := k.given()
	if err != nil {
		return nil, unavailable(err)
	}
	if alg == RS256 && len(given) > 0 {
		return given[0], nil
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

// Set is the key set that others verify by, of all keys that sign, will sign, or signed
// what may still be around. An installation without any is a 503 fault.
func (k *Keys) Set(ctx context.Context) (json.RawMessage, error) {
	all, err := k.given()
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

// read makes sure that the keys are known and as they have to be. What is known stays
// good while the tables do not answer. The lock is held.
func (k *Keys) read(ctx context.Context) error {
	now := k.now()
	if k.known != nil && (now.Sub(k.asOf) < fresh || now.Sub(k.tried) < pause) {
		return nil
	}
	if k.sealer == nil || k.table == nil {
		return errNone
	}
	k.tried = now
	found, err := k.load(context.WithoutCancel(ctx), now) // others go by it too
	switch {
	case err == nil:
		k.known, k.asOf, k.of = found, now, map[string]*Key{}
	case k.known == nil:
		return err
	}
	return nil
}

// load reads the keys, and writes them where they have to be others.
func (k *Keys) load(ctx context.Context, now time.Time) (ring, error) {
	for range maxRounds {
		held, rev, err := k.held(ctx)
		if err != nil {
			return nil, err
		}
		next, changed, err := held.next(now) // which takes as long as it takes: no call waits for it
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

// held are the keys of the tables, and the number of their writing; 0: there are none.
func (k *Keys) held(ctx context.Context) (r ring, rev int64, err error) {
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

// write keeps the keys, unless somebody has written since they were read.
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
