package storetest

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"gateway/shared/store"
)

func testValues(t *testing.T, s *suite) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	cases := map[string]struct{ in, out store.Item }{
		"nothing":         {store.Item{}, store.Item{}},
		"a nil item":      {nil, store.Item{}},
		"each type":       {store.Item{"s": "text", "b": []byte("bytes"), "i": int64(42), "t": true, "f": false}, nil},
		"empty values":    {store.Item{"s": "", "b": []byte{}, "m": store.Map{}}, nil},
		"nil bytes, maps": {store.Item{"b": []byte(nil), "m": store.Map(nil)}, store.Item{"b": []byte{}, "m": store.Map{}}},
		"every byte":      {store.Item{"b": every}, nil},
		"int64 bounds":    {store.Item{"min": int64(math.MinInt64), "max": int64(math.MaxInt64), "zero": int64(0)}, nil},
		"exact numbers":   {store.Item{"a": int64(1<<53 + 1), "b": int64(-1<<53 - 1), "c": int64(1000000000000000000)}, nil},
		"unicode":         {store.Item{"ключ": "日本語 🦊 \u0000 \u2028 \uffff e\u0301", "m": store.Map{"🗝": "Ω"}}, nil},
		"odd names":       {store.Item{"a.b": "dot", "a#b": "hash", ":x": "colon", "size": "reserved", "0": "digit", " ": "space"}, nil},
		"a map of each":   {store.Item{"m": store.Map{"s": "x", "b": every, "i": int64(-1), "t": true, "f": false, "a.b": ""}}, nil},
		"like json":       {store.Item{"s": `{"a":"<b>&\"\\"}` + "\n\t\u007f"}, nil},
	}
	for name, c := range cases {
		s.run(name, func(s *suite) {
			key := newKey()
			s.put(key, c.in)
			if c.out == nil {
				c.out = c.in
			}
			s.equal("item", c.out, s.get(key))
		})
	}
}

func testKeys(t *testing.T, s *suite) {
	s.run("any text", func(s *suite) {
		for _, org := range []string{"a", "ö", "日本", "a b", "a/b?c=%23", "🦊", "a\x01b", "\"quoted\"", "a\x00b", strings.Repeat("x", 1900)} {
			p := store.Scope{Org: org + partition().String()[:20]}.Partition("X")
			for _, sk := range []string{"a", "ö", "日本", "a b", "a%b", "🦊", "a\x01b", "'; --", "a\x00b", strings.Repeat("y", 1000)} {
				s.put(p.Key(sk), store.Item{"v": sk})
			}
			rows, count := s.all(store.Query{Partition: p})
			s.equal("rows", 10, count)
			for _, r := range rows {
				s.equal("row", r.Key.SK(), r.Item.String("v"))
				s.equal("by key", r.Item, s.get(r.Key))
			}
		}
	})
	s.run("the bounds", func(s *suite) {
		base := partition()
		pk := base.Key(strings.Repeat("p", store.MaxPartitionKeyBytes-len(base.String())-1))
		long := store.RawKey(base.String()+"#"+pk.SK(), strings.Repeat("s", store.MaxSortKeyBytes))
		s.put(long, store.Item{"v": "x"})
		s.equal("longest key", store.Item{"v": "x"}, s.get(long))
		tooLong := []store.Key{
			store.RawKey(long.PK()+"p", "s"), store.RawKey(base.String(), long.SK()+"s"),
		}
		for _, k := range tooLong {
			s.is(s.table().Put(s.ctx, store.Row{Key: k}), store.ErrInvalid)
		}
	})
	s.run("tables and partitions are apart", func(s *suite) {
		p, q := partition(), partition()
		for i, name := range store.TableNames {
			s.ok(s.s.Table(name).Put(s.ctx, store.Row{Key: p.Key("k"), Item: store.Item{"n": int64(i)}}))
		}
		for i, name := range store.TableNames {
			item, _, err := s.s.Table(name).Get(s.ctx, p.Key("k"), true)
			s.ok(err)
			s.equal(string(name), store.Item{"n": int64(i)}, item)
			if _, ok, err := s.s.Table(name).Get(s.ctx, q.Key("k"), true); ok || err != nil {
				t.Errorf("a row of another partition: %v, %v", ok, err)
			}
		}
	})
}

func testReads(t *testing.T, s *suite) {
	s.run("an absent row", func(s *suite) {
		for _, consistent := range []bool{true, false} {
			item, ok, err := s.table().Get(s.ctx, newKey(), consistent)
			if item != nil || ok || err != nil {
				s.t.Errorf("got %v, %v, %v", item, ok, err)
			}
		}
	})
	s.run("an eventual read", func(s *suite) {
		key := newKey()
		s.put(key, store.Item{"n": int64(1)})
		for range 100 { // a replica may lag
			item, ok, err := s.table().Get(s.ctx, key, false)
			s.ok(err)
			if ok {
				s.equal("item", store.Item{"n": int64(1)}, item)
				return
			}
		}
		s.t.Error("the row never came")
	})
	s.run("many", func(s *suite) {
		p := partition()
		rows := numbered(p, 150) // more than one batch
		s.ok(s.table().PutMany(s.ctx, rows))
		want, keys := map[store.Key]store.Item{}, []store.Key{p.Key("absent")}
		for _, r := range rows {
			want[r.Key] = r.Item
			keys = append(keys, r.Key, r.Key) // requested twice
		}
		got, err := s.table().GetMany(s.ctx, keys)
		s.ok(err)
		s.equal("rows", want, got)
	})
	s.run("none of many", func(s *suite) {
		got, err := s.table().GetMany(s.ctx, nil)
		s.ok(err)
		s.equal("rows", map[store.Key]store.Item{}, got)
	})
	s.run("many large", func(s *suite) {
		p := partition()
		large := bytes.Repeat([]byte("x"), 350<<10)
		var keys []store.Key
		for i := range 50 { // 17 MB: more than one response of DynamoDB
			keys = append(keys, p.Key("L", string(rune('A'+i))))
			s.put(keys[i], store.Item{"b": large})
		}
		got, err := s.table().GetMany(s.ctx, keys)
		s.ok(err)
		for _, k := range keys {
			if !bytes.Equal(got[k].Bytes("b"), large) {
				s.t.Errorf("row %s is missing or damaged", k.SK())
			}
		}
	})
}

func testPuts(t *testing.T, s *suite) {
	s.run("replaces the whole row", func(s *suite) {
		key := newKey()
		s.ok(s.table().Put(s.ctx, store.Row{Key: key, Item: store.Item{"a": "1", "b": "2"}, Expires: later()}))
		s.put(key, store.Item{"b": "3"})
		s.equal("item", store.Item{"b": "3"}, s.get(key))
		page, err := s.table().Query(s.ctx, store.Query{Partition: key.Partition()})
		s.ok(err)
		s.equal("row", []store.Row{{Key: key, Item: store.Item{"b": "3"}}}, page.Rows)
	})
	s.run("a failed condition leaves the row", func(s *suite) {
		key := newKey()
		err := s.table().Put(s.ctx, store.Row{Key: key, Item: store.Item{"a": "1"}}, store.IfPresent())
		s.condition(err, 0, key, nil)
		s.ok(s.table().Put(s.ctx, store.Row{Key: key, Item: store.Item{"a": "1"}}, store.IfAbsent()))
		err = s.table().Put(s.ctx, store.Row{Key: key, Item: store.Item{"a": "2"}}, store.IfAbsent())
		s.condition(err, 0, key, store.Item{"a": "1"})
		s.equal("item", store.Item{"a": "1"}, s.get(key))
	})
	s.run("many", func(s *suite) {
		p := partition()
		rows := numbered(p, 260)
		rows = append(rows, store.Row{Key: rows[3].Key, Item: store.Item{"n": int64(-3)}, Expires: later()})
		s.ok(s.table().PutMany(s.ctx, rows))
		want := rows[:260]
		want[3] = rows[260] // of two rows with one key the last one stays
		got, _ := s.all(store.Query{Partition: p})
		s.equal("rows", want, got)
		s.ok(s.table().PutMany(s.ctx, nil))
	})
}

func testDeletes(t *testing.T, s *suite) {
	key := newKey()
	s.ok(s.table().Delete(s.ctx, key)) // absent
	s.condition(s.table().Delete(s.ctx, key, store.IfPresent()), 0, key, nil)
	s.put(key, store.Item{"v": int64(1)})
	err := s.table().Delete(s.ctx, key, store.IfEqual(store.At("v"), int64(2)))
	s.condition(err, 0, key, store.Item{"v": int64(1)})
	s.equal("item", store.Item{"v": int64(1)}, s.get(key))
	s.ok(s.table().Delete(s.ctx, key, store.IfEqual(store.At("v"), int64(1))))
	s.equal("item", store.Item(nil), s.get(key))
}

// testExpiry only tests what holds both before and after a background deletion.
func testExpiry(t *testing.T, s *suite) {
	s.run("a row past its expiry is not read", func(s *suite) {
		p := partition()
		live, dead := p.Key("a"), p.Key("b")
		s.ok(s.table().PutMany(s.ctx, []store.Row{
			{Key: live, Item: store.Item{"v": "live"}, Expires: later()},
			{Key: dead, Item: store.Item{"v": "dead"}, Expires: earlier()},
			{Key: p.Key("c"), Item: store.Item{"v": "for ever"}},
		}))
		s.equal("live", store.Item{"v": "live"}, s.get(live))
		s.equal("dead", store.Item(nil), s.get(dead))
		got, err := s.table().GetMany(s.ctx, []store.Key{live, dead})
		s.ok(err)
		s.equal("many", map[store.Key]store.Item{live: {"v": "live"}}, got)
		rows, _ := s.all(store.Query{Partition: p})
		s.equal("query", []store.Row{
			{Key: live, Item: store.Item{"v": "live"}, Expires: later()},
			{Key: p.Key("c"), Item: store.Item{"v": "for ever"}},
		}, rows)
		_, count := s.all(store.Query{Partition: p, CountOnly: true})
		s.equal("count", 2, count)
	})
	s.run("expired rows do not use up a limit", func(s *suite) {
		p := partition()
		rows := numbered(p, 30)
		for i := range rows {
			if i%3 != 0 {
				rows[i].Expires = earlier()
			}
		}
		s.ok(s.table().PutMany(s.ctx, rows))
		for _, reverse := range []bool{false, true} {
			page, err := s.table().Query(s.ctx, store.Query{Partition: p, Limit: 7, Reverse: reverse})
			s.ok(err)
			s.equal("rows", 7, len(page.Rows))
			page, err = s.table().Query(s.ctx, store.Query{Partition: p, Limit: 7, Reverse: reverse, CountOnly: true})
			s.ok(err)
			s.equal("count", 7, page.Count)
		}
	})
	s.run("a page of expired rows alone is passed over", func(s *suite) {
		p := partition()
		rows := numbered(p, 16)
		for i := range rows[:15] {
			rows[i].Item["b"], rows[i].Expires = make([]byte, 100<<10), earlier()
		}
		s.ok(s.table().PutMany(s.ctx, rows))
		page, err := s.table().Query(s.ctx, store.Query{Partition: p})
		s.ok(err)
		s.equal("rows", rows[15:], page.Rows)
	})
	s.run("an update sets, keeps and moves it", func(s *suite) {
		key := newKey()
		bump := func(u store.Update) {
			s.t.Helper()
			u.Key, u.Add = key, []store.Increment{{Path: store.At("n"), By: 1}}
			_, _, err := s.table().Update(s.ctx, u)
			s.ok(err)
		}
		row := func() store.Row {
			s.t.Helper()
			rows, _ := s.all(store.Query{Partition: key.Partition()})
			if len(rows) != 1 {
				s.t.Fatalf("%d rows", len(rows))
			}
			return rows[0]
		}
		bump(store.Update{Expires: later()})
		s.equal("set", store.Row{Key: key, Item: store.Item{"n": int64(1)}, Expires: later()}, row())
		bump(store.Update{})
		s.equal("kept", store.Row{Key: key, Item: store.Item{"n": int64(2)}, Expires: later()}, row())
		bump(store.Update{Expires: later().AddDate(1, 0, 0)})
		s.equal("moved", store.Row{Key: key, Item: store.Item{"n": int64(3)}, Expires: later().AddDate(1, 0, 0)}, row())
		_, after, err := s.table().Update(s.ctx, store.Update{Key: key, Expires: earlier()})
		s.ok(err)
		s.equal("after", store.Item{"n": int64(3)}, after)
		s.equal("expired", store.Item(nil), s.get(key))
	})
}
