package cache

import (
	"context"
	"testing"
	"time"

	"gateway/shared/store"
)

// stopping is a store that does something before it writes a row.
type stopping struct {
	store.Store
	before func()
}

func (s *stopping) Table(name store.TableName) store.Table {
	return &stoppingTable{s.Store.Table(name), s}
}

type stoppingTable struct {
	store.Table
	of *stopping
}

func (t *stoppingTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if f := t.of.before; f != nil {
		t.of.before = nil
		f()
	}
	return t.Table.Put(ctx, row, conds...)
}

// A vector is found although its bucket left memory while the vector was added, and
// although the bucket may have been read again meanwhile, without the vector.
func TestAVectorIsFoundThoughItsBucketLeftMemory(t *testing.T) {
	t.Parallel()
	bucket, v := Bucket{here, "b"}, []float32{1, 2}
	for name, meanwhile := range map[string]func(t *testing.T, b *bench, f *Flat){
		"evicted": func(t *testing.T, b *bench, f *Flat) { crowdOut(t, b, f, bucket) },
		"evicted and read again": func(t *testing.T, b *bench, f *Flat) {
			crowdOut(t, b, f, bucket)
			look(t, f, bucket, v, 0)
		},
		"evicted twice and read again": func(t *testing.T, b *bench, f *Flat) {
			for range 2 {
				crowdOut(t, b, f, bucket)
				look(t, f, bucket, v, 0)
			}
		},
		"read again and evicted": func(t *testing.T, b *bench, f *Flat) {
			crowdOut(t, b, f, bucket)
			look(t, f, bucket, v, 0)
			crowdOut(t, b, f, bucket)
		},
		"too old": func(t *testing.T, b *bench, f *Flat) {
			b.clock.advance(time.Minute)
			look(t, f, bucket, v, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := onSQLite(t)
			s := &stopping{Store: b.store}
			f := NewFlat(FlatOptions{Store: s, Sealer: b.sealer, Now: b.clock.now, MaxBytes: 3900, Reload: 50 * time.Second})
			s.before = func() { meanwhile(t, b, f) }
			if err := f.Add(t.Context(), bucket, Vector{"mine", v, b.clock.now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			look(t, f, bucket, v, 1)
		})
	}
}

// crowdOut fills the memory with another bucket.
func crowdOut(t *testing.T, b *bench, f *Flat, gone Bucket) {
	t.Helper()
	b.clock.advance(time.Second)
	large := make([]float32, 3500)
	large[0] = 1
	other := Bucket{here, "other-" + b.clock.now().String()}
	if err := f.Add(t.Context(), other, Vector{"v", large, b.clock.now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buckets[gone] != nil {
		t.Error("the bucket is still in memory")
	}
}

func look(t *testing.T, f *Flat, bucket Bucket, v []float32, want int) {
	t.Helper()
	found, err := f.Nearest(t.Context(), bucket, v, 0.9, 1)
	if err != nil || len(found) != want {
		t.Errorf("found %v, %v; want %d", found, err, want)
	}
}
