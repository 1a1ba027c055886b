// Package socket reads and writes TCP connections without telling Go's scheduler.
//
// The descriptors of package net never block: a call on one returns at once, with EAGAIN
// when there is nothing to read. Nevertheless the syscall package announces every call to
// the scheduler as one that may block. On a busy machine the runtime's monitor then takes
// processors away from goroutines that are in the middle of a short write, wakes a thread
// to use them, and does not come to rest itself. Calls that are not announced only cost
// what the system itself needs. Package net still does the waiting: deadlines, Close and
// waiting goroutines work as they do there.
//
// What must never come in: a call that may block, files, protocols.
package socket

import (
	"io"
	"net"
	"os"
	"syscall"
)

// Conn is a TCP connection. Unlike with other connections, two goroutines must not read it
// at once, nor write to it at once.
type Conn struct {
	net.Conn
	tcp *net.TCPConn
	sys syscall.RawConn
	in  inlet
	out outlet
}

// TCP returns the connection itself, for a reader that waits by other means.
func (c *Conn) TCP() *net.TCPConn { return c.tcp }

// CloseWrite sends the end of the stream; reading continues.
func (c *Conn) CloseWrite() error { return c.tcp.CloseWrite() }

// New returns a connection cheaper reads and writes, if they are Supported.
func New(tcp *net.TCPConn) (*Conn, error) {
	sys, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: tcp, tcp: tcp, sys: sys}
	c.in.try, c.out.try = c.in.read, c.out.write
	return c, nil
}

// Wrap is New for a dialer's connection. Other kinds of connections, and all connections
// where nothing is cheaper, are returned as they are.
func Wrap(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok && Supported {
		if s, err := New(tcp); err == nil {
			return s
		}
	}
	return c
}

// Sys is the socket beneath.
func (c *Conn) Sys() syscall.RawConn { return c.sys }

// inlet is one read.
type inlet struct {
	p   []byte
	n   int
	no  syscall.Errno
	try func(fd uintptr) bool // the method read as a value, made once

	waits func() // called before a wait; nil means nothing
}

func (r *inlet) read(fd uintptr) bool {
	var again bool
	r.n, again, r.no = receive(fd, r.p)
	if again && r.waits != nil {
		r.waits()
	}
	return !again
}

// BeforeWaiting makes each Read call f when no data is available and it is about to wait,
// so that collected data can be sent immediately. Data that arrives while f runs ends the
// wait. A Close by another goroutine waits for f. nil disables that.
func (c *Conn) BeforeWaiting(f func()) { c.in.waits = f }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return c.tcp.Read(p)
	}
	c.in.p = p
	err := c.sys.Read(c.in.try)
	c.in.p = nil
	if err != nil {
		return 0, c.waited(err, "read")
	}
	return c.in.n, c.readResult(c.in.n, c.in.no)
}

// ReadNow is Read without waiting, from within a callback of Sys().Read; again: nothing has
// come.
func (c *Conn) ReadNow(fd uintptr, p []byte) (n int, again bool, err error) {
	n, again, no := receive(fd, p)
	if again {
		return 0, true, nil
	}
	return n, false, c.readResult(n, no)
}

// readResult returns the result of a read.
func (c *Conn) readResult(n int, no syscall.Errno) error {
	switch {
	case no != 0:
		return c.failed("read", no)
	case n == 0:
		return io.EOF
	}
	return nil
}

// MaxParts is how many parts one write may have.
const MaxParts = 3

// outlet is one write.
type outlet struct {
	parts [MaxParts][]byte
	from  int // the first part that was not written
	to    int // after the last part
	sent  int
	once  bool // write only what the socket takes without waiting
	no    syscall.Errno
	try   func(fd uintptr) bool // the method write as a value, made once
	full  func()                // called before a wait; nil means nothing
}

func (w *outlet) write(fd uintptr) bool {
	for {
		for w.from < w.to && len(w.parts[w.from]) == 0 {
			w.from++
		}
		if w.from == w.to {
			return true
		}
		n, no := write(fd, w.parts[w.from:w.to])
		switch no {
		case 0:
			w.skip(n)
		case syscall.EINTR:
		case syscall.EAGAIN:
			if w.full != nil && !w.once {
				w.full()
			}
			return w.once
		default:
			w.no = no
			return true
		}
	}
}

// skip removes the written bytes.
func (w *outlet) skip(n int) {
	w.sent += n
	for i := w.from; n > 0; i++ {
		m := min(n, len(w.parts[i]))
		w.parts[i] = w.parts[i][m:]
		n -= m
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.out.parts[0], c.out.to = p, 1
	return c.write(false)
}

// WriteParts writes up to MaxParts parts with as few calls as possible.
func (c *Conn) WriteParts(parts ...[]byte) (int, error) {
	c.out.to = copy(c.out.parts[:], parts)
	return c.write(false)
}

// TryParts is WriteParts that ends when it would have to wait. It returns how much was
// written.
func (c *Conn) TryParts(parts ...[]byte) (int, error) {
	c.out.to = copy(c.out.parts[:], parts)
	return c.write(true)
}

func (c *Conn) write(once bool) (int, error) {
	w := &c.out
	w.from, w.sent, w.no, w.once = 0, 0, 0, once
	err := c.sys.Write(w.try)
	clear(w.parts[:w.to])
	switch {
	case err != nil:
		return w.sent, c.waited(err, "write")
	case w.no != 0:
		return w.sent, c.failed("write", w.no)
	}
	return w.sent, nil
}

// failed turns an error of the system into the error that package net would give.
func (c *Conn) failed(op string, no syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, no)}
}

// OnFull makes each write call f when the socket is full and the write is about to wait.
// nil ends that.
func (c *Conn) OnFull(f func()) { c.out.full = f }

// waited wraps an error of waiting with its operation.
func (c *Conn) waited(err error, op string) error {
	if e, ok := err.(*net.OpError); ok {
		e.Op = op
	}
	return err
}
