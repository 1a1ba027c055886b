package sqlite

import (
	"context"
	"fmt"

	"gateway/shared/store"
)

// table is one of the store's tables.
type table struct {
	s     *Store
	name  store.TableName
	index int // in store.TableNames; -1: unknown
}

func (t *table) known() error {
	if t.index < 0 {
		return fmt.Errorf("%w: unknown table %q", store.ErrInvalid, t.name)
	}
	return nil
}

func (t *table) expired(expires int64) bool {
	return expires != 0 && expires <= t.s.clock().Unix()
}

func (t *table) Get(ctx context.Context, key store.Key, _ bool) (store.Item, bool, error) {
	if err := t.known(); err != nil {
		return nil, false, err
	}
	if err := key.Validate(); err != nil {
		return nil, false, err
	}
	c, err := t.s.reader(ctx)
	if err != nil {
		return nil, false, err
	}
	defer t.s.release(c)
	item, expires, ok, err := c.get(t.index, key)
	if err != nil || !ok || t.expired(expires) {
		return nil, false, err
	}
	return item, true, nil
}

func (t *table) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	if err := t.known(); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
	}
	c, err := t.s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer t.s.release(c)
	found := make(map[store.Key]store.Item, len(keys))
	err = c.together(len(keys), func() error {
		for _, k := range keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			item, expires, ok, err := c.get(t.index, k)
			if err != nil {
				return err
			}
			if ok && !t.expired(expires) {
				found[k] = item
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (t *table) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := t.known(); err != nil {
		return err
	}
	if err := row.Validate(); err != nil {
		return err
	}
	if err := store.ValidateConds(conds); err != nil {
		return err
	}
	return t.s.do(ctx, &op{actions: []store.Action{{Table: t.name, Put: &store.Put{Row: row, If: conds}}}})
}

func (t *table) PutMany(ctx context.Context, rows []store.Row) error {
	if err := t.known(); err != nil {
		return err
	}
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			return err
		}
	}
	for len(rows) > 0 {
		o, size := &op{}, 0
		for i := 0; i < len(rows) && i < store.MaxBatch; i++ {
			size += rows[i].Item.Size(rows[i].Key)
			if i > 0 && size > store.MaxTransactBytes {
				break
			}
			o.actions = append(o.actions, store.Action{Table: t.name, Put: &store.Put{Row: rows[i]}})
		}
		if err := t.s.do(ctx, o); err != nil {
			return err
		}
		rows = rows[len(o.actions):]
	}
	return nil
}

func (t *table) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	if err := t.known(); err != nil {
		return nil, nil, err
	}
	if err := u.Validate(); err != nil {
		return nil, nil, err
	}
	o := &op{actions: []store.Action{{Table: t.name, Update: &u}}}
	if err := t.s.do(ctx, o); err != nil {
		return nil, nil, err
	}
	return o.before, o.after, nil
}

func (t *table) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	if err := t.known(); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	if err := store.ValidateConds(conds); err != nil {
		return err
	}
	return t.s.do(ctx, &op{actions: []store.Action{{Table: t.name, Delete: &store.Delete{Key: key, If: conds}}}})
}

// Transact does all actions or none.
func (s *Store) Transact(ctx context.Context, actions ...store.Action) error {
	if err := store.ValidateActions(actions); err != nil {
		return err
	}
	if len(actions) == 0 {
		return ctx.Err()
	}
	return s.do(ctx, &op{actions: actions})
}
