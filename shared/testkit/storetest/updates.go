package storetest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"gateway/shared/store"
)

func testUpdates(t *testing.T, s *suite) {
	at, in := store.At, store.In
	type sets = []store.Assign
	type adds = []store.Increment
	set := func(p store.Path, v store.Value) store.Assign { return store.Assign{Path: p, Value: v} }
	plus := func(p store.Path, by int64) store.Increment { return store.Increment{Path: p, By: by} }
	start := store.Item{"s": "text", "n": int64(10), "m": store.Map{"a": int64(1), "b": "two"}}
	cases := map[string]struct {
		before store.Item // nil means no row
		update store.Update
		after  store.Item
		err    error
	}{
		"makes the row": {nil, store.Update{Set: sets{set(at("s"), "x")}, Add: adds{plus(at("n"), 3)}},
			store.Item{"s": "x", "n": int64(3)}, nil},
		"makes an empty row by expiry": {nil, store.Update{Expires: later()}, store.Item{}, nil},
		"sets every type": {start, store.Update{Set: sets{set(at("s"), []byte("b")), set(at("n"), true), set(at("m"), "flat"), set(at("new"), int64(-4))}},
			store.Item{"s": []byte("b"), "n": true, "m": "flat", "new": int64(-4)}, nil},
		"sets a whole map": {start, store.Update{Set: sets{set(at("m"), store.Map{"c": false}), set(at("e"), store.Map{})}},
			store.Item{"s": "text", "n": int64(10), "m": store.Map{"c": false}, "e": store.Map{}}, nil},
		"sets in a map": {start, store.Update{Set: sets{set(in("m", "a"), "one"), set(in("m", "c.d#e"), []byte{1})}},
			store.Item{"s": "text", "n": int64(10), "m": store.Map{"a": "one", "b": "two", "c.d#e": []byte{1}}}, nil},
		"adds": {start, store.Update{Add: adds{plus(at("n"), -15), plus(at("k"), 7), plus(in("m", "a"), 5), plus(in("m", "z"), -5)}},
			store.Item{"s": "text", "n": int64(-5), "k": int64(7), "m": store.Map{"a": int64(6), "b": "two", "z": int64(-5)}}, nil},
		"adds nothing": {nil, store.Update{Add: adds{plus(at("n"), 0)}}, store.Item{"n": int64(0)}, nil},
		"adds to the bounds": {store.Item{"a": int64(math.MaxInt64 - 5), "b": int64(math.MinInt64 + 5)},
			store.Update{Add: adds{plus(at("a"), 5), plus(at("b"), -5), plus(at("c"), math.MinInt64), plus(at("d"), math.MaxInt64)}},
			store.Item{"a": int64(math.MaxInt64), "b": int64(math.MinInt64), "c": int64(math.MinInt64), "d": int64(math.MaxInt64)}, nil},
		"removes": {start, store.Update{Remove: []store.Path{at("s"), at("gone"), in("m", "a"), in("m", "gone")}},
			store.Item{"n": int64(10), "m": store.Map{"b": "two"}}, nil},
		"removes a whole map": {start, store.Update{Remove: []store.Path{at("m")}}, store.Item{"s": "text", "n": int64(10)}, nil},
		"all at once": {start, store.Update{Set: sets{set(in("m", "b"), "2")}, Add: adds{plus(in("m", "a"), 1), plus(at("n"), 1)}, Remove: []store.Path{at("s")}},
			store.Item{"n": int64(11), "m": store.Map{"a": int64(2), "b": "2"}}, nil},
		"names that are words of the expression language": {store.Item{"set": "1", "value": store.Map{"and": int64(1)}},
			store.Update{Set: sets{set(at("if_not_exists"), "2")}, Add: adds{plus(in("value", "and"), 1)}, Remove: []store.Path{at("set")}},
			store.Item{"if_not_exists": "2", "value": store.Map{"and": int64(2)}}, nil},

		"set without the map":          {store.Item{"n": int64(1)}, store.Update{Set: sets{set(in("m", "a"), "1")}}, nil, store.ErrNoMap},
		"add without the map":          {store.Item{"n": int64(1)}, store.Update{Add: adds{plus(in("m", "a"), 1)}}, nil, store.ErrNoMap},
		"set without the row":          {nil, store.Update{Set: sets{set(in("m", "a"), "1")}}, nil, store.ErrNoMap},
		"set in what is not a map":     {start, store.Update{Set: sets{set(in("s", "a"), "1")}}, nil, store.ErrNoMap},
		"add to a text":                {start, store.Update{Add: adds{plus(at("s"), 1)}}, nil, store.ErrInvalid},
		"add to a map":                 {start, store.Update{Add: adds{plus(at("m"), 1)}}, nil, store.ErrInvalid},
		"add to a text in a map":       {start, store.Update{Add: adds{plus(in("m", "b"), 1)}}, nil, store.ErrInvalid},
		"add above int64":              {start, store.Update{Add: adds{plus(at("n"), math.MaxInt64-9)}}, nil, store.ErrInvalid},
		"add below int64":              {store.Item{"n": int64(-2)}, store.Update{Add: adds{plus(at("n"), math.MinInt64+1)}}, nil, store.ErrInvalid},
		"add above int64 in a map":     {start, store.Update{Add: adds{plus(in("m", "a"), math.MaxInt64)}}, nil, store.ErrInvalid},
		"the same path twice":          {start, store.Update{Set: sets{set(at("s"), "1")}, Add: adds{plus(at("s"), 1)}}, nil, store.ErrInvalid},
		"a map and a path in it":       {start, store.Update{Set: sets{set(at("m"), store.Map{}), set(in("m", "a"), "1")}}, nil, store.ErrInvalid},
		"nothing":                      {start, store.Update{}, nil, store.ErrInvalid},
		"a map in a map":               {start, store.Update{Set: sets{set(in("m", "a"), store.Map{})}}, nil, store.ErrInvalid},
		"a refusal leaves all of it":   {start, store.Update{Set: sets{set(at("s"), "new")}, Add: adds{plus(at("m"), 1)}}, nil, store.ErrInvalid},
		"a reserved name":              {start, store.Update{Set: sets{set(at("pk"), "1")}}, nil, store.ErrInvalid},
		"the expiry as an attribute":   {start, store.Update{Set: sets{set(at("expires"), int64(1))}}, nil, store.ErrInvalid},
		"many paths, two of them meet": {start, store.Update{Add: manyAdds(20), Set: sets{set(at("c7"), "1")}}, nil, store.ErrInvalid},
		"many paths, one whole map":    {start, store.Update{Add: append(manyAdds(20), store.Increment{Path: in("m", "a"), By: 1}), Remove: []store.Path{at("m")}}, nil, store.ErrInvalid},
	}
	for name, c := range cases {
		s.run(name, func(s *suite) {
			key := newKey()
			if c.before != nil {
				s.put(key, c.before)
			}
			c.update.Key = key
			before, after, err := s.table().Update(s.ctx, c.update)
			if c.err != nil {
				s.is(err, c.err)
				s.equal("row", c.before, s.get(key))
				s.is(s.s.Transact(s.ctx, store.Action{Table: store.Control, Update: &c.update}), c.err)
				s.equal("row after the transaction", c.before, s.get(key))
				return
			}
			s.ok(err)
			s.equal("before", c.before, before)
			s.equal("after", c.after, after)
			s.equal("row", c.after, s.get(key))
		})
	}
	s.unless(RemoveNeedsNoMap, "removing without the map", func(s *suite) {
		key := newKey()
		s.put(key, store.Item{"n": int64(1)})
		_, _, err := s.table().Update(s.ctx, store.Update{Key: key, Remove: []store.Path{in("m", "a")}})
		s.is(err, store.ErrNoMap)
		s.equal("row", store.Item{"n": int64(1)}, s.get(key))
	})
	s.unless(RemoveMakesRow, "removing from an absent row does not make it", func(s *suite) {
		key := newKey()
		u := store.Update{Key: key, Remove: []store.Path{at("s")}}
		before, after, err := s.table().Update(s.ctx, u)
		s.ok(err)
		if before != nil || after != nil {
			s.t.Errorf("before %v and after %v", before, after)
		}
		s.ok(s.s.Transact(s.ctx, store.Action{Table: store.Control, Update: &u}))
		s.equal("row", store.Item(nil), s.get(key))
	})
	s.unless(EmptyIsAbsent, "a row without attributes is there", func(s *suite) {
		key := newKey()
		s.put(key, nil)
		before, after, err := s.table().Update(s.ctx, store.Update{Key: key, Remove: []store.Path{at("s")}})
		s.ok(err)
		s.equal("before", store.Item{}, before)
		s.equal("after", store.Item{}, after)
	})
	s.run("many counters in one row", func(s *suite) {
		key := newKey()
		want := store.Item{}
		for i := range 60 {
			want[fmt.Sprintf("c%d", i)] = int64(2 * i)
		}
		for range 2 {
			_, _, err := s.table().Update(s.ctx, store.Update{Key: key, Add: manyAdds(60)})
			s.ok(err)
		}
		s.equal("row", want, s.get(key))
	})
}

func manyAdds(n int) []store.Increment {
	adds := make([]store.Increment, n)
	for i := range adds {
		adds[i] = store.Increment{Path: store.At(fmt.Sprintf("c%d", i)), By: int64(i)}
	}
	return adds
}

func testConditions(t *testing.T, s *suite) {
	at, in := store.At, store.In
	item := store.Item{
		"s": "beta", "n": int64(5), "t": true, "b": []byte{1, 2}, "é": "accent",
		"m": store.Map{"s": "x", "n": int64(-1), "b": []byte{9}},
	}
	holds := map[string][]store.Cond{
		"present":                       {store.IfPresent()},
		"has text":                      {store.IfHas(at("s"))},
		"has map":                       {store.IfHas(at("m"))},
		"has in map":                    {store.IfHas(in("m", "s"))},
		"misses":                        {store.IfMissing(at("x"))},
		"misses in map":                 {store.IfMissing(in("m", "x"))},
		"misses in no map":              {store.IfMissing(in("x", "y"))},
		"misses in what is not a map":   {store.IfMissing(in("s", "y"))},
		"equal text":                    {store.IfEqual(at("s"), "beta")},
		"equal number":                  {store.IfEqual(at("n"), int64(5))},
		"equal boolean":                 {store.IfEqual(at("t"), true)},
		"equal bytes":                   {store.IfEqual(at("b"), []byte{1, 2})},
		"equal, odd name":               {store.IfEqual(at("é"), "accent")},
		"equal in map":                  {store.IfEqual(in("m", "n"), int64(-1))},
		"equal bytes in map":            {store.IfEqual(in("m", "b"), []byte{9})},
		"at least, equal":               {store.IfAtLeast(at("n"), int64(5))},
		"at least, above":               {store.IfAtLeast(at("n"), int64(-6))},
		"at least, text":                {store.IfAtLeast(at("s"), "alpha")},
		"at most, equal":                {store.IfAtMost(at("n"), int64(5))},
		"at most, below":                {store.IfAtMost(at("n"), int64(10))},
		"at most, text":                 {store.IfAtMost(at("s"), "beta0")},
		"at most in map":                {store.IfAtMost(in("m", "n"), int64(0))},
		"all of several":                {store.IfPresent(), store.IfHas(at("s")), store.IfEqual(at("n"), int64(5)), store.IfAtMost(at("n"), int64(9)), store.IfMissing(at("q"))},
		"the same path twice":           {store.IfAtLeast(at("n"), int64(1)), store.IfAtMost(at("n"), int64(9))},
		"text is compared by its bytes": {store.IfAtLeast(at("é"), "Zebra")},
	}
	fails := map[string][]store.Cond{
		"absent":                           {store.IfAbsent()},
		"misses":                           {store.IfMissing(at("s"))},
		"misses in map":                    {store.IfMissing(in("m", "s"))},
		"has":                              {store.IfHas(at("x"))},
		"has in no map":                    {store.IfHas(in("x", "y"))},
		"equal":                            {store.IfEqual(at("s"), "Beta")},
		"equal, other type":                {store.IfEqual(at("n"), "5")},
		"equal, bytes and text":            {store.IfEqual(at("b"), "\x01\x02")},
		"equal, absent":                    {store.IfEqual(at("x"), "")},
		"equal, absent and false":          {store.IfEqual(at("x"), false)},
		"equal, map":                       {store.IfEqual(at("m"), "x")},
		"at least":                         {store.IfAtLeast(at("n"), int64(6))},
		"at least, absent":                 {store.IfAtLeast(at("x"), int64(-6))},
		"at least, other type":             {store.IfAtLeast(at("s"), int64(0))},
		"at most":                          {store.IfAtMost(at("n"), int64(4))},
		"at most, absent":                  {store.IfAtMost(at("x"), int64(6))},
		"at most, text as a number":        {store.IfAtMost(at("n"), "9")},
		"at most in no map":                {store.IfAtMost(in("x", "y"), int64(9))},
		"one of several":                   {store.IfPresent(), store.IfHas(at("s")), store.IfEqual(at("n"), int64(6))},
		"numbers are not compared as text": {store.IfAtLeast(at("n"), int64(10))},
	}
	key := newKey()
	s.put(key, item)
	set := func(conds []store.Cond) store.Update {
		return store.Update{Key: key, Set: []store.Assign{{Path: at("n"), Value: int64(5)}}, If: conds}
	}
	for name, conds := range holds {
		s.run("holds: "+name, func(s *suite) {
			s.ok(s.table().Put(s.ctx, store.Row{Key: key, Item: item}, conds...))
			before, after, err := s.table().Update(s.ctx, set(conds))
			s.ok(err)
			s.equal("before", item, before)
			s.equal("after", item, after)
			s.ok(s.s.Transact(s.ctx, store.Action{Table: store.Control, Check: &store.Check{Key: key, If: conds}}))
		})
	}
	for name, conds := range fails {
		s.run("fails: "+name, func(s *suite) {
			s.condition(s.table().Put(s.ctx, store.Row{Key: key}, conds...), 0, key, item)
			before, after, err := s.table().Update(s.ctx, set(conds))
			s.condition(err, 0, key, item)
			if before != nil || after != nil {
				s.t.Errorf("a refused update returned %v and %v", before, after)
			}
			s.condition(s.table().Delete(s.ctx, key, conds...), 0, key, item)
			err = s.s.Transact(s.ctx, store.Action{Table: store.Control, Check: &store.Check{Key: key, If: conds}})
			s.condition(err, 0, key, item)
		})
	}
	s.equal("row", item, s.get(key))
	s.run("a condition is tested before the paths", func(s *suite) {
		_, _, err := s.table().Update(s.ctx, store.Update{
			Key: key, Set: []store.Assign{{Path: in("nomap", "k"), Value: "v"}}, If: []store.Cond{store.IfAbsent()},
		})
		s.condition(err, 0, key, item)
	})
	s.run("the current item is complete", func(s *suite) {
		large := newKey()
		big := store.Item{"b": bytes.Repeat([]byte{7}, 300<<10)}
		s.put(large, big)
		s.condition(s.table().Put(s.ctx, store.Row{Key: large}, store.IfAbsent()), 0, large, big)
	})
}
