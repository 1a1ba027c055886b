package segment

import (
	"runtime"
	"testing"
)

func TestSpareOutlastsCollections(t *testing.T) {
	made := 0
	s := spare[[64]byte]{make: func() *[64]byte { made++; return new([64]byte) }}
	first, second := s.get(), s.get()
	if first == second || made != 2 {
		t.Fatalf("two at once are one, or %d were made", made)
	}
	s.put(first)
	for range 3 {
		runtime.GC()
	}
	if s.get() != first || made != 2 {
		t.Errorf("what was kept is gone, %d were made", made)
	}
}

// A large batch does not stay in memory.
func TestLargeBatchIsReleased(t *testing.T) {
	b := batches.get()
	b.arena, b.pack = make([]byte, 0, maxSpare+1), make([]byte, 0, maxInline+1)
	b.free()
	if reused := batches.get(); reused != b || cap(reused.arena) > maxSpare || cap(reused.pack) > maxInline {
		t.Errorf("%d bytes of events and %d of bodies are kept", cap(reused.arena), cap(reused.pack))
	}
}
