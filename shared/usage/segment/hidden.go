package segment

import (
	"context"
	"fmt"
	"time"

	"gateway/shared/store"
)

// A segment is hidden from other tools while its records are in the store. With
// Options.Files no segment should be hidden for long: merges of hours that are over write
// files. Segments that were merged before the option was set are found by looking at all
// manifests.
const (
	lookRows  = 1000           // manifests and organisations in one call, at most
	lookRest  = 24 * time.Hour // from the end of one look to the next
	lookGrace = 48 * time.Hour // so long after its hour, nothing else will merge a segment
)

// hides tells whether a segment's records should be in a file, and are not.
func (a *Archive) hides(m *Manifest) bool {
	return a.o.Files && m.Tier >= TierHour && !m.InFile()
}

// looking goes through the manifests of all organisations, a part in each call.
type looking struct {
	archive *Archive
	rows    int // how many in one call at most, about
}

// looked is the key of the row that holds the progress of a look.
func looked() store.Key { return dues().Key("F", "look") }

// look continues where the last call ended, and makes notes for the hidden segments that it
// finds.
func (a looking) look(ctx context.Context, now time.Time) error {
	if !a.archive.o.Files {
		return nil
	}
	item, _, err := a.archive.table.Get(ctx, looked(), false)
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
	if err := a.archive.table.Put(ctx, store.Row{Key: looked(), Item: next}); err != nil {
		return fmt.Errorf("segment: look: %w", err)
	}
	return nil
}

// part looks at organisations from org on; in org it looks at the manifests after after.
func (a looking) part(ctx context.Context, org, after string, now time.Time) (next store.Item, err error) {
	orgs := store.Query{Partition: keepers(), From: keepers().Key("O", org).SK(), To: keepers().Key("O", "~").SK(), Limit: a.rows}
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
			return store.Item{"rest": now.Add(lookRest).UnixMilli()}, nil
		}
		orgs.After = page.Next
	}
}

// ofOrg looks at the manifests of an organisation; behind is where it ended.
func (a looking) ofOrg(ctx context.Context, org, after string, left int, now time.Time) (behind string, rest int, err error) {
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
			if m.InFile() || now.Before(time.Unix((m.Hour+1)*hourSeconds, 0).Add(lookGrace)) {
				continue
			}
			sort := "H" // an hour's note makes a note for its day later
			if m.Tier == TierDay {
				sort = "D"
			}
			due := sort + hourKey(m.Hour)
			if due == noted {
				continue
			}
			if err := a.archive.noteDue(ctx, sort, org, m.Hour); err != nil {
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
