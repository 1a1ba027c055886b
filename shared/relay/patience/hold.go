package patience

import (
	"io"
	"sync"
	"time"
)

// Again is the time between the signs of life on a stream whose head has gone out before
// its first content.
const Again = 15 * time.Second

// Hold bounds how long something is held back while its owner waits in reads. Its lock is
// the right to touch what is held: the owner has it except while it reads, and then the
// timer's goroutine may let go.
type Hold struct {
	mu    sync.Mutex
	over  bool
	timer *time.Timer
	let   func()
}

// NewHold begins to hold; the caller has the lock and must call End. let is called after
// most, and then every Again, until End.
func NewHold(most time.Duration, let func()) *Hold {
	h := &Hold{let: let}
	h.mu.Lock()
	h.timer = time.AfterFunc(most, h.release)
	return h
}

// Read reads with the lock given away.
func (h *Hold) Read(from io.Reader, p []byte) (int, error) {
	h.mu.Unlock()
	n, err := from.Read(p)
	h.mu.Lock()
	return n, err
}

// End gives what was held back to its owner: nothing is let go any more.
func (h *Hold) End() {
	h.over = true
	h.timer.Stop()
	h.mu.Unlock()
}

func (h *Hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.let()
	h.timer.Reset(Again)
}
