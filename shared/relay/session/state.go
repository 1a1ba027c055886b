package session

import (
	"errors"
	"sync"
	"time"

	"gateway/shared/fault"
)

// standing is the state of a session: whether it continues, how it was ended, and the bytes it
// has carried. Both sides use it concurrently. The zero value is a session that has started.
type standing struct {
	mu       sync.Mutex
	over     bool // the client gets nothing more
	draining bool // no new response is started
	telling  bool // an event is being processed that the client may not have yet
	ended    *Ended
	why      *fault.Fault // for which it was ended
	byFar    bool         // the provider ended it
	left     error        // with which the reader of the client ended; nil: the client was disconnected
	events   int
	late     *time.Timer // disconnects the provider when it fires, even if it is busy
	in, out  int64       // bytes of messages from the client and to it
}

func (st *standing) isOver() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.over
}

func (st *standing) isDraining() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.draining
}

// drain stops new responses.
func (st *standing) drain() {
	st.mu.Lock()
	st.draining = true
	st.mu.Unlock()
}

// end ends the session with the client; a nil close reason means that the client is already
// gone. byFar reports that the provider ended it. first is false if it was over before.
func (st *standing) end(told *Ended, why *fault.Fault, byFar bool) (first bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false
	}
	st.over, st.draining, st.ended, st.why, st.byFar = true, true, told, why, byFar
	return true
}

// leftBy records how the client has left.
func (st *standing) leftBy(err error) {
	st.mu.Lock()
	st.left = err
	st.mu.Unlock()
}

// upstreamClose returns the code and the reason with which the provider's side is closed.
func (st *standing) upstreamClose() (code int, reason string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return UpstreamClose(st.left)
}

// markBusy records that an event is being processed, or that the client has it.
func (st *standing) markBusy(on bool) {
	st.mu.Lock()
	st.telling = on
	st.mu.Unlock()
}

// leaves reports whether the session ends once nothing is in progress; over reports that the
// client was disconnected before. While a goroutine is sending an event to the client, leaves is
// false: that goroutine ends the session afterwards.
func (st *standing) leaves() (over, leaves bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.over, st.draining && !st.telling
}

// after disconnects the provider after a while, once.
func (st *standing) after(d time.Duration, leave func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.late == nil {
		st.late = time.AfterFunc(d, leave)
	}
}

// stopTimer stops that timer: the provider is gone.
func (st *standing) stopTimer() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.late != nil {
		st.late.Stop()
	}
}

// took counts a message of the client.
func (st *standing) took(bytes int) (over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.in += int64(bytes)
	return st.over
}

// countSent counts a message to the client, who gets it if ok is true.
func (st *standing) countSent(bytes int) (ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false
	}
	st.out += int64(bytes)
	return true
}

// event returns the number of the next event that the gateway itself creates.
func (st *standing) event() (n int, over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.events++
	return st.events, st.over
}

// result is how the session ended. fromNear is how the reading of the client did.
func (st *standing) result(fromNear error) Result {
	st.mu.Lock()
	defer st.mu.Unlock()
	if e := st.ended; e != nil {
		return Result{Code: e.Code, Reason: e.Reason, Fault: st.why, ByProvider: st.byFar, FromClient: st.in, ToClient: st.out}
	}
	e := &Ended{Code: CloseAbnormal}
	errors.As(fromNear, &e)
	return Result{Code: e.Code, Reason: e.Reason, ByClient: true, FromClient: st.in, ToClient: st.out}
}
