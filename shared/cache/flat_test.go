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

func randomVector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// beside is a vector at about a cosine from v.
func beside(r *rand.Rand, v []float32, cos float64) []float32 {
	w := randomVector(r, len(v))
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(cos*float64(v[i]) + math.Sqrt(1-cos*cos)*float64(w[i]))
	}
	return out
}

func TestQuantisedCosinesAreNearTheTrueOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 64 + r.IntN(1536)
		a := randomVector(r, n)
		b := beside(r, a, r.Float64())
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

// neighboursContract is what every Neighbours keeps.
func neighboursContract(t *testing.T, clock *clock, open func() Neighbours) {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(3, 4))
	n := open()
	bucket := Bucket{here, "b1"}
	until := clock.now().Add(time.Hour)
	base := randomVector(r, 256)
	want := []string{"near-99", "near-97", "near-95"}
	for id, cos := range map[string]float64{"near-95": 0.955, "near-99": 0.99, "near-97": 0.97, "far": 0.5} {
		if err := n.Add(ctx, bucket, Vector{id, beside(r, base, cos), until}); err != nil {
			t.Fatal(err)
		}
	}
	for id, b := range map[string]Bucket{"other bucket": {here, "b2"}, "other workspace": {store.Scope{Org: "acme", Workspace: "ws-2"}, "b1"}, "other organisation": {store.Scope{Org: "x", Workspace: "ws-1"}, "b1"}} {
		if err := n.Add(ctx, b, Vector{id, base, until}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Add(ctx, bucket, Vector{"soon over", base, clock.now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	clock.advance(2 * time.Minute)
	ids := func(least float64, k int) []string {
		t.Helper()
		found, err := n.Nearest(ctx, bucket, base, least, k)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i, m := range found {
			out = append(out, m.ID)
			if m.Score < least || i > 0 && m.Score > found[i-1].Score {
				t.Errorf("%v is out of order or below %v", m, least)
			}
		}
		return out
	}
	check := func(when string) {
		t.Helper()
		if got := ids(0.9, 10); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		if got := ids(0.9, 1); !slices.Equal(got, want[:1]) {
			t.Errorf("%s, the nearest: %v", when, got)
		}
		if got := ids(0.999, 10); len(got) != 0 {
			t.Errorf("%s, above all: %v", when, got)
		}
	}
	check("at first")
	n = open()
	check("after a restart")
	if err := n.Add(ctx, bucket, Vector{"near-95", beside(r, base, 0.1), until}); err != nil {
		t.Fatal(err)
	}
	want = want[:2]
	check("after a vector was replaced")
	if _, err := n.Nearest(ctx, bucket, nil, 0.9, 1); !errors.Is(err, ErrVector) {
		t.Errorf("no vector: %v", err)
	}
	if err := n.Add(ctx, bucket, Vector{"zero", make([]float32, 256), until}); !errors.Is(err, ErrVector) {
		t.Errorf("a vector without a direction: %v", err)
	}
}

func TestFlatIsNeighbours(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		neighboursContract(t, b.clock, func() Neighbours { return b.flat(0) })
	})
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
