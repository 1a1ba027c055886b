package plan

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/route"
	"gateway/shared/store"
)

// Limits for sharing breakers between processes.
const (
	fresh       = time.Second            // how long a read is used without another one
	stale       = 2 * time.Second        // and while another request reads
	readTime    = 500 * time.Millisecond // for a read; on timeout the previous states remain
	writeTime   = time.Second            // most for a write
	claimTime   = 300 * time.Millisecond // most for claiming a probe, which a request waits for
	mergeTime   = 100 * time.Millisecond // between two rounds of writes of a long-lived process
	keepFor     = time.Hour              // lifetime of a row past its last cooldown
	mostConfigs = 4096                   // configs that a process shares states of
)

// Breakers shares the circuit breakers of saved configs between processes. Each version of a
// config has one row in the rate table. It is read at most once a second, by a request of a
// config that has breakers, and written only after failures and changes of a state: a healthy
// target costs no write.
//
// A long-lived process writes in the background, in spaced rounds, so that failures are merged;
// the writing ends when all changes are stored. If a process may be frozen after a response, the
// request writes after its response was sent.
type Breakers struct {
	now      func() time.Time
	table    store.Table
	fail     func(where string, err error)
	circuits *route.Circuits
	running  sync.WaitGroup // background writes

	mu      sync.Mutex
	configs map[route.ConfigKey]*ConfigBreakers
}

func NewBreakers(now func() time.Time, t store.Table, fail func(string, error)) *Breakers {
	return &Breakers{now: now, table: t, fail: fail, circuits: route.NewCircuits(now), configs: make(map[route.ConfigKey]*ConfigBreakers)}
}

// Of returns the current breakers of a saved config, at most stale older than the store if the
// store is available.
func (b *Breakers) Of(ctx context.Context, key route.ConfigKey) *ConfigBreakers {
	b.mu.Lock()
	s, ok := b.configs[key]
	if !ok {
		if len(b.configs) >= mostConfigs {
			clear(b.configs) // the states are in the store
		}
		scope := store.Scope{Org: key.Org, Workspace: key.Workspace}
		s = &ConfigBreakers{shared: b, ConfigCircuits: b.circuits.Of(key), row: scope.Partition("BREAKERS").Key(key.Config, "v"+strconv.FormatInt(key.Version, 10))}
		b.configs[key] = s
	}
	b.mu.Unlock()
	s.refresh(ctx)
	return s
}

// ConfigBreakers are the breakers of one config: route.Breakers for its requests.
type ConfigBreakers struct {
	shared *Breakers
	*route.ConfigCircuits
	row  store.Key
	read atomic.Int64 // Unix nanoseconds of the last read; 0: no read
	io   sync.Mutex   // one read or round of writes at a time

	telling atomic.Bool // a request or goroutine is writing changes

	order    sync.Mutex
	released int              // probes released: the result of a read that started before the last release is dropped
	leases   map[string]int64 // of probes of this process, by path: as stored in the row
}

// refresh reads the row if the last read is older than fresh.
func (s *ConfigBreakers) refresh(ctx context.Context) {
	age := s.age()
	if age < fresh {
		return
	}
	if !s.io.TryLock() {
		if age < stale {
			return
		}
		s.io.Lock()
	}
	defer s.io.Unlock()
	if s.age() < fresh {
		return
	}
	began := s.shared.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	for range 3 {
		before := s.releases()
		it, _, err := s.shared.table.Get(ctx, s.row, true)
		s.read.Store(began.UnixNano())
		if err != nil {
			s.shared.fail("read breakers", err)
			return
		}
		if s.takeOver(read(it), before) {
			return
		}
	}
}

func (s *ConfigBreakers) releases() int {
	s.order.Lock()
	defer s.order.Unlock()
	return s.released
}

// takeOver merges the states read, unless a probe was released since.
func (s *ConfigBreakers) takeOver(all map[string]route.Shared, before int) bool {
	s.order.Lock()
	defer s.order.Unlock()
	if s.released != before {
		return false
	}
	s.Merge(all)
	return true
}

// age is the time since the last read; a clock that was set back counts as old.
func (s *ConfigBreakers) age() time.Duration {
	at := s.read.Load()
	if d := time.Duration(s.shared.now().UnixNano() - at); at != 0 && d >= 0 {
		return d
	}
	return stale
}

// Claim implements route.Breakers: the probe is claimed in the store, so that only one of all
// processes makes it. If the store does not respond in time, each process makes one.
func (s *ConfigBreakers) Claim(path string, b *route.Breaker) bool {
	if !s.ConfigCircuits.Claim(path, b) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTime)
	defer cancel()
	now := s.shared.now()
	lease, until := store.At(attrProbe+path), now.Add(b.Cooldown).UnixMilli()
	claim := func(free store.Cond) error {
		_, _, err := s.shared.table.Update(ctx, store.Update{Key: s.row, Set: []store.Assign{{Path: lease, Value: until}}, If: []store.Cond{free}, Expires: expiry(now, b)})
		return err
	}
	err := claim(store.IfMissing(lease))
	clash, other := store.AsCondition(err)
	if other && clash.Current.Int(lease.Attr) <= now.UnixMilli() { // it is expired
		err = claim(store.IfEqual(lease, clash.Current.Int(lease.Attr)))
		clash, other = store.AsCondition(err)
	}
	switch {
	case other:
		s.SetProbed(path, time.UnixMilli(clash.Current.Int(lease.Attr)))
		return false
	case err != nil:
		s.shared.fail("claim a probe", err)
	}
	s.order.Lock()
	defer s.order.Unlock()
	if s.leases == nil {
		s.leases = map[string]int64{}
	}
	s.leases[path] = until
	return true
}

// Release implements route.Breakers: the row first, so that the next claim of the probe in this
// process does not find the lease being released. It does not remove the lease of another
// process that claimed after this one's expired.
func (s *ConfigBreakers) Release(path string) {
	s.order.Lock()
	until, claimed := s.leases[path]
	delete(s.leases, path)
	s.order.Unlock()
	if claimed {
		ctx, cancel := context.WithTimeout(context.Background(), claimTime)
		defer cancel()
		lease := store.At(attrProbe + path)
		_, _, err := s.shared.table.Update(ctx, store.Update{Key: s.row, Remove: []store.Path{lease}, If: []store.Cond{store.IfEqual(lease, until)}})
		if _, others := store.AsCondition(err); err != nil && !others {
			s.shared.fail("release a probe", err)
		}
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.released++ // a read in progress may still show the lease
	s.ConfigCircuits.Release(path)
}

// Publish writes the changes that other processes have not seen. wait sleeps between two rounds;
// nil does not wait.
func (s *ConfigBreakers) Publish(wait func(time.Duration)) {
	for s.HasPending() && s.telling.CompareAndSwap(false, true) {
		s.io.Lock()
		told := s.round()
		s.io.Unlock()
		s.telling.Store(false)
		if !told {
			return // the next request of the config tries again
		}
		// Concurrent callers have left their changes to this loop.
		if wait != nil && s.HasPending() {
			wait(mergeTime)
		}
	}
}

// round writes all pending changes. It returns false if one could not be written and remains
// pending.
func (s *ConfigBreakers) round() bool {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	all := s.Pending()
	for i, p := range all {
		if err := s.write(ctx, p); err != nil {
			s.shared.fail("write breakers", err)
			for _, left := range all[i:] {
				s.Return(left)
			}
			return false
		}
	}
	return true
}

// write writes one change.
func (s *ConfigBreakers) write(ctx context.Context, p route.Pending) error {
	now := s.shared.now()
	at := func(kind string) store.Path { return store.At(kind + p.Path) }
	if p.Closed {
		gone := []store.Path{at(attrFailures), at(attrSuccesses), at(attrFirst), at(attrLast), at(attrOpen), at(attrProbe)}
		if _, _, err := s.shared.table.Update(ctx, store.Update{Key: s.row, Remove: gone}); err != nil {
			return err
		}
	}
	if !p.OpenUntil.IsZero() {
		_, _, err := s.shared.table.Update(ctx, store.Update{
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

// count adds failures to the shared count, or starts a new count if the last is over.
func (s *ConfigBreakers) count(ctx context.Context, p route.Pending, now time.Time) error {
	failures, successes, first, last := store.At(attrFailures+p.Path), store.At(attrSuccesses+p.Path), store.At(attrFirst+p.Path), store.At(attrLast+p.Path)
	since := now.Add(-p.Breaker.Cooldown).UnixMilli()
	running := []store.Cond{store.IfAtLeast(last, since)}
	if p.Breaker.Threshold == 0 {
		running = append(running, store.IfAtLeast(first, since))
	}
	var err error
	for range 4 { // each clash is another process's write
		var after store.Item
		_, after, err = s.shared.table.Update(ctx, store.Update{
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
			_, after, err = s.shared.table.Update(ctx, store.Update{
				Key: s.row, Set: []store.Assign{
					{Path: failures, Value: int64(p.Failures)}, {Path: successes, Value: int64(p.Successes)},
					{Path: first, Value: now.UnixMilli()}, {Path: last, Value: now.UnixMilli()},
				},
				If: []store.Cond{same}, Expires: expiry(now, p.Breaker),
			})
			_, over = store.AsCondition(err)
		}
		if err == nil {
			s.Settle(p, read(after)[p.Path])
		}
		if !over {
			return err
		}
	}
	return err
}

func expiry(now time.Time, b *route.Breaker) time.Time {
	return now.Add(2*b.Cooldown + keepFor)
}

// The attributes of a row: one of these and the path of the target. Times are in Unix
// milliseconds.
const (
	attrFailures  = "f:"
	attrSuccesses = "s:"
	attrFirst     = "b:" // first failure of the count
	attrLast      = "l:" // last one
	attrOpen      = "o:" // open until
	attrProbe     = "p:" // a probe is under way, at most until
)

func read(it store.Item) map[string]route.Shared {
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

// PublishSoon writes the changes in the background, in spaced rounds.
func (s *ConfigBreakers) PublishSoon() { s.shared.running.Go(func() { s.Publish(time.Sleep) }) }

// Close waits until all changes of this process are written.
func (b *Breakers) Close() { b.running.Wait() }
