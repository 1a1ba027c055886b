package http1

import (
	"sync/atomic"
	"time"
)

// tick is the unit of the clock that connections are timed by: what is watched is
// looked at once a tick.
const tick = 100 * time.Millisecond

// drowse is how long the watcher sleeps while all connections are idle.
const drowse = time.Second

// clock tells the time in ticks.
type clock struct {
	start  time.Time
	seen   atomic.Uint64 // by the watcher when it looked last
	drowsy atomic.Bool
	wake   chan struct{}
}

func (c *clock) begin() {
	c.start, c.wake = time.Now(), make(chan struct{}, 1)
	c.drowsy.Store(true)
}

func (c *clock) now() uint64 { return uint64(time.Since(c.start) / tick) }

// rouse makes the watcher look at every tick again.
func (c *clock) rouse() {
	if c.drowsy.Swap(false) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// What a connection does. The state of a connection is one of these with the time
// at which it began, so that the watcher can end a wait that is over without
// ending what has just begun.
const (
	busy      uint64 = iota // nothing to watch
	fresh                   // waits for its first byte
	idle                    // waits for another request
	heading                 // waits for the rest of a head
	running                 // a handler works on a request that was read whole
	receiving               // a handler waits for bytes of a body
	closed
	stateBits = 3
	what      = 1<<stateBits - 1
)

func stateAt(what, now uint64) uint64 { return now<<stateBits | what }

// newTime is how long a connection without a byte is not idle for Shutdown.
const newTime = 5 * time.Second

// watch looks at the connections until done.
func (s *Server) watch() {
	var due []*conn
	timer := time.NewTimer(drowse)
	defer timer.Stop()
	for {
		var none bool
		due, none = s.look(due[:0])
		clear(due)
		switch {
		case none:
			timer.Stop()
		case s.clock.drowsy.Load():
			timer.Reset(drowse)
		default:
			timer.Reset(tick)
		}
		select {
		case <-timer.C:
		case <-s.clock.wake:
		case <-s.done:
			return
		}
	}
}

// look does one round, working in the memory that it is given and gives back.
// none: there are no connections.
func (s *Server) look(due []*conn) (_ []*conn, none bool) {
	// This is set before the connections are looked at, so that whoever begins something
	// after that wakes the watcher again.
	s.clock.drowsy.Store(true)
	now := s.clock.now()
	s.clock.seen.Store(now)
	awake := false
	s.mu.Lock()
	none = len(s.conns) == 0
	for c := range s.conns {
		state := c.state.Load()
		if what := state & what; what != idle && what != closed {
			awake = true
		}
		if c.due(state, now) || c.full(now) {
			due = append(due, c)
		}
	}
	s.mu.Unlock()
	if awake {
		s.clock.drowsy.Store(false)
	}
	for _, c := range due {
		c.check(now)
	}
	return due, none
}

// enter begins a state and returns it. The state is set before the watcher is woken, so
// that its next look finds it. A running handler is looked at soon in any case, so the time
// at which it began may lie in the past.
func (c *conn) enter(what uint64) uint64 {
	clock := &c.s.clock
	state := stateAt(what, clock.seen.Load())
	if what != running {
		state = stateAt(what, clock.now())
	}
	c.state.Store(state)
	if clock.drowsy.Load() {
		clock.rouse()
	}
	return state
}

// since is how long a state has lasted. It may have begun after now was read.
func since(state, now uint64) time.Duration {
	if begun := state >> stateBits; begun < now {
		return time.Duration(now-begun) * tick
	}
	return 0
}

// waitsForBody is called before each wait for bytes.
func (c *conn) waitsForBody() {
	if c.awaits {
		c.enter(receiving)
	}
}

// waitsForReader is called before each wait for room to write.
func (c *conn) waitsForReader() { c.stalled.Store(c.s.clock.now() + 1) }

// full tells whether the client has taken nothing of its answer for too long.
func (c *conn) full(now uint64) bool {
	began := c.stalled.Load()
	return began != 0 && c.s.options.WriteTime > 0 && since(stateAt(0, began-1), now) > c.s.options.WriteTime
}

// due tells whether a state has lasted so long that something is to be done.
func (c *conn) due(state, now uint64) bool {
	s, age := c.s, since(state, now)
	switch state & what {
	case fresh, heading:
		return s.options.HeadTime > 0 && age > s.options.HeadTime
	case idle:
		return s.options.IdleTime > 0 && age > s.options.IdleTime
	case running:
		return age > 0
	case receiving:
		return age > time.Duration(c.allowed.Load())
	}
	return false
}

// check ends a wait that is over, or the request of a client that has gone.
func (c *conn) check(now uint64) {
	if c.full(now) {
		_ = c.net.Close() // the write ends with an error
		return
	}
	state := c.state.Load()
	if !c.due(state, now) {
		return
	}
	switch state & what {
	case running:
		c.ended = true // when the socket cannot be asked
		if c.net.Sys().Control(c.peek) != nil || c.ended {
			c.gone()
		}
	case receiving:
		if c.state.CompareAndSwap(state, busy) {
			_ = c.net.SetReadDeadline(time.Unix(1, 0)) // the read ends with an error
		}
	default:
		c.closeFrom(state)
	}
}

// closeFrom closes the connection unless it has left a state.
func (c *conn) closeFrom(state uint64) {
	if c.state.CompareAndSwap(state, closed) {
		_ = c.net.Close()
	}
}

// closeIdle closes the connection when no request uses it.
func (c *conn) closeIdle() {
	state := c.state.Load()
	switch state & what {
	case idle:
		c.closeFrom(state)
	case fresh:
		if since(state, c.s.clock.now()) > newTime {
			c.closeFrom(state)
		}
	}
}

// gone ends the context of the request that the connection serves.
func (c *conn) gone() {
	if x := c.current.Load(); x != nil {
		x.life.End()
	}
}
