package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"gateway/shared/store"
)

func testQueries(t *testing.T, s *suite) {
	p := partition()
	order := []string{"A#1", "A#10", "A#2", "B", "B#", "B#1", "B#é", "B#日", "B#🦊", "C", "a", "é", "日"}
	for _, i := range []int{5, 2, 8, 0, 12, 3, 10, 1, 7, 4, 11, 6, 9} {
		s.put(p.Key(order[i]), store.Item{"v": order[i]})
	}
	s.put(partition().Key("A#1"), store.Item{"v": "another partition"})
	between := func(from, to string) []string {
		var keys []string
		for _, k := range order {
			if k >= from && (to == "" || k <= to) {
				keys = append(keys, k)
			}
		}
		return keys
	}
	cases := map[string]struct {
		query store.Query
		want  []string
	}{
		"all, by bytes":            {store.Query{}, order},
		"prefix":                   {store.Query{Prefix: "B#"}, []string{"B#", "B#1", "B#é", "B#日", "B#🦊"}},
		"prefix, no row":           {store.Query{Prefix: "B##"}, nil},
		"prefix, one row":          {store.Query{Prefix: "日"}, []string{"日"}},
		"from":                     {store.Query{From: "B#1"}, between("B#1", "")},
		"to":                       {store.Query{To: "B#1"}, between("", "B#1")},
		"from and to":              {store.Query{From: "A#2", To: "C"}, between("A#2", "C")},
		"from and to, no keys":     {store.Query{From: "A#11", To: "BB"}, between("A#11", "BB")},
		"one key":                  {store.Query{From: "C", To: "C"}, []string{"C"}},
		"to before from":           {store.Query{From: "C", To: "A"}, nil},
		"after":                    {store.Query{After: "B#"}, between("B#1", "")},
		"after what is not a key":  {store.Query{After: "B#0"}, between("B#1", "")},
		"after the last":           {store.Query{After: "日"}, nil},
		"after in a prefix":        {store.Query{Prefix: "B#", After: "B#é"}, []string{"B#日", "B#🦊"}},
		"after before a prefix":    {store.Query{Prefix: "B#", After: "A"}, []string{"B#", "B#1", "B#é", "B#日", "B#🦊"}},
		"after behind a prefix":    {store.Query{Prefix: "B#", After: "C"}, nil},
		"after before a range":     {store.Query{From: "B", To: "B#1", After: "A"}, []string{"B", "B#", "B#1"}},
		"after behind a range":     {store.Query{From: "B", To: "B#1", After: "B#é"}, nil},
		"after at a range's end":   {store.Query{From: "B", To: "B#1", After: "B#1"}, nil},
		"after at a range's start": {store.Query{From: "B", To: "B#1", After: "B"}, []string{"B#", "B#1"}},
		"eventual":                 {store.Query{Prefix: "A#", Eventual: true}, []string{"A#1", "A#10", "A#2"}},
	}
	for name, c := range cases {
		s.run(name, func(s *suite) {
			c.query.Partition = p
			for _, limit := range []int{0, 1, 3, 100} {
				c.query.Limit = limit
				rows, count := s.all(c.query)
				s.equal(fmt.Sprintf("keys, limit %d", limit), fmt.Sprint(c.want), fmt.Sprint(sortKeys(store.Page{Rows: rows})))
				s.equal("count", len(c.want), count)
				for _, r := range rows {
					s.equal("item", store.Item{"v": r.Key.SK()}, r.Item)
					s.equal("partition", p.String(), r.Key.PK())
				}
			}
		})
		s.run(name+", reversed", func(s *suite) {
			c.query.Partition, c.query.Reverse = p, true
			want := slices.Clone(c.want)
			if c.query.After != "" { // now the rows before it
				want = nil
				base := c.query
				base.After, base.Reverse, base.Limit = "", false, 0
				rows, _ := s.all(base)
				for _, r := range rows {
					if r.Key.SK() < c.query.After {
						want = append(want, r.Key.SK())
					}
				}
			}
			slices.Reverse(want)
			for _, limit := range []int{0, 1, 3, 100} {
				c.query.Limit = limit
				rows, count := s.all(c.query)
				s.equal(fmt.Sprintf("keys, limit %d", limit), fmt.Sprint(want), fmt.Sprint(sortKeys(store.Page{Rows: rows})))
				s.equal("count", len(want), count)
			}
		})
		s.run(name+", counted", func(s *suite) {
			c.query.Partition, c.query.CountOnly = p, true
			c.query.Reverse = false
			for _, limit := range []int{0, 1, 4} {
				c.query.Limit = limit
				rows, count := s.all(c.query)
				s.equal("count", len(c.want), count)
				s.equal("rows", 0, len(rows))
			}
		})
	}
	s.unless(PrefixIgnoresCase, "a prefix has upper and lower case", func(s *suite) {
		for prefix, want := range map[string][]string{"A": {"A#1", "A#10", "A#2"}, "a": {"a"}} {
			rows, _ := s.all(store.Query{Partition: p, Prefix: prefix})
			s.equal("keys", want, sortKeys(store.Page{Rows: rows}))
		}
	})
	s.run("a page holds at most the limit", func(s *suite) {
		page, err := s.table().Query(s.ctx, store.Query{Partition: p, Limit: 3})
		s.ok(err)
		s.equal("keys", order[:3], sortKeys(page))
		s.equal("next", order[2], page.Next)
		page, err = s.table().Query(s.ctx, store.Query{Partition: p, Limit: 3, Reverse: true, After: "C"})
		s.ok(err)
		s.equal("keys", []string{"B#🦊", "B#日", "B#é"}, sortKeys(page))
	})
	s.run("an empty partition", func(s *suite) {
		page, err := s.table().Query(s.ctx, store.Query{Partition: partition()})
		s.ok(err)
		s.equal("page", store.Page{}, page)
	})
	s.run("more than a page of 1 MB", func(s *suite) {
		p := partition()
		rows := numbered(p, 25)
		for i := range rows {
			rows[i].Item["b"] = bytes.Repeat([]byte{byte(i)}, 100<<10)
		}
		s.ok(s.table().PutMany(s.ctx, rows))
		for _, reverse := range []bool{false, true} {
			for _, limit := range []int{0, 20} {
				page, err := s.table().Query(s.ctx, store.Query{Partition: p, Limit: limit, Reverse: reverse})
				s.ok(err)
				if n := len(page.Rows); n < 9 || n > 11 || page.Next != page.Rows[n-1].Key.SK() {
					s.t.Errorf("the first page has %d rows of 100 KB and the next is %q", n, page.Next)
				}
			}
			got, _ := s.all(store.Query{Partition: p, Reverse: reverse})
			if reverse {
				slices.Reverse(got)
			}
			for i := range got { // a diff of megabytes would take seconds
				if i < len(rows) && (got[i].Key != rows[i].Key || !bytes.Equal(got[i].Item.Bytes("b"), rows[i].Item.Bytes("b"))) {
					s.t.Errorf("row %d is %s, or damaged", i, got[i].Key.SK())
				}
			}
			s.equal("rows", len(rows), len(got))
		}
		page, err := s.table().Query(s.ctx, store.Query{Partition: p, CountOnly: true})
		s.ok(err)
		if page.Count < 9 || page.Count > 11 || page.Next == "" {
			s.t.Errorf("the first page counts %d rows of 100 KB and the next is %q", page.Count, page.Next)
		}
		_, count := s.all(store.Query{Partition: p, CountOnly: true})
		s.equal("count", 25, count)
	})
	s.run("a row that fills a page", func(s *suite) {
		p := partition()
		for i := range 4 {
			s.put(p.Key(fmt.Sprint(i)), store.Item{"b": make([]byte, 399<<10)})
		}
		rows, _ := s.all(store.Query{Partition: p})
		s.equal("rows", 4, len(rows))
	})
}
