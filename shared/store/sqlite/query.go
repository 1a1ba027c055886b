package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"gateway/shared/store"
)

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
