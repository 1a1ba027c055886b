package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/store"
)

// Times and sizes of merges.
const (
	settleTime  = 15 * time.Second // a batch must be this old to be merged
	hourGrace   = 5 * time.Minute  // an hour is merged completely this long after its end
	dayGrace    = time.Hour        //
	gonePeriod  = 10 * time.Minute // how long merged segments remain for readers that have their manifest
	minMinute   = 4                // fewer batches are merged later; the default of MinMerge
	maxInputs   = 90               // per merge, because the swap is one transaction
	maxMinute   = 1 << 13          // records per merge within the current hour, because the file is built in memory
	hourSeconds = 3600
)

func dueRows() store.Partition { return store.System("USAGE-DUE") }

// dueCache remembers the current hours that this process has marked.
type dueCache struct {
	mu sync.Mutex
	m  map[groupKey]struct{}
}

// markDue marks an hour or a day for compaction. The compactor deletes a mark only if it
// is still the one that it read, so a mark written meanwhile is not lost. A current hour
// is marked once: its mark stays until the hour is over.
func (a *Archive) markDue(ctx context.Context, sort, org string, hour int64) error {
	k := groupKey{org, hour}
	now := a.o.Clock()
	lasting := sort == "H" && now.Unix()/hourSeconds == hour
	if lasting {
		a.noted.mu.Lock()
		_, done := a.noted.m[k]
		a.noted.mu.Unlock()
		if done {
			return nil
		}
	}
	row := store.Row{Key: dueRows().Key(sort, fmt.Sprintf("%08d", hour), org), Item: store.Item{"org": org, "hour": hour, "note": now.UnixNano()}}
	if err := a.table.Put(ctx, row); err != nil {
		return fmt.Errorf("segment: due: %w", err)
	}
	if lasting {
		a.noted.mu.Lock()
		defer a.noted.mu.Unlock()
		for old := range a.noted.m {
			if old.hour != hour {
				delete(a.noted.m, old)
			}
		}
		if a.noted.m == nil {
			a.noted.m = make(map[groupKey]struct{})
		}
		a.noted.m[k] = struct{}{}
	}
	return nil
}

// compactor merges due segments at a given time.
type compactor struct {
	archive *Archive
	now     time.Time
}

// Compact merges due segments; call it about once a minute. Concurrent calls are safe.
// Query results do not change during a merge.
func (a *Archive) Compact(ctx context.Context) error {
	c := compactor{a, a.o.Clock()}
	errs := []error{c.sweep(ctx), fileScan{a, scanRows}.scan(ctx, c.now)}
	for _, sort := range [...]string{"H", "D"} {
		err := c.eachDue(ctx, sort, func(row store.Row) error {
			org, hour := row.Item.String("org"), row.Item.Int("hour")
			var done bool
			var err error
			if sort == "H" {
				done, err = c.hour(ctx, org, hour)
			} else {
				done, err = c.day(ctx, org, hour)
			}
			if err != nil || !done {
				return err
			}
			err = a.table.Delete(ctx, row.Key, store.IfEqual(store.At("note"), row.Item.Int("note")))
			if _, newer := store.AsCondition(err); newer {
				err = nil
			}
			return err
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// eachDue calls do for the marks of one kind; an error for one does not stop the others.
func (a compactor) eachDue(ctx context.Context, sort string, do func(store.Row) error) error {
	var errs []error
	q := store.Query{Partition: dueRows(), Prefix: sort + "#"}
	for {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("segment: due: %w", err)
		}
		for _, row := range page.Rows {
			if err := do(row); err != nil {
				errs = append(errs, err)
			}
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

// hour merges within an hour; done reports that the hour is over and completely merged.
func (a compactor) hour(ctx context.Context, org string, hour int64) (done bool, err error) {
	key := hourKey(hour)
	over := !a.now.Before(time.Unix((hour+1)*hourSeconds, 0).Add(hourGrace))
	list, err := a.archive.list(ctx, org, key, key+"#~", func(m *Manifest) bool {
		return m.Tier < TierDay && (over || m.Tier == TierBatch && a.now.Sub(m.Created) >= settleTime)
	})
	if err != nil {
		return false, err
	}
	tier := TierMinute
	if over {
		tier = TierHour
	}
	for n := inputs(list, over); n < len(list); n = inputs(list, over) {
		if err := a.merge(ctx, list[:n], TierMinute, hour); err != nil {
			return false, err
		}
		list = list[n:]
		if over {
			return false, nil // the next call merges the rest, when the list contains the merged segments
		}
	}
	if over && (len(list) > 1 || a.needFiles(list)) || len(list) >= a.archive.o.MinMerge {
		if err := a.merge(ctx, list, tier, hour); err != nil {
			return false, err
		}
	}
	if !over {
		return false, nil
	}
	return true, a.archive.markDue(ctx, "D", org, hour-hour%24)
}

// inputs returns how many segments of a list one merge takes. In the current hour it also
// limits the number of records, to bound memory under load.
func inputs(list []Manifest, over bool) int {
	records := int64(0)
	for n := range list {
		if records += list[n].Records; n == maxInputs || !over && n >= minMinute && records > maxMinute {
			return n
		}
	}
	return len(list)
}

// needFiles reports whether records of some segment should be in files but are not.
func (a compactor) needFiles(list []Manifest) bool {
	return a.archive.o.Files && slices.ContainsFunc(list, func(m Manifest) bool { return !m.InFile() })
}

// day merges the segments of a past day into one, unless that would be too large.
func (a compactor) day(ctx context.Context, org string, day int64) (done bool, err error) {
	if a.now.Before(time.Unix((day+24)*hourSeconds, 0).Add(dayGrace)) {
		return false, nil
	}
	list, err := a.archive.ofDay(ctx, org, day)
	if err != nil {
		return false, err
	}
	if err := a.archive.markRetention(ctx, org, day); err != nil {
		return false, err
	}
	var total int64
	for i := range list {
		total += list[i].Records
	}
	if total > a.archive.o.MaxDayRecords {
		return true, a.rewrite(ctx, list)
	}
	if len(list) < 2 && !a.needFiles(list) {
		return true, nil
	}
	if len(list) > maxInputs {
		return false, a.merge(ctx, list[:maxInputs], TierDay, day)
	}
	return true, a.merge(ctx, list, TierDay, day)
}

// rewrite writes a file for each segment of a day that remains divided into hours.
func (a compactor) rewrite(ctx context.Context, list []Manifest) error {
	for i := range list {
		if !a.archive.needsFile(&list[i]) {
			continue // batches are merged with their hours, which have separate marks
		}
		if err := a.merge(ctx, list[i:i+1], list[i].Tier, list[i].Hour); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the objects of segments that were merged long enough ago.
func (a compactor) sweep(ctx context.Context) error {
	q := store.Query{Partition: dueRows(), From: "G#", To: fmt.Sprintf("G#%014d", a.now.Add(-gonePeriod).UnixMilli())}
	for {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("segment: sweep: %w", err)
		}
		for _, row := range page.Rows {
			for text := range strings.SplitSeq(row.Item.String("left"), "\n") {
				if text == "" {
					continue
				}
				part := strings.Split(text, "/")
				if len(part) != 4 {
					return fmt.Errorf("segment: sweep: a note with %d parts", len(part))
				}
				hour, err := strconv.ParseInt(part[2], 10, 64)
				if err != nil {
					return fmt.Errorf("segment: sweep: %w", err)
				}
				m := Manifest{Org: row.Item.String("org"), Name: part[0], blobs: part[1], Hour: hour, bodies: part[3] == "true"}
				if err := a.archive.objects.drop(ctx, &m, true); err != nil {
					return err
				}
			}
			if err := a.archive.table.Delete(ctx, row.Key); err != nil {
				return fmt.Errorf("segment: sweep: %w", err)
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}
