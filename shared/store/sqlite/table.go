package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"gateway/shared/store"
)

// table is one of the store's tables.
type table struct {
	s     *Store
	name  store.TableName
	index int       // in store.TableNames; -1: unknown
	cache *rowCache // nil if all rows are in the database
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
	if t.cache != nil {
		if err := t.s.usable(ctx); err != nil {
			return nil, false, err
		}
		if item, ok, cached := t.fromCache(key); cached {
			return item, ok, nil
		}
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

// Peek returns the bytes under a key of a map attribute of a row, nil if there are none;
// known is false if the row is not in memory. Expiry is not checked.
func (t *table) Peek(key store.Key, path store.Path) (b []byte, known bool) {
	if t.cache == nil {
		return nil, false
	}
	t.cache.mu.Lock()
	defer t.cache.mu.Unlock()
	row := t.cache.rows[cacheKey{t.index, key}]
	if row == nil {
		return nil, false
	}
	b, _ = row.item.Map(path.Attr)[path.Key].([]byte)
	return b, true
}

// fromCache returns a row from memory; cached is false if the database must be read.
func (t *table) fromCache(key store.Key) (item store.Item, ok, cached bool) {
	item, expires, cached := t.cache.get(t.index, key)
	if item == nil || t.expired(expires) {
		return nil, false, cached
	}
	return item, true, cached
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
	if err := t.s.usable(ctx); err != nil {
		return nil, err
	}
	found := make(map[store.Key]store.Item, len(keys))
	if t.cache != nil {
		stored := make([]store.Key, 0, len(keys))
		for _, k := range keys {
			item, ok, cached := t.fromCache(k)
			if ok {
				found[k] = item
			}
			if !cached {
				stored = append(stored, k)
			}
		}
		if keys = stored; len(keys) == 0 {
			return found, nil
		}
	}
	c, err := t.s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer t.s.release(c)
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
	return t.do(ctx, &op{actions: []store.Action{{Table: t.name, Put: &store.Put{Row: row, If: conds}}}})
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
		if err := t.do(ctx, o); err != nil {
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
	if t.cache != nil {
		if before, after, ok, err := t.cache.update(ctx, t.index, &u); ok {
			return before, after, err
		}
	}
	return t.updateStored(ctx, u)
}

// updateStored makes an update in the database. It is apart from Update, in which u does
// not leave the stack.
func (t *table) updateStored(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	o := &op{actions: []store.Action{{Table: t.name, Update: &u}}}
	if err := t.s.do(ctx, o); err != nil {
		return nil, nil, err
	}
	before, after = u.Result(o.before, o.after)
	return before, after, nil
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
	return t.do(ctx, &op{actions: []store.Action{{Table: t.name, Delete: &store.Delete{Key: key, If: conds}}}})
}

// do runs an operation of the table in the database.
func (t *table) do(ctx context.Context, o *op) error {
	if t.cache != nil {
		return t.cache.transact(ctx, o)
	}
	return t.s.do(ctx, o)
}

// Transact does all actions or none.
func (s *Store) Transact(ctx context.Context, actions ...store.Action) error {
	if err := store.ValidateActions(actions); err != nil {
		return err
	}
	if len(actions) == 0 {
		return ctx.Err()
	}
	for i := range actions {
		if s.cache != nil && cachedTable(tableIndex(actions[i].Table)) {
			return s.cache.transact(ctx, &op{actions: actions})
		}
	}
	return s.do(ctx, &op{actions: actions})
}

// Query reads one page. As in DynamoDB, a page that ends because of Limit has a
// Next even when no row follows.
func (t *table) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := t.known(); err != nil {
		return store.Page{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	from, to := bounds(&q)
	if to != nil && string(from) >= string(to) {
		return store.Page{}, ctx.Err()
	}
	if t.cache != nil {
		if err := t.s.usable(ctx); err != nil {
			return store.Page{}, err
		}
		if err := t.cache.flushPartition(t.index, q.Partition); err != nil {
			return store.Page{}, err
		}
	}
	c, err := t.s.reader(ctx)
	if err != nil {
		return store.Page{}, err
	}
	defer t.s.release(c)
	if to == nil {
		to = []byte{0xff} // above all UTF-8
	}
	rows, err := c.query(t.index, pageStatement(&q), []byte(q.Partition.String()), from, to, t.s.clock().Unix())
	if err != nil {
		return store.Page{}, err
	}
	page, err := readPage(ctx, &q, rows, c.dest[:])
	clear(c.dest[:])
	if closing := rows.Close(); err == nil && closing != nil {
		err = wrap(closing)
	}
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}

func pageStatement(q *store.Query) statement {
	switch {
	case q.CountOnly && q.Reverse:
		return stmtCountDescending
	case q.CountOnly:
		return stmtCountAscending
	case q.Reverse:
		return stmtDescending
	}
	return stmtAscending
}

// bounds are the sort keys of the query: from (inclusive) and to (exclusive, nil for none).
// After narrows them, in the query's direction.
func bounds(q *store.Query) (from, to []byte) {
	switch {
	case q.Prefix != "":
		// The last byte of UTF-8 text is never 0xff.
		from, to = []byte(q.Prefix), []byte(q.Prefix)
		to[len(to)-1]++
	default:
		from = []byte(q.From)
		if q.To != "" {
			to = behind(q.To)
		}
	}
	switch {
	case q.After == "":
	case q.Reverse:
		if to == nil || q.After < string(to) {
			to = []byte(q.After)
		}
	default:
		if a := behind(q.After); string(a) > string(from) {
			from = a
		}
	}
	return from, to
}

// behind returns the first key after sk.
func behind(sk string) []byte { return append([]byte(sk), 0) }

// readPage takes rows until the limit is reached or the page is full.
func readPage(ctx context.Context, q *store.Query, rows driver.Rows, dest []driver.Value) (store.Page, error) {
	var page store.Page
	dest = dest[:len(rows.Columns())]
	size, last := 0, ""
	for {
		err := rows.Next(dest)
		if errors.Is(err, io.EOF) {
			return page, nil
		}
		if err != nil {
			return page, wrap(err)
		}
		sk, _ := dest[0].([]byte)
		blob, _ := dest[1].([]byte)
		length, counted := dest[1].(int64)
		if !counted {
			length = int64(len(blob))
		}
		size += len(q.Partition.String()) + len(sk) + int(length)
		if page.Count > 0 && size > store.MaxPageBytes {
			page.Next = last
			return page, ctx.Err()
		}
		last = string(sk)
		page.Count++
		if !q.CountOnly {
			item, err := decodeItem(blob)
			if err != nil {
				return page, err
			}
			expires, _ := dest[2].(int64)
			page.Rows = append(page.Rows, store.Row{
				Key: q.Partition.Key(last), Item: item, Expires: store.FromEpoch(expires),
			})
		}
		if page.Count == q.Limit {
			page.Next = last
			return page, nil
		}
	}
}
