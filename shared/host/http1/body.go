package http1

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// maxDiscard is how much of a body that the handler left unread is read to reuse the
// connection, in bytes, as in net/http.
const maxDiscard = 256 << 10

// body is the body of a request. It may be read and closed in any goroutine, and does not
// use the connection after its end.
type body struct {
	x *exchange // nil without a body

	mu     sync.Mutex
	left   int64 // not read yet
	closed bool
	early  bool // abandoned with bytes left
	late   bool // the rest did not arrive in time

	patience patience
}

// Read implements io.Reader. It returns io.EOF with the last bytes.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// smallRead is the size up to which a read uses the frame, which is cheaper than many
// small system calls.
const smallRead = 4 << 10

func (b *body) read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	c := b.x.c
	if c.in == nil && len(p) < smallRead && int64(len(p)) < b.left {
		if err := c.fill(b); err != nil {
			return 0, b.fail(err)
		}
	}
	p = p[:min(int64(len(p)), b.left)]
	if c.in != nil {
		n = copy(p, c.in[c.r:c.w])
		c.r += n
		c.release()
	} else if n, err = b.receive(p); n == 0 {
		return 0, b.fail(err)
	}
	if b.left -= int64(n); b.left == 0 {
		c.enter(running)
		return n, io.EOF
	}
	return n, nil
}

// receive reads from the connection, which the watcher times meanwhile.
func (b *body) receive(p []byte) (int, error) {
	c := b.x.c
	most := c.s.options.BodyTime
	if most <= 0 {
		return c.net.Read(p)
	}
	c.allowed.Store(int64(b.patience.left(most)))
	c.awaits = true
	n, err := c.net.Read(p)
	c.awaits = false
	b.patience.received += int64(n)
	if state := c.state.Load(); state&what == receiving {
		b.patience.waited += since(state, c.s.clock.now())
		c.state.CompareAndSwap(state, busy)
	}
	return n, err
}

// fail ends the request if its client disconnected. A client that is too slow can still
// receive an error.
func (b *body) fail(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	b.x.life.End()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Close implements io.Closer: it reads to the end if that is near.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	var err error
	if b.left > 0 && !b.x.wantsClose {
		if b.early = b.left > maxDiscard || b.late; !b.early {
			err = b.discard()
		}
	}
	b.closed = true
	return err
}

// discard reads the rest if it arrives soon.
func (b *body) discard() (err error) {
	c := b.x.c
	if b.left > int64(c.w-c.r) {
		_ = c.net.SetReadDeadline(time.Now().Add(settleTime))
		defer func() {
			b.late = errors.Is(err, os.ErrDeadlineExceeded)
			_ = c.net.SetReadDeadline(time.Time{})
		}()
	}
	for {
		if c.in == nil && b.left > 0 {
			if err := c.fill(b); err != nil {
				return b.fail(err)
			}
		}
		n := min(int64(c.w-c.r), b.left)
		c.r += int(n)
		c.release()
		if b.left -= n; b.left == 0 {
			c.enter(running)
			return nil
		}
	}
}

// settle handles the rest of a body before the response begins; otherwise clients that
// send everything before they read would deadlock. keep reports that the connection may
// serve another request, large that so much is left, or arrives so slowly, that the
// connection must be closed.
func (b *body) settle() (keep, large bool) {
	if !b.mu.TryLock() { // another goroutine reads, but not for long
		_ = b.x.c.net.SetReadDeadline(time.Now().Add(settleTime))
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	switch {
	case b.left == 0:
		return true, false
	case b.closed:
		return false, false
	case b.left >= maxDiscard:
		return false, true
	}
	if b.discard() != nil {
		return false, b.late
	}
	b.closed = true
	return true, false
}

// end closes the body for later users and reports whether unread bytes precede the next
// request.
func (b *body) end() (left, early bool) {
	if b.x == nil {
		return false, false
	}
	_ = b.Close() // the remaining length shows an error
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left > 0, b.early
}

const (
	// slowest is the minimum rate of a body in bytes per second of waiting, beyond
	// Options.BodyTime: less than the slowest speech.
	slowest = 128
	// settleTime is how long a response waits for the unread rest of a body. The bytes of
	// clients that send everything before they read have arrived by then.
	settleTime = 500 * time.Millisecond
)

// patience is the remaining waiting time for a body. Only waiting counts, not the time
// between the handler's reads.
type patience struct {
	received int64 // bytes
	waited   time.Duration
}

// left returns how long the next read may wait, at most most.
func (p *patience) left(most time.Duration) time.Duration {
	earned := time.Duration(min(p.received/slowest, 1<<30)) * time.Second
	return max(0, min(most, most+earned-p.waited))
}
