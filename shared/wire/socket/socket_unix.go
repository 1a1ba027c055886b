//go:build linux || darwin

package socket

import "syscall"

// Supported reports whether sockets can be read and inspected without waiting. If not,
// there must be no Conn.
const Supported = true

// receive reads what has come to a socket without waiting; again: nothing has come. No
// bytes and no error mean the end.
func receive(fd uintptr, p []byte) (n int, again bool, no syscall.Errno) {
	for {
		n, no := read(fd, p)
		switch no {
		case 0:
			return n, false, 0
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, 0
		default:
			return 0, false, no
		}
	}
}

// IsIdle reports whether a socket is open and has nothing to read. It may read bytes,
// because any byte makes the connection useless.
func IsIdle(fd uintptr) bool {
	var one [1]byte
	_, again, _ := receive(fd, one[:])
	return again
}

// Ended reports whether the other side has closed a socket, after all of its bytes were
// read, or has broken it. It reads nothing.
func Ended(fd uintptr) bool {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			return n == 0
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			return true
		}
	}
}
