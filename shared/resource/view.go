package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// loadTimeout bounds a read that several requests may wait for.
const loadTimeout = 3 * time.Second

// viewKey names a decoded value: version is 0 for the current record, -1 for all records of the
// kind, -2 for values derived from them.
type viewKey struct {
	workspace string
	kind      Kind
	id        string
	version   int64
	typ       reflect.Type
}

// slot is the place of one value; empty until it is loaded.
type slot struct {
	result atomic.Pointer[result]

	mu     sync.Mutex
	flight *loading
}

// result is the part of a read's outcome that may be remembered.
type result struct {
	value any
	ok    bool
	err   error // error of decode
}

// loading is a running read. failed is an error of the store, which is returned to those
// who wait and then evicted.
type loading struct {
	done   chan struct{}
	result *result
	failed error
}

// Org is the organization of the view.
func (v *View) Org() string { return v.org }

// Load gives the decoded form of a record, by id or slug. It is read and decoded once per
// View and type; absent records and errors of decode are remembered too. The value is
// shared between requests: decode must return something that is never changed. Archived
// records are returned as well; decode must look at Status.
func Load[T any](ctx context.Context, v *View, sc store.Scope, k Kind, idOrSlug string, decode func(Record) (T, error)) (T, bool, error) {
	if !validID(idOrSlug) {
		var none T
		return none, false, nil
	}
	key := viewKey{workspace: sc.Workspace, kind: k, id: idOrSlug, typ: reflect.TypeFor[T]()}
	return load(ctx, v, sc, key, func(ctx context.Context) (T, bool, error, error) {
		rec, ok, err := v.r.Get(ctx, sc, k, idOrSlug)
		return decoded(rec, ok, err, decode)
	})
}

// LoadVersion is Load for version n of a record; id is not a slug.
func LoadVersion[T any](ctx context.Context, v *View, sc store.Scope, k Kind, id string, n int64, decode func(Record) (T, error)) (T, bool, error) {
	if !validID(id) || n < 1 {
		var none T
		return none, false, nil
	}
	key := viewKey{workspace: sc.Workspace, kind: k, id: id, version: n, typ: reflect.TypeFor[T]()}
	return load(ctx, v, sc, key, func(ctx context.Context) (T, bool, error, error) {
		rec, ok, err := v.r.Version(ctx, sc, k, id, n)
		return decoded(rec, ok, err, decode)
	})
}

// LoadAll gives the decoded forms of all live records of a kind, newest first.
func LoadAll[T any](ctx context.Context, v *View, sc store.Scope, k Kind, decode func(Record) (T, error)) ([]T, error) {
	key := viewKey{workspace: sc.Workspace, kind: k, version: -1, typ: reflect.TypeFor[T]()}
	all, _, err := load(ctx, v, sc, key, func(ctx context.Context) ([]T, bool, error, error) {
		rows, err := v.r.List(ctx, sc, k)
		if err != nil || len(rows) == 0 {
			return nil, true, nil, err
		}
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		recs, err := v.r.GetMany(ctx, sc, k, ids)
		if err != nil {
			return nil, false, nil, err
		}
		out := make([]T, 0, len(recs))
		for _, rec := range recs {
			val, err := decode(rec)
			if err != nil {
				return nil, false, err, nil
			}
			out = append(out, val)
		}
		return out, true, nil, nil
	})
	return all, err
}

// LoadWith gives what fold makes from all live records of a kind, newest first: once per
// View and type, for all callers. The result is shared and must not be changed.
func LoadWith[F any](ctx context.Context, v *View, sc store.Scope, k Kind, fold func([]Record) (F, error)) (F, error) {
	key := viewKey{workspace: sc.Workspace, kind: k, version: -2, typ: reflect.TypeFor[F]()}
	made, _, err := load(ctx, v, sc, key, func(ctx context.Context) (F, bool, error, error) {
		var none F
		rows, err := v.r.List(ctx, sc, k)
		if err != nil {
			return none, false, nil, err
		}
		ids := make([]string, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		recs, err := v.r.GetMany(ctx, sc, k, ids)
		if err != nil {
			return none, false, nil, err
		}
		out, err := fold(recs)
		return out, err == nil, err, nil
	})
	return made, err
}

// decoded separates the outcome of a read: what may be remembered (value, absence, error of
// decode) and what may not (error of the store).
func decoded[T any](rec Record, ok bool, err error, decode func(Record) (T, error)) (T, bool, error, error) {
	var none T
	if err != nil || !ok {
		return none, false, nil, err
	}
	val, err := decode(rec)
	return val, err == nil, err, nil
}

// load gives the value under key, reading it once for all callers.
func load[T any](ctx context.Context, v *View, sc store.Scope, key viewKey, read func(context.Context) (T, bool, error, error)) (T, bool, error) {
	var none T
	if sc.Org != v.org {
		return none, false, fmt.Errorf("resource: a view of organization %q was asked for %q", v.org, sc.Org)
	}
	s, found := v.values.get(key)
	if !found {
		s, _ = v.values.getOrPut(key, new(slot))
	}
	res := s.result.Load()
	if res == nil {
		var err error
		if res, err = fill(ctx, v, s, read); err != nil {
			return none, false, err
		}
	}
	val, _ := res.value.(T)
	return val, res.ok, res.err
}

// fill reads the value of a slot, or waits for the caller who does.
func fill[T any](ctx context.Context, v *View, s *slot, read func(context.Context) (T, bool, error, error)) (*result, error) {
	s.mu.Lock()
	if res := s.result.Load(); res != nil {
		s.mu.Unlock()
		return res, nil
	}
	if f := s.flight; f != nil {
		s.mu.Unlock()
		select {
		case <-f.done:
			return f.result, f.failed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f := &loading{done: make(chan struct{}), failed: errInterrupted}
	s.flight = f
	s.mu.Unlock()
	defer func() { // also if decode panics
		s.mu.Lock()
		s.flight = nil
		s.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	val, ok, decodeErr, err := read(ctx)
	if f.failed = err; err == nil {
		f.result = &result{value: val, ok: ok, err: decodeErr}
		s.result.Store(f.result)
	}
	if !ok {
		v.countAbsent()
	}
	return f.result, f.failed
}

var errInterrupted = errors.New("resource: the read was interrupted")

// countAbsent bounds what a caller can make the view remember by asking for ids that do not
// exist: beyond the bound the view evicts all that it has loaded.
func (v *View) countAbsent() {
	if v.absent.Add(1) > maxAbsent {
		v.absent.Store(0)
		v.values.clear()
	}
}
