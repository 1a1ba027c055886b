package plan

import (
	"io"
	"sync"
	"time"
)

// Again is the time between keep-alives on a stream with a head that was sent before its first
// content.
const Again = 15 * time.Second

// Hold limits how long data is held back while its owner blocks in reads. The holder of its lock
// may access the data. The owner has the lock except while it reads; only then can the timer's
// goroutine release the data.
type Hold struct {
	mu    sync.Mutex
	over  bool
	timer *time.Timer
	let   func()
}

// NewHold starts to hold; the caller has the lock and must call End. let is called after most,
// and then every Again, until End.
func NewHold(most time.Duration, let func()) *Hold {
	h := &Hold{let: let}
	h.mu.Lock()
	h.timer = time.AfterFunc(most, h.release)
	return h
}

// Read reads with the lock released.
func (h *Hold) Read(from io.Reader, p []byte) (int, error) {
	h.mu.Unlock()
	n, err := from.Read(p)
	h.mu.Lock()
	return n, err
}

// End returns the held data to its owner; from then on the timer releases nothing.
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
