package http1

import (
	"sync/atomic"
	"time"
)

// tick is the unit of the clock that times connections: watched ones are checked once per
// tick.
const tick = 100 * time.Millisecond

// idleTick is the watcher's interval while all connections are idle.
const idleTick = time.Second

// clock measures time in ticks.
type clock struct {
	start  time.Time
	seen   atomic.Uint64 // by the watcher at its last check
	drowsy atomic.Bool
	wake   chan struct{}
}

func (c *clock) begin() {
	c.start, c.wake = time.Now(), make(chan struct{}, 1)
	c.drowsy.Store(true)
}

func (c *clock) now() uint64 { return uint64(time.Since(c.start) / tick) }

// resume makes the watcher check at every tick again.
func (c *clock) resume() {
	if c.drowsy.Swap(false) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// States of a connection. A state is combined with its start time, so that the watcher
// can end an expired wait without ending one that has just begun.
const (
	busy      uint64 = iota // nothing to watch
	fresh                   // waits for its first byte
	idle                    // waits for another request
	heading                 // waits for the rest of a head
	running                 // a handler runs on a completely received request
	receiving               // a handler waits for bytes of a body
	closed
	stateBits = 3
	what      = 1<<stateBits - 1
)

func stateAt(what, now uint64) uint64 { return now<<stateBits | what }

// newTime is how long a connection without a byte does not count as idle for Shutdown.
const newTime = 5 * time.Second

// watch checks the connections until done.
func (s *Server) watch() {
	var due []*conn
	timer := time.NewTimer(idleTick)
	defer timer.Stop()
	for {
		var none bool
		due, none = s.checkAll(due[:0])
		clear(due)
		switch {
		case none:
			timer.Stop()
		case s.clock.drowsy.Load():
			timer.Reset(idleTick)
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

// checkAll does one round in the memory that it receives and returns. none reports that
// there are no connections.
func (s *Server) checkAll(due []*conn) (_ []*conn, none bool) {
	// This is set before the connections are checked, so that a state that begins
	// afterwards wakes the watcher again.
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
		if c.due(state, now) || c.writeStalled(now) {
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

// enter begins a state and returns it. It sets the state before it wakes the watcher, so
// that the next check finds it. A running handler is checked soon in any case, so its
// start time may be in the past.
func (c *conn) enter(what uint64) uint64 {
	clock := &c.s.clock
	state := stateAt(what, clock.seen.Load())
	if what != running {
		state = stateAt(what, clock.now())
	}
	c.state.Store(state)
	if clock.drowsy.Load() {
		clock.resume()
	}
	return state
}

// since returns how long a state has lasted. It may have begun after now was read.
func since(state, now uint64) time.Duration {
	if begun := state >> stateBits; begun < now {
		return time.Duration(now-begun) * tick
	}
	return 0
}

// startBodyWait is called before each wait for bytes.
func (c *conn) startBodyWait() {
	if c.awaits {
		c.enter(receiving)
	}
}

// startWriteWait is called before each wait to write.
func (c *conn) startWriteWait() { c.stalled.Store(c.s.clock.now() + 1) }

// writeStalled reports whether the client has accepted nothing of its response for too
// long.
func (c *conn) writeStalled(now uint64) bool {
	began := c.stalled.Load()
	return began != 0 && c.s.options.WriteTime > 0 && since(stateAt(0, began-1), now) > c.s.options.WriteTime
}

// due reports whether a state has lasted so long that it must be checked.
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

// check ends an expired wait, or the request of a disconnected client.
func (c *conn) check(now uint64) {
	if c.writeStalled(now) {
		_ = c.net.Close() // the write ends with an error
		return
	}
	state := c.state.Load()
	if !c.due(state, now) {
		return
	}
	switch state & what {
	case running:
		c.ended = true // if the socket cannot be queried
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

// closeFrom closes the connection if it is still in a state.
func (c *conn) closeFrom(state uint64) {
	if c.state.CompareAndSwap(state, closed) {
		_ = c.net.Close()
	}
}

// closeIdle closes the connection if no request uses it.
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

// gone ends the context of the connection's request.
func (c *conn) gone() {
	if x := c.current.Load(); x != nil {
		x.life.End()
	}
}
