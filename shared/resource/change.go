package resource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// maxAttempts is how often a change is tried when others change the same rows.
const maxAttempts = 12

// errRetry reports that the closure must read again.
var errRetry = errors.New("resource: the resource was changed concurrently")

// Change runs f and commits what it staged in one transaction, together with the
// organization's next generation. If another change was faster, f runs again on the result
// of that one.
//
// Errors: whatever f returns; fault.Conflict (slug or id taken), QuotaReached;
// fault.Invalid for more than 100 rows or 400 KB in one; ServiceUnavailable if the store
// does not answer or others are faster all the time.
func (r *Resources) Change(ctx context.Context, sc store.Scope, f func(*Tx) error) error {
	if h := rehearsalOf(ctx); h != nil {
		return r.rehearse(ctx, sc, f, h)
	}
	var err error
	for attempt := range maxAttempts {
		var t *Tx
		if t, err = r.try(ctx, sc, f); err == nil {
			r.committed(ctx, t)
			return nil
		}
		if !errors.Is(err, errRetry) && !errors.Is(err, store.ErrContended) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
	return fault.Unavailable(err)
}

func (r *Resources) begin(ctx context.Context, sc store.Scope) *Tx {
	return &Tx{
		ctx: ctx, r: r, scope: sc, now: r.now(),
		batch: batch{index: make(map[place]int)}, records: make(map[store.Key]Record), counts: make(map[countID]int64),
	}
}

// try runs the closure once and commits it.
func (r *Resources) try(ctx context.Context, sc store.Scope, f func(*Tx) error) (*Tx, error) {
	t := r.begin(ctx, sc)
	if err := f(t); err != nil {
		return nil, err
	}
	r.mu.Lock()
	before := r.before
	r.mu.Unlock()
	if before != nil {
		if err := before(t); err != nil {
			return nil, err
		}
	}
	if err := stageCounts(t); err != nil {
		return nil, err
	}
	if len(t.batch.staged) == 0 {
		return t, nil
	}
	gen := generationKey(sc.Org)
	t.batch.stage(place{store.Control, gen}, staged{action: store.Action{Table: store.Control, Update: &store.Update{
		Key: gen, Add: []store.Increment{{Path: store.At("n"), By: 1}},
	}}})
	if len(t.batch.staged) > store.MaxTransactActions {
		return nil, fault.Invalid("", "this change touches %d rows, more than the %d of one change: send it in smaller parts", len(t.batch.staged), store.MaxTransactActions)
	}
	actions := make([]store.Action, len(t.batch.staged))
	for i, s := range t.batch.staged {
		actions[i] = s.action
	}
	lists := r.lists.begin(sc.Org, t.lists)
	err := r.store.Transact(ctx, actions...)
	lists.end(outcomeOf(err))
	if err != nil {
		if errors.Is(err, store.ErrUncertain) {
			r.announce(sc.Org) // the change may have been made
		}
		return nil, rejection(t, err)
	}
	return t, nil
}

// outcomeOf returns what a commit has changed. A failed condition and a conflict have changed
// nothing; after other failures that is not certain.
func outcomeOf(err error) outcome {
	_, refused := store.AsCondition(err)
	switch {
	case err == nil:
		return committedOne
	case refused, errors.Is(err, store.ErrContended), errors.Is(err, store.ErrTooLarge):
		return nothingDone
	}
	return mayBeDone
}

// stageCounts stages the counts of live records. A count that grows is
// conditional, so that concurrent creations cannot pass the quota together.
func stageCounts(t *Tx) error {
	for id, delta := range t.counts {
		if delta == 0 {
			continue
		}
		key := countKey(id.scope, id.kind)
		u := &store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: delta}}}
		var onFail error
		if delta > 0 {
			quota := t.r.quota(id.scope, id.kind)
			full := fault.Newf(fault.QuotaReached, "", "at most %d resources of this kind (%s) are allowed here; delete some first", quota, word(id.kind))
			it, ok, err := t.r.control.Get(t.ctx, key, true)
			if err != nil {
				return readError(err)
			}
			if it.Int("n")+delta > quota {
				return full
			}
			u.If = []store.Cond{store.IfAbsent()}
			if ok {
				u.If, onFail = []store.Cond{store.IfAtMost(store.At("n"), quota-delta)}, full
			}
		}
		t.batch.stage(place{store.Control, key}, staged{store.Action{Table: store.Control, Update: u}, onFail})
	}
	return nil
}

// rejection converts the error of a failed commit.
func rejection(t *Tx, err error) error {
	if c, ok := store.AsCondition(err); ok {
		if c.Action < len(t.batch.staged) && t.batch.staged[c.Action].onFail != nil {
			return t.batch.staged[c.Action].onFail
		}
		return errRetry
	}
	switch {
	case errors.Is(err, store.ErrContended):
		return err
	case errors.Is(err, store.ErrTooLarge):
		return fault.Invalid("", "the resource is larger than %d KB as stored", store.MaxItemBytes>>10).WithCause(err)
	}
	return readError(err)
}

// committed announces a commit in this process and cleans up after it.
func (r *Resources) committed(ctx context.Context, t *Tx) {
	if len(t.batch.staged) == 0 {
		return
	}
	r.notify(t.scope.Org)
	r.mu.Lock()
	afterOut := r.afterOut
	r.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // the change is made, whether or not the caller waits
	if afterOut != nil && len(t.outbox) > 0 {
		afterOut(ctx, t.outbox)
	}
	for _, ref := range t.deleted {
		// Versions without their record cannot be reached, and ids are not used again. So a
		// failure here only wastes space.
		_ = dropVersions(ctx, r, ref)
	}
}

// announce makes this process forget what it has cached about an organization.
func (r *Resources) announce(org string) {
	r.lists.evictOrg(org)
	r.notify(org)
}

// notify calls everything in this process that follows changes.
func (r *Resources) notify(org string) {
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	for _, f := range changed {
		f(org)
	}
}

func dropVersions(ctx context.Context, r *Resources, of Ref) error {
	q := store.Query{Partition: of.Scope.Partition(), Prefix: versionPrefix(of.Kind, of.ID)}
	return each(ctx, r.control, q, func(row store.Row) error {
		return r.control.Delete(ctx, row.Key)
	})
}

// pause waits before the next attempt, longer each time, and for a random time.
func pause(ctx context.Context, attempt int) error {
	d := time.Duration(1+rand.IntN(4<<min(attempt, 5))) * time.Millisecond
	select {
	case <-ctx.Done():
		return fmt.Errorf("resource: %w", ctx.Err())
	case <-time.After(d):
		return nil
	}
}

// Due is one row of the due lists.
type Due struct {
	Kind string
	At   time.Time
	Of   Ref
	Key  store.Key
	// Noted reports whether MarkDue was called for this row.
	Noted bool
}

// EachDue calls f for rows of a kind that are due in [from, until], oldest hour first. f
// removes a row with Done when it is dealt with; other rows are seen again.
func (r *Resources) EachDue(ctx context.Context, kind string, from, until time.Time, f func(Due) error) error {
	for hour := from.UTC().Truncate(time.Hour); !hour.After(until); hour = hour.Add(time.Hour) {
		err := each(ctx, r.control, store.Query{Partition: duePartition(kind, hour)}, func(row store.Row) error {
			it := row.Item
			at := fromMilli(it.Int("at"))
			if at.Before(from) || at.After(until) {
				return nil
			}
			sc := store.Scope{Org: it.String("org"), Workspace: it.String("ws")}
			return f(Due{Kind: kind, At: at, Of: Ref{Scope: sc, Kind: Kind(it.String("kind")), ID: it.String("id")}, Key: row.Key, Noted: it.Bool("noted")})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Done removes a due row.
func (r *Resources) Done(ctx context.Context, d Due) error {
	return readError(r.control.Delete(ctx, d.Key))
}

// MarkDue marks a due row, once, together with an action, such as an advance notice. first is
// false when the row was marked before, or is no longer due.
func (r *Resources) MarkDue(ctx context.Context, d Due, along store.Action) (first bool, err error) {
	err = r.store.Transact(ctx, store.Action{Table: store.Control, Update: &store.Update{
		Key: d.Key, Set: []store.Assign{{Path: store.At("noted"), Value: true}},
		If: []store.Cond{store.IfPresent(), store.IfMissing(store.At("noted"))},
	}}, along)
	if _, done := store.AsCondition(err); done {
		return false, nil
	}
	return err == nil, readError(err)
}

// batch are the actions of one transaction, at most one on a row.
type batch struct {
	staged []staged
	index  map[place]int
}

type place struct {
	table store.TableName
	key   store.Key
}

// staged is one action and the meaning of its failed condition: a fault, or nil for "read
// again and retry".
type staged struct {
	action store.Action
	onFail error
}

func (b *batch) put(table store.TableName, row store.Row, onFail error, conds ...store.Cond) {
	b.stage(place{table, row.Key}, staged{store.Action{Table: table, Put: &store.Put{Row: row, If: conds}}, onFail})
}

func (b *batch) delete(table store.TableName, key store.Key, onFail error, conds ...store.Cond) {
	b.stage(place{table, key}, staged{store.Action{Table: table, Delete: &store.Delete{Key: key, If: conds}}, onFail})
}

// stage adds an action. A second action on the same row replaces the first but retains its
// conditions, which are about the stored row. Only if a write of the entire row replaces an
// update, the conditions of the update are dropped, because the write has stricter ones.
func (b *batch) stage(p place, s staged) {
	i, ok := b.index[p]
	if !ok {
		b.index[p] = len(b.staged)
		b.staged = append(b.staged, s)
		return
	}
	first := b.staged[i]
	if first.action.Update != nil {
		b.staged[i] = s
		return
	}
	setConditions(&s.action, first.action.Conds())
	s.onFail = first.onFail
	b.staged[i] = s
}

func setConditions(a *store.Action, conds []store.Cond) {
	switch {
	case a.Put != nil:
		a.Put.If = conds
	case a.Update != nil:
		a.Update.If = conds
	case a.Delete != nil:
		a.Delete.If = conds
	default:
		a.Check.If = conds
	}
}

// has reports whether there is an action on a row.
func (b *batch) has(table store.TableName, key store.Key) bool {
	_, ok := b.index[place{table, key}]
	return ok
}
