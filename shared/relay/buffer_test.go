package relay

import (
	"strings"
	"testing"
)

func TestBuffersHoldWhatTheyAreAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, smallBuffer - 1, smallBuffer, smallBuffer + 1, 100_000, keepBuffer - 1, keepBuffer} {
		for range 3 { // new, then from the pool
			b := newBufferFor(n)
			if cap(b.b) < n || cap(b.b) > max(2*n, smallBuffer) || len(b.b) != 0 {
				t.Errorf("asked for %d bytes: %d of %d", n, len(b.b), cap(b.b))
			}
			b.b = b.b[:cap(b.b)]
			b.free()
		}
	}
	if b := newBufferFor(keepBuffer + 1); cap(b.b) != 0 {
		t.Errorf("a large buffer of %d bytes is pooled", cap(b.b))
	}
	odd := &buffer{b: make([]byte, 0, 3*smallBuffer)}
	odd.free()
	for range 3 {
		if b := newBufferFor(3 * smallBuffer); cap(b.b) < 3*smallBuffer {
			t.Errorf("a buffer of %d bytes was given for %d", cap(b.b), 3*smallBuffer)
		}
	}
	(*buffer)(nil).free()
}

func TestBufferGrowsWithItsContent(t *testing.T) {
	b := newBuffer()
	want := ""
	for range 9 {
		piece := strings.Repeat("0123456789", 5000)
		want += piece
		if !b.keep([]byte(piece), 1<<20) || string(b.b) != want {
			t.Fatalf("%d bytes of %d", len(b.b), len(want))
		}
	}
	if b.keep([]byte("more"), len(want)+2) || string(b.b) != want+"mo" {
		t.Errorf("%d bytes of %d", len(b.b), len(want)+2)
	}
	b.free()
}
