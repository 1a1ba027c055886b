package buffer

import (
	"strings"
	"testing"
)

func TestBuffersHaveTheRequestedSize(t *testing.T) {
	for _, n := range []int{0, 1, least - 1, least, least + 1, 100_000, Most - 1, Most} {
		for range 3 { // new, then from the pool
			b := For(n)
			if cap(b.B) < n || cap(b.B) > max(4*n, 2*least) || len(b.B) != 0 {
				t.Errorf("asked for %d bytes: %d of %d", n, len(b.B), cap(b.B))
			}
			b.B = b.B[:cap(b.B)]
			b.Free()
		}
	}
	if b := For(Most + 1); cap(b.B) != 0 {
		t.Errorf("a large buffer of %d bytes is pooled", cap(b.B))
	}
	odd := &Buffer{B: make([]byte, 0, 3*least)}
	odd.Free()
	for range 3 {
		if b := For(3 * least); cap(b.B) < 3*least {
			t.Errorf("a buffer of %d bytes was given for %d", cap(b.B), 3*least)
		}
	}
	(*Buffer)(nil).Free()
}

func TestBufferGrowsWithItsContent(t *testing.T) {
	b := New()
	want := ""
	for range 9 {
		piece := strings.Repeat("0123456789", 5000)
		want += piece
		if !b.AppendMax([]byte(piece), 1<<20) || string(b.B) != want {
			t.Fatalf("%d bytes of %d", len(b.B), len(want))
		}
	}
	if b.AppendMax([]byte("more"), len(want)+2) || string(b.B) != want+"mo" {
		t.Errorf("%d bytes of %d", len(b.B), len(want)+2)
	}
	b.Free()
}
