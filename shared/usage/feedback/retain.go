package feedback

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gateway/shared/store"
)

// workspaceRows has a row for each workspace with feedback.
func workspaceRows() store.Partition { return store.System("FEEDBACK-KEPT") }

func noteOf(sc store.Scope) store.Row {
	return store.Row{Key: workspaceRows().Key(sc.Org, sc.Workspace), Item: store.Item{"org": sc.Org, "workspace": sc.Workspace}}
}

// markWorkspace records that a workspace has feedback, once per process.
func (s *Store) markWorkspace(ctx context.Context, sc store.Scope) error {
	if _, done := s.marked.Load(sc); done {
		return nil
	}
	if err := s.table.Put(ctx, noteOf(sc)); err != nil {
		return err
	}
	s.marked.Store(sc, nil)
	return nil
}

// first returns the start of a workspace's visible feedback; older feedback may not be
// deleted yet.
func (s *Store) first(ctx context.Context, sc store.Scope) (time.Time, error) {
	if s.retentionOf == nil {
		return time.Time{}, nil
	}
	retention, err := s.retentionOf(ctx, sc)
	if err != nil {
		return time.Time{}, err
	}
	first := retention.Cutoff(sc.Workspace, s.now())
	if first == math.MinInt64 {
		return time.Time{}, nil
	}
	return time.UnixMicro(first), nil
}

// Places locates feedback that is older than the rows of workspaceRows.
type Places struct {
	// Organizations returns those after one, in order, at most most.
	Organizations func(ctx context.Context, after string, most int) ([]string, error)
	Workspaces    func(ctx context.Context, org string) ([]string, error)
}

// Maximum number of organizations scanned per call, and the pause between scans of all.
const (
	lookOrgs = 100
	lookRest = 24 * time.Hour
)

// scanKey is the row with the progress of the scan.
func scanKey() store.Key { return store.System("FEEDBACK-LOOK").Key("look") }

// scan marks the workspaces of organizations with separate retention. It continues after
// the last call.
func (s *Store) scan(ctx context.Context, at Places, most int) error {
	item, _, err := s.table.Get(ctx, scanKey(), true)
	if err != nil || s.retentionOf == nil || s.now().UnixMilli() < item.Int("rest") {
		return err
	}
	orgs, err := at.Organizations(ctx, item.String("org"), most)
	if err != nil {
		return err
	}
	var errs []error
	next := store.Item{"rest": s.now().Add(lookRest).UnixMilli()}
	for _, org := range orgs {
		if err := s.markAll(ctx, at, org); err != nil {
			errs = append(errs, err) // at the next scan, like all others
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(orgs) == most {
			next = store.Item{"org": org}
		}
	}
	return errors.Join(append(errs, s.table.Put(ctx, store.Row{Key: scanKey(), Item: next}))...)
}

// markAll marks the workspaces of an organization with separate retention.
func (s *Store) markAll(ctx context.Context, at Places, org string) error {
	retention, err := s.retentionOf(ctx, store.Scope{Org: org})
	if err != nil || !retention.HasOverrides() {
		return err
	}
	list, err := at.Workspaces(ctx, org)
	if err != nil {
		return err
	}
	rows := make([]store.Row, len(list))
	for i, ws := range list {
		rows[i] = noteOf(store.Scope{Org: org, Workspace: ws})
	}
	return s.table.PutMany(ctx, rows)
}

// Retain deletes expired feedback; call it about once an hour. The next call continues
// where this one ran out of time. An error for one workspace does not stop the others.
func (s *Store) Retain(ctx context.Context, at Places) error {
	var errs []error
	if err := s.scan(ctx, at, lookOrgs); err != nil {
		errs = append(errs, fmt.Errorf("feedback: look: %w", err))
	}
	for row, err := range store.Rows(ctx, s.table, store.Query{Partition: workspaceRows()}) {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("feedback: retention: %w", err))...)
		}
		errs = append(errs, s.retain(ctx, store.Scope{Org: row.Item.String("org"), Workspace: row.Item.String("workspace")}))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// retain deletes the expired feedback of a workspace. All rows of a feedback are deleted
// in one transaction, because it is found by its row of the time.
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
