package plan

import (
	"io"
	"sync"
	"time"
)

// Again is the time between the signs of life on a stream whose head has gone out before
// its first content.
const Again = 15 * time.Second

// Hold bounds how long something is held back while its owner waits in reads. Whoever has
// its lock may touch what is held. The owner has the lock except while it reads; only then
// can the timer's goroutine release what is held.
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

// Read reads while the lock is given away.
func (h *Hold) Read(from io.Reader, p []byte) (int, error) {
	h.mu.Unlock()
	n, err := from.Read(p)
	h.mu.Lock()
	return n, err
}

// End gives what was held back to its owner; from then on the timer releases nothing.
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
