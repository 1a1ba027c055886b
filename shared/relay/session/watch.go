package session

import (
	"sync"
	"time"

	"gateway/shared/fault"
)

// Watch looks after a session while it lasts: whether it may go on, and whether both ends
// are there. Between two looks it has no goroutine.
type Watch struct {
	Times  Times
	Desk   Checker
	Over   func() bool          // nothing is to be looked after any more
	Refuse func(f *fault.Fault) // is told why the session may not go on
	Ends   []Conn               // the connections that are pinged

	mu     sync.Mutex
	timer  *time.Timer
	pinged time.Time
	over   bool
	busy   sync.WaitGroup
}

// Checker knows whether a session may go on.
type Checker interface {
	// Check tells whether the session may go on.
	Check() error
	// Fail is told of failures that the client does not see.
	Fail(where string, err error)
}

// Begin begins to look.
func (w *Watch) Begin() {
	w.pinged = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.Times.Check, w.tick)
}

func (w *Watch) tick() {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return
	}
	w.busy.Add(1)
	w.mu.Unlock()
	defer w.busy.Done()
	if !w.Over() {
		w.look()
	}
	w.mu.Lock()
	if !w.over {
		w.timer.Reset(w.Times.Check)
	}
	w.mu.Unlock()
}

func (w *Watch) look() {
	if err := w.Desk.Check(); err != nil {
		f := fault.From(err)
		if Refused(f) {
			w.Refuse(f)
			return
		}
		w.Desk.Fail("check of a session", err)
	}
	if time.Since(w.pinged) >= w.Times.Ping {
		w.pinged = time.Now()
		for _, c := range w.Ends {
			_ = c.Ping() // one that has gone is seen by its reader
		}
	}
}

// End ends the looking and waits for what it does.
func (w *Watch) End() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.busy.Wait()
}
