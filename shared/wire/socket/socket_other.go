//go:build !linux && !darwin

package socket

import "syscall"

// Supported tells whether sockets can be read and looked at without waiting.
// Where they cannot, a Conn is an ordinary connection.
const Supported = false

// Read is not to be had here.
func Read(uintptr, []byte) (n int, again bool, no syscall.Errno) { return 0, false, 0 }

type question struct{}

// Receive is not to be had here.
func (c *Conn) Receive(uintptr, []byte) (n int, more, again bool) { return 0, true, false }

// Quiet cannot be told here: a connection that the other side has closed fails
// when it is used.
func Quiet(uintptr) bool { return true }

// Ended cannot be told here.
func Ended(uintptr) bool { return false }

func write(uintptr, [][]byte) (int, syscall.Errno) { return 0, 0 }
