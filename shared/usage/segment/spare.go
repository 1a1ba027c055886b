package segment

import "sync/atomic"

// spare keeps one thing that is costly to make for the next user. A sync.Pool would lose
// it, because garbage is collected between two batches.
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

// put keeps v; of things that were used at the same time only the last one stays.
func (s *spare[T]) put(v *T) { s.one.Store(v) }

// maxSpare is up to which size the memory of a batch is kept.
const maxSpare = 1 << 20
