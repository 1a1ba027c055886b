package session

import (
	"errors"
	"sync"
	"time"

	"gateway/shared/fault"
)

// standing is how a session stands: whether it goes on, how it was ended, and what has gone
// through it. Both sides ask it at once. The zero value is a session that has begun.
type standing struct {
	mu       sync.Mutex
	over     bool // the client gets nothing more
	draining bool // no response is begun any more
	telling  bool // an event is taken over that the client may not have yet
	ended    *Ended
	why      *fault.Fault // for which it was ended
	byFar    bool         // the provider ended it
	left     error        // with which the reader of the client ended; nil: the client was sent away
	events   int
	late     *time.Timer // leaves the provider when it fires, whatever it does
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

// drain has no response begun any more.
func (st *standing) drain() {
	st.mu.Lock()
	st.draining = true
	st.mu.Unlock()
}

// end ends the session with the client; nil is one that has gone. byFar says that the
// provider ended it. first is false if it was over before.
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

// tells notes that an event is taken over, or that the client has it.
func (st *standing) tells(on bool) {
	st.mu.Lock()
	st.telling = on
	st.mu.Unlock()
}

// leaves tells whether the session ends once nothing is under way; over tells that the client
// was left before. While a goroutine is telling the client of an event, leaves is false: that
// goroutine ends the session afterwards.
func (st *standing) leaves() (over, leaves bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.over, st.draining && !st.telling
}

// after has the provider left after a while, once.
func (st *standing) after(d time.Duration, leave func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.late == nil {
		st.late = time.AfterFunc(d, leave)
	}
}

// forget takes that back: the provider has gone.
func (st *standing) forget() {
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

// gives counts a message to the client, who gets it where ok is true.
func (st *standing) gives(bytes int) (ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false
	}
	st.out += int64(bytes)
	return true
}

// event numbers an event of the gateway's own.
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
	r := Result{Code: Lost, FromClient: st.in, ToClient: st.out}
	if st.ended != nil {
		r.Code, r.Reason, r.Fault, r.ByProvider = st.ended.Code, st.ended.Reason, st.why, st.byFar
		return r
	}
	r.ByClient = true
	if e := (*Ended)(nil); errors.As(fromNear, &e) {
		r.Code, r.Reason = e.Code, e.Reason
	}
	return r
}
