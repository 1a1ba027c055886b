package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gateway/shared/store"
)

func testLimits(t *testing.T, s *suite) {
	p := partition()
	fits, over := strings.Repeat("x", store.MaxItemBytes-200), strings.Repeat("x", store.MaxItemBytes)
	s.run("an item of 400 KB", func(s *suite) {
		key := p.Key("put")
		s.put(key, store.Item{"v": fits})
		s.is(s.table().Put(s.ctx, store.Row{Key: key, Item: store.Item{"v": over}}), store.ErrTooLarge)
		s.is(s.table().PutMany(s.ctx, []store.Row{{Key: key, Item: store.Item{"v": over}}}), store.ErrTooLarge)
		s.is(s.s.Transact(s.ctx, store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: key, Item: store.Item{"v": over}}}}), store.ErrTooLarge)
		s.equal("row", store.Item{"v": fits}, s.get(key))
	})
	s.run("an item that grows", func(s *suite) {
		key := p.Key("grow")
		s.put(key, store.Item{"v": fits})
		u := store.Update{Key: key, Set: []store.Assign{{Path: store.At("w"), Value: strings.Repeat("y", 1000)}}}
		_, _, err := s.table().Update(s.ctx, u)
		s.is(err, store.ErrTooLarge)
		s.is(s.s.Transact(s.ctx, store.Action{Table: store.Control, Update: &u}), store.ErrTooLarge)
		s.equal("row", store.Item{"v": fits}, s.get(key))
	})
	s.run("names count", func(s *suite) {
		item := store.Item{}
		for i := range 500 {
			item[strings.Repeat("n", 1000)+fmt.Sprint(i)] = int64(1)
		}
		s.is(s.table().Put(s.ctx, store.Row{Key: p.Key("names"), Item: item}), store.ErrTooLarge)
	})
	s.run("a transaction of 4 MB", func(s *suite) {
		var actions []store.Action
		for i := range 11 {
			actions = append(actions, store.Action{Table: store.Control, Put: &store.Put{
				Row: store.Row{Key: p.Key("t", fmt.Sprint(i)), Item: store.Item{"v": fits}},
			}})
		}
		s.is(s.s.Transact(s.ctx, actions...), store.ErrTooLarge)
		s.ok(s.s.Transact(s.ctx, actions[:9]...))
		_, count := s.all(store.Query{Partition: p, Prefix: "t#", CountOnly: true})
		s.equal("rows", 9, count)
	})
}

// testRejections has requests that are rejected before anything is sent or written.
func testRejections(t *testing.T, s *suite) {
	key := newKey()
	rows := map[string]store.Row{
		"empty partition key":   {Key: store.RawKey("", "a")},
		"empty sort key":        {Key: store.RawKey("a", "")},
		"key not UTF-8":         {Key: key.Partition().Key("a\xff")},
		"an int":                {Key: key, Item: store.Item{"v": 1}},
		"a float":               {Key: key, Item: store.Item{"v": 1.5}},
		"nil":                   {Key: key, Item: store.Item{"v": nil}},
		"a list":                {Key: key, Item: store.Item{"v": []string{"a"}}},
		"an unnamed map type":   {Key: key, Item: store.Item{"v": map[string]store.Value{}}},
		"a map in a map":        {Key: key, Item: store.Item{"v": store.Map{"a": store.Map{}}}},
		"nil in a map":          {Key: key, Item: store.Item{"v": store.Map{"a": nil}}},
		"an empty map key":      {Key: key, Item: store.Item{"v": store.Map{"": "a"}}},
		"text not UTF-8":        {Key: key, Item: store.Item{"v": "\xff"}},
		"name not UTF-8":        {Key: key, Item: store.Item{"\xff": "v"}},
		"an empty name":         {Key: key, Item: store.Item{"": "v"}},
		"the name of a key":     {Key: key, Item: store.Item{"sk": "v"}},
		"the name of expiry":    {Key: key, Item: store.Item{"expires": int64(1)}},
		"map text not UTF-8":    {Key: key, Item: store.Item{"v": store.Map{"a": "\xff"}}},
		"map key not UTF-8":     {Key: key, Item: store.Item{"v": store.Map{"\xff": "a"}}},
		"partition key too big": {Key: store.RawKey(strings.Repeat("a", 2049), "a")},
	}
	for name, row := range rows {
		s.run("put: "+name, func(s *suite) {
			s.is(s.table().Put(s.ctx, row), store.ErrInvalid)
			s.is(s.table().PutMany(s.ctx, []store.Row{{Key: key}, row}), store.ErrInvalid)
			s.is(s.s.Transact(s.ctx, store.Action{Table: store.Control, Put: &store.Put{Row: row}}), store.ErrInvalid)
		})
	}
	for _, bad := range []store.Key{{}, store.RawKey("", "a"), store.RawKey("a", "")} {
		_, _, err := s.table().Get(s.ctx, bad, true)
		s.is(err, store.ErrInvalid)
		_, err = s.table().GetMany(s.ctx, []store.Key{key, bad})
		s.is(err, store.ErrInvalid)
		s.is(s.table().Delete(s.ctx, bad), store.ErrInvalid)
		_, _, err = s.table().Update(s.ctx, store.Update{Key: bad, Expires: later()})
		s.is(err, store.ErrInvalid)
	}
	conds := map[string]store.Cond{
		"no operator":        {},
		"unknown operator":   {Op: 99, Path: store.At("a")},
		"no path":            {Op: store.Present},
		"reserved path":      store.IfHas(store.At("pk")),
		"equal to a map":     store.IfEqual(store.At("a"), store.Map{}),
		"equal to an int":    store.IfEqual(store.At("a"), 1),
		"equal to nil":       store.IfEqual(store.At("a"), nil),
		"at least a boolean": store.IfAtLeast(store.At("a"), true),
		"at most bytes":      store.IfAtMost(store.At("a"), []byte{1}),
		"text not UTF-8":     store.IfEqual(store.At("a"), "\xff"),
	}
	for name, cond := range conds {
		s.run("condition: "+name, func(s *suite) {
			s.is(s.table().Put(s.ctx, store.Row{Key: key}, cond), store.ErrInvalid)
			s.is(s.table().Delete(s.ctx, key, cond), store.ErrInvalid)
			_, _, err := s.table().Update(s.ctx, store.Update{Key: key, Expires: later(), If: []store.Cond{cond}})
			s.is(err, store.ErrInvalid)
			s.is(s.s.Transact(s.ctx, store.Action{Table: store.Control, Check: &store.Check{Key: key, If: []store.Cond{cond}}}), store.ErrInvalid)
		})
	}
	for name, q := range map[string]store.Query{
		"no partition":     {},
		"prefix and range": {Partition: key.Partition(), Prefix: "a", From: "b"},
		"negative limit":   {Partition: key.Partition(), Limit: -1},
		"not UTF-8":        {Partition: key.Partition(), Prefix: "\xff"},
	} {
		s.run("query: "+name, func(s *suite) {
			_, err := s.table().Query(s.ctx, q)
			s.is(err, store.ErrInvalid)
		})
	}
	for name, a := range map[string]store.Action{
		"nothing":                   {Table: store.Control},
		"two kinds":                 {Table: store.Control, Put: &store.Put{Row: store.Row{Key: key}}, Delete: &store.Delete{Key: key}},
		"unknown table":             {Table: "other", Put: &store.Put{Row: store.Row{Key: key}}},
		"a check without condition": {Table: store.Control, Check: &store.Check{Key: key}},
	} {
		s.run("action: "+name, func(s *suite) { s.is(s.s.Transact(s.ctx, a), store.ErrInvalid) })
	}
	s.run("an unknown table", func(s *suite) {
		other := s.s.Table("other")
		_, _, err := other.Get(s.ctx, key, true)
		s.is(err, store.ErrInvalid)
		s.is(other.Put(s.ctx, store.Row{Key: key}), store.ErrInvalid)
		_, err = other.Query(s.ctx, store.Query{Partition: key.Partition()})
		s.is(err, store.ErrInvalid)
	})
	s.equal("row after all refusals", store.Item(nil), s.get(key))
}

func testContexts(t *testing.T, s *suite) {
	key := newKey()
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	u := store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: 1}}}
	calls := map[string]func(context.Context) error{
		"get":      func(ctx context.Context) error { _, _, err := s.table().Get(ctx, key, true); return err },
		"get many": func(ctx context.Context) error { _, err := s.table().GetMany(ctx, []store.Key{key}); return err },
		"put":      func(ctx context.Context) error { return s.table().Put(ctx, store.Row{Key: key}) },
		"put many": func(ctx context.Context) error { return s.table().PutMany(ctx, []store.Row{{Key: key}}) },
		"update":   func(ctx context.Context) error { _, _, err := s.table().Update(ctx, u); return err },
		"delete":   func(ctx context.Context) error { return s.table().Delete(ctx, key) },
		"query": func(ctx context.Context) error {
			_, err := s.table().Query(ctx, store.Query{Partition: key.Partition()})
			return err
		},
		"transact": func(ctx context.Context) error {
			return s.s.Transact(ctx, store.Action{Table: store.Control, Update: &u})
		},
	}
	for name, call := range calls {
		s.run("ended before: "+name, func(s *suite) { s.is(call(ended), context.Canceled) })
	}
	s.equal("row", store.Item(nil), s.get(key))
	s.run("ended meanwhile", func(s *suite) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		done := int64(0)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		for w := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range 40 {
					if w == 0 && i == 20 {
						cancel()
					}
					err := calls["update"](ctx)
					switch {
					case err == nil:
						mu.Lock()
						done++
						mu.Unlock()
					case !errors.Is(err, context.Canceled):
						s.t.Error(err)
					}
				}
			}()
		}
		wg.Wait()
		// A canceled update may have been done, but no successful one may be lost.
		if n := s.get(key).Int("n"); n < done || n > done+8 {
			s.t.Errorf("%d updates were answered and %d done", done, n)
		}
	})
}
