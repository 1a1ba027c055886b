package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gateway/shared/store"
)

func testTransactions(t *testing.T, s *suite) {
	put := func(table store.TableName, key store.Key, item store.Item, conds ...store.Cond) store.Action {
		return store.Action{Table: table, Put: &store.Put{Row: store.Row{Key: key, Item: item}, If: conds}}
	}
	s.run("each kind, across tables", func(s *suite) {
		p := partition()
		a, b, c, d := p.Key("a"), p.Key("b"), p.Key("c"), p.Key("d")
		keys := s.s.Table(store.Keys)
		s.put(b, store.Item{"n": int64(1), "m": store.Map{"k": "v"}})
		s.ok(keys.Put(s.ctx, store.Row{Key: c, Item: store.Item{"x": "y"}}))
		s.put(d, store.Item{"state": "ready"})
		s.ok(s.s.Transact(s.ctx,
			put(store.Control, a, store.Item{"new": true}, store.IfAbsent()),
			store.Action{Table: store.Control, Update: &store.Update{
				Key: b, Add: []store.Increment{{Path: store.At("n"), By: 2}}, Remove: []store.Path{store.In("m", "k")},
				Set: []store.Assign{{Path: store.In("m", "l"), Value: "w"}}, If: []store.Cond{store.IfEqual(store.At("n"), int64(1))},
			}},
			store.Action{Table: store.Keys, Delete: &store.Delete{Key: c, If: []store.Cond{store.IfPresent()}}},
			store.Action{Table: store.Control, Check: &store.Check{Key: d, If: []store.Cond{store.IfEqual(store.At("state"), "ready")}}},
			put(store.Keys, a, store.Item{"same key": "another table"}),
		))
		s.equal("put", store.Item{"new": true}, s.get(a))
		s.equal("updated", store.Item{"n": int64(3), "m": store.Map{"l": "w"}}, s.get(b))
		s.equal("checked", store.Item{"state": "ready"}, s.get(d))
		_, ok, err := keys.Get(s.ctx, c, true)
		s.ok(err)
		s.equal("deleted row is there", false, ok)
		item, _, err := keys.Get(s.ctx, a, true)
		s.ok(err)
		s.equal("other table", store.Item{"same key": "another table"}, item)
	})
	s.run("none", func(s *suite) { s.ok(s.s.Transact(s.ctx)) })
	s.run("100 actions, 101 are refused", func(s *suite) {
		p := partition()
		rows := numbered(p, 101)
		var actions []store.Action
		for _, r := range rows {
			actions = append(actions, put(store.Control, r.Key, r.Item, store.IfAbsent()))
		}
		s.is(s.s.Transact(s.ctx, actions...), store.ErrInvalid)
		s.ok(s.s.Transact(s.ctx, actions[:100]...))
		got, _ := s.all(store.Query{Partition: p})
		s.equal("rows", rows[:100], got)
	})
	s.run("a failed condition names its action and undoes all", func(s *suite) {
		p := partition()
		rows := numbered(p, 100)
		s.ok(s.table().Put(s.ctx, store.Row{Key: rows[57].Key, Item: store.Item{"was": "here", "m": store.Map{"k": int64(1)}}}))
		for _, kind := range []string{"put", "update", "delete", "check"} {
			var actions []store.Action
			for i, r := range rows {
				a := put(store.Control, r.Key, r.Item)
				if i == 57 {
					conds := []store.Cond{store.IfEqual(store.At("was"), "gone")}
					switch kind {
					case "put":
						a.Put.If = conds
					case "update":
						a = store.Action{Table: store.Control, Update: &store.Update{Key: r.Key, Add: []store.Increment{{Path: store.At("n"), By: 1}}, If: conds}}
					case "delete":
						a = store.Action{Table: store.Control, Delete: &store.Delete{Key: r.Key, If: conds}}
					case "check":
						a = store.Action{Table: store.Control, Check: &store.Check{Key: r.Key, If: conds}}
					}
				}
				actions = append(actions, a)
			}
			err := s.s.Transact(s.ctx, actions...)
			s.condition(err, 57, rows[57].Key, store.Item{"was": "here", "m": store.Map{"k": int64(1)}})
			_, count := s.all(store.Query{Partition: p, CountOnly: true})
			s.equal("rows after "+kind, 1, count)
		}
	})
	s.run("a failed condition on an absent row has no item", func(s *suite) {
		key, other := newKey(), newKey()
		err := s.s.Transact(s.ctx, put(store.Control, other, nil),
			store.Action{Table: store.Control, Check: &store.Check{Key: key, If: []store.Cond{store.IfPresent()}}})
		s.condition(err, 1, key, nil)
		s.equal("other row", store.Item(nil), s.get(other))
	})
	s.run("the first of several failures is named", func(s *suite) {
		a, b, c := newKey(), newKey(), newKey()
		s.put(b, store.Item{"v": "b"})
		s.put(c, store.Item{"v": "c"})
		err := s.s.Transact(s.ctx, put(store.Control, a, nil),
			put(store.Control, b, nil, store.IfAbsent()), put(store.Control, c, nil, store.IfAbsent()))
		s.condition(err, 1, b, store.Item{"v": "b"})
	})
	s.run("a missing map undoes all", func(s *suite) {
		a, b := newKey(), newKey()
		s.put(b, store.Item{"v": "b"})
		err := s.s.Transact(s.ctx, put(store.Control, a, nil), store.Action{Table: store.Control, Update: &store.Update{
			Key: b, Set: []store.Assign{{Path: store.In("m", "k"), Value: "v"}},
		}})
		s.is(err, store.ErrNoMap)
		s.equal("first row", store.Item(nil), s.get(a))
	})
	s.run("the same item twice", func(s *suite) {
		a := newKey()
		err := s.s.Transact(s.ctx, put(store.Control, a, nil),
			store.Action{Table: store.Control, Check: &store.Check{Key: a, If: []store.Cond{store.IfAbsent()}}})
		s.is(err, store.ErrDuplicate)
		s.equal("row", store.Item(nil), s.get(a))
	})
	s.run("expiry is written", func(s *suite) {
		p := partition()
		s.ok(s.s.Transact(s.ctx,
			store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: p.Key("a"), Expires: later()}}},
			store.Action{Table: store.Control, Update: &store.Update{Key: p.Key("b"), Expires: later()}},
			store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: p.Key("c"), Expires: earlier()}}},
		))
		rows, _ := s.all(store.Query{Partition: p})
		s.equal("rows", []store.Row{
			{Key: p.Key("a"), Item: store.Item{}, Expires: later()}, {Key: p.Key("b"), Item: store.Item{}, Expires: later()},
		}, rows)
	})
}

// testContention makes many goroutines change the same rows: nothing is lost, nothing is
// done twice, and no reader sees half a transaction.
func testContention(t *testing.T, s *suite) {
	const workers, each = 16, 12
	parallel := func(s *suite, f func(worker, turn int) error) {
		s.t.Helper()
		var wg sync.WaitGroup
		errs := make(chan error, workers)
		for w := range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range each {
					if err := f(w, i); err != nil {
						errs <- fmt.Errorf("worker %d: %w", w, err)
						return
					}
				}
			}()
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			s.t.Error(err)
		}
	}
	s.run("counters", func(s *suite) {
		key := newKey()
		var mu sync.Mutex
		seen := map[int64]bool{}
		parallel(s, func(int, int) error {
			before, after, err := s.table().Update(s.ctx, store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: 1}}})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if n := after.Int("n"); n != before.Int("n")+1 || seen[n] {
				return fmt.Errorf("before %v, after %v", before, after)
			}
			seen[after.Int("n")] = true
			return nil
		})
		s.equal("sum", store.Item{"n": int64(workers * each)}, s.get(key))
	})
	s.run("a limit of 100", func(s *suite) {
		key := newKey()
		s.put(key, store.Item{"left": int64(100), "taken": int64(0)})
		var mu sync.Mutex
		passed := 0
		parallel(s, func(int, int) error {
			_, _, err := s.table().Update(s.ctx, store.Update{
				Key: key, Add: []store.Increment{{Path: store.At("left"), By: -1}, {Path: store.At("taken"), By: 1}},
				If: []store.Cond{store.IfAtLeast(store.At("left"), int64(1))},
			})
			if _, refused := store.AsCondition(err); refused {
				return nil
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
			return err
		})
		s.equal("passed", 100, passed)
		s.equal("row", store.Item{"left": int64(0), "taken": int64(100)}, s.get(key))
	})
	s.run("transfers", func(s *suite) {
		p := partition()
		for i := range 4 {
			s.put(p.Key(fmt.Sprint(i)), store.Item{"n": int64(1000)})
		}
		done := make(chan struct{})
		var reader sync.WaitGroup
		reader.Add(1)
		go func() { // a query is one snapshot only in SQLite, so this only runs reads beside writes
			defer reader.Done()
			for {
				select {
				case <-done:
					return
				default:
					if _, err := s.table().Query(s.ctx, store.Query{Partition: p}); err != nil {
						s.t.Error(err)
						return
					}
				}
			}
		}()
		parallel(s, func(w, i int) error {
			from, to := p.Key(fmt.Sprint(w%4)), p.Key(fmt.Sprint((w+i%3+1)%4))
			return retryContended(s.ctx, func() error {
				return s.s.Transact(s.ctx, add(from, -1), add(to, 1))
			})
		})
		close(done)
		reader.Wait()
		rows, _ := s.all(store.Query{Partition: p})
		sum := int64(0)
		for _, r := range rows {
			sum += r.Item.Int("n")
		}
		s.equal("sum", int64(4000), sum)
	})
}

func add(key store.Key, by int64) store.Action {
	return store.Action{Table: store.Control, Update: &store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: by}}}}
}

// retryContended repeats a transaction when another one was faster. The store has its own
// retries, but so many rivals may outlast them.
func retryContended(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, store.ErrContended) || ctx.Err() != nil {
			return err
		}
	}
}
