package relay

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/route"
	"gateway/shared/store"
)

// How breakers are shared between processes.
const (
	breakersFresh = time.Second            // what was read is used so long without another read
	breakersStale = 2 * time.Second        // and so long while another request reads
	breakersRead  = 500 * time.Millisecond // most for a read; the states known before it stand
	breakersWrite = time.Second            // most for a write
	breakersClaim = 300 * time.Millisecond // most for claiming a probe, which a request waits for
	breakersMerge = 100 * time.Millisecond // between two rounds of writes of a process that lives on
	breakersKeep  = time.Hour              // a row lives so long past its last cooldown
	breakersKept  = 4096                   // configs that a process shares states of
)

// breakers shares the circuit breakers of saved configs between processes. Each
// version of a config has one row in the rate table. It is read at most once a
// second, by a request of a config that has breakers, and written only after
// failures and changes of a state: a healthy target costs no write.
//
// A process that lives on writes in the background, rounds apart from each
// other, so that failures are merged; the writing ends by itself when all is
// told. Where a process may be frozen after an answer, the request writes when
// its answer has gone out.
type breakers struct {
	now      func() time.Time
	table    store.Table
	fail     func(where string, err error)
	circuits *route.Circuits
	running  sync.WaitGroup // background writes

	mu      sync.Mutex
	configs map[route.ConfigKey]*sharedBreakers
}

func newBreakers(now func() time.Time, t store.Table, fail func(string, error)) *breakers {
	return &breakers{now: now, table: t, fail: fail, circuits: route.NewCircuits(now), configs: make(map[route.ConfigKey]*sharedBreakers)}
}

// of gives the breakers of a saved config as they stand, at most breakersStale
// behind the store where the store answers.
func (b *breakers) of(ctx context.Context, key route.ConfigKey) *sharedBreakers {
	b.mu.Lock()
	s, ok := b.configs[key]
	if !ok {
		if len(b.configs) >= breakersKept {
			clear(b.configs) // the states are in the store
		}
		scope := store.Scope{Org: key.Org, Workspace: key.Workspace}
		s = &sharedBreakers{breakers: b, ConfigCircuits: b.circuits.Of(key), row: scope.Partition("BREAKERS").Key(key.Config, versionText(key.Version))}
		b.configs[key] = s
	}
	b.mu.Unlock()
	s.refresh(ctx)
	return s
}

// sharedBreakers are the breakers of one config: route.Breakers for its requests.
type sharedBreakers struct {
	*breakers
	*route.ConfigCircuits
	row  store.Key
	read atomic.Int64 // Unix nanoseconds of the last read; 0: none
	io   sync.Mutex   // one read or round of writes at a time

	telling atomic.Bool // some request or goroutine is in tell
}

// refresh reads the row when what is known is older than breakersFresh.
func (s *sharedBreakers) refresh(ctx context.Context) {
	age := s.age()
	if age < breakersFresh {
		return
	}
	if !s.io.TryLock() {
		if age < breakersStale {
			return
		}
		s.io.Lock()
	}
	defer s.io.Unlock()
	if s.age() < breakersFresh {
		return
	}
	began := s.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), breakersRead)
	defer cancel()
	it, _, err := s.table.Get(ctx, s.row, true)
	s.read.Store(began.UnixNano())
	if err != nil {
		s.fail("read breakers", err)
		return
	}
	s.Merge(readBreakers(it))
}

// age is the time since the last read; a clock that was set back counts as old.
func (s *sharedBreakers) age() time.Duration {
	at := s.read.Load()
	if d := time.Duration(s.now().UnixNano() - at); at != 0 && d >= 0 {
		return d
	}
	return breakersStale
}

// Claim implements route.Breakers: the probe is claimed in the store, so that
// all processes together make one. A store that does not answer is not waited
// for: then each process makes one.
func (s *sharedBreakers) Claim(path string, b *route.Breaker) bool {
	if !s.ConfigCircuits.Claim(path, b) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), breakersClaim)
	defer cancel()
	now := s.now()
	lease := store.At(attrProbe + path)
	u := store.Update{Key: s.row, Set: []store.Assign{{Path: lease, Value: now.Add(b.Cooldown).UnixMilli()}}, If: []store.Cond{store.IfMissing(lease)}, Expires: expiry(now, b)}
	_, _, err := s.table.Update(ctx, u)
	clash, other := store.AsCondition(err)
	if other && clash.Current.Int(lease.Attr) <= now.UnixMilli() { // its time is over
		u.If = []store.Cond{store.IfEqual(lease, clash.Current.Int(lease.Attr))}
		_, _, err = s.table.Update(ctx, u)
		clash, other = store.AsCondition(err)
	}
	switch {
	case other:
		until := time.UnixMilli(clash.Current.Int(lease.Attr))
		s.Held(path, until)
		return false
	case err != nil:
		s.fail("claim a probe", err)
	}
	return true
}

// Release implements route.Breakers.
func (s *sharedBreakers) Release(path string) {
	s.ConfigCircuits.Release(path)
	ctx, cancel := context.WithTimeout(context.Background(), breakersClaim)
	defer cancel()
	_, _, err := s.table.Update(ctx, store.Update{Key: s.row, Remove: []store.Path{store.At(attrProbe + path)}})
	if err != nil {
		s.fail("release a probe", err)
	}
}

// tell writes what other processes have not been told. wait passes the time
// between two rounds; nil does not wait.
func (s *sharedBreakers) tell(wait func(time.Duration)) {
	for s.Untold() && s.telling.CompareAndSwap(false, true) {
		s.io.Lock()
		told := s.round()
		s.io.Unlock()
		s.telling.Store(false)
		if !told {
			return // the next request of the config tries again
		}
		// Who came meanwhile left the telling to this loop.
		if wait != nil && s.Untold() {
			wait(breakersMerge)
		}
	}
}

// round writes all there is. False: something could not be written, and is still
// to be told.
func (s *sharedBreakers) round() bool {
	ctx, cancel := context.WithTimeout(context.Background(), breakersWrite)
	defer cancel()
	all := s.Pending()
	for i, p := range all {
		if err := s.write(ctx, p); err != nil {
			s.fail("write breakers", err)
			for _, left := range all[i:] {
				s.Return(left)
			}
			return false
		}
	}
	return true
}

// write tells one change.
func (s *sharedBreakers) write(ctx context.Context, p route.Pending) error {
	now := s.now()
	at := func(kind string) store.Path { return store.At(kind + p.Path) }
	if p.Closed {
		gone := []store.Path{at(attrFailures), at(attrSuccesses), at(attrFirst), at(attrLast), at(attrOpen), at(attrProbe)}
		if _, _, err := s.table.Update(ctx, store.Update{Key: s.row, Remove: gone}); err != nil {
			return err
		}
	}
	if !p.OpenUntil.IsZero() {
		_, _, err := s.table.Update(ctx, store.Update{
			Key: s.row, Set: []store.Assign{{Path: at(attrOpen), Value: p.OpenUntil.UnixMilli()}},
			Remove:  []store.Path{at(attrFailures), at(attrSuccesses), at(attrFirst), at(attrLast), at(attrProbe)},
			Expires: expiry(now, p.Breaker),
		})
		return err
	}
	if p.Failures == 0 {
		return nil
	}
	return s.count(ctx, p, now)
}

// count adds failures to those that all processes have counted, or begins a new
// count when the last is over.
func (s *sharedBreakers) count(ctx context.Context, p route.Pending, now time.Time) error {
	failures, successes, first, last := store.At(attrFailures+p.Path), store.At(attrSuccesses+p.Path), store.At(attrFirst+p.Path), store.At(attrLast+p.Path)
	since := now.Add(-p.Breaker.Cooldown).UnixMilli()
	running := []store.Cond{store.IfAtLeast(last, since)}
	if p.Breaker.Threshold == 0 {
		running = append(running, store.IfAtLeast(first, since))
	}
	var err error
	for range 4 { // each clash is another process's write
		var after store.Item
		_, after, err = s.table.Update(ctx, store.Update{
			Key: s.row, Set: []store.Assign{{Path: last, Value: now.UnixMilli()}},
			Add: []store.Increment{{Path: failures, By: int64(p.Failures)}, {Path: successes, By: int64(p.Successes)}},
			If:  running, Expires: expiry(now, p.Breaker),
		})
		clash, over := store.AsCondition(err)
		if over {
			same := store.IfMissing(last)
			if _, ok := clash.Current[last.Attr]; ok {
				same = store.IfEqual(last, clash.Current.Int(last.Attr))
			}
			_, after, err = s.table.Update(ctx, store.Update{
				Key: s.row, Set: []store.Assign{
					{Path: failures, Value: int64(p.Failures)}, {Path: successes, Value: int64(p.Successes)},
					{Path: first, Value: now.UnixMilli()}, {Path: last, Value: now.UnixMilli()},
				},
				If: []store.Cond{same}, Expires: expiry(now, p.Breaker),
			})
			_, over = store.AsCondition(err)
		}
		if err == nil {
			s.Settle(p, readBreakers(after)[p.Path])
		}
		if !over {
			return err
		}
	}
	return err
}

func expiry(now time.Time, b *route.Breaker) time.Time {
	return now.Add(2*b.Cooldown + breakersKeep)
}

// The attributes of a row: one of these and the path of the target. Times are
// Unix milliseconds.
const (
	attrFailures  = "f:"
	attrSuccesses = "s:"
	attrFirst     = "b:" // first failure of the count
	attrLast      = "l:" // last one
	attrOpen      = "o:" // open until
	attrProbe     = "p:" // a probe is under way, at most until
)

func readBreakers(it store.Item) map[string]route.Shared {
	all := make(map[string]route.Shared)
	for name, v := range it {
		kind, path, ok := strings.Cut(name, ":")
		n, number := v.(int64)
		if !ok || !number {
			continue
		}
		s := all[path]
		switch kind + ":" {
		case attrFailures:
			s.Failures = int(n)
		case attrSuccesses:
			s.Successes = int(n)
		case attrFirst:
			s.First = time.UnixMilli(n)
		case attrLast:
			s.Last = time.UnixMilli(n)
		case attrOpen:
			s.OpenUntil = time.UnixMilli(n)
		case attrProbe:
			s.ProbeUntil = time.UnixMilli(n)
		}
		all[path] = s
	}
	return all
}
