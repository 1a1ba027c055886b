package resource

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
)

// NewID is a random UUID.
func NewID() string { return uuid.NewString() }

// idSource makes ULIDs that increase, also within one millisecond.
type idSource struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newIDSource() *idSource { return &idSource{entropy: ulid.Monotonic(rand.Reader, 0)} }

func (s *idSource) next(at time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), s.entropy)
	if err != nil { // more than 2^79 ids in one millisecond
		id = ulid.MustNew(ulid.Timestamp(at), rand.Reader)
	}
	return id.String()
}

// timeOf is the time in a ULID; zero when s is not a ULID.
func timeOf(s string) time.Time {
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time()).UTC()
}
