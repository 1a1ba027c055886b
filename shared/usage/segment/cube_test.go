package segment

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

func TestCubesDecodeToWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newCubeBuilder()
		type key struct {
			hour  int64
			model string
			code  int
		}
		counts, costs := make(map[key]int64), make(map[key]int64)
		n := rapid.IntRange(0, 60).Draw(t, "n")
		for i := range n {
			r := made(i, noon.Add(time.Duration(rapid.Int64Range(0, 3*3600).Draw(t, "s"))*time.Second))
			r.Model, r.ClientStatus = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), rapid.SampledFrom([]int{200, 500}).Draw(t, "status")
			b.add(&r)
			k := key{r.Start.Truncate(time.Hour).UnixMicro(), r.Model, r.ClientStatus}
			counts[k]++
			costs[k] += int64(r.Cost)
		}
		encoded, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		cube, err := decodeCube(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if cube.Cells.N != len(counts) || len(cube.ids) != n || !slices.IsSorted(cube.ids) {
			t.Fatalf("%d cells, want %d; %d ids", cube.Cells.N, len(counts), len(cube.ids))
		}
		for i := range cube.Cells.N {
			var status int
			if _, err := fmt.Sscan(cube.Cells.Dims[Status].At(i), &status); err != nil {
				t.Fatal(err)
			}
			k := key{cube.Cells.Ints[Start][i], cube.Cells.Dims[Model].At(i), status}
			var h Histogram
			cube.Cells.Durations(i, &h)
			if cube.Cells.Count[i] != counts[k] || cube.Cells.Ints[Cost][i] != costs[k] || h.Count() != counts[k] {
				t.Fatalf("cell %+v: %d", k, cube.Cells.Count[i])
			}
		}
	})
}

func FuzzDecodeCube(f *testing.F) {
	b := newCubeBuilder()
	for i := range 5 {
		r := made(i, noon.Add(time.Duration(i)*time.Hour))
		b.add(&r)
	}
	encoded, err := b.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Add([]byte{cubeVersion, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCube(b)
		if err != nil {
			return
		}
		var h Histogram
		for i := range c.Cells.N {
			c.Cells.Durations(i, &h)
			for d := range NumCubeDims {
				_ = c.Cells.Dims[d].At(i)
			}
		}
	})
}

func TestQuantilesOfFewValues(t *testing.T) {
	for _, c := range []struct {
		values        []int64
		p50, p90, p99 int64
	}{
		{[]int64{7_000}, 7_000, 7_000, 7_000},
		{[]int64{1_000, 9_000}, 1_000, 9_000, 9_000},
		{[]int64{1_000, 2_000, 3_000, 50_000}, 2_000, 50_000, 50_000},
		{[]int64{1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 90_000}, 5_000, 9_000, 90_000},
	} {
		var h Histogram
		for _, v := range c.values {
			h.Add(v)
		}
		for q, want := range map[float64]int64{0.5: c.p50, 0.9: c.p90, 0.99: c.p99} {
			if got := h.Quantile(q); math.Abs(got-float64(want)) > 0.011*float64(want) {
				t.Errorf("quantile %v of %v is %v, want %d", q, c.values, got, want)
			}
		}
	}
}

func TestHistogramsMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-5, 1<<50), 1, 200).Draw(t, "values")
		var whole, forward, backward Histogram
		parts := make([]Histogram, 4)
		for _, v := range values {
			whole.Add(v)
			parts[rapid.IntRange(0, 3).Draw(t, "part")].Add(v)
		}
		for i := range parts {
			forward.Merge(&parts[i])
			packed(parts[3-i].appendTo(nil)).mergeInto(&backward)
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
			want := whole.Quantile(q)
			if forward.Quantile(q) != want || backward.Quantile(q) != want {
				t.Fatalf("quantile %v: %v %v %v", q, want, forward.Quantile(q), backward.Quantile(q))
			}
			exact := float64(max(values[rankOf(q, int64(len(values)))], 1))
			if math.Abs(want-exact) > 0.01001*exact {
				t.Fatalf("quantile %v is %v, exactly %v", q, want, exact)
			}
		}
	})
}

func TestEveryValueIsInItsBucket(t *testing.T) {
	check := func(v int64) {
		b := bucketOf(v)
		if v > upper[b] || b > 0 && v <= upper[b-1] {
			t.Fatalf("%d is in bucket %d, from %d to %d", v, b, upper[max(b-1, 0)], upper[b])
		}
	}
	for v := range int64(5000) {
		check(v)
	}
	for _, u := range upper {
		check(u)
		check(max(u, u+1)) // the last one would overflow
	}
	rapid.Check(t, func(t *rapid.T) { check(rapid.Int64Min(0).Draw(t, "v")) })
}

// A cube that was written before requests had a cost of the gateway is read, and has
// none.
func TestCubesOfTheFirstVersion(t *testing.T) {
	build := func(running pricing.NanoDollars) []byte {
		b := newCubeBuilder()
		b.add(&usage.Record{ID: "01J", Start: time.Unix(1_800_000_000, 0), Org: "o", Workspace: "w", ClientStatus: 200, Cost: 77, Running: running, Duration: time.Second})
		out, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	without, with := build(0), build(1) // differ in one byte, the sum
	at := 0
	for ; without[at] == with[at]; at++ {
	}
	first := slices.Concat([]byte{cubeFirst}, without[1:at], without[at+1:])
	for _, c := range []struct {
		cube []byte
		want int64
	}{{first, 0}, {without, 0}, {with, 1}} {
		cube, err := decodeCube(c.cube)
		if err != nil || cube.Cells.N != 1 || cube.Cells.Ints[Cost][0] != 77 || cube.Cells.Ints[Running][0] != c.want {
			t.Fatalf("%v %+v", err, cube)
		}
	}
	if _, err := decodeCube(append([]byte{cubeVersion + 1}, with[1:]...)); err == nil {
		t.Error("a version that is not known is read")
	}
}
