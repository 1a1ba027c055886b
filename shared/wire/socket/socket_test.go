//go:build linux && (amd64 || arm64)

package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a connection. Whatever a test waits for in vain ends.
func pair(t testing.TB) (mine *Conn, other *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	o, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	if mine, err = New(c.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(30 * time.Second)
	_ = mine.SetDeadline(soon)
	_ = o.SetDeadline(soon)
	return mine, o.(*net.TCPConn)
}

// numbered returns n bytes that show where each belongs.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16 ^ i>>8 ^ i)
	}
	return b
}

// TestAllBytesArrive: also when the socket takes only a part of what is written.
func TestAllBytesArrive(t *testing.T) {
	mine, other := pair(t)
	want := numbered(24 << 20) // more than both sides' buffers hold
	back := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(other)
		back <- b
	}()
	rest := want
	for i, sizes := range [][]int{{1}, {0, 1, 0}, {3_000_000, 0, 7_000_000}, {5, 10_000_000, 2}, {0, 0, 0}} {
		var parts [][]byte
		total := 0
		for _, n := range sizes {
			parts = append(parts, rest[:n])
			rest = rest[n:]
			total += n
		}
		if n, err := mine.WriteParts(parts...); n != total || err != nil {
			t.Fatalf("write %d: %d of %d, %v", i, n, total, err)
		}
	}
	if n, err := mine.Write(rest); n != len(rest) || err != nil {
		t.Fatalf("%d of %d, %v", n, len(rest), err)
	}
	_ = mine.CloseWrite()
	if got := <-back; !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived of %d, or others", len(got), len(want))
	}
	go func() {
		_, _ = other.Write(want)
		_ = other.CloseWrite()
	}()
	if got, err := io.ReadAll(mine); !bytes.Equal(got, want) || err != nil {
		t.Errorf("%d bytes came of %d, or others; %v", len(got), len(want), err)
	}
}

// TestTryPartsDoesNotWait: what it says went out has gone, and nothing else.
func TestTryPartsDoesNotWait(t *testing.T) {
	mine, other := pair(t)
	want := numbered(32 << 20)
	n, err := mine.TryParts(want[:10], want[10:])
	if err != nil || n < 10 || n == len(want) {
		t.Fatalf("%d, %v", n, err)
	}
	_ = mine.CloseWrite()
	if got, err := io.ReadAll(other); !bytes.Equal(got, want[:n]) || err != nil {
		t.Errorf("%d bytes arrived of %d, or others; %v", len(got), n, err)
	}
}

// TestErrorsAreThoseOfPackageNet for what ends a read or a write.
func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	one := make([]byte, 1)
	for _, c := range []struct {
		name string
		do   func(mine *Conn, other *net.TCPConn)
		op   func(mine *Conn) (int, error)
		want error
	}{
		{"a time that is over", func(mine *Conn, _ *net.TCPConn) { _ = mine.SetDeadline(time.Unix(1, 0)) },
			func(mine *Conn) (int, error) { return mine.Read(one) }, os.ErrDeadlineExceeded},
		{"a time that ends", func(mine *Conn, _ *net.TCPConn) { go func() { _ = mine.SetDeadline(time.Unix(1, 0)) }() },
			func(mine *Conn) (int, error) { return mine.Read(one) }, os.ErrDeadlineExceeded},
		{"no time to write", func(mine *Conn, _ *net.TCPConn) { _ = mine.SetDeadline(time.Unix(1, 0)) },
			func(mine *Conn) (int, error) { return mine.Write(one) }, os.ErrDeadlineExceeded},
		{"a close while it waits", func(mine *Conn, _ *net.TCPConn) { go func() { mine.Close() }() },
			func(mine *Conn) (int, error) { return mine.Read(one) }, net.ErrClosed},
		{"a close while it waits for room", func(mine *Conn, _ *net.TCPConn) { go func() { mine.Close() }() },
			func(mine *Conn) (int, error) {
				for {
					if _, err := mine.Write(make([]byte, 1<<20)); err != nil {
						return 0, err
					}
				}
			}, net.ErrClosed},
		{"a reset", func(_ *Conn, other *net.TCPConn) { _ = other.SetLinger(0); other.Close() },
			func(mine *Conn) (int, error) { return mine.Read(one) }, syscall.ECONNRESET},
		{"a broken pipe", func(mine *Conn, _ *net.TCPConn) { _ = mine.CloseWrite() },
			func(mine *Conn) (int, error) { return mine.Write(one) }, syscall.EPIPE},
	} {
		mine, other := pair(t)
		c.do(mine, other)
		n, err := c.op(mine)
		var op *net.OpError
		if n != 0 || !errors.Is(err, c.want) || !errors.As(err, &op) || op.Op != "read" && op.Op != "write" {
			t.Errorf("%s: %d, %v; want %v", c.name, n, err, c.want)
		}
	}
	mine, other := pair(t)
	other.Close()
	if n, err := mine.Read(one); n != 0 || err != io.EOF {
		t.Errorf("the end: %d, %v", n, err)
	}
}

func TestQuietAndEnded(t *testing.T) {
	mine, other := pair(t)
	check := func(f func(uintptr) bool) (is bool) {
		if err := mine.Sys().Control(func(fd uintptr) { is = f(fd) }); err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !check(IsIdle) || check(Ended) {
		t.Error("an open connection")
	}
	_, _ = other.Write([]byte("12"))
	for check(IsIdle) { // which takes one byte when it comes
	}
	if check(Ended) {
		t.Error("bytes are taken for the end")
	}
	if b := make([]byte, 2); true {
		if n, err := mine.Read(b); n != 1 || b[0] != '2' || err != nil {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
	other.Close()
	for !check(Ended) {
	}
	if check(IsIdle) {
		t.Error("the end is taken for silence")
	}
}
