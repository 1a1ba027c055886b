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

// days is for how many days logs that a scope exports are kept; of an organisation's
// exports for how many the first of its workspaces keeps them. 0: for ever.
func (s *Runs) days(ctx context.Context, sc store.Scope) (int, error) {
	least := int(s.Longest / (24 * time.Hour))
	if s.KeptDays == nil {
		return least, nil
	}
	kept, err := s.KeptDays(ctx, sc)
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

// goneAt is when logs of the day of a time are kept no longer; zero: never.
func goneAt(t time.Time, days int) time.Time {
	if days <= 0 {
		return time.Time{}
	}
	return t.UTC().Truncate(24*time.Hour).AddDate(0, 0, days+1)
}

// Sweep removes files whose time is over; call it every hour or so. Most buckets remove
// files after a week by a rule of their own; files of workspaces with shorter times are
// removed here. A file that cannot be judged does not hold up the others.
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
			over, err := w.over(ctx, key, days)
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

// over tells whether a file is kept no longer, by its key; see fileKey. days remembers
// what scopes keep.
func (w *Worker) over(ctx context.Context, key string, days map[store.Scope]int) (bool, error) {
	part := strings.Split(strings.TrimPrefix(key, prefix), "/")
	day, err := time.Parse(time.DateOnly, part[0])
	if err != nil || len(part) < 4 {
		return false, nil // none of ours
	}
	now := w.Runs.Now()
	if now.After(day.Add(Kept + 48*time.Hour)) {
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
