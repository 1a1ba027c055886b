package segment

import "sync/atomic"

// spare holds one expensive object for the next user. A sync.Pool would lose it, because
// garbage is collected between two batches.
type spare[T any] struct {
	one  atomic.Pointer[T]
	make func() *T
}

func (s *spare[T]) get() *T {
	if v := s.one.Swap(nil); v != nil {
		return v
	}
	return s.make()
}

// put stores v; of several objects used concurrently only the last one is retained.
func (s *spare[T]) put(v *T) { s.one.Store(v) }

// maxSpare is the maximum size of a batch's memory that is retained.
const maxSpare = 1 << 20
