package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"gateway/shared/store"
)

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "gateway.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// spendRow is a row as the ledger stores it: three numbers and a small map.
func spendRow(n int) store.Row {
	return store.Row{
		Key: store.Scope{Org: "default", Workspace: "default"}.Partition("KEY").Key(fmt.Sprintf("%08d", n)),
		Item: store.Item{
			"available": int64(1 << 50), "spent": int64(0), "limit": int64(1 << 50),
			"open": store.Map{"abcdefgh": int64(123456), "ijklmnop": int64(234567)},
		},
	}
}

// reserve is an update as the ledger makes it: a condition and a nested write.
func reserve(key store.Key) store.Update {
	return store.Update{
		Key: key,
		Add: []store.Increment{{Path: store.At("available"), By: -1000}},
		Set: []store.Assign{{Path: store.In("open", "qrstuvwx"), Value: int64(1000)}},
		If:  []store.Cond{store.IfAtLeast(store.At("available"), int64(1000))},
	}
}

func seed(b *testing.B, s *Store, rows int) []store.Key {
	b.Helper()
	keys := make([]store.Key, rows)
	all := make([]store.Row, rows)
	for i := range all {
		all[i] = spendRow(i)
		keys[i] = all[i].Key
	}
	if err := s.Table(store.Spend).PutMany(b.Context(), all); err != nil {
		b.Fatal(err)
	}
	return keys
}

func BenchmarkGet(b *testing.B) {
	s := openBench(b)
	keys, t, ctx := seed(b, s, 1000), s.Table(store.Spend), context.Background()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok, err := t.Get(ctx, keys[i%len(keys)], true); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	b.Run("one writer", func(b *testing.B) {
		s := openBench(b)
		keys, t, ctx := seed(b, s, 1000), s.Table(store.Spend), context.Background()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, _, err := t.Update(ctx, reserve(keys[i%len(keys)])); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64 writers", func(b *testing.B) {
		s := openBench(b)
		keys, t, ctx := seed(b, s, 1000), s.Table(store.Spend), context.Background()
		var n atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(32) // times GOMAXPROCS, 2 on the machine of reference
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, _, err := t.Update(ctx, reserve(keys[n.Add(1)%int64(len(keys))])); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkTransact(b *testing.B) {
	s := openBench(b)
	keys, ctx := seed(b, s, 1000), context.Background()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		actions := make([]store.Action, 0, 5)
		for j := range 5 {
			u := reserve(keys[(i*5+j)%len(keys)])
			actions = append(actions, store.Action{Table: store.Spend, Update: &u})
		}
		if err := s.Transact(ctx, actions...); err != nil {
			b.Fatal(err)
		}
	}
}
