package rotation

import (
	"context"
	"time"

	"gateway/shared/provider"
	"gateway/shared/store"
)

// row is the stored state of a credential, in Unix milliseconds.
type row struct{ refused, tested int64 }

// keepFor is the lifetime of a row. A credential that was rejected and never tested may be called
// once after it.
const keepFor = 365 * 24 * time.Hour

func partition(sc store.Scope, integration string) store.Partition {
	return sc.Partition("ROTATION", integration)
}

func read(ctx context.Context, table store.Table, at store.Partition) (map[string]row, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	all := make(map[string]row)
	q := store.Query{Partition: at, Limit: 100}
	page, err := table.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, one := range page.Rows {
		all[one.Key.SK()] = row{refused: one.Item.Int("refused"), tested: one.Item.Int("tested")}
	}
	return all, nil
}

func write(ctx context.Context, table store.Table, at store.Partition, id string, s row, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return table.Put(ctx, store.Row{Key: at.Key(id), Item: store.Item{"refused": s.refused, "tested": s.tested}, Expires: now.Add(keepFor)})
}

// Refusals returns when credentials of an integration were refused, by their label. Others are
// missing.
func Refusals(ctx context.Context, table store.Table, sc store.Scope, integration string, list []provider.StoredCredential) (map[string]time.Time, error) {
	rows, err := read(ctx, table, partition(sc, integration))
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Time)
	for i := range list {
		if s := rows[list[i].ID]; s.refused > s.tested {
			out[list[i].Label] = time.UnixMilli(s.refused)
		}
	}
	return out, nil
}

// Tested stores the result of a test of a credential at the time now: whether its provider
// refused it.
func Tested(ctx context.Context, table store.Table, sc store.Scope, integration, id string, refused bool, now time.Time) error {
	s := row{tested: now.UnixMilli()}
	if refused {
		s = row{refused: now.UnixMilli()}
	}
	return write(ctx, table, partition(sc, integration), id, s, now)
}
