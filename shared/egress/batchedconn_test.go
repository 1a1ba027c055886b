package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// writesBegun counts the writes that have begun.
type writesBegun struct {
	net.Conn
	begun atomic.Int64
}

func (c *writesBegun) Write(p []byte) (int, error) {
	c.begun.Add(1)
	return c.Conn.Write(p)
}

// gatheredPair returns a batching connection, the connection below it, and the other end of
// TLS.
func gatheredPair(t *testing.T) (*batchedConn, *writesBegun, *tls.Conn) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	here, there := net.Pipe() // a write takes until it is read
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	far := tls.Server(there, server.TLS)
	shaken := make(chan error, 1)
	go func() { shaken <- far.Handshake() }()
	wire := &writesBegun{Conn: here}
	held := &corked{Conn: wire}
	secure := tls.Client(held, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}) // without tickets after the handshake
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	wire.begun.Store(0)
	return gather(secure, held), wire, far
}

// Data written during a write is sent by one write after it, in order.
func TestWritesAreGathered(t *testing.T) {
	g, wire, far := gatheredPair(t)
	want := []byte("the first")
	if _, err := g.Write(want); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first write", func() bool { return wire.begun.Load() == 1 })
	for i := range 5 {
		frame := bytes.Repeat([]byte{byte('a' + i)}, 16<<10+9)
		if _, err := g.Write(frame); err != nil {
			t.Fatal(err)
		}
		want = append(want, frame...)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(far, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes came than were written")
	}
	if n := wire.begun.Load(); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

// Who writes more than may wait is held until some of it has gone.
func TestGatheredWritesAreBounded(t *testing.T) {
	g, wire, far := gatheredPair(t)
	var taken atomic.Int64
	const frame, frames = 16 << 10, 40
	done := make(chan error, 1)
	go func() {
		for range frames {
			if _, err := g.Write(make([]byte, frame)); err != nil {
				done <- err
				return
			}
			taken.Add(frame)
		}
		done <- nil
	}()
	eventually(t, "a full buffer", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return wire.begun.Load() == 1 && g.pending != nil && len(*g.pending)+frame > maxGathered
	})
	if n := taken.Load(); n > 2*maxGathered {
		t.Errorf("%d bytes were taken while none went out", n)
	}
	if _, err := io.CopyN(io.Discard, far, frame*frames); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A broken connection reports the error to its writers and its reader; a closed one to those
// who wait.
func TestGatheredWritesFail(t *testing.T) {
	g, wire, _ := gatheredPair(t)
	_ = wire.Conn.Close()
	eventually(t, "an error", func() bool { _, err := g.Write([]byte("lost")); return err != nil })
	if _, err := g.Read(make([]byte, 1)); err == nil {
		t.Error("the reader waits on")
	}

	g, wire, _ = gatheredPair(t)
	failed := make(chan error, 1)
	go func() {
		for {
			if _, err := g.Write(make([]byte, 64<<10)); err != nil {
				failed <- err
				return
			}
		}
	}()
	eventually(t, "a write", func() bool { return wire.begun.Load() > 0 })
	_ = g.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
