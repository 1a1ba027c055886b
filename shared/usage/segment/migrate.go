package segment

import (
	"cmp"
	"context"
	"fmt"

	"gateway/shared/store"
)

// Early versions marked days for retention before organizations had their own rows. An
// organization with a last day from that time is found by the marks of its days.
const (
	migratePage = 1000
	migrateRows = 10 * migratePage // marks scanned per call, approximately
)

// migrationKey is the row with the progress through these marks.
func migrationKey() store.Key { return retentionRows().Key("A", "notes") }

// migrate scans the marks of days once, a part in each call, and writes the rows of their
// organizations. Newer marks are written together with that row.
func (a thinner) migrate(ctx context.Context, most int) error {
	at, _, err := a.archive.table.Get(ctx, migrationKey(), false)
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	if at.Bool("done") {
		return nil
	}
	found := make(map[string]struct{})
	sort, after := cmp.Or(at.String("sort"), "B"), at.String("after")
	for left := most; left > 0; left -= migratePage {
		page, err := a.archive.table.Query(ctx, store.Query{Partition: dueRows(), Prefix: sort + "#", After: after, Limit: min(left, migratePage)})
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		var rows []store.Row
		for _, row := range page.Rows {
			org := row.Item.String("org")
			if _, known := found[org]; !known {
				found[org] = struct{}{}
				rows = append(rows, orgRow(org))
			}
		}
		if len(rows) > 0 {
			if err := a.archive.table.PutMany(ctx, rows); err != nil {
				return fmt.Errorf("segment: retention: %w", err)
			}
		}
		if after = page.Next; after != "" {
			continue
		}
		if sort == "R" {
			return a.noteAdopted(ctx, store.Item{"done": true})
		}
		sort = "R"
	}
	return a.noteAdopted(ctx, store.Item{"sort": sort, "after": after})
}

func (a thinner) noteAdopted(ctx context.Context, at store.Item) error {
	if err := a.archive.table.Put(ctx, store.Row{Key: migrationKey(), Item: at}); err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	return nil
}
