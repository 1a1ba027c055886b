//go:build !linux && !darwin

package socket

import "syscall"

// Supported reports whether sockets can be read and inspected without waiting. If not,
// there must be no Conn.
const Supported = false

// IsIdle cannot be known on this system.
func IsIdle(uintptr) bool { return false }

// Ended cannot be known on this system.
func Ended(uintptr) bool { return true }

func receive(uintptr, []byte) (n int, again bool, no syscall.Errno) {
	return 0, false, syscall.EINVAL
}

func write(uintptr, [][]byte) (int, syscall.Errno) { return 0, syscall.EINVAL }
