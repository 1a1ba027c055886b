package resource

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestReadMapHoldsWhatWasPutFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m readMap[int, int]
		want := map[int]int{}
		for i, op := range rapid.SliceOfN(rapid.IntRange(0, 59), 0, 300).Draw(t, "ops") {
			k := op % 20
			switch {
			case op == 59:
				m.clear()
				clear(want)
			case op < 20:
				got, found := m.getOrPut(k, i)
				old, had := want[k]
				if !had {
					want[k], old = i, i
				}
				if got != old || found != had {
					t.Fatalf("getOrPut(%d) = %d, %v; want %d, %v", k, got, found, old, had)
				}
			default:
				got, found := m.get(k)
				if old, had := want[k]; found != had || got != old {
					t.Fatalf("get(%d) = %d, %v; want %d, %v", k, got, found, old, had)
				}
			}
			if m.size() != len(want) {
				t.Fatalf("size %d, want %d", m.size(), len(want))
			}
		}
	})
}

func TestReadMapLosesNothingUnderConcurrentReaders(t *testing.T) {
	var m readMap[int, int]
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				k := i*4 + w
				m.getOrPut(k, k)
				for _, back := range []int{0, i / 2, i} {
					if v, ok := m.get(back*4 + w); !ok || v != back*4+w {
						t.Errorf("key %d: %d %v", back*4+w, v, ok)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
