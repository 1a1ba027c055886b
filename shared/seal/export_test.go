package seal

// CachedKeys counts the cached data keys, for tests.
func (s *Envelope) CachedKeys() int {
	s.ring.mu.RLock()
	defer s.ring.mu.RUnlock()
	return len(s.ring.sealing) + len(s.ring.opening)
}

// Overhead is how many bytes longer a sealed value is than the plain one, for wrapped data
// keys of n bytes (local: 60, KMS: about 184).
func Overhead(n int) int { return headBytes + n + nonceBytes + tagBytes }
