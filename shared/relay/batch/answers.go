package batch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"gateway/shared/store"
)

// answerPart is the maximum size of a response in one item, before it is sealed.
const answerPart = 300 << 10

func answers(sc store.Scope, batch string) store.Partition { return sc.Partition("RUNROW", batch) }

func answerKey(sc store.Scope, batch string, line int, more ...string) store.Key {
	return answers(sc, batch).Key(append([]string{fmt.Sprintf("%09d", line)}, more...)...)
}

// Accept stores the output row of a line, unless the line has one. It reports whether the stored
// response is a success; another worker may have stored it.
func (s *Batches) Accept(ctx context.Context, sc store.Scope, batch string, line int, good bool, row []byte) (isGood bool, err error) {
	expires := s.Now().Add(answersFor)
	var token string
	for n := 1; len(row) > n*answerPart; n++ {
		if token == "" {
			var b [8]byte
			_, _ = rand.Read(b[:])
			token = hex.EncodeToString(b[:])
		}
		part := row[n*answerPart : min((n+1)*answerPart, len(row))]
		if err := s.putAnswer(ctx, sc, answerKey(sc, batch, line, token, fmt.Sprintf("%04d", n)), part, store.Item{}, expires.Unix()); err != nil {
			return false, err
		}
	}
	err = s.putAnswer(ctx, sc, answerKey(sc, batch, line), row[:min(answerPart, len(row))], store.Item{"good": good, "token": token}, expires.Unix(), store.IfAbsent())
	if was, there := store.AsCondition(err); there {
		isGood, _ = was.Current["good"].(bool)
		return isGood, nil
	}
	return good, err
}

func (s *Batches) putAnswer(ctx context.Context, sc store.Scope, k store.Key, part []byte, item store.Item, expires int64, conds ...store.Cond) error {
	sealed, err := s.Sealer.Seal(ctx, binding(sc, k), part)
	if err != nil {
		return err
	}
	item["sealed"] = sealed
	return s.table().Put(ctx, store.Row{Key: k, Item: item, Expires: unix(expires)}, conds...)
}

// Accepted returns the lines that have a response, and whether it is a success.
func (s *Batches) Accepted(ctx context.Context, sc store.Scope, batch string, lines []int) (map[int]bool, error) {
	keys := make([]store.Key, len(lines))
	for i, n := range lines {
		keys[i] = answerKey(sc, batch, n)
	}
	items, err := s.table().GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	done := make(map[int]bool, len(items))
	for i, k := range keys {
		if item, ok := items[k]; ok {
			done[lines[i]], _ = item["good"].(bool)
		}
	}
	return done, nil
}

// Rows reads the accepted rows that succeeded, or those that failed, in the order of their
// lines.
func (s *Batches) Rows(ctx context.Context, sc store.Scope, batch string, good bool) io.Reader {
	return &rowReader{ctx: ctx, s: s, sc: sc, good: good, q: store.Query{Partition: answers(sc, batch)}}
}

type rowReader struct {
	ctx   context.Context
	s     *Batches
	sc    store.Scope
	good  bool
	q     store.Query
	page  []store.Row
	over  bool
	parts string // key prefix of the further parts of the current row
	out   []byte
}

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if len(r.page) == 0 {
			if r.over {
				return 0, io.EOF
			}
			page, err := r.s.table().Query(r.ctx, r.q)
			if err != nil {
				return 0, err
			}
			r.page, r.q.After = page.Rows, page.Next
			r.over = page.Next == ""
			continue
		}
		row := r.page[0]
		r.page = r.page[1:]
		sk := row.Key.SK()
		if !strings.Contains(sk, "#") {
			r.parts = ""
			if is, _ := row.Item["good"].(bool); is != r.good {
				continue
			}
			if token := row.Item.String("token"); token != "" {
				r.parts = sk + "#" + token + "#"
			}
		} else if r.parts == "" || !strings.HasPrefix(sk, r.parts) {
			continue // of a response that was not accepted
		}
		var err error
		if r.out, err = r.s.Sealer.Open(r.ctx, binding(r.sc, row.Key), row.Item.Bytes("sealed")); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}
