package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// IDPrefix starts the ids of batches that the gateway runs, FilePrefix those of the files that
// it stores for them.
const (
	IDPrefix   = "gw_batch_"
	FilePrefix = "gw_file_"
)

// lifetime is how long a batch can be read after its creation; responses are stored separately
// from its files only until the batch has ended.
const (
	lifetime         = 400 * 24 * time.Hour
	responseLifetime = Lifetime + 3*24*time.Hour
	maxID            = 128 // bytes
	maxChanges       = 30  // attempts at a change that conflicts with others
)

func plainID(batch string) string { return strings.TrimPrefix(batch, IDPrefix) }

func itoa(n int) string { return strconv.Itoa(n) }

func compact(dst, body []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return append(dst, "null"...)
	}
	return append(dst, b.Bytes()...)
}

// Batches stores batches. It is safe for concurrent use.
type Batches struct {
	Now       func() time.Time
	Store     store.Store
	Sealer    seal.Sealer
	FirstPoll time.Duration // before the first poll of an awaited response; 0: a minute
}

// Unfinished identifies an unfinished batch.
type Unfinished struct {
	Scope store.Scope
	ID    string
}

func (s *Batches) table() store.Table { return s.Store.Table(store.Usage) }

func key(sc store.Scope, id string) store.Key { return sc.Partition("RUN").Key(id) }

func dueKey(id string) store.Key { return store.System("RUNS").Key(id) }

func binding(sc store.Scope, k store.Key) seal.Binding {
	return seal.Binding{Org: sc.Org, Table: string(store.Usage), PK: k.PK(), SK: k.SK()}
}

// Create creates a batch that is due immediately.
func (s *Batches) Create(ctx context.Context, sc store.Scope, d Definition) (*Batch, error) {
	now := s.Now()
	b := &Batch{
		ID: IDPrefix + ulid.MustNewDefault(now).String(), Definition: d, rev: 1,
		Progress: Progress{Status: Validating, Created: now.Unix(), Expires: now.Add(Lifetime).Unix(), Next: now.UnixMilli()},
	}
	k := key(sc, b.ID)
	plain, err := json.Marshal(d)
	if err != nil {
		return nil, fault.Internal(err)
	}
	if len(plain) > maxDefinition {
		return nil, fault.Newf(fault.BodyTooLarge, "body", "the definition of a batch must have at most %d bytes, without its rows", maxDefinition)
	}
	sealed, err := s.Sealer.Seal(ctx, binding(sc, k), plain)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	progress, err := json.Marshal(b.Progress)
	if err != nil {
		return nil, fault.Internal(err)
	}
	row := store.Row{Key: k, Expires: now.Add(lifetime), Item: store.Item{"def": sealed, "progress": string(progress), "rev": b.rev, "until": int64(0), "holder": ""}}
	due := store.Row{Key: dueKey(b.ID), Expires: now.Add(lifetime), Item: store.Item{"org": sc.Org, "ws": sc.Workspace, counted: true}}
	err = s.begin(ctx, sc,
		store.Action{Table: store.Usage, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}},
		store.Action{Table: store.Usage, Put: &store.Put{Row: due}})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// decode reads the item of a batch.
func (s *Batches) decode(ctx context.Context, sc store.Scope, k store.Key, item store.Item) (*Batch, error) {
	b := &Batch{ID: k.SK(), rev: item.Int("rev"), holder: item.String("holder"), until: item.Int("until")}
	plain, err := s.Sealer.Open(ctx, binding(sc, k), item.Bytes("def"))
	if err == nil {
		err = json.Unmarshal(plain, &b.Definition)
	}
	if err == nil {
		err = json.Unmarshal([]byte(item.String("progress")), &b.Progress)
	}
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("managed: batch %s: %w", b.ID, err))
	}
	return b, nil
}

// Get returns a batch of a workspace; nil if it has none with the id.
func (s *Batches) Get(ctx context.Context, sc store.Scope, id string) (*Batch, error) {
	if len(id) > maxID || !strings.HasPrefix(id, IDPrefix) {
		return nil, nil
	}
	k := key(sc, id)
	item, ok, err := s.table().Get(ctx, k, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, nil
	}
	return s.decode(ctx, sc, k, item)
}

// List returns the workspace's batches, the newest first, starting after the id after.
func (s *Batches) List(ctx context.Context, sc store.Scope, after string, limit int) (page []*Batch, more bool, err error) {
	q := store.Query{Partition: sc.Partition("RUN"), Reverse: true, After: after, Limit: limit + 1}
	for {
		rows, err := s.table().Query(ctx, q)
		if err != nil {
			return nil, false, fault.Unavailable(err)
		}
		for _, row := range rows.Rows {
			if len(page) == limit {
				return page, true, nil
			}
			b, err := s.decode(ctx, sc, row.Key, row.Item)
			if err != nil {
				return nil, false, err
			}
			page = append(page, b)
		}
		if q.After = rows.Next; q.After == "" {
			return page, false, nil
		}
	}
}

// ErrTaken is returned if another worker has the batch, or has already done the step.
var ErrTaken = errors.New("managed: another worker has the batch")

// Change reads a batch, lets f change its progress and writes it; it repeats this on concurrent
// changes. An error of f ends it. holder must hold the lease; "" for changes that need none.
func (s *Batches) Change(ctx context.Context, sc store.Scope, id, holder string, f func(b *Batch) error) (*Batch, error) {
	for range maxChanges {
		b, err := s.Get(ctx, sc, id)
		if err != nil || b == nil {
			return nil, err
		}
		if holder != "" && b.holder != holder {
			return b, ErrTaken
		}
		rev := b.rev
		if err := f(b); err != nil {
			return b, err
		}
		progress, err := b.Progress.encode()
		if err != nil {
			return nil, fault.Internal(err)
		}
		k := key(sc, id)
		_, _, err = s.table().Update(ctx, store.Update{
			Key: k, If: []store.Cond{store.IfEqual(store.At("rev"), rev)},
			Set: []store.Assign{
				{Path: store.At("progress"), Value: string(progress)}, {Path: store.At("rev"), Value: rev + 1},
				{Path: store.At("holder"), Value: b.holder}, {Path: store.At("until"), Value: b.until},
			},
		})
		if _, lost := store.AsCondition(err); lost {
			continue
		}
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		return b, nil
	}
	return nil, fault.Unavailable(store.ErrContended)
}

// AcquireLease acquires the lease for holder, for d, for the step of a message. It returns ErrTaken if
// another holds it, or the step is done. alone: no other process uses the store, so that the
// lease of another process belongs to one that died.
func (s *Batches) AcquireLease(ctx context.Context, sc store.Scope, id, holder string, step int64, d time.Duration, alone bool) (*Batch, error) {
	return s.Change(ctx, sc, id, "", func(b *Batch) error {
		return b.take(holder, step, s.Now(), d, alone)
	})
}

// take gives holder the lease from now, for d.
func (b *Batch) take(holder string, step int64, now time.Time, d time.Duration, alone bool) error {
	other := b.Holder(now)
	if alone && !sameProcess(other, holder) {
		other = ""
	}
	if other == holder {
		other = "" // the response to the first attempt was lost
	}
	if other != "" || b.Step != step || b.Status.Ended() {
		return ErrTaken
	}
	b.holder, b.until = holder, now.Add(d).UnixMilli()
	return nil
}

// sameProcess compares holders, which are process/number.
func sameProcess(a, b string) bool {
	pa, _, _ := strings.Cut(a, "/")
	pb, _, _ := strings.Cut(b, "/")
	return pa == pb
}

// Renew extends the lease of holder to d from now.
func (s *Batches) Renew(ctx context.Context, sc store.Scope, id, holder string, d time.Duration) error {
	_, _, err := s.table().Update(ctx, store.Update{
		Key: key(sc, id), If: []store.Cond{store.IfEqual(store.At("holder"), holder)},
		Set: []store.Assign{{Path: store.At("until"), Value: s.Now().Add(d).UnixMilli()}},
	})
	if _, lost := store.AsCondition(err); lost {
		return ErrTaken
	}
	return err
}

// Release releases the lease, after f has changed the progress. f may be nil.
func (s *Batches) Release(ctx context.Context, sc store.Scope, id, holder string, f func(p *Progress)) (*Batch, error) {
	b, err := s.Change(ctx, sc, id, holder, func(b *Batch) error {
		if f != nil {
			f(&b.Progress)
		}
		b.holder, b.until = "", 0
		return nil
	})
	if err == nil && b != nil && b.Status.Ended() {
		_ = s.leave(ctx, sc, id) // otherwise the next sweep does it
	}
	return b, err
}

// Cancel starts the cancellation of a batch.
func (s *Batches) Cancel(ctx context.Context, sc store.Scope, id string) (*Batch, error) {
	return s.Change(ctx, sc, id, "", func(b *Batch) error {
		return b.Progress.cancel(s.Now())
	})
}

// Overdue returns the batches with a step that is overdue by more than late and without a lease.
// Finished batches are removed from the list. alone is as for AcquireLease.
func (s *Batches) Overdue(ctx context.Context, late time.Duration, process string, alone bool) (due []Unfinished, steps []int64, err error) {
	q := store.Query{Partition: store.System("RUNS")}
	for {
		rows, err := s.table().Query(ctx, q)
		if err != nil {
			return due, steps, err
		}
		for _, row := range rows.Rows {
			d := Unfinished{Scope: store.Scope{Org: row.Item.String("org"), Workspace: row.Item.String("ws")}, ID: row.Key.SK()}
			b, err := s.Get(ctx, d.Scope, d.ID)
			if err != nil {
				return due, steps, err
			}
			if b == nil || b.Status.Ended() {
				if err := s.leave(ctx, d.Scope, d.ID); err != nil {
					return due, steps, err
				}
				continue
			}
			now := s.Now()
			holder := b.Holder(now)
			died := alone && holder != "" && !sameProcess(holder, process)
			if died || holder == "" && b.Next+late.Milliseconds() < now.UnixMilli() {
				due, steps = append(due, d), append(steps, b.Step)
			}
		}
		if q.After = rows.Next; q.After == "" {
			return due, steps, nil
		}
	}
}

func unix(seconds int64) time.Time { return time.Unix(seconds, 0) }

// MaxOpen is how many unfinished batches a workspace may have. It limits the work that one key
// can create for the shared workers.
const MaxOpen = 100

// A workspace's batches that have not ended are counted in one row. A batch counts as long
// as its row in the due list bears this mark. Row and count change in one transaction, so
// no batch is missed or counted twice, wherever a process dies.
const counted = "counted"

func openKey(sc store.Scope) store.Key { return sc.Partition("RUNOPEN").Key("-") }

// begin creates the rows of a new batch and counts it, if the limit allows it.
func (s *Batches) begin(ctx context.Context, sc store.Scope, rows ...store.Action) error {
	path := store.At("n")
	for range maxChanges {
		item, _, err := s.table().Get(ctx, openKey(sc), true)
		if err != nil {
			return fault.Unavailable(err)
		}
		if item.Int("n") >= MaxOpen {
			return fault.Newf(fault.RateLimited, "", "This workspace has %d unfinished batches, which is the limit: wait until one has ended, or cancel one", MaxOpen)
		}
		room := store.IfMissing(path)
		if _, there := item["n"]; there {
			room = store.IfAtMost(path, int64(MaxOpen-1)) // others may start concurrently
		}
		count := store.Update{Key: openKey(sc), Add: []store.Increment{{Path: path, By: 1}}, If: []store.Cond{room}}
		err = s.Store.Transact(ctx, append(rows[:len(rows):len(rows)], store.Action{Table: store.Usage, Update: &count})...)
		lost, failed := store.AsCondition(err)
		if failed && lost.Key == openKey(sc) || errors.Is(err, store.ErrContended) {
			continue // the first or the last of them started concurrently
		}
		if err != nil {
			return fault.Unavailable(err)
		}
		return nil
	}
	return fault.Unavailable(store.ErrContended)
}

// leave removes a finished batch from the due list and the count.
func (s *Batches) leave(ctx context.Context, sc store.Scope, id string) error {
	for range maxChanges {
		err := s.Store.Transact(ctx,
			store.Action{Table: store.Usage, Delete: &store.Delete{Key: dueKey(id), If: []store.Cond{store.IfEqual(store.At(counted), true)}}},
			store.Action{Table: store.Usage, Update: &store.Update{Key: openKey(sc), Add: []store.Increment{{Path: store.At("n"), By: -1}}}})
		if _, gone := store.AsCondition(err); gone {
			return s.table().Delete(ctx, dueKey(id)) // it was not counted
		}
		if !errors.Is(err, store.ErrContended) {
			return err
		}
	}
	return store.ErrContended
}
