//go:build !linux

package egress

import "syscall"

// quiet cannot be told here: a connection that the other side has closed fails
// when it is used.
func quiet(uintptr) bool { return true }

// gathered writes nothing here: the request is sent by ordinary writes.
type gathered struct{ write func(fd uintptr) bool }

func (g *gathered) begin(syscall.RawConn, []byte, []byte) (int, error) { return 0, nil }

func (g *gathered) try(uintptr) bool { return true }
