package segment

import (
	"cmp"
	"context"
	"fmt"

	"gateway/shared/store"
)

// Days were noted for retention before organisations had rows of their own. An organisation
// whose last day is from that time is found by the notes of its days.
const (
	adoptPage = 1000
	adoptRows = 10 * adoptPage // how many notes one call looks through at most, about
)

// adopted is the key of the row that holds the progress through these notes.
func adopted() store.Key { return keepers().Key("A", "notes") }

// adopt goes through the notes of days once, a part in each call, and writes the rows of
// their organisations. A note that is written now comes together with that row.
func (a thinning) adopt(ctx context.Context, most int) error {
	at, _, err := a.archive.table.Get(ctx, adopted(), false)
	if err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	if at.Bool("done") {
		return nil
	}
	found := make(map[string]struct{})
	sort, after := cmp.Or(at.String("sort"), "B"), at.String("after")
	for left := most; left > 0; left -= adoptPage {
		page, err := a.archive.table.Query(ctx, store.Query{Partition: dues(), Prefix: sort + "#", After: after, Limit: min(left, adoptPage)})
		if err != nil {
			return fmt.Errorf("segment: retention: %w", err)
		}
		var rows []store.Row
		for _, row := range page.Rows {
			org := row.Item.String("org")
			if _, known := found[org]; !known {
				found[org] = struct{}{}
				rows = append(rows, keeper(org))
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

func (a thinning) noteAdopted(ctx context.Context, at store.Item) error {
	if err := a.archive.table.Put(ctx, store.Row{Key: adopted(), Item: at}); err != nil {
		return fmt.Errorf("segment: retention: %w", err)
	}
	return nil
}
