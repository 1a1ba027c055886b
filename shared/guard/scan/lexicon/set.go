package lexicon

import "math/bits"

// Set maps words to numbers. It is immutable.
type Set struct {
	keys   []uint64
	values []uint16
	shift  uint
}

// NewSet returns a set of hashes. Values are at most 65,535.
func NewSet(words map[uint64]uint16) *Set {
	size := max(4, bits.Len(uint(len(words)*3)))
	s := &Set{keys: make([]uint64, 1<<size), values: make([]uint16, 1<<size), shift: uint(64 - size)}
	for h, v := range words {
		i := s.slot(h)
		for s.keys[i] != 0 {
			i = (i + 1) & (len(s.keys) - 1)
		}
		s.keys[i], s.values[i] = h, v
	}
	return s
}

func (s *Set) slot(h uint64) int { return int(h * 0x9E3779B97F4A7C15 >> s.shift) }

// Find returns the number of a word.
func (s *Set) Find(h uint64) (uint16, bool) {
	for i := s.slot(h); ; i = (i + 1) & (len(s.keys) - 1) {
		switch s.keys[i] {
		case h:
			return s.values[i], h != 0
		case 0:
			return 0, false
		}
	}
}
