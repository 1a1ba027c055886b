package feedback

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gateway/shared/store"
)

// keepers has a note of each workspace that was ever given feedback.
func keepers() store.Partition { return store.System("FEEDBACK-KEPT") }

// note remembers that a workspace has feedback, once in a process.
func (s *Store) note(ctx context.Context, sc store.Scope) error {
	if _, done := s.noted.Load(sc); done {
		return nil
	}
	row := store.Row{Key: keepers().Key(sc.Org, sc.Workspace), Item: store.Item{"org": sc.Org, "workspace": sc.Workspace}}
	if err := s.table.Put(ctx, row); err != nil {
		return err
	}
	s.noted.Store(sc, nil)
	return nil
}

// first is the time from which on feedback of a workspace is shown: what is older is
// shown no more, whether it has been deleted yet or not.
func (s *Store) first(ctx context.Context, sc store.Scope) (time.Time, error) {
	if s.kept == nil {
		return time.Time{}, nil
	}
	kept, err := s.kept(ctx, sc)
	if err != nil {
		return time.Time{}, err
	}
	first := kept.First(sc.Workspace, s.now())
	if first == math.MinInt64 {
		return time.Time{}, nil
	}
	return time.UnixMicro(first), nil
}

// Retain deletes feedback of days that its workspace keeps no longer; call it every hour
// or so. What it had no time for it finds again. An error of one workspace does not stop
// the others.
func (s *Store) Retain(ctx context.Context) error {
	var errs []error
	q := store.Query{Partition: keepers()}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("feedback: retention: %w", err)
		}
		for _, row := range page.Rows {
			errs = append(errs, s.retain(ctx, store.Scope{Org: row.Item.String("org"), Workspace: row.Item.String("workspace")}))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if page.Next == "" {
			return errors.Join(errs...)
		}
		q.After = page.Next
	}
}

// retain deletes what a workspace keeps no longer. All rows of a feedback go in one
// transaction: one that is left has its row of the time, by which it is found.
func (s *Store) retain(ctx context.Context, sc store.Scope) error {
	first, err := s.first(ctx, sc)
	if err != nil || first.IsZero() {
		return err
	}
	for {
		var actions []store.Action
		err := s.each(ctx, store.Query{Partition: partition(sc), From: "AT#", To: "AT#" + timeKey(first), Limit: perWrite}, func(f *Feedback) bool {
			byID, byTrace, byTime := keys(sc, f.ID, hash(f.Trace), timeKey(f.Created))
			for _, key := range []store.Key{byID, byTrace, byTime} {
				actions = append(actions, store.Action{Table: store.Usage, Delete: &store.Delete{Key: key}})
			}
			return len(actions)+3 <= store.MaxTransactActions
		})
		if err != nil || len(actions) == 0 {
			return err
		}
		if err := s.store.Transact(ctx, actions...); err != nil {
			return fmt.Errorf("feedback: retention: %w", err)
		}
	}
}
