package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/store"
)

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestQuantisedCosinesAreNearTheTrueOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 64 + r.IntN(1536)
		a := make([]float32, n)
		b := make([]float32, n)
		near := r.Float32()
		for i := range a {
			a[i] = float32(r.NormFloat64())
			b[i] = near*a[i] + (1-near)*float32(r.NormFloat64())
		}
		qa, qb := quantise(a), quantise(b)
		got := float64(dot(qa.q, qb.q)) / (qa.norm * qb.norm)
		if want := cosine(a, b); math.Abs(got-want) > 0.01 {
			t.Fatalf("%d dimensions: %v, want %v", n, got, want)
		}
	}
}

func TestDotIsTheInnerProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		a := rapid.SliceOfN(rapid.Int8(), n, n).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Int8(), n, n).Draw(t, "b")
		var want int32
		for i := range a {
			want += int32(a[i]) * int32(b[i])
		}
		if got := dot(a, b); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestCheckVector(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, v := range map[string][]float32{"nothing": nil, "zeros": {0, 0}, "NaN": {1, nan}, "infinite": {inf, 1}, "long": make([]float32, MaxDimensions+1)} {
		if err := CheckVector(v); !errors.Is(err, ErrVector) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckVector([]float32{0, -1}); err != nil {
		t.Error(err)
	}
}

func TestVectorsOfOtherLengthsDoNotMatch(t *testing.T) {
	b := onSQLite(t)
	f, ctx, bucket := b.flat(0), t.Context(), Bucket{here, "b"}
	if err := f.Add(ctx, bucket, Vector{"short", []float32{1, 1}, b.clock.now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Nearest(ctx, bucket, []float32{1, 1, 1}, 0, 3); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestAFullBucketLosesWhatExpiresFirst(t *testing.T) {
	b := onSQLite(t)
	f, ctx, bucket := b.flat(3), t.Context(), Bucket{here, "b"}
	v := []float32{1, 2, 3}
	for i, hours := range []int{5, 2, 9, 7, 1} {
		if err := f.Add(ctx, bucket, Vector{fmt.Sprint(i), v, b.clock.now().Add(time.Duration(hours) * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]*Flat{"in memory": f, "in the store": b.flat(3)} {
		found, err := f.Nearest(ctx, bucket, v, 0.9, 10)
		var ids []string
		for _, m := range found {
			ids = append(ids, m.ID)
		}
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, []string{"2", "3", "4"}) {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
}

func TestMemoryOfBucketsIsBounded(t *testing.T) {
	b := onSQLite(t)
	ctx, v := t.Context(), make([]float32, 1000)
	v[0] = 1
	f := NewFlat(FlatOptions{Store: b.store, Sealer: b.sealer, Now: b.clock.now, MaxBytes: 10_000})
	for i := range 20 {
		b.clock.advance(time.Second)
		if err := f.Add(ctx, Bucket{here, fmt.Sprint(i)}, Vector{"v", v, b.clock.now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.buckets); n > 9 {
		t.Errorf("%d buckets in memory", n)
	}
	for i := range 20 {
		found, err := f.Nearest(ctx, Bucket{here, fmt.Sprint(i)}, v, 0.9, 1)
		if err != nil || len(found) != 1 {
			t.Errorf("bucket %d: %v, %v", i, found, err)
		}
	}
}

func TestOtherProcessesAreSeenAfterAReload(t *testing.T) {
	b := onSQLite(t)
	ctx, bucket, v := t.Context(), Bucket{here, "b"}, []float32{1, 2}
	mine := NewFlat(FlatOptions{Store: b.store, Sealer: b.sealer, Now: b.clock.now, Reload: 30 * time.Second})
	if found, err := mine.Nearest(ctx, bucket, v, 0.9, 1); err != nil || len(found) != 0 {
		t.Fatal(found, err)
	}
	if err := b.flat(0).Add(ctx, bucket, Vector{"theirs", v, b.clock.now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(30 * time.Second)
	if found, err := mine.Nearest(ctx, bucket, v, 0.9, 1); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestABucketThatCannotBeReadIsTriedAgain(t *testing.T) {
	b := onSQLite(t)
	bucket, v := Bucket{here, "b"}, []float32{1, 2}
	broken := &failing{Store: b.store, fail: true}
	f := NewFlat(FlatOptions{Store: broken, Sealer: b.sealer, Now: b.clock.now})
	if _, err := f.Nearest(t.Context(), bucket, v, 0.9, 1); !errors.Is(err, store.ErrThrottled) {
		t.Fatal(err)
	}
	broken.fail = false
	if _, err := f.Nearest(t.Context(), bucket, v, 0.9, 1); err != nil {
		t.Error(err)
	}
}

// failing is a store whose queries fail.
type failing struct {
	store.Store
	fail bool
}

func (s *failing) Table(name store.TableName) store.Table {
	return &failingTable{s.Store.Table(name), s}
}

type failingTable struct {
	store.Table
	of *failing
}

func (t *failingTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if t.of.fail {
		return store.Page{}, store.ErrThrottled
	}
	return t.Table.Query(ctx, q)
}
