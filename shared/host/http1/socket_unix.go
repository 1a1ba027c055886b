//go:build linux || darwin

package http1

import "syscall"

// supported tells whether connections are served here. Where sockets cannot be
// looked at, net/http serves them all.
const supported = true

// receive reads what has come to a socket without waiting; again: nothing has.
func receive(fd uintptr, p []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), p)
		switch err {
		case nil:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, err
		}
	}
}

// ended tells whether the other side has closed a socket, all of whose bytes were
// read, or broken it. It reads nothing.
func ended(fd uintptr) bool {
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
