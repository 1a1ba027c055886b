//go:build unix

package main

import (
	"context"
	"os"
	"syscall"
)

// become runs a program in the place of this one.
func become(_ context.Context, program string, args []string) error {
	return syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
