package batch

import (
	"context"
	"errors"

	"gateway/shared/fault"
	"gateway/shared/store"
)

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
