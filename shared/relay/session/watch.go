package session

import (
	"sync"
	"time"

	"gateway/shared/fault"
)

// Watch periodically checks a session: whether it may continue, and whether both peers are
// alive. Between two checks it has no goroutine.
type Watch struct {
	Times   Times
	Checker Checker
	Over    func() bool          // reports that the checks can end
	Refuse  func(f *fault.Fault) // is called with the reason why the session may not continue
	Ends    []Conn               // the connections that are pinged

	mu     sync.Mutex
	timer  *time.Timer
	pinged time.Time
	over   bool
	busy   sync.WaitGroup
}

// Checker checks whether a session may continue.
type Checker interface {
	// Check returns an error if the session may not continue.
	Check() error
	// Fail records failures that the client does not see.
	Fail(where string, err error)
}

// Begin starts the checks.
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
	if err := w.Checker.Check(); err != nil {
		f := fault.From(err)
		if Refused(f) {
			w.Refuse(f)
			return
		}
		w.Checker.Fail("check of a session", err)
	}
	if time.Since(w.pinged) >= w.Times.Ping {
		w.pinged = time.Now()
		for _, c := range w.Ends {
			_ = c.Ping() // a peer that is gone is detected by its reader
		}
	}
}

// End stops the checks and waits for one in progress.
func (w *Watch) End() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.busy.Wait()
}
