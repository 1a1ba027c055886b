//go:build linux

package egress

import (
	"syscall"
	"unsafe"
)

// quiet tells whether a socket is open and has nothing to read. Whatever it
// reads makes the connection useless, so it may read.
func quiet(fd uintptr) bool {
	var one [1]byte
	for {
		_, err := syscall.Read(int(fd), one[:])
		if err != syscall.EINTR {
			return err == syscall.EAGAIN
		}
	}
}

// gathered writes two parts to a socket as far as it takes them at once.
type gathered struct {
	parts [2]syscall.Iovec
	left  int
	sent  int
	err   error
	write func(fd uintptr) bool // try as a value, made once
}

// begin writes a, which is not empty, and b without waiting for room, and gives
// how much went out.
func (g *gathered) begin(sys syscall.RawConn, a, b []byte) (int, error) {
	g.sent, g.err = 0, nil
	g.parts[0].Base, g.parts[1].Base = unsafe.SliceData(a), unsafe.SliceData(b)
	g.parts[0].SetLen(len(a))
	g.parts[1].SetLen(len(b))
	g.left = len(a) + len(b)
	err := sys.Write(g.write)
	g.parts = [2]syscall.Iovec{}
	if err == nil {
		err = g.err
	}
	return g.sent, err
}

func (g *gathered) try(fd uintptr) bool {
	from := 0
	for g.left > 0 {
		if g.parts[0].Len == 0 {
			from = 1
		}
		n, _, no := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&g.parts[from])), uintptr(2-from))
		switch no {
		case 0:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return true
		default:
			g.err = no
			return true
		}
		g.sent, g.left = g.sent+int(n), g.left-int(n)
		for i := range g.parts {
			p := &g.parts[i]
			m := min(n, uintptr(p.Len))
			if n -= m; m == uintptr(p.Len) {
				*p = syscall.Iovec{}
			} else if m > 0 {
				p.Base = (*byte)(unsafe.Add(unsafe.Pointer(p.Base), m))
				p.SetLen(int(uintptr(p.Len) - m))
			}
		}
	}
	return true
}
