package ownership

import (
	"context"

	"gateway/shared/store"
)

// Order is a video that a provider makes in its own time, as it was ordered.
type Order struct {
	Model, Size string
	Seconds     int64
}

func orderKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("ORDER", place).Key(id)
}

// NoteOrder stores an order below each of the places where its provider knows the id.
func NoteOrder(ctx context.Context, o *Owners, sc store.Scope, places []string, id string, v Order) error {
	for _, place := range places {
		err := o.Table.Put(ctx, store.Row{
			Key:     orderKey(sc, place, id),
			Item:    store.Item{"model": v.Model, "size": v.Size, "seconds": v.Seconds},
			Expires: o.Now().Add(ownedFor),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// FindOrder returns what NoteOrder has stored at the first of the places that has it; ok is false
// if none has.
func FindOrder(ctx context.Context, o *Owners, sc store.Scope, places []string, id string) (v Order, ok bool, err error) {
	for _, place := range places {
		item, there, err := o.Table.Get(ctx, orderKey(sc, place, id), true)
		if err != nil {
			return v, false, err
		}
		if there {
			return Order{item.String("model"), item.String("size"), item.Int("seconds")}, true, nil
		}
	}
	return v, false, nil
}
