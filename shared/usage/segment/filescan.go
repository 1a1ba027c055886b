package segment

import (
	"context"
	"fmt"
	"time"

	"gateway/shared/store"
)

// A segment is invisible to other tools while its records are in the store. With
// Options.Files no segment should stay invisible for long: merges of past hours write
// files. A scan of all manifests finds segments that were merged before the option was
// set.
const (
	scanRows     = 1000           // maximum of manifests and organizations per call
	scanInterval = 24 * time.Hour // from the end of one scan to the next
	scanGrace    = 48 * time.Hour // this long after its hour, no other merge will include a segment
)

// needsFile reports whether a segment's records should be in a file but are not.
func (a *Archive) needsFile(m *Manifest) bool {
	return a.o.Files && m.Tier >= TierHour && !m.InFile()
}

// fileScan scans the manifests of all organizations, a part in each call.
type fileScan struct {
	archive *Archive
	rows    int // approximate number per call
}

// scanKey is the row with the progress of a scan.
func scanKey() store.Key { return dueRows().Key("F", "look") }

// scan continues after the last call and marks the segments without a file.
func (a fileScan) scan(ctx context.Context, now time.Time) error {
	if !a.archive.o.Files {
		return nil
	}
	item, _, err := a.archive.table.Get(ctx, scanKey(), false)
	if err != nil {
		return fmt.Errorf("segment: look: %w", err)
	}
	if now.UnixMilli() < item.Int("rest") {
		return nil
	}
	next, err := a.part(ctx, item.String("org"), item.String("after"), now)
	if err != nil {
		return err
	}
	if err := a.archive.table.Put(ctx, store.Row{Key: scanKey(), Item: next}); err != nil {
		return fmt.Errorf("segment: look: %w", err)
	}
	return nil
}

// part scans organizations starting with org, and the manifests of org after the key
// after.
func (a fileScan) part(ctx context.Context, org, after string, now time.Time) (next store.Item, err error) {
	orgs := store.Query{Partition: retentionRows(), From: retentionRows().Key("O", org).SK(), To: retentionRows().Key("O", "~").SK(), Limit: a.rows}
	for left := a.rows; ; {
		page, err := a.archive.table.Query(ctx, orgs)
		if err != nil {
			return nil, fmt.Errorf("segment: look: %w", err)
		}
		for _, row := range page.Rows {
			at := row.Item.String("org")
			if at != org {
				org, after = at, ""
			}
			if after, left, err = a.ofOrg(ctx, org, after, left, now); err != nil {
				return nil, err
			}
			if left <= 0 {
				return store.Item{"org": org, "after": after}, nil
			}
		}
		if page.Next == "" {
			return store.Item{"rest": now.Add(scanInterval).UnixMilli()}, nil
		}
		orgs.After = page.Next
	}
}

// ofOrg scans the manifests of an organization; behind is the key at which it stopped.
func (a fileScan) ofOrg(ctx context.Context, org, after string, left int, now time.Time) (behind string, rest int, err error) {
	q := store.Query{Partition: manifests(org), From: hourKey(0), To: hourKey(maxHour), After: after, Limit: left, Eventual: true}
	noted := ""
	for left > 0 {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return "", 0, fmt.Errorf("segment: look: %w", err)
		}
		for _, row := range page.Rows {
			q.After = row.Key.SK()
			m := manifestOf(org, row.Item)
			if m.InFile() || now.Before(time.Unix((m.Hour+1)*hourSeconds, 0).Add(scanGrace)) {
				continue
			}
			sort := "H" // the hour's mark creates one for its day later
			if m.Tier == TierDay {
				sort = "D"
			}
			due := sort + hourKey(m.Hour)
			if due == noted {
				continue
			}
			if err := a.archive.markDue(ctx, sort, org, m.Hour); err != nil {
				return "", 0, err
			}
			noted = due
		}
		left -= len(page.Rows) + 1
		if page.Next == "" {
			return q.After, left, nil
		}
		q.After, q.Limit = page.Next, max(left, 1)
	}
	return q.After, left, nil
}
