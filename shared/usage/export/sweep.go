package export

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/shared/store"
)

// days returns the log retention of a scope's exports in days; for an organization's
// exports the shortest of its workspaces. 0 means forever.
func (s *Runs) days(ctx context.Context, sc store.Scope) (int, error) {
	least := int(s.Longest / (24 * time.Hour))
	if s.WorkspaceRetention == nil {
		return least, nil
	}
	kept, err := s.WorkspaceRetention(ctx, sc)
	if err != nil {
		return 0, err
	}
	all := []int{kept.Days(sc.Workspace)}
	if sc.Workspace == "" {
		all = append(slices.Collect(maps.Values(kept.Of)), kept.Standard)
	}
	for _, days := range all {
		if days > 0 && (least == 0 || days < least) {
			least = days
		}
	}
	return least, nil
}

// goneAt returns when logs of a time's day expire; zero means never.
func goneAt(t time.Time, days int) time.Time {
	if days <= 0 {
		return time.Time{}
	}
	return t.UTC().Truncate(24*time.Hour).AddDate(0, 0, days+1)
}

// Sweep deletes expired files; call it about once an hour. Most buckets delete files
// after a week by a lifecycle rule; Sweep deletes files with shorter retention. An error
// for one file does not stop the others.
func (w *Worker) Sweep(ctx context.Context) error {
	days := make(map[store.Scope]int)
	var errs []error
	for after := ""; ; {
		keys, err := w.Bucket.List(ctx, prefix, after, 1000)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, key := range keys {
			after = key
			over, err := w.expired(ctx, key, days)
			if err == nil && over {
				err = w.Bucket.Delete(ctx, key)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(keys) == 0 {
			return errors.Join(errs...)
		}
	}
}

// expired reports whether a file has expired, by its key; see fileKey. days caches the
// retention of scopes.
func (w *Worker) expired(ctx context.Context, key string, days map[store.Scope]int) (bool, error) {
	part := strings.Split(strings.TrimPrefix(key, prefix), "/")
	day, err := time.Parse(time.DateOnly, part[0])
	if err != nil || len(part) < 4 {
		return false, nil // not an export file
	}
	now := w.Runs.Now()
	if now.After(day.Add(FileLifetime + 48*time.Hour)) {
		return true, nil
	}
	sc := store.Scope{Org: part[1], Workspace: part[2]}
	if sc.Workspace == noWorkspace {
		sc.Workspace = ""
	}
	n, known := days[sc]
	if !known {
		if n, err = w.Runs.days(ctx, sc); err != nil {
			return false, err
		}
		days[sc] = n
	}
	gone := goneAt(day, n)
	return !gone.IsZero() && !now.Before(gone), nil
}
