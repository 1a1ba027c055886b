package seal

// CachedKeys counts the cached data keys, for tests.
func (s *Envelope) CachedKeys() int {
	s.ring.mu.RLock()
	defer s.ring.mu.RUnlock()
	return len(s.ring.sealing) + len(s.ring.opening)
}
