// Package rotation chooses among the credentials of an integration.
//
// Pick draws by weight among the usable credentials. A credential that its provider rejected
// with 401 is unusable until it was tested again, if another credential was accepted for the same
// request: a 401 of all may be the caller's fault. This is stored, so that all processes apply it
// within a second, and shown by the health of providers. After a 429 a credential rests for the
// provider's Retry-After, or for 1 s, doubled with every further 429 up to a minute; this is
// local to each process. While all usable credentials rest, the one with the shortest rest is
// used, so that several credentials are never worse than one.
//
// The state belongs to the id of a credential, which changes with its key.
package rotation

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/provider"
	"gateway/shared/store"
)

// Entry is a credential that can be chosen.
type Entry struct {
	ID, Label string
	Weight    int // 0: only if no other one can be used
	*provider.Credential
}

// Set contains positions of a list of credentials.
type Set uint16

// Has reports whether the set contains a position.
func (s Set) Has(at int) bool { return s&(1<<at) != 0 }

// Add returns the set with a further position.
func (s Set) Add(at int) Set { return s | 1<<at }

// Count returns the number of positions.
func (s Set) Count() int { return bits.OnesCount16(uint16(s)) }

// state is the state of a credential.
type state struct {
	rejected int64 // time of the 401 in Unix milliseconds; 0: it is not rejected
	rests    int64 // Unix milliseconds until which it rests
	limits   int   // 429 in a row
}

// Rests after a 429 without a time.
const (
	firstRest = time.Second
	maxRest   = time.Minute
	// MostRest limits the rest that a provider requests.
	MostRest = 10 * time.Minute
)

// pick returns the position of a credential: by weight among those that are neither rejected
// nor resting nor in tried. For a first choice, one that rests is better than none; ok is
// false if all are rejected.
func pick(list []Entry, states []state, tried Set, now int64, number uint32) (at int, ok bool) {
	sum, spare, resting := 0, -1, -1
	for i := range list {
		switch s := &states[i]; {
		case tried.Has(i) || s.rejected != 0:
		case s.rests > now:
			if resting < 0 || s.rests < states[resting].rests {
				resting = i
			}
		case list[i].Weight > 0:
			sum += list[i].Weight
		case spare < 0:
			spare = i
		}
	}
	switch {
	case sum == 0 && spare >= 0:
		return spare, true
	case sum == 0:
		return max(resting, 0), resting >= 0 && tried == 0
	}
	left := int(uint64(number) * uint64(sum) >> 32)
	for i := range list {
		if s := &states[i]; tried.Has(i) || s.rejected != 0 || s.rests > now || list[i].Weight == 0 {
			continue
		}
		if left -= list[i].Weight; left < 0 {
			return i, true
		}
	}
	return 0, false // not reached: left is below the sum
}

// Limits of the stored state, and of calls of the store.
const (
	maxRings  = 4096
	fresh     = time.Second
	storeTime = 500 * time.Millisecond
)

// Board holds a process's state of credentials. It is safe for concurrent use.
type Board struct {
	now   func() time.Time
	table store.Table
	fail  func(where string, err error)

	mu    sync.Mutex
	rings map[store.Partition]*Ring
}

// NewBoard returns an empty board. Rejections are stored in table; fail reports its errors.
func NewBoard(now func() time.Time, table store.Table, fail func(string, error)) *Board {
	return &Board{now: now, table: table, fail: fail, rings: make(map[store.Partition]*Ring)}
}

// Of returns the state of an integration's credentials, at most a second older than the
// store. sc is the scope of the integration.
func (b *Board) Of(ctx context.Context, sc store.Scope, integration string) *Ring {
	key := partition(sc, integration)
	b.mu.Lock()
	r, ok := b.rings[key]
	if !ok {
		if len(b.rings) >= maxRings {
			clear(b.rings) // rejections are in the store
		}
		r = &Ring{board: b, at: key, states: make(map[string]state)}
		b.rings[key] = r
	}
	b.mu.Unlock()
	r.refresh(ctx)
	return r
}

// Ring is the state of the credentials of one integration. It is safe for concurrent use.
type Ring struct {
	board *Board
	at    store.Partition
	read  atomic.Int64 // Unix nanoseconds of the last read
	io    sync.Mutex   // one read at a time

	mu     sync.Mutex
	states map[string]state // by id; absent: nothing is known against it
}

// refresh reads the stored rejections if they are older than a second. While another request
// reads them, the states of before are used.
func (r *Ring) refresh(ctx context.Context) {
	now := r.board.now()
	if last := r.read.Load(); last != 0 && now.Sub(time.Unix(0, last)) < fresh {
		return
	}
	if r.read.Load() == 0 {
		r.io.Lock() // nothing is known yet
	} else if !r.io.TryLock() {
		return
	}
	defer r.io.Unlock()
	if last := r.read.Load(); last != 0 && now.Sub(time.Unix(0, last)) < fresh {
		return
	}
	rows, err := read(ctx, r.board.table, r.at)
	r.read.Store(now.UnixNano())
	if err != nil {
		r.board.fail("read rejected credentials", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, row := range rows {
		s := r.states[id]
		if s.rejected <= row.tested {
			s.rejected = 0
		}
		if row.rejected > row.tested {
			s.rejected = max(s.rejected, row.rejected)
		}
		r.states[id] = s
	}
}

// Pick returns the position of a credential that is not in tried; number draws by weight. It
// returns false if there is none.
func (r *Ring) Pick(list []Entry, tried Set, number uint32) (int, bool) {
	var room [provider.MaxCredentials]state
	states := room[:0]
	r.mu.Lock()
	for i := range list {
		states = append(states, r.states[list[i].ID])
	}
	r.mu.Unlock()
	return pick(list, states, tried, r.board.now().UnixMilli(), number)
}

// MarkRejected records that the provider answered 401.
func (r *Ring) MarkRejected(ctx context.Context, id string) {
	now := r.board.now()
	r.mu.Lock()
	s := r.states[id]
	s.rejected = now.UnixMilli()
	r.states[id] = s
	r.mu.Unlock()
	if err := write(ctx, r.board.table, r.at, id, row{rejected: now.UnixMilli()}, now); err != nil {
		r.board.fail("store a rejected credential", err)
	}
}

// Limit records a 429 of the provider. named is its Retry-After; zero if it sent none.
func (r *Ring) Limit(id string, named time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[id]
	rest := min(named, MostRest)
	if rest <= 0 {
		rest = min(firstRest<<min(s.limits, 6), maxRest)
	}
	s.limits++
	s.rests = r.board.now().Add(rest).UnixMilli()
	r.states[id] = s
}

// Succeed records that the provider accepted the credential.
func (r *Ring) Succeed(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[id]; s.limits > 0 {
		s.limits, s.rests = 0, 0
		r.states[id] = s
	}
}

// row is the stored state of a credential, in Unix milliseconds.
type row struct{ rejected, tested int64 }

// rowTTL is the lifetime of a row. A credential that was rejected and never tested may be called
// once after it.
const rowTTL = 365 * 24 * time.Hour

func partition(sc store.Scope, integration string) store.Partition {
	return sc.Partition("ROTATION", integration)
}

func read(ctx context.Context, table store.Table, at store.Partition) (map[string]row, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	all := make(map[string]row)
	q := store.Query{Partition: at, Limit: 100}
	page, err := table.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, one := range page.Rows {
		all[one.Key.SK()] = row{rejected: one.Item.Int("refused"), tested: one.Item.Int("tested")}
	}
	return all, nil
}

func write(ctx context.Context, table store.Table, at store.Partition, id string, s row, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return table.Put(ctx, store.Row{Key: at.Key(id), Item: store.Item{"refused": s.rejected, "tested": s.tested}, Expires: now.Add(rowTTL)})
}

// Refusals returns when credentials of an integration were rejected, by their label. Others are
// missing.
func Refusals(ctx context.Context, table store.Table, sc store.Scope, integration string, list []provider.StoredCredential) (map[string]time.Time, error) {
	rows, err := read(ctx, table, partition(sc, integration))
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Time)
	for i := range list {
		if s := rows[list[i].ID]; s.rejected > s.tested {
			out[list[i].Label] = time.UnixMilli(s.rejected)
		}
	}
	return out, nil
}

// Tested stores the result of a test of a credential at the time now: whether its provider
// rejected it.
func Tested(ctx context.Context, table store.Table, sc store.Scope, integration, id string, refused bool, now time.Time) error {
	s := row{tested: now.UnixMilli()}
	if refused {
		s = row{rejected: now.UnixMilli()}
	}
	return write(ctx, table, partition(sc, integration), id, s, now)
}
